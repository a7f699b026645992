"""ROC curve and calibration of predicted probabilities, from what the verdict keeps of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from results.site.detail import Picture
from results.site.svg import Point, dot, drawing, line, text

SIDE = 260
"""Pixels along an axis."""
LEFT, TOP = 50, 24
BLUE, GREY, RED = "#1b4f7a", "#6b6b6b", "#9b1c1c"


def roc_and_calibration(details: Mapping[str, Any], metrics: Mapping[str, float]) -> Sequence[Picture]:
    """Draw both side by side; nothing where the verdict kept no curve."""
    roc, groups = details.get("roc"), details.get("calibration")
    if not roc or not groups:
        return []
    auroc, gate = metrics.get("realised_auroc", 0.0), metrics.get("gate_realised_auroc", 0.0)
    own, bar = f"submission {auroc:.3f}", f"gate {gate:.3f}"
    parts = [*_frame(LEFT, "1 - specificity", "sensitivity"), *_diagonal(LEFT)]
    parts += [
        line([_place(LEFT, x, y) for x, y in details.get("gate_roc", ())], colour=GREY, dash="6 3"),
        line([_place(LEFT, x, y) for x, y in roc], colour=BLUE, width=2),
        text(LEFT + SIDE - 6, TOP + SIDE - 24, own, colour=BLUE, anchor="end"),
        text(LEFT + SIDE - 6, TOP + SIDE - 8, bar, colour=GREY, anchor="end"),
    ]
    right = LEFT + SIDE + 80
    parts += [*_frame(right, "mean predicted probability", "observed share"), *_diagonal(right)]
    points = [_place(right, group["predicted"], group["observed"]) for group in groups]
    largest = max(group["n"] for group in groups)
    parts += [line(points, colour=RED)]
    parts += [
        dot(point, 2 + 4 * (group["n"] / largest) ** 0.5, colour=RED)
        for point, group in zip(points, groups, strict=True)
    ]
    words = "; ".join(f"predicted {g['predicted']:.2f}, observed {g['observed']:.2f} of {g['n']}" for g in groups)
    alt = f"ROC curve: {own}, {bar}. Calibration by groups of equal size: {words}."
    title = "ROC curve and calibration, by realised labels"
    return [Picture(title, "image/svg+xml", drawing(right + SIDE + 20, TOP + SIDE + 50, parts), alt)]


def _place(left: float, x: float, y: float) -> Point:
    return left + x * SIDE, TOP + (1 - y) * SIDE


def _diagonal(left: float) -> list[str]:
    return [line([_place(left, 0, 0), _place(left, 1, 1)], colour="#b5b5b5", width=1, dash="2 3")]


def _frame(left: float, across: str, up: str) -> list[str]:
    corners = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]
    parts = [line([_place(left, x, y) for x, y in corners], colour="#1a1a1a", width=1)]
    for tick in (0, 0.5, 1):
        parts.append(text(left + tick * SIDE, TOP + SIDE + 16, f"{tick:g}", anchor="middle"))
        parts.append(text(left - 6, TOP + (1 - tick) * SIDE + 4, f"{tick:g}", anchor="end"))
    parts.append(text(left + SIDE / 2, TOP + SIDE + 36, across, anchor="middle"))
    parts.append(text(left, TOP - 8, up))
    return parts
