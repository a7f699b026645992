"""Branching tubes, as arrays."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
    """The organ number of the lobe that it serves."""
    kind: NDArray[np.str_]
    """``artery``, ``vein`` or ``airway``."""
    partner: NDArray[np.int64]
    """For an airway the index, in the vessels, of the artery that runs beside it; else -1."""

    def __len__(self) -> int:
        return len(self.start)

    def only(self, kept: NDArray[np.bool_]) -> "Tree":
        """Return the segments of the mask; no parent of a kept segment may be missing."""
        number = np.cumsum(kept) - 1
        chosen: dict[str, Any] = {field.name: getattr(self, field.name)[kept] for field in fields(self)}
        parent = chosen["parent"]
        chosen["parent"] = np.where(parent < 0, -1, number[parent])
        return Tree(**chosen)


def join(trees: list[Tree]) -> Tree:
    """Return one tree of many; parents and partners keep pointing where they pointed."""
    before = np.cumsum([0, *(len(tree) for tree in trees[:-1])])
    joined: dict[str, Any] = {
        field.name: np.concatenate([getattr(tree, field.name) for tree in trees]) for field in fields(Tree)
    }
    added = np.repeat(before, [len(tree) for tree in trees])
    joined["parent"] = np.where(joined["parent"] < 0, -1, joined["parent"] + added)
    return Tree(**joined)
