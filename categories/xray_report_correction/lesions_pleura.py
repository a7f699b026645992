"""Fluid and air between lung and chest wall."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.labels import LOBES
from categories.xray_report_correction.render_landmarks import LUNG_OF
from categories.xray_report_correction.render_scene import Scene
from categories.xray_report_correction.render_torso import grown
from categories.xray_report_correction.state import Finding

Floats = NDArray[np.float64]
CAVITY = (*LOBES, "heart", "aorta", "trachea", "esophagus", "liver", "spleen", "stomach", "pulmonary_vein")
COARSE_MM = 4.0
BRIDGE_MM = 32.0
"""Gaps of the organ mask so wide are closed: fat between lung and heart."""
FLUID, AIR, PLEURA = 8.0, -1000.0, -350.0
PLEURA_MM = 0.8
RISES_MM, REACHES_MM = (42.0, 34.0), (8.0, 30.0)
"""Heights of the meniscus at the wall above its middle, and how far from the wall each falls to 1/e."""
LEAN_DEG = 25.0
"""A half-sitting patient lies back so far from upright: fluid runs behind the lung."""


def sides(finding: Finding) -> tuple[str, ...]:
    """Return the sides of a finding.

    Raises:
        ValueError: it has none.
    """
    if finding.side is None:
        raise ValueError(f"a {finding.kind} needs a side: left, right or bilateral")
    return ("right", "left") if finding.side == "bilateral" else (finding.side,)


def pleural_effusion(scene: Scene, finding: Finding) -> None:
    """Put ``extent`` mL on each side named: a meniscus if upright, a layer behind the lung if reclining."""
    for side in sides(finding):
        box, lung, wall = side_of(scene, side)
        voxel = float(np.prod(scene.torso.spacing)) / 1000
        room = lung.sum() * voxel
        wanted = room * (1 - np.exp(-finding.extent / room))  # as fluid gathers, wall and diaphragm give way too
        height = _surface(scene, box, wall)
        levels = height[lung]
        level = float(np.partition(levels, int(wanted / voxel))[int(wanted / voxel)])
        wet = np.clip((level - height) / 8.0 + 0.5, 0, 1)
        part = scene.torso.hu[box]
        lung = lung | (grown(lung, 2) & (part < -150))  # the half-filled voxels at the lung's face
        above = np.clip(height - level, 0, None)
        squeezed = np.where(
            lung, 170 * min(1.0, finding.extent / 400) * np.exp(-above / 14), 0
        )  # lung gives way over the fluid
        part += (squeezed * (part < -300)).astype(np.float32)
        part[...] = np.where(lung, part + (FLUID - part) * wet, part)


def _surface(scene: Scene, box: tuple[slice, ...], wall: Floats) -> Floats:
    """Return each voxel's height against a fluid's surface, which bends up along the wall."""
    step = scene.torso.spacing
    z = np.arange(box[2].start, box[2].stop) * step[2]
    rise = sum(high * np.exp(-wall / far) for high, far in zip(RISES_MM, REACHES_MM, strict=True))
    if scene.upright:
        return np.asarray(z[None, None, :] - rise)
    lean = np.deg2rad(LEAN_DEG)
    y = np.arange(box[1].start, box[1].stop) * step[1]
    flat = z[None, None, :] * np.cos(lean) + y[None, :, None] * np.sin(lean)
    return np.asarray(flat - 0.7 * rise)


def pneumothorax(scene: Scene, finding: Finding) -> None:
    """Part the lung from the wall by ``extent`` mm at the apex and less below; nothing but air lies between."""
    for side in sides(finding):
        box, lung, wall = side_of(scene, side)
        step = scene.torso.spacing
        z = np.arange(box[2].start, box[2].stop) * step[2]
        low, high = scene.marks.lungs[side][:, 2]
        share = np.clip((z - low) / (high - low), 0, 1)
        gap = finding.extent * (0.12 + 0.88 * share**1.4)[None, None, :]
        part = scene.torso.hu[box]
        free = lung & (wall < gap)
        rest = lung & ~free
        packed = min(lung.sum() / max(rest.sum(), 1), 2.6)
        part[rest] = np.minimum((part[rest] + 1000) * np.float32(packed) - 1000, np.maximum(part[rest], 30))
        edge = np.clip((wall - gap) / 0.7 + 0.5, 0, 1)
        part[...] = np.where(lung, AIR + (part - AIR) * edge, part)
        line = lung & (np.abs(wall - gap - PLEURA_MM) < PLEURA_MM)
        part[line] = np.maximum(part[line], PLEURA)


def side_of(scene: Scene, side: str) -> tuple[tuple[slice, ...], NDArray[np.bool_], Floats]:
    """Return a lung's box, the lung in it, and the distance (mm) of its voxels from ribs and apex."""
    torso = scene.torso
    low, high = scene.marks.lungs[side]
    box, _ = scene.grid(low - 4, high + 4)
    lung = np.asfortranarray(torso.mask(*LUNG_OF[side])[box])
    return box, lung, _wall_distance(scene, box)


def _wall_distance(scene: Scene, box: tuple[slice, ...]) -> Floats:
    """Return the distance to the outer bound of the chest's cavity, measured on a coarse copy."""
    torso = scene.torso
    many = tuple(max(1, round(COARSE_MM / s)) for s in torso.spacing)
    coarse = tuple(s * m for s, m in zip(torso.spacing, many, strict=True))
    cavity = torso.mask(*CAVITY)[tuple(slice(m // 2, None, m) for m in many)]
    cavity = np.pad(cavity, 10)
    flat = ndi.generate_binary_structure(3, 1) & np.array([False, True, False])
    cavity = ndi.binary_closing(cavity, flat, iterations=max(1, round(BRIDGE_MM / coarse[0])))
    distance = ndi.distance_transform_edt(cavity, coarse)
    # A coarse voxel's middle lies half a voxel inside the bound.
    distance = ndi.gaussian_filter(np.maximum(distance - coarse[0] / 2, 0), 0.8)
    axes = [(np.arange(s.start, s.stop) - m // 2) / m + 10 for s, m in zip(box, many, strict=True)]
    grid = np.meshgrid(*axes, indexing="ij")
    return np.asarray(ndi.map_coordinates(distance, grid, order=1, mode="nearest"))
