"""Which agents of a block can be told apart, and where each may stand."""

import numpy as np
import polars as pl

from results import comparisons, statistics
from results.rows import UNIT
from results.tables import Cell, Section, points

LEVEL = 0.05


Found = list[tuple[tuple[str, str], comparisons.Paired, float]]
"""((a, b), comparison, Holm-adjusted p) of pairs of agents."""


def apart_sections(counted: pl.DataFrame) -> list[Section]:
    """Return the pairs, and the ranks and groups that follow from them."""
    found = compare_all(counted)
    return [_pairs(found), _ranks(counted["agent"].unique().sort().to_list(), found)]


def _pairs(found: Found) -> Section:
    """Pairs of agents by task, Holm over all pairs shown."""
    rows: list[tuple[Cell, ...]] = []
    for (a, b), pair, p in found:
        p_values = (f"{pair.p_sign_flip:.4f}", f"{p:.4f}", "yes" if p < LEVEL else "no")
        rows.append(
            (
                f"{a} - {b}",
                pair.tasks,
                pair.clusters,
                f"{100 * pair.difference:+.1f}",
                points(pair.low, pair.high),
                *p_values,
            )
        )
    note = (
        "Difference of success over the tasks both ran, in points; 95 % interval and exact sign-flip p for "
        f"{statistics.TASKS_LIKE_THESE}; Holm over all {len(found)} pairs. Without 'yes' two cannot be told apart."
    )
    header = ("pair", "tasks", "clusters", "difference", "95 %", "p", "p, Holm", "told apart")
    return Section("Which agents can be told apart", note, header, rows)


def compare_all(counted: pl.DataFrame) -> Found:
    """Return the comparison of all pairs of agents that share tasks."""
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


def _ranks(names: list[str], found: Found) -> Section:
    """Rank intervals instead of a bare order, and the groups within which no two agents can be told apart."""
    better = np.zeros((len(names), len(names)), bool)
    for (a, b), paired, p in found:
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
