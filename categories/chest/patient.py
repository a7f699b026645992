"""A patient: the template warped to a body of this sex, age and build, with lung trees of its own."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from categories.chest.growth import draw_trees
from categories.chest.interior import fill_lungs, retone
from categories.chest.labels import LEFT_LUNG, LOBES, RIGHT_LUNG, where
from categories.chest.template import Variant, load_template
from categories.chest.tree import Tree
from categories.chest.warp import Build, apply_warp, draw_warp
from categories.draw import Draw
from categories.spec import Scale

Sex = Literal["F", "M"]
TEMPLATE_CM = 168
"""What we take the template's person to measure: lungs of 3.7 L, no height is known."""


@dataclass(frozen=True)
class Body:
    """What a patient's body is asked to be; None leaves it to the draw, within the normal."""

    height_cm: float | None = None
    bmi: float | None = None
    cardiothoracic_ratio: float | None = None
    """Widest heart over all slices by the widest inner thorax of any one slice, as in a frontal projection."""
    inflation: float = 0.0
    """0: the breath of the scan; 1: diaphragm about 15 mm lower and flatter."""


@dataclass(frozen=True)
class Patient:
    """One patient on the native grid: i runs right to left, j back to front, k foot to head."""

    variant: Variant
    sex: Sex
    age: int
    height_cm: float
    bmi: float
    hu: NDArray[np.int16]
    """(I, J, K); anatomy without noise: ``finish`` adds the noise everywhere alike."""
    organs: NDArray[np.uint8]
    """(I, J, K); numbers of ``labels.ORGANS``."""
    affine: NDArray[np.float64]
    """4 x 4, voxel -> RAS+ mm."""
    airways: Tree
    vessels: Tree

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        x, y, z = np.abs(np.diag(self.affine)[:3]).tolist()
        return x, y, z

    def organ(self, *names: str) -> NDArray[np.bool_]:
        """Return where the organs of these names are."""
        return where(self.organs, names)

    def lungs(self) -> NDArray[np.bool_]:
        """Return both lungs, their vessels and airways included."""
        return where(self.organs, LOBES)

    def right_lung(self) -> NDArray[np.bool_]:
        return where(self.organs, RIGHT_LUNG)

    def left_lung(self) -> NDArray[np.bool_]:
        return where(self.organs, LEFT_LUNG)

    def ras_mm(self, index: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return patient coordinates (..., 3) of voxel indices (..., 3)."""
        return np.asarray(index @ self.affine[:3, :3].T + self.affine[:3, 3])


@dataclass
class Canvas:
    """A patient under the brush: findings change ``hu``, ``organs`` and nothing else."""

    patient: Patient
    hu: NDArray[np.float32] = field(init=False)
    organs: NDArray[np.uint8] = field(init=False)

    def __post_init__(self) -> None:
        self.hu = self.patient.hu.astype(np.float32)
        self.organs = self.patient.organs.copy()


def draw_patient(draw: Draw, grid: Scale, *, sex: Sex, age: int, body: Body | None = None) -> Patient:
    """Draw the patient of a draw; the same draw, grid and words give the same patient.

    Raises:
        TemplateError: ``draw.assets`` holds no template.
    """
    template, rng = load_template(draw.assets, grid), draw.rng("body")
    body = settle(rng, body or Body(), sex)
    warp = draw_warp(draw.rng("warp"), template.form, _build(rng, body, sex))
    scale = _size(rng, body)
    affine = template.affine.copy()
    affine[:3, :3] *= scale
    affine[:3, 3] *= scale
    spacing = np.abs(np.diag(affine)[:3])
    hu, organs = apply_warp(warp, template)
    retone(draw.rng("tone"), hu, organs, age)
    places = warp.forth(np.array([root.at_mm for root in template.form.roots])) * scale
    airways, vessels = draw_trees(
        draw.rng("trees"), organs, spacing, list(zip(template.form.roots, places, strict=True)), grid
    )
    fill_lungs(draw, hu, organs, spacing, airways, vessels)
    assert body.height_cm is not None
    assert body.bmi is not None
    return Patient(template.variant, sex, age, body.height_cm, body.bmi, hu, organs, affine, airways, vessels)


def settle(rng: np.random.Generator, body: Body, sex: Sex) -> Body:
    """Return the body with what was left open drawn, within the normal; every draw takes as many numbers."""
    height = (
        163 + 6.5 * np.clip(rng.standard_normal(), -2, 2)
        if sex == "F"
        else 176 + 7 * np.clip(rng.standard_normal(), -2, 2)
    )
    bmi = 26 + np.clip(4.0 * rng.standard_normal(), -7, 9)
    ratio = rng.uniform(0.41, 0.48)
    return Body(
        height_cm=round(float(body.height_cm or height), 1),
        bmi=round(float(body.bmi or bmi), 1),
        cardiothoracic_ratio=float(body.cardiothoracic_ratio or ratio),
        inflation=body.inflation + float(rng.uniform(-0.3, 0.3)),
    )


def _build(rng: np.random.Generator, body: Body, sex: Sex) -> Build:
    breasts = rng.uniform(0.1, 0.9) if sex == "F" else rng.uniform(-0.4, -0.2)
    assert body.bmi is not None
    assert body.cardiothoracic_ratio is not None
    return Build(
        fat=float(np.clip(1 + (body.bmi - 25.5) * 0.06, 0.5, 1.8)),
        breasts=breasts,
        depth=rng.uniform(0.92, 1.10),
        inflation=body.inflation,
        cardiothoracic_ratio=body.cardiothoracic_ratio,
    )


def _size(rng: np.random.Generator, body: Body) -> NDArray[np.float64]:
    """Return the patient's size relative to the template, along i, j and k: the voxels are scaled, not resampled."""
    assert body.height_cm is not None
    along = body.height_cm / TEMPLATE_CM * rng.uniform(0.97, 1.03)
    across = (body.height_cm / TEMPLATE_CM) ** 0.7 * rng.uniform(0.97, 1.03)
    return np.round([across, across, along], 4)
