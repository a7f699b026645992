"""CT abnormality: a scan with a finding and one without differ in the finding and in nothing else."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pydicom
import pytest
from ct_draws import draw_of
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from categories.catalog import find_task
from categories.ct_abnormality import synthetic
from categories.ct_abnormality.canvas import State
from categories.ct_abnormality.figure import read_scan
from categories.ct_abnormality.labels import KEYS
from categories.draw import Draw

NIFTI, DICOM = "scan_01", "scan_03"


SHAPING = ("cardiomegaly", "emphysema", "medical_material")
"""Findings that change air and ends of a scan by right: by the body's thickness, or by streaks from metal."""


@contextlib.contextmanager
def all_are(state: State, monkeypatch: pytest.MonkeyPatch, but: tuple[str, ...]) -> Iterator[None]:
    """Let all findings be in a state, save ``but``, which are between the thresholds."""
    states = {key: "grey" if key in but else state for key in KEYS}
    with monkeypatch.context() as patch:
        patch.setattr(synthetic, "draw_states", lambda *_: states)
        patch.setattr(synthetic, "require_enough", lambda *_: None)  # no case is all yes or all no
        yield


def prepare(draw: Draw, into: Path) -> Path:
    for name in ("public", "gold", "workspace"):
        (into / name).mkdir(parents=True)
    synthetic.prepare(draw, public=into / "public", gold=into / "gold", workspace=into / "workspace")
    return into


def pair(
    case: str, instance: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, but: tuple[str, ...] = SHAPING
) -> dict[State, Path]:
    """Return one patient twice: with all findings, and with all look-alikes."""
    made = {}
    for state in ("present", "lookalike"):
        with all_are(state, monkeypatch, but):
            made[state] = prepare(draw_of(case, "a private seed", instance), tmp_path / f"{instance}{state}")
    return made


def air(hu: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return what lies in front of the patient: nothing but air and the scanner's noise."""
    middle = hu.shape[0] // 2
    return hu[middle - 8 : middle + 8, -hu.shape[1] // 20 - 4 : -hu.shape[1] // 20]


def test_one_header_one_scanner_with_and_without_findings(monkeypatch, tmp_path: Path) -> None:
    made = pair(NIFTI, 0, monkeypatch, tmp_path)
    volumes = {state: read_scan(folder / "public") for state, folder in made.items()}
    with_, without = volumes["present"], volumes["lookalike"]
    assert with_[0].shape == without[0].shape
    assert with_[1] == without[1]
    assert np.array_equal(air(with_[0]), air(without[0]))
    for end in (0, -1):
        assert np.array_equal(with_[0][..., end], without[0][..., end]), "the outermost slices hold a finding"
    names = [sorted(path.name for path in (folder / "public").iterdir()) for folder in made.values()]
    assert names[0] == names[1]


def test_one_dicom_header_with_and_without_findings(monkeypatch, tmp_path: Path) -> None:
    headers = {}
    for state, folder in pair(DICOM, 0, monkeypatch, tmp_path).items():
        headers[state] = {}
        for path in sorted((folder / "public" / "series").iterdir()):
            image = pydicom.dcmread(path)
            del image.PixelData
            headers[state][path.name] = (image.to_json(), path.stat().st_size)
    assert headers["present"] == headers["lookalike"]


def test_a_large_heart_and_deep_lungs_do_not_show_in_header_or_noise(monkeypatch, tmp_path: Path) -> None:
    made = pair(NIFTI, 1, monkeypatch, tmp_path, but=("medical_material",))
    (with_, spacing), (without, same) = (read_scan(folder / "public") for folder in made.values())
    assert (with_.shape, spacing) == (without.shape, same)
    assert air(with_).std() == pytest.approx(air(without).std(), rel=0.04)


def test_size_on_disk_hardly_depends_on_findings(monkeypatch, tmp_path: Path) -> None:
    ratios = []
    for instance in range(3):
        made = pair(NIFTI, instance, monkeypatch, tmp_path)
        sizes = [(made[state] / "public" / "scan.nii.gz").stat().st_size for state in ("present", "lookalike")]
        ratios.append(sizes[0] / sizes[1])
    assert max(abs(ratio - 1) for ratio in ratios) < 0.02, ratios


FEATURES = ("bytes", "slices", "spacing", "thickness", "air noise", "first slice", "last slice")


def features(folder: Path) -> list[float]:
    """Return what a reader of anything but findings may know of a scan; NaN where a format has none."""
    public = folder / "public"
    hu, spacing = read_scan(public)
    size = sum(path.stat().st_size for path in public.rglob("scan.nii.gz")) / hu.size
    noise = float(np.abs(air(hu) - np.median(air(hu))).mean())
    ends = [float(hu[..., end].mean()) for end in (0, -1)]
    return [size or np.nan, hu.shape[2], spacing[0], spacing[2], noise, *ends]


@pytest.mark.full
@pytest.mark.timeout(14400)
def test_nothing_but_findings_tells_findings(tmp_path: Path) -> None:
    """Over 300 draws, one feature and one label at a time, pooled over the labels: AUROC with its upper limit."""
    values, answers = [], []
    cases = list(find_task("ct_abnormality/scan_01").category.cases)
    for number in range(300):
        draw = draw_of(cases[number % 10], "a private seed", number // 10)
        folder = prepare(draw, tmp_path / str(number))
        values.append(features(folder))
        gold = json.loads((folder / "gold" / "labels.json").read_text())["labels"]
        answers.append([{"yes": 1.0, "no": 0.0, "": np.nan}[entry["answer"]] for entry in gold])
    for name, column in zip(FEATURES, np.array(values).T, strict=True):
        low, high = pooled_limits(column, np.array(answers))
        assert high <= 0.55, (name, low, high)
        assert low >= 0.45, (name, low, high)


def pooled_limits(value: NDArray[np.float64], answers: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % limits of the mean AUROC over labels, from drawing cases with replacement."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(500):
        chosen = rng.integers(0, len(value), len(value))
        aurocs = []
        for label in answers[chosen].T:
            usable = np.isfinite(label) & np.isfinite(value[chosen])
            if len(set(label[usable])) == 2:
                aurocs.append(roc_auc_score(label[usable], value[chosen][usable]))
        found.append(np.mean(aurocs))
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)
