"""What the site's templates need of a block: plain values, formatted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from results.blocks import Block
from results.columns import ALL, COLUMNS, Column, Row, shown
from results.figures import figure_bytes
from results.frontier import Frontier, Measure, frontier_of
from results.render import used_columns
from results.report import BlockReport
from results.site.safe import readable

HEAT = {"success_rate": "Success", "cost_usd": "USD per trial", "minutes": "Minutes per trial"}
MEASURES: tuple[Measure, ...] = ("cost", "minutes")


def block_view(number: int, block: Block, made: BlockReport, out: Path) -> dict[str, Any]:
    """What the templates need of a block."""
    columns = used_columns(made)
    panels = [panel(frontier_of(block, measure), out / f"frontier-{number}-{measure}.svg") for measure in MEASURES]
    return {
        "number": number,
        "title": made.settings.title,
        "runs": made.runs,
        "warnings": made.warnings,
        "leaders": {"columns": columns, "rows": [_cells(columns, row) for row in made.rows]},
        "categories": sorted({row["category"] for row in made.rows} - {ALL}),
        "heat": {key: _heat_rows(made.rows, key) for key in HEAT},
        "agents": [_agent(row) for row in made.rows if row["category"] == ALL],
        "panels": panels,
        "sections": [section for section in made.sections if section.title != "By task"],
        "tasks": _task_rows(number, block),
    }


def _agent(row: Row) -> str:
    return "@".join(filter(None, (row["harness"], row["model"], row["effort"])))


def _cells(columns: Sequence[Column], row: Row) -> dict[str, Any]:
    cells = [
        {"text": readable(shown(c, row)), "sort": row[c.key], "numeric": c.kind not in ("text", "flag")}
        for c in columns
    ]
    return {"category": row["category"], "cells": cells}


def _heat_rows(rows: Sequence[Row], key: str) -> list[dict[str, Any]]:
    """Categories down, agents across; ``level`` 0 to 9 is the shade: the rate, or the share of the largest."""
    agents = [_agent(row) for row in rows if row["category"] == ALL]
    most = 1 if key == "success_rate" else max((row[key] for row in rows if row[key] is not None), default=0) or 1
    found = {(row["category"], _agent(row)): row for row in rows}
    categories = [*sorted({row["category"] for row in rows} - {ALL}), ALL]
    return [
        {"category": category, "cells": [_heat_cell(found.get((category, agent)), key, most) for agent in agents]}
        for category in categories
    ]


def _heat_cell(row: Row | None, key: str, most: float) -> dict[str, Any]:
    value = row[key] if row else None
    if row is None or value is None:
        return {"text": "-", "level": None, "n": ""}
    column = next(column for column in COLUMNS if column.key == key)
    interval = f"{100 * row['low']:.0f}-{100 * row['high']:.0f} %, " if key == "success_rate" else ""
    return {"text": shown(column, row), "level": min(int(value / most * 10), 9), "n": f"{interval}n {row['trials']}"}


def panel(frontier: Frontier, file: Path) -> dict[str, Any]:
    file.write_bytes(figure_bytes([frontier], "svg"))
    return {"file": file.name, "frontier": frontier}


def task_file(number: int, task: str) -> str:
    return f"{number}-{task.replace('/', '--')}"


def _task_rows(number: int, block: Block) -> list[dict[str, Any]]:
    table = block.trials.group_by("task").agg(pl.len().alias("trials"), pl.col("passed").sum()).sort("task")
    return [row | {"file": task_file(number, row["task"])} for row in table.iter_rows(named=True)]
