"""A picture of a case: the views of every study above the texts, and the edits marked where the gold is given."""

import difflib
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

WIDTH = 62
"""Characters a line of text."""
LINE_INCH, GAP_INCH = 0.145, 0.06
MOST_PX = 700
RIGHT, WRONG, PLAIN = "#1a7f37", "#c0392b", "#222222"
Piece = tuple[str, str]
"""Text and colour."""


def draw_figure(public: Path, gold: Path | None, out: Path, submission: Path | None = None) -> None:
    """Write the views of every study beside the draft; ``gold`` adds the truth, ``submission`` what was handed in."""
    studies = sorted(public.glob("study_*"))
    truth = json.loads((gold / "findings.json").read_text(encoding="utf-8")) if gold else None
    draft = _findings((studies[-1] / "report.txt").read_text(encoding="utf-8"))
    columns = _columns(draft, truth, _handed_in(submission, draft) if submission else None)
    views = [(study, sorted(study.glob("view_*"))) for study in studies]
    wide = max(sum(len(files) for _, files in views), 2)
    rows, across = 1 + (wide - 1) // 4, min(wide, 4)
    if len(studies) > 1:
        columns = [("Last earlier findings", _sentences(studies[-2])), *columns]
    heights = (3.4 * rows, 0.4 + max(_height(pieces) for _, pieces in columns))
    figure = Figure(figsize=(max(3.6 * across, 4.2 * len(columns)), sum(heights)), layout="constrained")
    halves = figure.add_gridspec(2, 1, height_ratios=heights)
    grid = halves[0].subgridspec(rows, across)
    cells = [figure.add_subplot(grid[number // across, number % across]) for number in range(rows * across)]
    for axes in cells:
        axes.axis("off")
    shown = [(study, path) for study, files in views for path in files]
    for axes, (study, path) in zip(cells, shown, strict=False):
        axes.imshow(_pixels(path), cmap="gray", vmin=0, vmax=255)
        target = " (target)" if study == studies[-1] else ""
        axes.set_title(f"{study.name} {path.name}{target}", fontsize=8)
    beside = halves[1].subgridspec(1, len(columns))
    for number, (title, pieces) in enumerate(columns):
        _write(figure.add_subplot(beside[0, number]), title, pieces, heights[1] - 0.4)
    figure.savefig(out, dpi=90, pil_kwargs={"optimize": True})


def _columns(draft: list[str], truth: dict[str, Any] | None, handed: list[str] | None) -> list[tuple[str, list[Piece]]]:
    """Return the texts side by side: draft, what was handed in, truth."""
    wrong = {error["sentence"]: error["kind"] for error in truth["errors"]} if truth else {}
    columns = [("Draft", [(text, WRONG if n in wrong else PLAIN) for n, text in enumerate(draft)])]
    if handed is not None:
        right = {_key(text) for text in truth["truth"]} if truth else set()
        known = {_key(text) for text in draft}
        pieces = []
        for text in handed:
            good = _key(text) in right or not truth
            colour = PLAIN if good and _key(text) in known else RIGHT if good else WRONG
            pieces.append((text, colour))
        columns.append(("Handed in", pieces))
    if truth:
        said = [
            (f"{text}  [{wrong[n].replace('_', ' ')}: {_edit(truth['draft'][n], text)}]" if n in wrong else text)
            for n, text in enumerate(truth["truth"])
        ]
        columns.append(("Truth", [(text, RIGHT if n in wrong else PLAIN) for n, text in enumerate(said)]))
    return columns


def _edit(draft: str, truth: str) -> str:
    """Return the first words that differ, as an edit."""
    one, other = draft.split(), truth.split()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            return f"{' '.join(one[a:b]) or 'nothing'} > {' '.join(other[c:d]) or 'nothing'}"
    return ""


def _handed_in(submission: Path, draft: list[str]) -> list[str]:
    """Return the sentences of a submission, whatever it is; nothing of it is trusted."""
    path = submission / "findings.txt"
    if path.is_symlink() or not path.is_file():
        return ["(nothing was handed in)"]
    with path.open("rb") as file:
        text = file.read(1 << 16).decode("utf-8", "replace")
    text = "".join(mark if mark.isprintable() else " " for mark in text)
    if text.lstrip().startswith("{"):
        return _edited(text, draft)
    return _split(text.partition("FINDINGS:")[2] or text)[:60]


def _edited(text: str, draft: list[str]) -> list[str]:
    """Return the draft after a list of edits, or the text where it is none."""
    result: list[str | None] = list(draft)
    try:
        for edit in json.loads(text)["edits"]:
            number = int(edit["sentence"]) - 1
            if 0 <= number < len(result):
                result[number] = str(edit["replace"]) if "replace" in edit else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return [text[:2000]]
    return [sentence for sentence in result if sentence is not None]


def _findings(report: str) -> list[str]:
    return _split(report.partition("FINDINGS:")[2].partition("IMPRESSION")[0])


def _sentences(study: Path) -> list[Piece]:
    return [(text, PLAIN) for text in _findings((study / "report.txt").read_text(encoding="utf-8"))]


def _split(text: str) -> list[str]:
    return [sentence.strip() for sentence in re.split(r"(?<=\.)\s+", text.strip()) if sentence.strip()]


def _key(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _pixels(path: Path) -> NDArray[np.float64]:
    """Return a view as 0 to 255, bone white, shrunk to what a page needs."""
    if path.suffix == ".dcm":
        image = pydicom.dcmread(path)
        pixels = image.pixel_array * (255.0 / (2**image.BitsStored - 1))
        pixels = 255 - pixels if image.PhotometricInterpretation == "MONOCHROME1" else pixels
    else:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("L"), float)
    step = max(1, max(pixels.shape) // MOST_PX)
    rows, columns = (size // step * step for size in pixels.shape)
    return np.asarray(pixels[:rows, :columns].reshape(rows // step, step, columns // step, step).mean((1, 3)))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text.replace("$", r"\$"), WIDTH) or [""]


def _height(pieces: list[Piece]) -> float:
    return sum(LINE_INCH * len(_wrapped(text)) + GAP_INCH for text, _ in pieces)


def _write(axes: Axes, title: str, pieces: list[Piece], height: float) -> None:
    """Write sentences under one another; ``height`` is the column's, in inches."""
    axes.axis("off")
    axes.set_title(title, fontsize=10, loc="left", fontweight="bold")
    level = 1.0
    for text, colour in pieces:
        lines = _wrapped(text)
        axes.text(0, level, "\n".join(lines), fontsize=7.5, color=colour, va="top", transform=axes.transAxes)
        level -= (LINE_INCH * len(lines) + GAP_INCH) / height
