"""Small changes of the perfect submission, and the reward each must earn."""

import json
from collections.abc import Callable
from pathlib import Path

FILE = "eligible_trials.txt"


def ids(submission: Path) -> list[str]:
    return (submission / FILE).read_text(encoding="utf-8").split()


def write(submission: Path, text: str) -> None:
    (submission / FILE).write_bytes(text.encode("utf-8"))


def lines(submission: Path, trials: list[str]) -> None:
    write(submission, "".join(f"{trial}\n" for trial in trials))


def others(gold: Path, count: int) -> list[str]:
    document = json.loads((gold / "gold.json").read_text(encoding="utf-8"))
    return [trial for trial in document["pool"] if trial not in document["eligible"]][:count]


def after(count: int) -> Callable[[Path, Path], None]:
    """The eligible trials first, then others."""
    return lambda s, g: lines(s, ids(s) + others(g, count))


def before(total: int) -> Callable[[Path, Path], None]:
    """Other trials first, so that the last eligible one stands at rank ``total``."""
    return lambda s, g: lines(s, others(g, total - len(ids(s))) + ids(s))


def foreign(s: Path, g: Path) -> None:
    lines(s, [f"NCT9{n:07d}" for n in range(100)] + ids(s))


def one_outside_at_50(s: Path, g: Path) -> None:
    mine = ids(s)
    lines(s, [*others(g, 50 - len(mine)), "NCT99999999", *mine])


def repeats(s: Path, g: Path) -> None:
    lines(s, [trial for trial in others(g, 5) for _ in range(30)] + ids(s))


def whole_pool_eligible_last(s: Path, g: Path) -> None:
    lines(s, others(g, 10**6) + ids(s))


MUTATIONS: list[tuple[str, Callable[[Path, Path], None], int]] = [
    ("reversed order", lambda s, g: lines(s, ids(s)[::-1]), 1),
    ("forty others after", after(40), 1),
    ("whole pool after", after(10**6), 1),
    ("last eligible at rank 50", before(50), 1),
    ("last eligible at rank 51", before(51), 0),
    ("hundred foreign ids first", foreign, 1),
    ("a foreign id takes no rank", one_outside_at_50, 1),
    ("repeats take no rank", repeats, 1),
    ("whole pool, eligible last", whole_pool_eligible_last, 0),
    ("one eligible missing", lambda s, g: lines(s, ids(s)[1:]), 0),
    ("one eligible missing, forty others", lambda s, g: lines(s, ids(s)[1:] + others(g, 40)), 0),
    ("one id damaged", lambda s, g: lines(s, [ids(s)[0][:-1] + ("0" if ids(s)[0][-1] != "0" else "1"), *ids(s)[1:]]), 0),
    ("lower case", lambda s, g: lines(s, [trial.lower() for trial in ids(s)]), 1),
    ("byte order mark", lambda s, g: write(s, "\ufeff" + "\n".join(ids(s))), 1),
    ("CRLF", lambda s, g: write(s, "\r\n".join(ids(s)) + "\r\n"), 1),
    ("lone CR, no end of line", lambda s, g: write(s, "\r".join(ids(s))), 1),
    ("blanks around ids", lambda s, g: lines(s, [f"  {trial}\t" for trial in ids(s)]), 1),
    ("blank lines and comments", lambda s, g: lines(s, ["# my list", "", *ids(s), "", "# end"]), 1),
    ("numbered lines", lambda s, g: lines(s, [f"{n}. {trial}" for n, trial in enumerate(ids(s), 1)]), 0),
    ("file names", lambda s, g: lines(s, [f"{trial}.xml" for trial in ids(s)]), 0),
    ("two ids in a line", lambda s, g: write(s, " ".join(ids(s)[:2]) + "\n" + "\n".join(ids(s)[2:]) + "\n"), 0),
    ("comma-separated", lambda s, g: write(s, ",".join(ids(s)) + "\n"), 0),
    ("a reason behind an id", lambda s, g: lines(s, [ids(s)[0] + " fits", *ids(s)[1:]]), 0),
    ("header", lambda s, g: lines(s, ["trial_id", *ids(s)]), 0),
    ("full-width digits", lambda s, g: lines(s, [ids(s)[0].translate({48 + n: 0xFF10 + n for n in range(10)}), *ids(s)[1:]]), 0),
    ("Cyrillic letter", lambda s, g: lines(s, [ids(s)[0].replace("C", "\u0421"), *ids(s)[1:]]), 0),
    ("every id commented out", lambda s, g: lines(s, [f"# {trial}" for trial in ids(s)]), 0),
    ("other file name", lambda s, g: (s / FILE).rename(s / "trials.txt"), 0),
]  # fmt: skip
