"""CT abnormality: the grain of what was drawn is that of the patient's own tissue beside it."""

from dataclasses import dataclass

import numpy as np
import pytest
from ct_draws import draw_of
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.metrics import roc_auc_score

from categories.chest.finish import finish
from categories.chest.labels import where
from categories.chest.patient import draw_patient
from categories.ct_abnormality.canvas import open_canvas
from categories.ct_abnormality.findings import FINDINGS, draw_body

SOLID = ("pleural_effusion", "pericardial_effusion", "consolidation", "atelectasis", "nodule", "lymphadenopathy")
"""Findings that put soft tissue or fluid where there was none."""
NATIVE = ("liver", "heart", "spleen", "aorta", "autochthon_left", "autochthon_right")
PATIENTS, PAIRS = 12, 200


@dataclass(frozen=True)
class Grain:
    """A finished volume without its slow changes, and where soft tissue was drawn or has always been."""

    fine: NDArray[np.float32]
    drawn: NDArray[np.bool_]
    native: NDArray[np.bool_]

    def measure(self, at: NDArray[np.int64], mask: NDArray[np.bool_]) -> tuple[float, ...] | None:
        """Return spread and correlation along slices and columns of a small block, None if it is not all tissue."""
        i, j, k = (int(value) for value in at)
        part = (slice(i - 3, i + 4), slice(j - 3, j + 4), slice(k - 1, k + 2))
        block = self.fine[part]
        if block.shape != (7, 7, 3) or mask[part].mean() < 0.95:
            return None
        x, y = (2 * place / size - 1 for place, size in zip((i, j), mask.shape, strict=False))
        # the middle of the body has more noise than its rim, everywhere alike
        expected = max(1.1 - 0.5 * (x * x + y * y), 0.45)
        spread = float(block.std())
        along = (block[:, :, :-1] * block[:, :, 1:]).mean() / spread**2
        across = (block[:-1] * block[1:]).mean() / spread**2
        return spread / expected, float(along), float(across)


def grain_of(instance: int) -> Grain:
    draw = draw_of("scan_01", "a private seed", instance, "full")
    states = {key: "present" if key in SOLID else "lookalike" for key in FINDINGS}
    patient = draw_patient(draw, "full", sex="F" if instance % 2 else "M", age=60, body=draw_body(draw, states))
    canvas = open_canvas(patient, draw.rng("texture"))
    before = canvas.hu.copy()
    for key in SOLID:
        FINDINGS[key].present(canvas, draw.rng("finding", key), states)
    solid = (canvas.hu > -20) & (canvas.hu < 90)
    drawn = ndimage.binary_erosion(solid & (np.abs(canvas.hu - before) > 150), iterations=2)
    same = solid & (np.abs(canvas.hu - before) < 2) & where(canvas.organs, NATIVE)
    native = ndimage.binary_erosion(same, iterations=4)
    hu = finish(canvas, draw, "full").hu.astype(np.float32)
    planes = np.rint(np.linspace(0, drawn.shape[2] - 1, hu.shape[2])).astype(int)
    return Grain(hu - ndimage.uniform_filter(hu, (5, 5, 1)), drawn[:, :, planes], native[:, :, planes])


def pairs(grain: Grain, rng: np.random.Generator) -> tuple[list, list]:
    """Return measures at drawn places and at native ones of the same slices."""
    here, there = np.argwhere(grain.drawn), np.argwhere(grain.native)
    found: tuple[list, list] = ([], [])
    for at in here[rng.permutation(len(here))[: 20 * PAIRS]]:
        beside = there[there[:, 2] == at[2]] if len(found[0]) < PAIRS else []
        if len(beside) == 0:
            continue
        measures = grain.measure(at, grain.drawn), grain.measure(beside[rng.integers(len(beside))], grain.native)
        if measures[0] is not None and measures[1] is not None:
            found[0].append(measures[0])
            found[1].append(measures[1])
    return found


@pytest.mark.full
def test_noise_does_not_tell_drawn_tissue_from_native() -> None:
    rng = np.random.default_rng(0)
    aurocs = []
    for instance in range(PATIENTS):
        drawn, native = pairs(grain_of(instance), rng)
        assert len(drawn) >= 20, instance
        answers = [1] * len(drawn) + [0] * len(native)
        aurocs.append([roc_auc_score(answers, column) for column in np.array(drawn + native).T])
    chosen = np.array(aurocs)[rng.integers(0, PATIENTS, (2000, PATIENTS))].mean(1)
    low, high = np.quantile(chosen, (0.025, 0.975), axis=0)
    for name, least, most in zip(("spread", "along slices", "across columns"), low, high, strict=True):
        assert 0.45 <= least <= most <= 0.55, (name, least, most)
