"""From a story to studies: every value gets the number its picture is drawn from, the same lesion the same place."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from categories.xray_report_correction.kinds import Kind, Setting, Value, load_kinds
from categories.xray_report_correction.state import Device, Finding, Position, Study, ViewName
from categories.xray_report_correction.story import Story

Generator = Callable[..., np.random.Generator]
AP_WIDER = 0.05
"""By so much the cardiothoracic ratio is larger on a portable view."""
NORMAL_HEART = (0.42, 0.47)
ENDOTRACHEAL = {"mid trachea": (35.0, 60.0), "right main bronchus": (-25.0, -15.0)}
"""Millimetres of the tip above the carina."""
SEVERAL_MM = 18.0
"""Several nodules of one zone are no wider, so that they can be counted."""
RIBS: dict[Setting, tuple[float, float]] = {"pa": (9.0, 10.4), "ap": (8.0, 9.4)}
DAYS: dict[Setting, tuple[int, ...]] = {
    "pa": (14, 21, 28, 42, 60, 90, 120, 180, 270),
    "ap": (1, 1, 1, 2, 2, 3, 4, 5, 7),
}
VIEWS: dict[Setting, tuple[ViewName, ...]] = {"pa": ("PA", "LATERAL"), "ap": ("AP",)}


def embody(rng_of: Generator, story: Story, attempt: int = 0) -> list[Study]:
    """Return the studies as they really are, the target last; another attempt puts the lesions elsewhere."""
    states = [*story.real, story.truth]
    studies = _empty(rng_of("visits"), story.setting, len(states))
    for name, kind in load_kinds().items():
        rng = rng_of("body", attempt, name)
        path = [held.get(name) for held in states]
        tracks = _tracks(rng, path)
        extents = _extents(rng, kind, path, tracks, story.steps.get(name, 0))
        depth = {tip: float(np.round(rng.uniform(*mm))) for tip, mm in ENDOTRACHEAL.items()}
        for number, value in enumerate(path):
            if value is None:
                continue
            if kind.device:
                studies[number] = _with_device(studies[number], kind, value, tracks[number], depth)
            else:
                studies[number] = _with_finding(studies[number], kind, value, tracks[number], extents[number])
    return studies


def _empty(rng: np.random.Generator, setting: Setting, count: int) -> list[Study]:
    age, day, studies = int(rng.integers(35, 88)), 0, []
    normal = float(np.round(rng.uniform(*NORMAL_HEART), 3)) + (AP_WIDER if setting == "ap" else 0.0)
    for number in range(count):
        day += int(rng.choice(DAYS[setting])) if number else 0
        position: Position = "upright" if setting == "pa" else "semi-upright"
        ribs = float(np.round(rng.uniform(*RIBS[setting]), 1))
        studies.append(Study(day, age + day // 365, VIEWS[setting], position, ribs, round(normal, 3)))
    return studies


def _tracks(rng: np.random.Generator, path: Sequence[Value | None]) -> list[int]:
    """Return which lesion is met at each study: it goes on while it is there on the same side and at the same place."""
    tracks: list[int] = []
    for number, value in enumerate(path):
        before = path[number - 1] if number else None
        fresh = int(rng.integers(1 << 62))
        tracks.append(tracks[-1] if value and before and _same_place(value, before) else fresh)
    return tracks


def _same_place(value: Value, before: Value) -> bool:
    return (value.side, value.location) == (before.side, before.location)


def _extents(
    rng: np.random.Generator, kind: Kind, path: Sequence[Value | None], tracks: Sequence[int], step: int
) -> list[float]:
    """Return the extent at each study: the same while nothing changes; a step within the severity is the last one."""
    found: list[float] = []
    last = len(path) - 1
    for number, value in enumerate(path):
        if value is None or kind.device:
            found.append(0.0)
            continue
        low, high = kind.bands[value.severity or ""]
        high = high if (value.count or 1) == 1 else min(high, SEVERAL_MM)
        going_on = number > 0 and tracks[number] == tracks[number - 1]
        before = path[number - 1] if going_on else None
        stepping = bool(step) and tracks[number] == tracks[last]
        same = before is not None and (before.severity, before.count) == (value.severity, value.count)
        if number == last and step and same:
            found.append(_beyond(rng, found[-1], step * kind.step, low, high))
        elif same:
            found.append(found[-1])
        elif stepping and step > 0:
            found.append(float(rng.uniform(low, max(low, high / kind.step / 1.05))))
        elif stepping:
            found.append(float(rng.uniform(min(high, low * kind.step * 1.05), high)))
        else:
            found.append(float(rng.uniform(low, high)))
    return [round(extent, 3 if extent < 2 else 1) for extent in found]


def _beyond(rng: np.random.Generator, before: float, step: float, low: float, high: float) -> float:
    """Return an extent of the same severity that is a visible step above or below ``before``."""
    if step > 0:
        return float(rng.uniform(min(high, before * step), high))
    return float(rng.uniform(low, max(low, before / -step)))


def _with_finding(study: Study, kind: Kind, value: Value, track: int, extent: float) -> Study:
    size = round(extent) if kind.name in ("nodule", "granuloma") else None
    if kind.name == "cardiomegaly":
        extent = round(extent + (AP_WIDER if study.portable else 0.0), 3)
        study = replace(study, heart_ratio=extent)
    if kind.name == "hyperinflation":
        study = replace(study, posterior_ribs=11.0)
    finding = Finding(
        kind.name,
        extent,
        track,
        side=value.side,
        location=value.location,
        severity=value.severity,
        size_mm=size,
        count=value.count,
    )
    return replace(study, findings=(*study.findings, finding))


def _with_device(study: Study, kind: Kind, value: Value, track: int, depth: dict[str, float]) -> Study:
    extent = depth[value.tip or ""] if kind.name == "endotracheal_tube" else 0.0
    device = Device(kind.name, track, side=value.side, tip=value.tip, count=value.count, extent=extent)
    return replace(study, devices=(*study.devices, device))
