"""A patient: the template warped to a body of this sex, age and build, with lung trees of its own."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from categories.chest.labels import LEFT_LUNG, LOBES, RIGHT_LUNG, where
from categories.chest.template import Variant, load_template
from categories.draw import Draw
from categories.spec import Scale

Sex = Literal["F", "M"]


@dataclass(frozen=True)
class Tree:
    """Tapered tubes that branch; all arrays have one entry per segment, parents stand before their children."""

    start: NDArray[np.float64]
    """(n, 3), mm in the grid's frame: index times spacing."""
    end: NDArray[np.float64]
    radius_start: NDArray[np.float64]
    """mm; of the lumen, for airways."""
    radius_end: NDArray[np.float64]
    wall: NDArray[np.float64]
    """mm; 0 for vessels, whose radius is the outer one."""
    parent: NDArray[np.int64]
    """Index of the segment it comes from; -1 at a root."""
    generation: NDArray[np.int64]
    lobe: NDArray[np.uint8]
    """The organ number of the lobe it lies in."""
    kind: NDArray[np.str_]
    """``artery``, ``vein`` or ``airway``."""
    partner: NDArray[np.int64]
    """For an airway the index, in the vessels, of the artery that runs beside it; else -1."""

    def __len__(self) -> int:
        return len(self.start)


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
    template = load_template(draw.assets, grid)
    body = body or Body()
    empty, none, whole = np.zeros((0, 3)), np.zeros(0), np.zeros(0, int)
    tree = Tree(empty, empty, none, none, none, whole, whole, whole.astype(np.uint8), np.zeros(0, "U6"), whole)
    return Patient(
        variant=template.variant,
        sex=sex,
        age=age,
        height_cm=body.height_cm or 170.0,
        bmi=body.bmi or 26.0,
        hu=np.array(template.hu),
        organs=np.array(template.organs),
        affine=template.affine,
        airways=tree,
        vessels=tree,
    )
