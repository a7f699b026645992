"""Which agents of a block can be told apart, and where each may stand."""

import numpy as np
import polars as pl

from results import comparisons, statistics
from results.blocks import Block
from results.rows import UNIT
from results.tables import Cell, Section

LEVEL = 0.05


def apart(_: Block, counted: pl.DataFrame) -> Section:
    """Pairs of agents by task, Holm over all pairs shown."""
    found = compare_all(counted)
    rows: list[tuple[Cell, ...]] = []
    for (a, b), pair, p in found:
        interval = f"{_points(pair.low)} to {_points(pair.high)}"
        p_values = (f"{pair.p_sign_flip:.4f}", f"{p:.4f}", "yes" if p < LEVEL else "no")
        rows.append((f"{a} - {b}", pair.tasks, pair.clusters, _points(pair.difference), interval, *p_values))
    note = (
        "Difference of success over the tasks both ran, in points; 95 % interval and exact sign-flip p for "
        f"{statistics.TASKS_LIKE_THESE}; Holm over all {len(found)} pairs. Without 'yes' two cannot be told apart."
    )
    header = ("pair", "tasks", "clusters", "difference", "95 %", "p", "p, Holm", "told apart")
    return Section("Which agents can be told apart", note, header, rows)


def compare_all(counted: pl.DataFrame) -> list[tuple[tuple[str, str], comparisons.Paired, float]]:
    """Return ((a, b), comparison, Holm-adjusted p) for all pairs of agents that share tasks."""
    tables = {str(agent): _by_unit(part) for (agent,), part in counted.group_by(["agent"], maintain_order=True)}
    names = sorted(tables)
    found = []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            both = tables[a].join(tables[b], on=["template", *UNIT], suffix="_b")
            if both.height:
                sides = ((both["c"], both["n"]), (both["c_b"], both["n_b"]))
                pair = comparisons.paired(*sides, both["template"].to_list())
                found.append(((a, b), pair))
    adjusted = comparisons.holm([pair.p_sign_flip for _, pair in found])
    return [(names, pair, float(p)) for (names, pair), p in zip(found, adjusted, strict=True)]


def _by_unit(part: pl.DataFrame) -> pl.DataFrame:
    counts = part.group_by(["template", *UNIT]).agg(pl.col("passed").sum().alias("c"), pl.len().alias("n"))
    return counts.sort("template", *UNIT)


def _points(fraction: float) -> str:
    return f"{100 * fraction:+.1f}"


def ranks(_: Block, counted: pl.DataFrame) -> Section:
    """Rank intervals instead of a bare order, and the groups within which no two agents can be told apart."""
    names = counted["agent"].unique().sort().to_list()
    found = {pair: (paired, p) for pair, paired, p in compare_all(counted)}
    better = np.zeros((len(names), len(names)), bool)
    for (a, b), (paired, p) in found.items():
        if p < LEVEL:
            i, j = names.index(a), names.index(b)
            better[(i, j) if paired.difference > 0 else (j, i)] = True
    intervals, groups = comparisons.rank_intervals(better), comparisons.groups(better)
    letters = {group: chr(ord("a") + n) if n < 26 else f"g{n}" for n, group in enumerate(groups)}
    rows: list[tuple[Cell, ...]] = []
    for i, name in enumerate(names):
        own = " ".join(letter for group, letter in letters.items() if i in group)
        rows.append((name, intervals[i].best, intervals[i].worst, own))
    note = "Best and worst rank that the comparisons above leave open; agents that share a letter cannot be told apart."
    header = ("agent", "best rank", "worst rank", "groups")
    return Section("Ranks", note, header, sorted(rows, key=lambda row: row[1:3]) if len(names) > 1 else [])
