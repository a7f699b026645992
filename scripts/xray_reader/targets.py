"""What a fitted network should say of a film: numbers for its two heads, and maps of findings and lung zones."""

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

REFERENCE = Path(__file__).parents[2] / "categories" / "xray_report_correction" / "reference.py"
FINDINGS = (
    "pleural_effusion",
    "pneumothorax",
    "consolidation",
    "atelectasis",
    "pulmonary_edema",
    "nodule",
    "granuloma",
    "cardiomegaly",
    "hyperinflation",
    "hiatal_hernia",
)
DEVICES = ("endotracheal_tube", "enteric_tube", "central_line", "chest_tube", "pacemaker", "sternal_wires")
MAPS = (*FINDINGS, *DEVICES)
"""Maps in order; behind them the three zones of the right and of the left lung."""
MAP_STEP = 4
CONTRAST, DEVICE_CONTRAST = 0.08, 0.03
"""Line integrals at which a map says that a finding or a device is there (1 - 1/e)."""
UNKNOWN = -1.0


@dataclass(frozen=True)
class Example:
    """One film with what is true of it."""

    picture: NDArray[np.uint8]
    """(2, 352, 352), see ``packed``."""
    maps: NDArray[np.uint8]
    """(22, 88, 88), 255 where a finding or zone is."""
    half: NDArray[np.float32]
    """(2, outputs): the patient's right and left; classes, numbers (NaN: not there), ``UNKNOWN``."""
    whole: NDArray[np.float32]
    portable: bool


def load_reference() -> ModuleType:
    """Return the solver, which says what films look like to the network and which outputs there are."""
    spec = importlib.util.spec_from_file_location("xray_reference", REFERENCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOLVER = load_reference()
OUTPUTS: Mapping[str, Mapping[str, int]] = {part: SOLVER.KNOWN["network"][part] for part in ("half", "whole")}


def packed(picture: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a picture of -1.1 to 1.45 in steps of a hundredth."""
    return np.asarray(np.clip(picture * 100 + 110, 0, 255).round().astype(np.uint8))


def example(path: Path) -> Example:
    """Return the film of a file that ``films.py`` wrote."""
    with np.load(path) as held:
        study, mm = json.loads(str(held["study"])), float(held["pixel_mm"])
        picture = SOLVER.shown(held["pixels"], mm)
        maps = _maps(held, study, mm, held["pixels"].shape)
    half, whole = _said(study)
    return Example(packed(picture), maps, half, whole, "AP" in study["views"])


def _maps(held: Mapping[str, Any], study: Mapping[str, Any], mm: float, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    size, zoom = SOLVER.SIZE, mm / SOLVER.COARSE_MM
    top, left = ((size - round(length * zoom)) // 2 for length in shape)
    place = np.array([[zoom, 0, left / MAP_STEP], [0, zoom, top / MAP_STEP]], np.float32)
    out = np.zeros((len(MAPS) + 6, size // MAP_STEP, size // MAP_STEP), np.float32)
    kinds = {str(one["track"]): one["kind"] for one in (*study["findings"], *study["devices"])}
    for track, change in zip(held["tracks"], held["maps"].astype(np.float32), strict=True):
        if kind := kinds.get(str(track)):
            least = DEVICE_CONTRAST if kind in DEVICES else CONTRAST
            one = cv2.warpAffine(1 - np.exp(-np.abs(change) / least), place, out.shape[1:])
            out[MAPS.index(kind)] = np.maximum(out[MAPS.index(kind)], one)
    corners = ((held["lungs"] + 0.5) * zoom + (left, top)) / MAP_STEP
    for side in range(2):
        (first, low), (last, high) = corners[2 * side : 2 * side + 2]
        edges = np.linspace(high, low, 4).round().astype(int).clip(0)
        for zone in range(3):
            columns = slice(max(int(first), 0), max(int(last) + 1, 0))
            out[len(MAPS) + 3 * side + zone, edges[zone] : edges[zone + 1], columns] = 1
    return np.asarray((out * 255).astype(np.uint8))


def _said(study: Mapping[str, Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the targets of the two heads."""
    portable = "AP" in study["views"]
    half = {name: np.full(2, np.nan if name.endswith("_x") else 0.0) for name in OUTPUTS["half"]}
    whole = {name: np.nan if name.endswith("_x") else 0.0 for name in OUTPUTS["whole"]}
    for name in ("nod_n", "tub_t", "lob" if portable else "con"):
        half[name][:] = UNKNOWN
    whole["ctr_x"] = (study["heart_ratio"] - 0.5 - 0.05 * portable) * 10
    for finding in study["findings"]:
        _say_finding(half, whole, finding, portable)
    for device in study["devices"]:
        _say_device(half, whole, device)
    return np.stack(list(half.values()), 1).astype(np.float32), np.array(list(whole.values()), np.float32)


def _say_finding(half: dict[str, Any], whole: dict[str, Any], finding: Mapping[str, Any], portable: bool) -> None:
    kind, known = finding["kind"], SOLVER.KINDS[finding["kind"]]
    here = [i for i, side in enumerate(SOLVER.SIDES) if finding["side"] in (side, "bilateral")]
    output = "lob" if kind == "consolidation" and not portable else known.get("reads")
    if finding["location"]:
        place = finding["location"].split()[0].replace("middle", "mid")
        half[output][here] = known["location"].index(place) + 1
    elif kind in SOLVER.GRADED:
        half[output][here] = known["severity"].index(finding["severity"]) + 1
    elif kind == "pulmonary_edema":
        whole["ede"], whole["ede_x"] = known["severity"].index(finding["severity"]) + 1, 2 * finding["extent"]
    elif kind != "cardiomegaly":
        whole[output] = 1
    if here and "extent" in known:
        half[known["extent"][0]][here] = np.log(finding["extent"])
    if kind == "nodule":
        half["nod_n"][here] = finding["count"] - 1


def _say_device(half: dict[str, Any], whole: dict[str, Any], device: Mapping[str, Any]) -> None:
    kind, known = device["kind"], SOLVER.KINDS[device["kind"]]
    side = SOLVER.SIDES.index(device["side"]) if device["side"] else 0
    if kind == "chest_tube":
        half["tub"][side], half["tub_t"][side] = device["count"] or 1, known["tip"].index(device["tip"])
    elif kind == "pacemaker":
        whole["pac"], half["pac_s"][side] = device["count"], 1
    elif kind == "sternal_wires":
        whole["wir"] = 1
    else:
        whole[known["reads"]] = known["tip"].index(device["tip"]) + 1
        half["cvl_s"][side] = kind == "central_line" or half["cvl_s"][side]
