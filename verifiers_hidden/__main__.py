"""``python -I -m verifiers_hidden judge|perfect CATEGORY ...``: JSON on standard output is the contract."""

import argparse
import importlib
import json
import sys
from pathlib import Path

from verifiers_hidden.kit import Reason, Refused, Verdict, check_seal


def main(argv: list[str]) -> int:
    """Judge a submission or write the perfect one; exit status 3 means that the verifier itself is broken."""
    parser = argparse.ArgumentParser(prog="verifiers_hidden")
    parser.add_argument("action", choices=["judge", "perfect"])
    parser.add_argument("category")
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--submission", type=Path, help="judge: the collected folder")
    parser.add_argument("--rule", type=json.loads, default={}, help="judge: the pass rule's numbers, as JSON")
    parser.add_argument("--refused", nargs=2, metavar=("REASON", "MESSAGE"), help="judge: why nothing was collected")
    parser.add_argument("--out", type=Path, help="perfect: where to write the submission")
    args = parser.parse_args(argv)
    module = importlib.import_module(f"verifiers_hidden.{args.category}")
    check_seal(args.gold)
    if args.action == "perfect":
        module.perfect(args.gold, args.out)
        return 0
    print(json.dumps(_verdict(module, args).document(), ensure_ascii=True, allow_nan=False))  # noqa: T201 (the contract)
    return 0


def _verdict(module: object, args: argparse.Namespace) -> Verdict:
    """Turn a refusal into reward 0; ``missing`` gives the metrics of a submission that cannot be measured."""
    try:
        if args.refused:
            raise Refused(Reason(args.refused[0]), args.refused[1])
        verdict: Verdict = module.judge(args.submission, args.gold, args.rule)  # type: ignore[attr-defined]
    except Refused as refusal:
        headline, metrics = module.missing(args.gold)  # type: ignore[attr-defined]
        return Verdict(0, refusal.reason, headline, {**metrics, "published_reward": 0.0}, str(refusal))
    return verdict


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
