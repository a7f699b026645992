"""The derived template, loaded: one anatomy on two grids."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from categories.spec import Scale

FIELDS = ("cage_mm", "heart_mm", "bone_mm", "inner_mm", "heart_surface", "lung_surface")
Kind = Literal["airway", "artery", "vein"]
Variant = Literal["template", "phantom"]


@dataclass(frozen=True)
class Root:
    """Where a tree of a lobe leaves the hilum."""

    kind: Kind
    lobe: str
    at_mm: tuple[float, float, float]
    radius_mm: float
    """Of the lumen for airways, else the outer one."""


class TemplateError(Exception):
    """The template is not where it was said to be; the message says what next."""


@dataclass(frozen=True)
class Form:
    """What the warp must know of the template's form, on a coarse grid; ``cleaning.form`` measures it."""

    cage_mm: NDArray[np.float32]
    """(nodes of i, j, k): distance outside the rib cage, 0 within."""
    heart_mm: NDArray[np.float32]
    """Distance to the heart, 0 within."""
    bone_mm: NDArray[np.float32]
    """Distance to ribs, spine and sternum."""
    inner_mm: NDArray[np.float32]
    """(nodes of i, j): distance to the wall within the thorax at the height of the domes."""
    heart_surface: NDArray[np.float32]
    """(n, 3) mm."""
    lung_surface: NDArray[np.float32]
    """(2n, 3) mm: the outermost lung, right and left by turns, slice by slice."""
    domes_mm: float
    """Height of the higher dome."""
    nodes_mm: tuple[float, float, float]
    voxel_mm: tuple[float, float, float]
    """Of the full grid."""
    height_mm: float
    roots: tuple[Root, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        i, j, k = self.cage_mm.shape
        return i, j, k

    @property
    def heart_mm_centre(self) -> NDArray[np.float64]:
        return np.asarray((self.heart_surface.min(0) + self.heart_surface.max(0)) / 2, np.float64)

    @property
    def centre_mm(self) -> tuple[float, float]:
        """Middle of the chest, side to side and front to back."""
        x = (self.lung_surface[:, 0].min() + self.lung_surface[:, 0].max()) / 2
        return float(x), float(self.heart_mm_centre[1] - 30)


@dataclass(frozen=True)
class Template:
    """A normal, non-contrast chest: i runs right to left, j back to front, k foot to head."""

    variant: Variant
    hu: NDArray[np.int16]
    organs: NDArray[np.uint8]
    affine: NDArray[np.float64]
    """4 x 4, voxel -> RAS+ mm."""
    form: Form

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        x, y, z = np.abs(np.diag(self.affine)[:3]).tolist()
        return x, y, z


def load_template(folder: Path | None, grid: Scale) -> Template:
    """Return the template of a grid, memory-mapped.

    Raises:
        TemplateError: the folder holds none.
    """
    if folder is None or not (folder / f"{grid}.json").exists():
        raise TemplateError("the chest template is not there: run `hab-suite build assets`")
    meta = json.loads((folder / f"{grid}.json").read_text(encoding="utf-8"))
    return Template(
        variant="phantom" if "-phantom-" in folder.name else "template",
        hu=np.load(folder / f"{grid}_hu.npy", mmap_mode="r"),
        organs=np.load(folder / f"{grid}_organs.npy", mmap_mode="r"),
        affine=np.array(meta["affine"]),
        form=_load_form(folder),
    )


def _load_form(folder: Path) -> Form:
    meta = json.loads((folder / "form.json").read_text(encoding="utf-8"))
    roots = tuple(Root(r["kind"], r["lobe"], tuple(r["at_mm"]), r["radius_mm"]) for r in meta.pop("roots"))
    fields = {name: np.load(folder / f"form_{name}.npy") for name in FIELDS}
    voxel, nodes = tuple(meta["voxel_mm"]), tuple(meta["nodes_mm"])
    return Form(
        **fields,
        domes_mm=float(meta["domes_mm"]),
        height_mm=float(meta["height_mm"]),
        nodes_mm=nodes,
        voxel_mm=voxel,
        roots=roots,
    )
