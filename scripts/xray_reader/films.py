"""Draw films of private patients with what they show, to fit the X-ray reference's network to.

    PYTHONPATH=. .venv/bin/python scripts/xray_reader/films.py FOLDER FIRST COUNT [--small]

draws patients FIRST to FIRST + COUNT - 1, up to eight studies each; several may run side by side. Films are 512 columns
wide, patients three times coarser in the plane than a task's (``--small``: on the coarse grid, drawn three times
faster again). Their keys come from a label of their own, so that no seed's task shares a patient with them.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from categories.assets import ready
from categories.catalog import find_task
from categories.chest.patient import Patient, draw_patient
from categories.draw import Draw
from categories.xray_report_correction import radiograph
from categories.xray_report_correction.body import embody
from categories.xray_report_correction.casefile import labelled
from categories.xray_report_correction.kinds import Setting
from categories.xray_report_correction.state import NoRoomError, Study, to_json
from categories.xray_report_correction.story import draw_story
from runners.cache import default_cache

TASK = find_task("xray_report_correction/case_05")
COLUMNS, COARSER, MAP_STEP = 512, 3, 4
STORIES, PORTABLE = 4, 0.65
Floats = NDArray[np.float64]


def coarser(patient: Patient) -> Patient:
    """Return a patient on a grid that is ``COARSER`` times coarser from side to side and from back to front."""
    step = COARSER
    rows, columns = (length // step * step for length in patient.hu.shape[:2])
    blocks = patient.hu[:rows, :columns].reshape(rows // step, step, columns // step, step, -1)
    affine = patient.affine.copy()
    affine[:3, :2] *= step
    return replace(
        patient,
        hu=blocks.astype(np.float32).mean((1, 3)).round().astype(np.int16),
        organs=np.ascontiguousarray(patient.organs[step // 2 : rows : step, step // 2 : columns : step]),
        affine=affine,
    )


def frontal(patient: Patient, study: Study, rng: np.random.Generator) -> dict[str, Any]:
    """Return the frontal film of a study, where each finding changes it, and where lungs and carina lie on it."""
    scene, name = radiograph.stage(patient, study, rng), study.views[0]
    eye = radiograph._eye(scene, name, rng, COLUMNS)  # noqa: SLF001 (this is the generator's own workshop)
    film = radiograph.expose(scene, name, eye, rng)
    changes: dict[int, Floats] = {}
    for track, (start, change) in scene.boxes.items():
        changes[track] = eye.project(change, start)
    for track, draw in scene.thin:
        layer = radiograph._layer(film, eye, draw)  # noqa: SLF001
        film += layer
        changes[track] = changes.get(track, 0.0) + layer
    picture = radiograph.develop(film, eye.plate.pixel_mm, radiograph._exposure(name, rng), rng).astype(float)  # noqa: SLF001
    radiograph._mark(picture, eye, "L" if rng.random() < 0.6 else "R", rng)  # noqa: SLF001
    corners = []
    for side in ("right", "left"):
        low, high = (np.asarray(corner, float) for corner in scene.marks.lungs[side])
        depth = (low[1] + high[1]) / 2
        corners += [[low[0], depth, low[2]], [high[0], depth, high[2]]]
    maps = [shrunk(change) for change in changes.values()]
    return {
        "pixels": (radiograph._collimated(picture, name, rng) >> 4).astype(np.uint8),  # noqa: SLF001
        "pixel_mm": eye.plate.pixel_mm,
        "lungs": eye.locate(np.array(corners))[0],
        "tracks": np.array([str(track) for track in changes]),
        "maps": np.stack(maps) if maps else np.zeros((0, 1, 1), np.float16),
        "study": json.dumps(to_json(study)),
    }


def shrunk(change: Floats) -> NDArray[np.float16]:
    """Return a map at a quarter of its resolution."""
    rows, columns = (length // MAP_STEP for length in change.shape)
    cut = change[: rows * MAP_STEP, : columns * MAP_STEP]
    return np.asarray(cut.reshape(rows, MAP_STEP, columns, MAP_STEP).mean((1, 3)).astype(np.float16))


def films(number: int, assets: Path, *, small: bool) -> Iterator[dict[str, Any]]:
    """Yield the films of one patient."""
    key = hashlib.sha256(f"fit {0 if small else COARSER} {number}".encode()).digest()
    draw = Draw("fit", TASK.spec, key, "small" if small else "full", assets)
    rng = draw.rng("who")
    sex, age = ("F" if rng.random() < 0.5 else "M"), int(rng.integers(35, 88))
    patient = draw_patient(draw, draw.scale, sex=sex, age=age)
    patient = patient if small else coarser(patient)
    drawn = 0
    for number_of_story in range(STORIES):
        setting: Setting = "ap" if rng.random() < PORTABLE else "pa"
        story = draw_story(labelled(draw, "case", number_of_story), setting, 1)
        for study in embody(labelled(draw), story, number_of_story):
            try:
                film = frontal(patient, study, draw.rng("film", number_of_story, drawn))
            except NoRoomError:
                continue
            drawn += 1
            yield film


def main() -> None:
    """Draw the films that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--small", action="store_true")
    told = parser.parse_args()
    told.folder.mkdir(parents=True, exist_ok=True)
    stands_on = ready(TASK.category, default_cache().root)
    assert stands_on is not None
    for number in range(told.first, told.first + told.count):
        for place, film in enumerate(films(number, stands_on.folder, small=told.small)):
            np.savez_compressed(told.folder / f"{'small' if told.small else 'full'}_{number:04d}_{place}.npz", **film)
        print(number, flush=True)


if __name__ == "__main__":
    main()
