"""Dumb readers: none looks for a finding's shape, all must earn 0. ``python probes.py NAME`` | ``--list``."""

import gzip
import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
from numpy.typing import NDArray

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
LIKELY = (
    "Coronary artery wall calcification",
    "Pleural effusion",
    "Bronchiectasis",
    "Consolidation",
    "Lymphadenopathy",
    "Lung nodule",
    "Mosaic attenuation pattern",
    "Interlobular septal thickening",
    "Atelectasis",
    "Lung opacity",
    "Peribronchial thickening",
    "Arterial wall calcification",
    "Emphysema",
    "Cardiomegaly",
    "Hiatal hernia",
    "Pericardial effusion",
    "Medical material",
)
"""The labels, most often yes first: what one who has read the generator knows beforehand."""
USUAL_YES = 6
HALVES = "Atelectasis", "Consolidation", "Lung opacity", "Pleural effusion"
Volume = NDArray[np.float64]
Answers = dict[str, bool]


def files() -> list[Path]:
    return sorted((DATA / "series").iterdir()) if (DATA / "series").exists() else [DATA / "scan.nii.gz"]


def volume() -> Volume:
    """Return the HU, (I, J, K), from foot to head."""
    if (DATA / "series").exists():
        images = sorted(map(pydicom.dcmread, files()), key=lambda image: float(image.ImagePositionPatient[2]))
        return np.stack([image.pixel_array[::-1].T - 1024.0 for image in images], -1)
    data = gzip.decompress(files()[0].read_bytes())
    shape = struct.unpack_from("<3h", data, 42)
    return np.frombuffer(data, "<i2", offset=352).reshape(shape, order="F").astype(np.float64)


def spacing() -> tuple[float, float, float]:
    if (DATA / "series").exists():
        image = pydicom.dcmread(files()[0], stop_before_pixels=True)
        return float(image.PixelSpacing[1]), float(image.PixelSpacing[0]), float(image.SliceThickness)
    i, j, k = struct.unpack_from("<3f", gzip.decompress(files()[0].read_bytes()), 80)
    return i, j, k


def first(count: float) -> Answers:
    """Answer yes to so many labels, the likeliest first."""
    chosen = LIKELY[: int(np.clip(round(count), 0, len(LIKELY)))]
    return {label: label in chosen for label in LIKELY}


def only(*labels: str) -> Answers:
    return {label: label in labels for label in LIKELY}


def by_size() -> Answers:
    """Take more bytes for more findings."""
    values = 1.0
    for step in volume().shape:
        values *= step
    return first(10 * sum(path.stat().st_size for path in files()) / values)


def by_header() -> Answers:
    """Let voxel size and slice count decide."""
    step = spacing()
    return first(sum(round(1000 * value) for value in step) % 13)


def by_names() -> Answers:
    """Let the digits of names decide."""
    return first(sum(map(ord, files()[0].name + files()[-1].name)) % 13)


def by_noise() -> Answers:
    """Take a noisier background for a sicker patient."""
    hu = volume()
    i, j = hu.shape[0] // 2, hu.shape[1] // 20
    return first(hu[i - 8 : i + 8, -j - 4 : -j].std() / 3)


def by_ends() -> Answers:
    """Look at the first and last slice only."""
    hu = volume()
    bright = (hu[..., [0, -1]] > 130).mean((0, 1))
    return first(200 * bright[0]) if bright[0] > bright[1] else first(100 * bright[1])


