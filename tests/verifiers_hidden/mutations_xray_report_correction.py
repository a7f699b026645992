"""Small changes of the perfect text, and the reward each must earn."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

Gold = dict[str, Any]
Change = Callable[[list[str], Gold], list[str]]
OPPOSITE = {"left": "right", "right": "left"}
GRADES = {"small": "large", "large": "small", "mild": "severe", "severe": "mild", "moderate": "severe"}
GRADES |= {"mildly": "severely", "moderately": "severely", "severely": "mildly", "marked": "mild", "markedly": "mildly"}
NORMAL = "No focal consolidation, pleural effusion or pneumothorax."


def lines(change: Change) -> Callable[[Path, Path], None]:
    """Return a mutation that edits the list of true sentences, knowing the gold."""

    def apply(submission: Path, gold: Path) -> None:
        document = json.loads((gold / "findings.json").read_text())
        found = change(list(document["truth"]), document)
        (submission / "findings.txt").write_text("FINDINGS:\n" + "\n".join(found) + "\n")

    return apply


def text(change: Callable[[str, Gold], str], encoding: str = "utf-8") -> Callable[[Path, Path], None]:
    """Return a mutation that rewrites the whole file."""

    def apply(submission: Path, gold: Path) -> None:
        path = submission / "findings.txt"
        document = json.loads((gold / "findings.json").read_text())
        path.write_bytes(change(path.read_text(), document).encode(encoding))

    return apply


def edits(change: Callable[[list[dict[str, Any]], Gold], Any]) -> Callable[[Path, Path], None]:
    """Return a mutation that hands in the edits of the draft instead of the text."""

    def apply(submission: Path, gold: Path) -> None:
        document = json.loads((gold / "findings.json").read_text())
        pairs = zip(document["draft"], document["truth"], strict=True)
        right = [{"sentence": n, "replace": truth} for n, (draft, truth) in enumerate(pairs, 1) if truth != draft]
        (submission / "findings.txt").write_text(json.dumps(change(right, document)))

    return apply


def wrong(gold: Gold) -> list[int]:
    """Return the draft's wrong sentences."""
    return sorted({error["sentence"] for error in gold["errors"]})


def place(gold: Gold, suits: Callable[[dict[str, Any]], object]) -> int:
    """Return the first sentence with one true statement, and that a suitable one."""
    return next(n for n, said in enumerate(gold["statements"]) if len(said) == 1 and suits(said[0]))


def drafted(number: int) -> Change:
    """Leave one wrong sentence as drafted; of those there are, the given one."""

    def change(found: list[str], gold: Gold) -> list[str]:
        where = wrong(gold)[number]
        return [*found[:where], gold["draft"][where], *found[where + 1 :]]

    return change


def swapped(words: dict[str, str], slot: str, values: tuple[str, ...]) -> Change:
    """Replace a word in the first sentence whose statement has one of these values."""

    def change(found: list[str], gold: Gold) -> list[str]:
        where = place(gold, lambda one: one["status"] == "present" and one[slot] in values)
        found[where] = re.sub(
            rf"(?i)\b({'|'.join(words)})\b", lambda m: words[m[0].lower()], found[where].replace("-sided", ""), count=1
        )
        return found

    return change


def dropped(suits: Callable[[dict[str, Any]], object]) -> Change:
    def change(found: list[str], gold: Gold) -> list[str]:
        del found[place(gold, suits)]
        return found

    return change


def is_plain(gold: Gold) -> int:
    """Return a sentence that states nothing in scope."""
    return next(n for n, said in enumerate(gold["statements"]) if not said)


def absent_kind(gold: Gold) -> str:
    """Return the words of a finding that is not there."""
    words = {"pleural_effusion": "pleural effusion", "pneumothorax": "pneumothorax", "nodule": "pulmonary nodule"}
    words |= {"pulmonary_edema": "pulmonary edema", "granuloma": "calcified granuloma"}
    return next(
        words[one["finding"]] for one in gold["other_truths"] if one["status"] == "absent" and one["finding"] in words
    )


def with_both(found: list[str], gold: Gold) -> list[str]:
    where = place(gold, lambda one: one["side"] in OPPOSITE)
    side = gold["statements"][where][0]["side"]
    found[where] = re.sub(rf"(?i)\b{side}\b", f"{side} [{OPPOSITE[side]}]", found[where], count=1)
    return found


def is_present(one: dict[str, Any]) -> bool:
    return one["status"] == "present"


MUTATIONS: list[tuple[str, Callable[[Path, Path], None], int]] = [
    ("unchanged", lines(lambda found, _: found), 1),
    ("one paragraph", lines(lambda found, _: [" ".join(found)]), 1),
    ("other order", lines(lambda found, _: found[::-1]), 1),
    ("without the head", text(lambda old, _: old.replace("FINDINGS:\n", "")), 1),
    ("an impression after it", text(lambda old, _: f"{old}\nIMPRESSION: Large left pneumothorax.\n"), 1),
    ("byte order mark", text(lambda old, _: old, "utf-8-sig"), 1),
    ("windows line ends", text(lambda old, _: old.replace("\n", "\r\n")), 1),
    ("capitals", text(lambda old, _: old.upper()), 1),
    ("a plain sentence dropped", lines(lambda f, g: f[: is_plain(g)] + f[is_plain(g) + 1 :]), 1),
    ("a plain sentence added", lines(lambda found, _: [*found, "The patient is rotated."]), 1),
    ("a sentence twice", lines(lambda found, _: found + found[:1]), 1),
    ("an absent finding denied", lines(lambda f, g: [*f, f"There is no {absent_kind(g)}."]), 1),
    ("list of edits", edits(lambda right, _: {"edits": right}), 1),
    ("list of edits, turned round", edits(lambda right, _: {"edits": right[::-1]}), 1),
    ("first error left", lines(drafted(0)), 0),
    ("second error left", lines(drafted(1)), 0),
    ("last error left", lines(drafted(-1)), 0),
    ("all errors left", lines(lambda _, gold: gold["draft"]), 0),
    ("a side turned", lines(swapped(OPPOSITE, "side", ("left", "right"))), 0),
    ("a side left out", lines(swapped({"left": "", "right": ""}, "side", ("left", "right"))), 0),
    ("both sides, one in brackets", lines(with_both), 0),
    ("a severity turned", lines(swapped(GRADES, "severity", ("small", "moderate", "large", "mild", "severe"))), 0),
    ("a present finding dropped", lines(dropped(is_present)), 0),
    (
        "a present finding denied",
        lines(lambda f, g: [*f, f"No {g['statements'][place(g, is_present)][0]['finding'].replace('_', ' ')}."]),
        0,
    ),
    ("an absent finding stated", lines(lambda f, g: [*f, f"There is a {absent_kind(g)}."]), 0),
    ("draft after the truth", lines(lambda found, gold: found + gold["draft"]), 0),
    ("only a normal sentence", lines(lambda _found, _gold: [NORMAL]), 0),
    ("one edit missing", edits(lambda right, _: {"edits": right[1:]}), 0),
    ("an edit twice", edits(lambda right, _: {"edits": right + right[:1]}), 0),
    (
        "an edit beyond the draft",
        edits(lambda r, g: {"edits": [*r, {"sentence": len(g["draft"]) + 1, "delete": True}]}),
        0,
    ),
    ("edits with another key", edits(lambda right, _: {"edits": right, "note": "done"}), 0),
    ("edits as a bare list", edits(lambda right, _: right), 0),
    ("utf-16", text(lambda old, _: old, "utf-16"), 0),
]
