"""The derived template, loaded: one anatomy on two grids."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from categories.spec import Scale

Variant = Literal["template", "phantom"]


class TemplateError(Exception):
    """The template is not where it was said to be; the message says what next."""


@dataclass(frozen=True)
class Template:
    """A normal, non-contrast chest: i runs right to left, j back to front, k foot to head."""

    variant: Variant
    hu: NDArray[np.int16]
    organs: NDArray[np.uint8]
    affine: NDArray[np.float64]
    """4 x 4, voxel -> RAS+ mm."""

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
    )
