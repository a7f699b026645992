"""The views of one study of one patient: posture, findings, devices, exposure, film."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.xray_report_correction.devices import DEVICES
from categories.xray_report_correction.film import Exposure, develop, texture
from categories.xray_report_correction.lesions import LESIONS
from categories.xray_report_correction.projection import Eye, Plate
from categories.xray_report_correction.render_landmarks import landmarks
from categories.xray_report_correction.render_marker import add_marker
from categories.xray_report_correction.render_posture import BEAMS, stand
from categories.xray_report_correction.render_scene import Scene, Thin, attenuation
from categories.xray_report_correction.render_shoulders import add_girdle, lower_arms
from categories.xray_report_correction.render_visibility import Sight
from categories.xray_report_correction.state import Study, ViewName

Floats = NDArray[np.float64]
Scale = Literal["full", "small"]
COLUMNS: Mapping[Scale, int] = {"full": 2048, "small": 512}
BONE: Mapping[ViewName, float] = {"PA": 1.1, "LATERAL": 0.5, "AP": 1.2}
"""Extra attenuation of bone; a portable's beam is softer."""


OPAQUE = 0.9
"""Path of a device through which nothing is seen."""


class Body(Protocol):
    """What is needed of a patient."""

    @property
    def hu(self) -> NDArray[np.int16]: ...
    @property
    def organs(self) -> NDArray[np.uint8]: ...
    @property
    def spacing_mm(self) -> tuple[float, float, float]: ...


@dataclass(frozen=True)
class View:
    """One picture."""

    name: ViewName
    pixels: NDArray[np.uint16]
    """(rows, columns), 0..4095, bone white; the patient's right at the left of a frontal view."""
    pixel_mm: float
    """At the detector."""
    marker: Literal["L", "R"]
    """The letter burned in, on that side of the patient (a lateral: the side at the detector)."""
    visibility: Mapping[int, float] = field(default_factory=dict)
    """Track of a finding or device -> contrast-to-noise ratio on this view."""


def render_study(patient: Body, study: Study, rng: np.random.Generator, scale: Scale) -> list[View]:
    """Return the study's views in order.

    Raises:
        ValueError: a finding or device that cannot be drawn.
    """
    scene = stage(patient, study, rng)
    return [take(scene, name, rng, scale) for name in study.views]


def stage(patient: Body, study: Study, rng: np.random.Generator) -> Scene:
    """Return the patient in the study's posture, with findings and devices."""
    torso = stand(patient.hu, patient.organs, patient.spacing_mm, study, rng)
    scene = Scene(torso, landmarks(torso), study.position == "upright")
    for finding in study.findings:
        if finding.kind not in LESIONS:
            raise ValueError(f"no picture of {finding.kind!r}; drawable: {', '.join(sorted(LESIONS))}")
        scene.put(finding, LESIONS[finding.kind])
    for device in study.devices:
        DEVICES[device.kind](scene, device)
    return scene


def take(scene: Scene, name: ViewName, rng: np.random.Generator, scale: Scale) -> View:
    """Return one view of a scene."""
    eye = _eye(scene, name, rng, COLUMNS[scale])
    film = expose(scene, name, eye, rng)
    changes = {track: eye.project(change, start) for track, (start, change) in scene.boxes.items()}
    with ThreadPoolExecutor(1) as aside:  # what can be seen is measured beside the making of the picture
        sight = aside.submit(Sight, film - sum(changes.values()), eye.plate.pixel_mm)
        layers = [(track, _layer(film, eye, draw)) for track, draw in scene.thin]
        for _, layer in layers:
            film += layer
        seen = aside.submit(_seen, sight, [*changes.items()], layers)
        letter: Literal["L", "R"] = "L" if name == "LATERAL" or rng.random() < 0.6 else "R"
        picture = develop(film, eye.plate.pixel_mm, _exposure(name, rng), rng).astype(float)
        _mark(picture, eye, letter, rng)
        return View(name, _collimated(picture, name, rng), eye.plate.pixel_mm, letter, seen.result())


def _seen(
    sight: Future[Sight], changes: Sequence[tuple[int, Floats]], layers: Sequence[tuple[int, Floats]]
) -> dict[int, float]:
    """Return the contrast-to-noise ratio by track: the best of what belongs to it."""
    opaque = np.any([layer > OPAQUE for _, layer in layers], axis=0)
    seen: dict[int, float] = {}
    for track, change in (*changes, *layers):
        # What lies behind a generator is not seen; the generator is.
        shown = change if (change > OPAQUE).any() else np.where(opaque, 0, change)
        seen[track] = max(seen.get(track, 0.0), sight.result().contrast_to_noise(shown))
    return seen


def _layer(film: Floats, eye: Eye, draw: Thin) -> Floats:
    layer = np.zeros_like(film)
    draw(layer, eye)
    return layer


