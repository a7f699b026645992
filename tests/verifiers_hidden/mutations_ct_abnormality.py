"""Small changes of the perfect predictions, and the reward each must earn."""

import json
from collections.abc import Callable
from pathlib import Path

FILE = "predictions.txt"
Mutation = Callable[[Path, Path], None]


def lines(change: Callable[[list[str]], list[str]]) -> Mutation:
    """Return a mutation of the list of lines."""

    def apply(submission: Path, _gold: Path) -> None:
        path = submission / FILE
        path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))

    return apply


def text(change: Callable[[str], str], encoding: str = "utf-8") -> Mutation:
    def apply(submission: Path, _gold: Path) -> None:
        path = submission / FILE
        path.write_bytes(change(path.read_text()).encode(encoding))

    return apply


def flip(which: str) -> Mutation:
    """Return a mutation that turns the first scored ``yes`` or ``no``, or all ``unscored`` labels, round."""

    def apply(submission: Path, gold: Path) -> None:
        entries = json.loads((gold / "labels.json").read_text())["labels"]
        chosen = [entry["label"] for entry in entries if not entry["scored"]]
        if which in ("yes", "no"):
            chosen = [entry["label"] for entry in entries if entry["scored"] and entry["answer"] == which][:1]
        assert chosen
        lines(lambda old: [turned(line) if line.partition(":")[0] in chosen else line for line in old])(
            submission, gold
        )

    return apply


def turned(line: str) -> str:
    label, _, answer = line.partition(": ")
    return f"{label}: {'no' if answer == 'yes' else 'yes'}"


def first(change: Callable[[str], str]) -> Mutation:
    return lines(lambda old: [change(old[0]), *old[1:]])


MUTATIONS: list[tuple[str, Mutation, int]] = [
    ("unchanged", lines(lambda old: old), 1),
    ("reversed order", lines(lambda old: old[::-1]), 1),
    ("capitals", text(str.upper), 1),
    ("small letters", text(str.lower), 1),
    ("blank and comment lines between", lines(lambda old: [x for line in old for x in (line, "", "# seen: yes")]), 1),
    ("blanks around label and answer", lines(lambda old: ["  " + x.replace(": ", "  :\t") + " " for x in old]), 1),
    ("no blank after the colon", text(lambda old: old.replace(": ", ":")), 1),
    ("two blanks within labels", lines(lambda old: [x.replace(" ", "  ") for x in old]), 1),
    ("byte order mark", text(lambda old: old, "utf-8-sig"), 1),
    ("windows line ends", text(lambda old: old.replace("\n", "\r\n")), 1),
    ("no final line end", text(str.rstrip), 1),
    ("all unscored labels turned round", flip("unscored"), 1),
    ("one scored yes missed", flip("yes"), 0),
    ("one scored no claimed", flip("no"), 0),
    ("all turned round", lines(lambda old: [turned(x) for x in old]), 0),
    ("all yes", text(lambda old: old.replace(": no", ": yes")), 0),
    ("all no", text(lambda old: old.replace(": yes", ": no")), 0),
    ("one line missing", lines(lambda old: old[1:]), 0),
    ("one line twice", lines(lambda old: [*old, old[3]]), 0),
    ("one label both ways", lines(lambda old: [*old, turned(old[3])]), 0),
    ("both answers for all", lines(lambda old: old + [turned(x) for x in old]), 0),
    ("a label too many", lines(lambda old: [*old, "Pulmonary fibrotic sequela: no"]), 0),
    ("a label misspelt", first(lambda line: line.replace("Medical", "Medcal")), 0),
    ("a sentence between", lines(lambda old: [*old, "I am sure of this."]), 0),
    ("a junk line with a colon", lines(lambda old: [*old, "note: yes"]), 0),
    ("a thousand junk lines", lines(lambda old: [*old, *["x" * 50] * 1000]), 0),
    ("a full stop after an answer", first(lambda line: f"{line}."), 0),
    ("an answer with a remark", first(lambda line: f"{line} (small)"), 0),
    ("an answer with a comma", first(lambda line: f"{line}, small"), 0),
    ("digits for answers", text(lambda old: old.replace(": yes", ": 1").replace(": no", ": 0")), 0),
    ("true and false", text(lambda old: old.replace(": yes", ": true").replace(": no", ": false")), 0),
    ("dashes before the lines", lines(lambda old: [f"- {line}" for line in old]), 0),
    ("equals signs for colons", text(lambda old: old.replace(": ", " = ")), 0),
    ("an empty answer", first(lambda line: line.partition(":")[0] + ":"), 0),
    ("maybe", first(lambda line: line.partition(":")[0] + ": maybe"), 0),
    ("look-alike letters", text(lambda old: old.replace(": no", ": n\u043e")), 0),
    ("a zero-width blank in an answer", text(lambda old: old.replace(": no", ": no\u200b", 1)), 0),
    ("a no-break space for a blank", text(lambda old: old.replace("Lung nodule", "Lung\u00a0nodule")), 0),
    ("utf-16", text(lambda old: old, "utf-16"), 0),
    ("a JSON object", text(lambda old: json.dumps(dict(x.split(": ") for x in old.splitlines()))), 0),
    ("one JSON line per label", lines(lambda old: [json.dumps(dict([x.split(": ")])) for x in old]), 0),
]
