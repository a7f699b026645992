"""How an exposure finds the patient: depth of breath, domes, and the width of the heart's shadow."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from categories.chest.labels import LEFT_LUNG, LOBES, where
from categories.xray_report_correction import anatomy_upright as upright
from categories.xray_report_correction.projection import Beam, Eye, Plate
from categories.xray_report_correction.render_torso import Torso, crop
from categories.xray_report_correction.state import NoRoomError, Study, ViewName

BEAMS: Mapping[ViewName, Beam] = {
    "PA": Beam("front", 1800),
    "LATERAL": Beam("left", 1800),
    "AP": Beam("back", 1000, 60),
}
LOOKS, GAIN = 3, 1.15
"""So often the heart's width is looked at, and the share of what is wrong that is then put right."""
NEAR = 0.02
"""How far the heart's width may stay from what the report will say; the severities are further apart."""


def stand(
    hu: NDArray[np.int16],
    organs: NDArray[np.uint8],
    spacing: tuple[float, float, float],
    study: Study,
    rng: np.random.Generator,
) -> Torso:
    """Return the scanned chest in the study's posture, its heart as wide as the study says.

    Raises:
        NoRoomError: a heart as wide as that meets the ribs of this chest.
    """
    lying = crop(hu, organs, spacing)
    cage = upright.measure_cage(lying)
    posture = _posture(lying, cage, study, rng)
    first = upright.sketch(lying, cage, posture)
    middle = float(cage.centre[:, 0].mean() * spacing[0])
    eye = Eye(BEAMS[study.views[0]], Plate(512, 512, 1.0, (middle, 0.0)), lying.hu.shape, spacing)
    ratio = heart_ratio(first, eye)
    change = upright.heart_change(first, lying, study.heart_ratio / ratio)
    # Near the wall the heart gains less than the factor says: look, and correct.
    for _ in range(LOOKS):
        found = heart_ratio(upright.sketch_heart(lying, cage, posture, change, first), eye)
        wider = change.factor + (study.heart_ratio - found) / ratio * GAIN
        change = replace(change, factor=float(np.clip(wider, 0.6, 3.0)))
    found = heart_ratio(upright.sketch_heart(lying, cage, posture, change, first), eye)
    if abs(found - study.heart_ratio) > NEAR:
        raise NoRoomError(f"a heart of ratio {study.heart_ratio:.3f} comes out as {found:.3f} in this chest")
    return upright.move(lying, cage, posture, change)


def heart_ratio(organs: NDArray[np.uint8], eye: Eye) -> float:
    """Return the cardiothoracic ratio as measured on a film: widest heart by widest lungs."""
    heart, chest = (_edges(organs, eye, names) for names in (upright.HEART, LOBES))
    return float((heart[1] - heart[0]) / (chest[1] - chest[0]))


def _posture(lying: Torso, cage: upright.Cage, study: Study, rng: np.random.Generator) -> upright.Posture:
    """Return the breath. The left dome lies lower in nine of ten patients, in the same patient always."""
    own = np.random.default_rng([int((lying.organs > 0).sum()), int(lying.mask(*LOBES).sum())])
    below = -4.0 if own.random() < 0.1 else own.uniform(8, 18)
    air = max((finding.extent for finding in study.found("hyperinflation")), default=0.0)
    gap = (cage.dome - upright.dome_level(lying, LEFT_LUNG)) * lying.spacing[2]
    drop = upright.drop_for(lying, cage, study.posterior_ribs)
    return upright.Posture(drop=drop, left_more=below - gap + rng.normal(0, 1.0), flatten=28 * air)


def _edges(organs: NDArray[np.uint8], eye: Eye, names: tuple[str, ...]) -> tuple[float, float]:
    flat = np.argwhere(where(organs, names).any(2))  # height does not move a place across the film
    points = np.concatenate([flat, np.zeros((len(flat), 1))], 1) * np.asarray(eye.spacing)
    columns = eye.locate(points)[0][:, 0]
    return float(columns.min()), float(columns.max())
