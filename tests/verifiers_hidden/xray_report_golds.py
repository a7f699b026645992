"""Golds without pictures, and the verdict on a text: what the tests of the report judge share."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from categories.draw import Draw
from categories.spec import Case
from categories.xray_report_correction.casefile import draw_case, gold_of, labelled
from verifiers_hidden.kit import Verdict
from verifiers_hidden.xray_report_correction import judge
from verifiers_hidden.xray_report_correction.compare import Difference, Told, Truth, differences
from verifiers_hidden.xray_report_correction.gold import claim_of
from verifiers_hidden.xray_report_correction.parse import claims
from verifiers_hidden.xray_report_correction.sentences import split
from verifiers_hidden.xray_report_correction.weigh import weigh

RULE = {"significant_errors": 0.0, "published_significant_errors": 0.0}


def golds(count: int, first: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the golds of generated cases: portable and upright in turn, with 0 to 3 earlier studies."""
    for seed in range(first, first + count):
        rng_of = labelled(Draw("case", Case(title="case"), seed.to_bytes(32, "big"), "small"))
        yield gold_of(draw_case(rng_of, "pa" if seed % 2 else "ap", seed % 4))


def verdict(folder: Path, gold: dict[str, Any], text: str) -> Verdict:
    """Judge a text."""
    (folder / "gold").mkdir(exist_ok=True, parents=True)
    (folder / "submission").mkdir(exist_ok=True)
    (folder / "gold" / "findings.json").write_text(json.dumps(gold), encoding="utf-8")
    (folder / "submission" / "findings.txt").write_bytes(text.encode())
    return judge(folder / "submission", folder / "gold", RULE)


def read_against(text: str, statements: list[dict[str, Any]]) -> list[Difference]:
    """Return the differences between what a text is read to say and statements."""
    truths = [Truth(claim_of(one), 0) for one in statements]
    told = [Told(claim, 0, 0) for group in claims(split(text)) for claim in group]
    return differences(truths, told)


def significant(found: list[Difference]) -> list[Difference]:
    return [error.difference for error in weigh(found, []) if error.significant]


def explained(result: Verdict) -> str:
    """Return what a verdict holds against a text."""
    rows = [(row["text"], row["errors"]) for row in result.details["sentences"] if row["errors"]]
    return f"{rows} {result.details['not_said']}"


STATEMENT = {
    "finding": "pleural_effusion",
    "status": "present",
    "side": None,
    "location": None,
    "severity": None,
    "size_mm": None,
    "count": None,
    "change": None,
    "tip": None,
}


def statement(finding: str, status: str = "present", **slots: Any) -> dict[str, Any]:
    return {**STATEMENT, "finding": finding, "status": status, **slots}


def gold_by_hand(pairs: list[tuple[str, list[dict[str, Any]], str, list[dict[str, Any]]]]) -> dict[str, Any]:
    """Return a gold of (draft, its statements, truth, its statements); where they differ is an error."""
    return {
        "draft": [pair[0] for pair in pairs],
        "draft_statements": [pair[1] for pair in pairs],
        "truth": [pair[2] for pair in pairs],
        "statements": [pair[3] for pair in pairs],
        "errors": [{"sentence": n} for n, pair in enumerate(pairs) if pair[1] != pair[3]],
        "other_truths": [],
    }
