"""Climb one rung of a category's ladder: ``python tests/ladder/measure.py CATEGORY LEVEL SEED... [--scale small]``.

L0 runs every probe that must earn 0, L1 and L2 the scripts of this folder, L3 the category's own reference. Each runs
on the host as it would in a box: it sees the public folder (and a copy of the workspace) and nothing else. One line a
draw, then the count of passes; with none, the exact 95 % bound on their rate stands beside it.
"""

import argparse
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

import meds_env  # noqa: E402 (the tests' folder is on the path now)

from categories.catalog import find_task, load_catalog  # noqa: E402
from categories.spec import Category, Scale  # noqa: E402
from categories.staging import Staged, StageRequest, staged  # noqa: E402
from results.validity import bound_without_a_pass  # noqa: E402
from runners.cache import default_cache  # noqa: E402
from runners.harnesses.script import list_probes  # noqa: E402
from verifiers_hidden.__main__ import main as verifier  # noqa: E402

LEVELS = ("L0", "L1", "L2", "L3")
TOLD = {
    "clinical_trial_matching": ("eligible", "found"),
    "ehr_event_modelling": ("gate_auroc", "plain_auroc", "best_auroc"),
    "ehr_format_conversion": ("checks_failed", "checks_total"),
}
"""What stands beside the headline, where a verdict holds it."""


def scripts(category: Category, level: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the words of each script that stands on a rung."""
    if level == "L0":
        for probe in list_probes(category.folder):
            if probe["expects"] == "zero":
                yield str(probe["name"]), [str(category.folder / "probes.py"), str(probe["name"])]
    elif level == "L3":
        yield "reference", [str(category.folder / "reference.py")]
    else:
        yield level, [str(HERE / f"{category.id}_{level.lower()}.py")]


def solve(category: Category, words: list[str], draw: Staged, out: Path, limit_s: float) -> tuple[Path, str]:
    """Run a script on a draw; return what it submitted and its last words where it failed."""
    submission, workspace = out / "submission", out / "workspace"
    submission.mkdir(parents=True)
    if draw.workspace.is_dir():
        shutil.copytree(draw.workspace, workspace)
    else:
        workspace.mkdir()
    env = {"HOME": str(out), "HAB_DATA": str(draw.public), "HAB_SUBMISSION": str(submission)}
    env["OMP_WAIT_POLICY"] = "PASSIVE"  # threads that wait leave the cores to others; results do not change
    python, path = sys.executable, os.environ["PATH"]
    if category.image == "meds_etl":
        folder = meds_env.ensure()
        source = workspace / "MIMIC_IV_MEDS" / "src"
        env |= {"PYTHONPATH": str(source), "HAB_SOURCE": str(source / "MIMIC_IV_MEDS")}
        python, path = str(folder / "bin" / "python"), f"{folder / 'bin'}:{path}"
    env["PATH"] = path
    try:
        done = subprocess.run(
            [python, *words], cwd=workspace, env=env, check=False, capture_output=True, text=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return submission, f"took more than {limit_s:g} s"
    return submission, done.stderr[-500:] if done.returncode else ""


def judge(category: Category, submission: Path, gold: Path) -> dict[str, Any]:
    """Return the verdict on a submission, by the verifier's contract."""
    if category.verifier_image != "verifier":
        meds_env.ensure()
    numbers = dict(category.pass_rule.numbers)
    numbers |= {f"published_{name}": value for name, value in category.published_rule.numbers.items()}
    words = ["judge", category.id, "--gold", str(gold), "--submission", str(submission), "--rule", json.dumps(numbers)]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if verifier(words) != 0:
            raise SystemExit(f"no verdict on {submission}")
    verdict: dict[str, Any] = json.loads(out.getvalue().splitlines()[-1])
    return verdict


def climb(category: Category, level: str, seeds: list[str], scale: Scale, cache: Path, cases: list[str]) -> list[int]:
    """Print and return the rewards of one rung over all wanted draws."""
    rewards = []
    for seed in seeds:
        for case in cases:
            if category.image == "meds_etl":
                meds_env.ensure()  # at full scale it checks the gold
            request = StageRequest(find_task(f"{category.id}/{case}"), seed, 0, scale)
            with staged(request, cache) as draw:
                for name, words in scripts(category, level):
                    with tempfile.TemporaryDirectory(prefix="ladder-") as out:
                        began = time.monotonic()
                        limit_s = category.resources[scale].agent_timeout_s
                        submission, failure = solve(category, words, draw, Path(out), limit_s)
                        spent = time.monotonic() - began
                        verdict = judge(category, submission, draw.gold)
                    rewards.append(int(verdict["reward"]))
                    beside = {key: verdict["metrics"].get(key) for key in TOLD.get(category.id, ())}
                    told = " ".join(f"{key} {value:.4g}" for key, value in beside.items() if value is not None)
                    line = f"{seed!r} {case} {name}: reward {verdict['reward']}, {category.headline.metric} "
                    line += f"{verdict['headline']:.4g} {told} ({verdict['reason']}, {spent:.0f} s) {failure}"
                    print(line.rstrip(), flush=True)
    return rewards


def main(arguments: list[str] | None = None) -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = {category.id: category for category in load_catalog()}
    parser.add_argument("category", choices=sorted(known))
    parser.add_argument("level", choices=LEVELS)
    parser.add_argument("seeds", nargs="+", metavar="SEED")
    parser.add_argument("--scale", choices=("full", "small"), default="full")
    parser.add_argument("--case", action="append", help="only this case (may be repeated)")
    parser.add_argument("--cache", type=Path, default=default_cache().root)
    told = parser.parse_args(arguments)
    category = known[told.category]
    rewards = climb(category, told.level, told.seeds, told.scale, told.cache, told.case or list(category.cases))
    line = f"{category.id} {told.level}: {sum(rewards)} of {len(rewards)} passed"
    if not sum(rewards):
        line += f"; the rate is at most {bound_without_a_pass(len(rewards)):.1%} (95 %)"
    print(line)


if __name__ == "__main__":
    main()
