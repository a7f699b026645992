"""The frontier as a figure, SVG or PNG: success against cost or time on a logarithmic axis, one panel per frontier."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from results.frontier import Frontier, Point

AXIS = {"cost": "USD per trial (logarithmic)", "minutes": "agent minutes per trial (logarithmic)"}
ON, OFF, RETRY = "#0b5394", "#6b6b6b", "#b45f06"
"""Told apart by marker and fill as well as by colour."""
STYLE: Any = {"svg.hashsalt": "hab-suite", "svg.fonttype": "none", "font.size": 9.0, "font.family": "DejaVu Sans"}
GAP = 0.028
"""Least distance of two labels, as a share of the axis."""


def frontier_figure(panels: Sequence[Frontier]) -> Figure:
    """Draw the panels side by side, success on one scale."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5 * len(panels), 5.2), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for ax, panel in zip(axes, panels, strict=True):
            _draw(ax, panel)
        axes[0].set_ylabel("success, % of trials")
        return figure


def save_frontier(panels: Sequence[Frontier], target: Path) -> None:
    """Write ``target``; its suffix (.svg or .png) says in which format. Equal input gives equal bytes."""
    target.write_bytes(figure_bytes(panels, target.suffix.removeprefix(".")))


def figure_bytes(panels: Sequence[Frontier], kind: str) -> bytes:
    content = BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(STYLE):
        frontier_figure(panels).savefig(content, format=kind, dpi=150, metadata=metadata)
    return content.getvalue()


def _draw(ax: Axes, panel: Frontier) -> None:
    points = [point for point in panel.points if point.value > 0]
    ax.set_title(panel.title, fontsize=9, loc="left", wrap=True)
    ax.set_xlabel(AXIS[panel.measure])
    ax.set_ylim(0, 100)
    ax.grid(visible=True, which="major", alpha=0.25)
    if not points:
        ax.text(0.5, 0.5, "no agent with a known value", transform=ax.transAxes, ha="center")
        return
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    for point in points:
        _mark(ax, point)
    _lines(ax, points)
    retries = [point.retry for point in points if point.retry and point.retry[0] > 0]
    if retries:
        x, y = zip(*retries, strict=True)
        label = "up to k tries: pass@k at k times the value"
        ax.scatter(x, [100 * v for v in y], marker="^", facecolors="none", edgecolors=RETRY, s=28, label=label)
    values = [v for p in points for v in (p.value, *(p.retry[:1] if p.retry else ()))]
    ax.set_xlim(min(values) / 1.4, max(values) * 2.6)
    _label(ax, points)
    ax.legend(loc="upper left", fontsize=7.5, frameon=False)


def _lines(ax: Axes, points: Sequence[Point]) -> None:
    """Draw the frontier as steps, and its hull, which is straight in money and so bends on a logarithmic axis."""
    on = sorted((point.value, 100 * point.success) for point in points if point.on_frontier)
    ax.plot(*zip(*on, strict=True), "-", color=ON, lw=1.2, drawstyle="steps-post", label="frontier", zorder=1)
    values, successes = zip(*sorted((p.value, 100 * p.success) for p in points if p.on_hull), strict=True)
    grid = np.geomspace(values[0], values[-1], 200)
    mixed = np.interp(grid, values, successes)
    ax.plot(grid, mixed, ":", color=ON, lw=1.2, label="hull: what mixing agents cannot beat", zorder=1)


def _mark(ax: Axes, point: Point) -> None:
    color = ON if point.on_frontier else OFF
    success = 100 * point.success
    ax.errorbar(
        point.value,
        success,
        yerr=[[success - 100 * point.low], [100 * point.high - success]],
        xerr=None
        if point.value_low is None or point.value_high is None
        else [[max(point.value - point.value_low, 0)], [max(point.value_high - point.value, 0)]],
        fmt="o" if point.on_frontier else "s",
        color=color,
        mfc=color if point.on_frontier else "white",
        ms=5,
        lw=0.8,
        alpha=0.9,
    )


def _label(ax: Axes, points: Sequence[Point]) -> None:
    """Write the names beside the points, moved up where two would touch."""
    last = -1.0
    for point in sorted(points, key=lambda point: point.success):
        y = max(point.success, last + GAP)
        last = y
        share = "" if point.membership is None else f" ({100 * point.membership:.0f} %)"
        ax.annotate(
            f"{point.agent}{share}",
            (point.value, 100 * point.success),
            (point.value * 1.04, 100 * y - 0.6),
            fontsize=7,
            va="top",
            bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 0.4},
            color=ON if point.on_frontier else OFF,
        )
