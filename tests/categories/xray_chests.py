"""Chests and studies for tests of the radiographs."""

import functools

import numpy as np

from categories.assets import asset_of, assets_folder, make_ready
from categories.chest.patient import Patient, draw_patient
from categories.draw import Draw
from categories.spec import Case
from categories.xray_report_correction.devices import DEVICES
from categories.xray_report_correction.lesions import LESIONS
from categories.xray_report_correction.projection import Eye, Plate
from categories.xray_report_correction.radiograph import stage
from categories.xray_report_correction.render_posture import BEAMS
from categories.xray_report_correction.render_scene import Scene
from categories.xray_report_correction.state import Device, Finding, Study
from runners.cache import default_cache

PEOPLE = (("M", 61), ("F", 47), ("F", 78), ("M", 35))


@functools.cache
def patient(number=0) -> Patient:
    asset = asset_of("chest")
    assert asset is not None
    folder = make_ready(asset, assets_folder(default_cache().root)).folder
    draw = Draw("case", Case(title="case"), bytes([number + 1]) * 32, "small", folder)
    sex, age = PEOPLE[number]
    return draw_patient(draw, "small", sex=sex, age=age)


def study(*, portable=False, ribs=None, ratio=None, findings=(), devices=()) -> Study:
    views = ("AP",) if portable else ("PA", "LATERAL")
    return Study(
        day=0,
        age=60,
        views=views,
        position="semi-upright" if portable else "upright",
        posterior_ribs=ribs or (8.6 if portable else 9.4),
        heart_ratio=ratio or (0.51 if portable else 0.46),
        findings=tuple(findings),
        devices=tuple(devices),
    )


def finding(kind, extent, side=None, location=None, track=7, count=None) -> Finding:
    return Finding(kind, extent, track, side=side, location=location, count=count)


def device(kind, side=None, tip=None, count=None, extent=0.0, track=3) -> Device:
    return Device(kind, track, side=side, tip=tip, count=count, extent=extent)


@functools.cache
def empty(number=0, portable=False) -> Scene:
    """Return a chest without findings; ``with_`` puts something into a copy."""
    return stage(patient(number), study(portable=portable), np.random.default_rng(number))


def with_(thing, number=0, portable=False) -> Scene:
    base = empty(number, portable)
    torso = type(base.torso)(base.torso.hu.copy("F"), base.torso.organs, base.torso.spacing)
    scene = Scene(torso, base.marks, base.upright)
    if isinstance(thing, Finding):
        scene.put(thing, LESIONS[thing.kind])
    else:
        DEVICES[thing.kind](scene, thing)
    return scene


def eye(scene, view="PA", pixel_mm=1.0) -> Eye:
    """Return a detector that sees all of the chest, its pixels 1 mm."""
    torso = scene.torso
    size = np.array(torso.hu.shape) * torso.spacing
    centre = (size[1] / 2 if view == "LATERAL" else scene.marks.middle, size[2] / 2)
    return Eye(BEAMS[view], Plate(460, 520, pixel_mm, centre), torso.hu.shape, torso.spacing)


def shadow(scene, view="PA"):
    """Return the line integrals that a scene's findings and devices add, 1 mm a pixel, and the eye that saw them."""
    seen = eye(scene, view)
    film = np.zeros((seen.plate.rows, seen.plate.columns))
    for start, change in scene.boxes.values():
        film += seen.project(change, start)
    for _, draw in scene.thin:
        draw(film, seen)
    return film, seen
