"""What the tests of single findings share: the definitions' limits, one form of a finding drawn, and what holds of all."""

import re
from collections.abc import Callable
from importlib import import_module

import numpy as np

from categories.ct_abnormality import synthetic
from categories.ct_abnormality.canvas import open_canvas
from categories.ct_abnormality.labels import LABELS

KINDS = ("present", "grey", "lookalike")


def definitions() -> dict[str, tuple[float, float]]:
    """Return label -> (yes from, no up to) as the agent reads them."""
    rows = re.findall(
        r"^\| (\w[^|]*) \| [^|]* \| ([^|]*) \| ([^|]*) \|$", synthetic.DEFINITIONS.read_text(), re.MULTILINE
    )
    return {label: (_number(yes), _number(no)) for label, yes, no in rows if label != "label"}


def _number(cell: str) -> float:
    return 0.0 if cell == "none at all" else float(re.match(r"[\d.]+", cell).group())


def limits(key: str) -> tuple[float, float]:
    """Return (yes from, no up to) of a finding."""
    return definitions()[LABELS[key]]


def draw_on(patient, key: str, kind: str, seed: int, states: dict[str, str]):
    """Return (canvas, HU before, facts) of one form of a finding."""
    canvas = open_canvas(patient, np.random.default_rng(1))
    before = canvas.hu.copy()
    insert = getattr(import_module(f"categories.ct_abnormality.{key}"), kind)
    return canvas, before, insert(canvas, np.random.default_rng(seed), states)


def check_forms(drawn: Callable, key: str, seed: int) -> None:
    """Assert of all forms of a finding that they are drawn, where they say, and on the right side of the limits."""
    yes, no = limits(key)
    for kind in KINDS:
        canvas, before, facts = drawn(key, kind, seed)
        assert np.abs(canvas.hu - before).max() > 40, "nothing was drawn"
        assert np.isfinite(canvas.hu).all()
        assert facts["unit"]
        for place in facts["places"]:
            np.testing.assert_allclose(place["ras_mm"], canvas.patient.ras_mm(np.array(place["ijk"])), atol=0.05)
        if kind == "present":
            assert facts["measure"] >= 1.06 * yes
            assert len(facts["signs"]) >= 2
        elif kind == "grey":
            assert no < facts["measure"] < yes
        else:
            assert facts["measure"] <= 0.96 * no


def check_repeats(patient, key: str, states: dict[str, str]) -> None:
    """Assert that the same numbers give the same voxels and the same facts."""
    for kind in ("present", "lookalike"):
        first, _, facts = draw_on(patient, key, kind, 1, states)
        second, _, again = draw_on(patient, key, kind, 1, states)
        assert np.array_equal(first.hu, second.hu)
        assert facts == again


def ml(canvas, mask) -> float:
    """Return the volume of a mask, mL."""
    return float(mask.sum()) * float(np.prod(canvas.spacing_mm)) / 1000


def section_mm(canvas, mask) -> float:
    """Return the diameter of a disc as large as a mask's largest axial section."""
    area = mask.sum((0, 1)).max() * canvas.spacing_mm[0] * canvas.spacing_mm[1]
    return float(2 * np.sqrt(area / np.pi))


def reach_mm(canvas, mask) -> float:
    """Return the longest extent of a mask along its own main axis."""
    at = np.argwhere(mask) * np.array(canvas.spacing_mm)
    _, axes = np.linalg.eigh(np.cov((at - at.mean(0)).T))
    return float(np.ptp(at @ axes[:, -1]))
