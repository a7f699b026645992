"""Small changes of the perfect submission, and the side of the pass rule on which each lands."""

import json
from collections.abc import Callable
from pathlib import Path

FILE = "flagged_rows.csv"
HEADER = "table,_row_id"


def lines(submission: Path) -> list[str]:
    return (submission / FILE).read_text(encoding="utf-8").splitlines()[1:]


def write(submission: Path, rows: list[str], header: str = HEADER, end: str = "\n") -> None:
    (submission / FILE).write_bytes(end.join([header, *rows, ""]).encode())


def clusters(gold: Path) -> list[dict]:
    return json.loads((gold / "clusters.json").read_text(encoding="utf-8"))["clusters"]


def one_cluster_missed(submission: Path, gold: Path) -> None:
    gone = {f"{row['table']},{row['_row_id']}" for row in clusters(gold)[0]["rows"]}
    write(submission, [row for row in lines(submission) if row not in gone])


def strangers(count: int) -> list[str]:
    return [f"labevents,{number:016x}" for number in range(count)]


def with_strangers(below: bool) -> Callable[[Path, Path], None]:
    """Add as many rows of no error as precision 0.3 just allows, or one more."""

    def mutate(submission: Path, gold: Path) -> None:
        errors = len(clusters(gold))
        allowed = int(errors / 0.3 - errors + 1e-9)
        write(submission, lines(submission) + strangers(allowed + (0 if below else 1)))

    return mutate


def one_row_each(submission: Path, gold: Path) -> None:
    write(submission, sorted({f"{c['rows'][-1]['table']},{c['rows'][-1]['_row_id']}" for c in clusters(gold)}))


def all_rows(submission: Path, gold: Path) -> None:
    write(submission, [f"{row['table']},{row['_row_id']}" for c in clusters(gold) for row in c["rows"]])


def other_table(submission: Path, gold: Path) -> None:
    write(submission, ["admissions," + row.split(",")[1] for row in lines(submission)])


def rewrite(change: Callable[[list[str]], list[str]], header: str = HEADER, end: str = "\n"):
    return lambda submission, _: write(submission, change(lines(submission)), header, end)


def raw(change: Callable[[bytes], bytes]):
    def mutate(submission: Path, gold: Path) -> None:
        path = submission / FILE
        path.write_bytes(change(path.read_bytes()))

    return mutate


def renamed(submission: Path, gold: Path) -> None:
    (submission / FILE).rename(submission / "Flagged_Rows.csv")


def same(rows: list[str]) -> list[str]:
    return rows


MUTATIONS: list[tuple[str, Callable[[Path, Path], None], int]] = [
    ("one error missed", one_cluster_missed, 0),
    ("strangers up to the floor", with_strangers(below=True), 1),
    ("one stranger too many", with_strangers(below=False), 0),
    ("one row per error", one_row_each, 1),
    ("all rows of all errors", all_rows, 1),
    ("right ids in another table", other_table, 0),
    ("every line twice", rewrite(lambda rows: rows + rows), 1),
    ("reversed", rewrite(lambda rows: rows[::-1]), 1),
    ("header row_id", rewrite(same, header="table,row_id"), 1),
    ("header rowid, upper case", rewrite(same, header="TABLE, ROWID "), 1),
    ("header without underscore or id", rewrite(same, header="table,id"), 0),
    ("no header", rewrite(lambda rows: rows[1:], header="x"), 0),
    ("extra column", rewrite(lambda rows: [row + ",because" for row in rows], header="table,_row_id,why"), 1),
    (
        "columns exchanged",
        rewrite(lambda rows: [",".join(r.split(",")[::-1]) for r in rows], header="_row_id,table"),
        1,
    ),
    ("columns exchanged under the old header", rewrite(lambda rows: [",".join(r.split(",")[::-1]) for r in rows]), 0),
    ("a column twice", rewrite(lambda rows: [row + ",x" for row in rows], header="table,_row_id,_row_id"), 0),
    ("CRLF", rewrite(same, end="\r\n"), 1),
    ("byte order mark", raw(lambda data: b"\xef\xbb\xbf" + data), 1),
    ("trailing blanks", rewrite(lambda rows: [row + "  " for row in rows]), 1),
    ("quoted cells", rewrite(lambda rows: ['"' + row.replace(",", '","') + '"' for row in rows]), 1),
    (
        "ids in upper case",
        rewrite(lambda rows: [row.split(",")[0] + "," + row.split(",")[1].upper() for row in rows]),
        0,
    ),
    ("ids cut short", rewrite(lambda rows: [row[:-1] for row in rows]), 0),
    ("file endings on table names", rewrite(lambda rows: [row.replace(",", ".csv.gz,") for row in rows]), 0),
    ("semicolons", rewrite(lambda rows: [row.replace(",", ";") for row in rows], header="table;_row_id"), 0),
    ("a ragged line", rewrite(lambda rows: [*rows, "labevents"]), 0),
    ("UTF-16", raw(lambda data: data.decode().encode("utf-16")), 0),
    ("header only", rewrite(lambda rows: []), 0),
    ("another file name", renamed, 0),
]