def shares(hu: Volume) -> dict[str, float]:
    """Return the shares of the body's voxels in ranges of HU."""
    inside = hu[hu.shape[0] // 6 : -hu.shape[0] // 6, hu.shape[1] // 5 : -hu.shape[1] // 5]
    bounds = {"black": (-1025, -950), "air": (-950, -780), "haze": (-780, -400), "dense": (-400, -150)}
    bounds |= {"fluid": (-5, 25), "bone": (130, 4000), "metal": (1500, 4000)}
    return {name: float(((inside > low) & (inside <= high)).mean()) for name, (low, high) in bounds.items()}


def by_histogram() -> Answers:
    """Let shares of HU ranges stand for findings."""
    share = shares(volume())
    lung = sum(share[name] for name in ("black", "air", "haze", "dense"))
    return {
        **only(),
        "Emphysema": share["black"] > 0.1 * lung,
        "Mosaic attenuation pattern": share["haze"] > 0.3 * lung,
        "Lung opacity": share["haze"] > 0.25 * lung,
        "Interlobular septal thickening": share["haze"] > 0.2 * lung,
        "Consolidation": share["dense"] > 0.06 * lung,
        "Atelectasis": share["dense"] > 0.05 * lung,
        "Pleural effusion": share["fluid"] > 0.14,
        "Pericardial effusion": share["fluid"] > 0.18,
        "Coronary artery wall calcification": share["bone"] > 0.03,
        "Arterial wall calcification": share["bone"] > 0.04,
        "Medical material": share["metal"] > 1e-5,
        "Lymphadenopathy": lung < 0.3,
        "Cardiomegaly": lung < 0.25,
    }


def easy_signs() -> Answers:
    """Answer what a threshold sees in the middle of the chest, and the others as they usually are."""
    hu = volume()
    i, j, k = hu.shape
    middle = hu[2 * i // 5 : 3 * i // 5 + i // 10, 2 * j // 5 : 4 * j // 5, k // 4 : 3 * k // 4]
    lungs = (hu < -500) & (hu > -1000)
    back = hu[:, j // 6 : j // 3, k // 8 : k // 2]
    found = first(USUAL_YES)
    found["Medical material"] = bool((middle > 1500).any())
    found["Coronary artery wall calcification"] = bool((middle > 300).mean() > 2e-4)
    found["Arterial wall calcification"] = bool((middle > 300).mean() > 1e-3)
    found["Pleural effusion"] = bool(((back > -20) & (back < 30)).mean() > 0.2)
    found["Emphysema"] = bool((hu[lungs] < -950).mean() > 0.1)
    found["Cardiomegaly"] = bool((middle > 0).mean() > 0.5)
    return found


def by_grain() -> Answers:
    """Take places whose grain differs from its surroundings for inserted, and count them."""
    hu = volume()
    fine = np.abs(np.diff(hu, axis=0))[: hu.shape[0] // 8 * 8, : hu.shape[1] // 8 * 8, : hu.shape[2] // 4 * 4]
    blocks = fine[: fine.shape[0] // 8 * 8].reshape(fine.shape[0] // 8, 8, -1, 8, hu.shape[2] // 4, 4).mean((1, 3, 5))
    return first(100 * (np.abs(blocks - np.median(blocks)) > 0.5 * np.median(blocks)).mean() % 13)


def by_side() -> Answers:
    """Take a difference between left and right for disease."""
    hu = volume()
    half = hu.shape[0] // 2
    apart = abs(hu[:half].mean() - hu[-half:].mean())
    return {label: label in HALVES and apart > 10 for label in LIKELY}


def chance(number: int) -> Answers:
    """Toss a coin for each label."""
    rng = np.random.default_rng(number)
    return dict(zip(LIKELY, map(bool, rng.integers(0, 2, len(LIKELY))), strict=True))


PROBES: dict[str, tuple[Callable[[], Answers], str]] = {
    "all_yes": (lambda: only(*LIKELY), "every case has scored labels that are no"),
    "all_no": (only, "every case has scored labels that are yes"),
    "modal": (
        lambda: only(LIKELY[0], LIKELY[1], LIKELY[2], LIKELY[3], LIKELY[4]),
        "the best answer without looking: right in fewer than one of a thousand cases",
    ),
    "likeliest": (lambda: first(USUAL_YES), "the labels that are most often yes"),
    "more_often_yes": (lambda: first(12), "yes to all that is yes in four of ten cases"),
    "implied": (lambda: only(*LIKELY[:4], *LIKELY[8:12]), "what follows by habit from the likeliest"),
    "size": (by_size, "compressed size does not tell findings"),
    "header": (by_header, "a header does not tell findings"),
    "names": (by_names, "names are random"),
    "noise": (by_noise, "noise is drawn without a look at the findings"),
    "ends": (by_ends, "the first and the last slice hold no findings"),
    "histogram": (by_histogram, "look-alikes share the HU of findings"),
    "easy_signs": (easy_signs, "a few thresholds and the usual answers"),
    "grain": (by_grain, "all of the scan has one noise"),
    "side": (by_side, "one-sidedness is no finding"),
    **{f"coin_{n}": (lambda n=n: chance(n), "1 in 4,096 for twelve labels") for n in range(3)},  # type: ignore[misc]
}


def main() -> None:
    """Run the probe that was named."""
    if sys.argv[1:] == ["--list"]:
        listing = [
            {"name": name, "expects": "zero", "bound": None, "of": None, "why": why}
            for name, (_, why) in PROBES.items()
        ]
        print(json.dumps(listing))  # noqa: T201 (the contract)
        return
    answers = PROBES[sys.argv[1]][0]()
    SUBMISSION.mkdir(parents=True, exist_ok=True)
    lines = [f"{label}: {'yes' if answer else 'no'}\n" for label, answer in answers.items()]
    (SUBMISSION / "predictions.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