def expose(scene: Scene, name: ViewName, eye: Eye, rng: np.random.Generator) -> Floats:
    """Return the line integrals (rows, columns) of chest and findings, without devices and other thin things."""
    torso, marks = scene.torso, scene.marks
    if name != "LATERAL":
        torso = lower_arms(torso, marks)
    film = eye.project(attenuation(torso.hu, BONE[name]))
    if name != "LATERAL":
        add_girdle(film, eye, marks, rng, rolled=name == "PA")
    film += 0.12 * _bone(torso.hu, eye) * texture(film.shape, eye.plate.pixel_mm, rng, (0.5, 1.8))
    return film


def _bone(hu: NDArray[np.float32], eye: Eye) -> Floats:
    """Return the path through bone, from a coarse projection: it only scales the trabecular texture."""
    plate = eye.plate
    coarse = replace(plate, rows=-(-plate.rows // 4), columns=-(-plate.columns // 4), pixel_mm=plate.pixel_mm * 4)
    path = replace(eye, plate=coarse).project(np.maximum(hu - np.float32(150), 0) * np.float32(1e-3 * 0.0195))
    return np.asarray(ndi.zoom(path, 4, order=1, grid_mode=True, mode="nearest")[: plate.rows, : plate.columns])


def _eye(scene: Scene, name: ViewName, rng: np.random.Generator, columns: int) -> Eye:
    """Return tube and detector, the field laid round the lungs with the margins a radiographer leaves."""
    torso, marks = scene.torso, scene.marks
    lungs = np.stack(list(marks.lungs.values()))
    low, high = lungs[:, 0].min(0), lungs[:, 1].max(0)
    beam = BEAMS[name]
    grown = beam.source_mm / (beam.source_mm - beam.gap_mm - 0.5 * torso.hu.shape[1] * torso.spacing[1])
    over, under, aside = rng.uniform(18, 26), rng.uniform(28, 45), rng.uniform(22, 32)
    across = (low[1], high[1]) if name == "LATERAL" else (low[0], high[0])
    aside += 18 if name == "LATERAL" else 0
    width, height = (across[1] - across[0] + 2 * aside) * grown, (high[2] - low[2] + over + under) * grown
    pixel = width / columns
    if name == "LATERAL":
        columns = round(columns * 0.86 / 16) * 16
        pixel = width / columns
    rows = int(np.clip(height / pixel, columns, columns * 1.3))
    centre = (
        (across[0] + across[1]) / 2 + rng.normal(0, 4),
        high[2] + over - rows * pixel / grown / 2,
    )
    turn = 0.0 if name == "LATERAL" else np.deg2rad(rng.normal(0, 1.2 if name == "PA" else 2.5))
    plate = Plate(rows, columns, round(float(pixel), 4), centre)
    return Eye(replace(beam, turn=float(turn)), plate, torso.hu.shape, torso.spacing)


def _mark(film: Floats, eye: Eye, letter: str, rng: np.random.Generator) -> None:
    """Put the letter over the shoulder of its side, clear of the lungs."""
    rows, columns = film.shape
    height = 13 / eye.plate.pixel_mm
    inset = rng.uniform(6, 14) / eye.plate.pixel_mm
    left = letter == "R" or eye.beam.detector == "left"
    column = inset if left else columns - inset - 0.7 * height
    add_marker(film, letter, (column, inset + rng.uniform(0, 0.05) * rows), height, rng.normal(0, 5))


def _exposure(name: ViewName, rng: np.random.Generator) -> Exposure:
    portable = name == "AP"
    return Exposure(
        scatter=float(rng.uniform(0.36, 0.46) if portable else rng.uniform(0.18, 0.26)),
        quanta=float(rng.uniform(7e5, 1.4e6) if portable else rng.uniform(1.8e6, 3.6e6)),
        contrast=float(rng.uniform(3.2, 3.8)),
        level=float(rng.uniform(0.30, 0.37)),
        detail=float(rng.uniform(2.2, 2.7)),
        sharpening=float(rng.uniform(2.6, 3.4)),
    )


def _collimated(pixels: Floats, name: ViewName, rng: np.random.Generator) -> NDArray[np.uint16]:
    """Return the picture, black outside the collimator's edges where they lie inside it."""
    rows, columns = pixels.shape
    wide = rng.uniform(0, 0.022, 4) * (rng.random(4) < (0.6 if name == "AP" else 0.25))
    blur = columns / 900
    y = np.minimum(np.arange(rows) - wide[0] * rows, rows * (1 - wide[1]) - 1 - np.arange(rows))
    x = np.minimum(np.arange(columns) - wide[2] * columns, columns * (1 - wide[3]) - 1 - np.arange(columns))
    open_ = [ndi.gaussian_filter1d((axis >= 0).astype(float), blur, mode="nearest") for axis in (y, x)]
    return np.asarray(np.rint(pixels * (open_[0][:, None] * open_[1][None, :])).astype(np.uint16))
