"""A report as text: aligned for the terminal, Markdown, HTML, CSV, JSON. Names from agents and models are escaped."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from results.columns import CORE, Column, shown, to_csv
from results.report import BlockReport, Report
from results.tables import Cell, Section

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters and those that reorder text: names and messages are untrusted."""


@dataclass(frozen=True)
class Style:
    """How a format writes a table, a heading of level 0 or 1, and untrusted text."""

    table: Callable[[Sequence[str], list[list[str]]], str]
    heading: Callable[[int, str], str]
    text: Callable[[str], str]
    paragraph: Callable[[str], str] = str
    """Takes text that was escaped already."""


def as_json(report: Report) -> str:
    """Return the list of rows: the stable interface."""
    return json.dumps(report.rows, indent=1, allow_nan=False) + "\n"


def as_csv(report: Report) -> str:
    return to_csv(report.rows)


def as_text(report: Report) -> str:
    """Return aligned plain text, as wide as its content."""
    return _document(report, TEXT)


def as_markdown(report: Report) -> str:
    return _document(report, MARKDOWN)


def as_html(report: Report) -> str:
    """Return one page that needs nothing else: no script, no style sheet, no network."""
    return PAGE.format(body=_document(report, HTML))


def sections_as_text(sections: Sequence[Section]) -> str:
    """Return sections alone, for commands that show no report."""
    return "\n\n".join(_sections(sections, TEXT)) + "\n"


def sections_as_markdown(sections: Sequence[Section]) -> str:
    return "\n\n".join(_sections(sections, MARKDOWN)) + "\n"


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "html": as_html,
    "csv": as_csv,
    "json": as_json,
}


def _document(report: Report, style: Style) -> str:
    text, paragraph = style.text, style.paragraph
    parts = []
    for block in report.blocks:
        parts.append(style.heading(0, text(block.settings.title)))
        parts.append(paragraph(f"Runs: {text(', '.join(block.runs))}"))
        parts += [paragraph(f"Warning: {text(warning)}") for warning in block.warnings]
        columns = used_columns(block)
        rows = [[text(shown(column, row)) for column in columns] for row in block.rows]
        parts.append(style.table([text(column.title) for column in columns], rows))
        parts += _sections(block.sections, style)
    parts += _sections([report.published] if report.published else [], style)
    parts.append(style.heading(1, "How these numbers were made"))
    parts += [paragraph(style.text(note)) for note in report.notes]
    parts.append(paragraph(f"Prices: {text(report.prices)}."))
    parts.append(paragraph(f"Made {report.made_at:%Y-%m-%d %H:%M} UTC."))
    return "\n\n".join(parts) + "\n"


def _sections(sections: Sequence[Section], style: Style) -> list[str]:
    parts = []
    for section in sections:
        cells = [[style.text(cell_text(cell)) for cell in row] for row in section.rows]
        table = style.table([style.text(name) for name in section.header], cells)
        parts += [style.heading(1, style.text(section.title)), style.paragraph(style.text(section.note)), table]
    return parts


def used_columns(block: BlockReport, columns: Sequence[Column] = CORE) -> list[Column]:
    """Return the columns that say something in this block."""
    return [column for column in columns if any(shown(column, row) != "-" for row in block.rows)]


def clean(text: str) -> str:
    """Return untrusted text on one line without control characters."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\n", " ").replace("\t", " "))


def cell_text(cell: Cell) -> str:
    return "-" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)


def _aligned(header: Sequence[str], rows: list[list[str]]) -> str:
    lines = [list(header), *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    right = [all(_numeric(row[i]) for row in rows) for i in range(len(header))]
    made = ["  ".join(map(_padded, line, widths, right)) for line in lines]
    return "\n".join(line.rstrip() for line in [made[0], "  ".join("-" * width for width in widths), *made[1:]])


def _padded(cell: str, width: int, right: bool) -> str:
    return cell.rjust(width) if right else cell.ljust(width)


def _numeric(cell: str) -> bool:
    return cell == "-" or cell[:1].isdigit() or cell[:1] in "+-"


def _piped(header: Sequence[str], rows: list[list[str]]) -> str:
    lines = [list(header), ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#&])", r"\\\1", clean(text))


TEXT = Style(_aligned, lambda level, text: f"{text}\n{'=-'[level] * len(text)}", clean)
MARKDOWN = Style(_piped, lambda level, text: f"{'#' * (level + 1)} {text}", _escaped)


def _html_table(header: Sequence[str], rows: list[list[str]]) -> str:
    right = [all(_numeric(row[i]) for row in rows) for i in range(len(header))]
    head = "".join(f'<th scope="col">{name}</th>' for name in header)
    body = "".join(
        "<tr>"
        + "".join(f"<td{' class=n' if number else ''}>{cell}</td>" for cell, number in zip(row, right, strict=True))
        + "</tr>\n"
        for row in rows
    )
    return f"<div class=t><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"


HTML = Style(
    _html_table,
    lambda level, text: f"<h{level + 1}>{text}</h{level + 1}>",
    lambda text: escape(clean(text)),
    lambda text: f"<p>{text}</p>",
)
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Report</title><style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }}
.t {{ overflow-x: auto }} table {{ border-collapse: collapse }} td, th {{ padding: .2rem .6rem; text-align: left;
border-bottom: 1px solid #8886; white-space: nowrap }} .n {{ text-align: right; font-variant-numeric: tabular-nums }}
</style></head><body><main>
{body}</main></body></html>
"""
