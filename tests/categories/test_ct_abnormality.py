"""CT abnormality: the files are a scanner's, and what is drawn keeps to the definitions that the agent reads."""

import gzip
import hashlib
import json
import re
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import pytest
from ct_findings import definitions
from guarded import PRIVATE_SEEDS

from categories.catalog import find_task
from categories.ct_abnormality.figure import draw_figure, read_scan
from categories.ct_abnormality.findings import FINDINGS, ORDER
from categories.ct_abnormality.labels import KEYS, LABELS
from categories.ct_abnormality.writing import write_nifti, write_series
from verifiers_hidden.ct_abnormality import LABELS as JUDGED

CASES = tuple(find_task("ct_abnormality/scan_01").category.cases)
NIFTI, DICOM = "ct_abnormality/scan_01", "ct_abnormality/scan_03"
AFFINE = np.array([[-0.7, 0, 0, 100.5], [0, 0.71, 0, -120], [0, 0, 1.1, -300], [0, 0, 0, 1]])


def gold_of(draw) -> dict:
    return json.loads((draw.gold / "labels.json").read_text())


def test_every_label_has_a_definition_three_ways_to_be_drawn_and_a_judge() -> None:
    assert tuple(definitions()) == JUDGED == tuple(LABELS.values())
    assert set(ORDER) == set(FINDINGS) == set(KEYS)
    assert all(yes > no for yes, no in definitions().values())


@pytest.mark.parametrize("seed", ["0", PRIVATE_SEEDS[0]])
@pytest.mark.parametrize("case", CASES)
def test_what_is_drawn_keeps_to_the_definitions(case: str, seed: str, stage) -> None:
    for entry in gold_of(stage(f"ct_abnormality/{case}", seed))["labels"]:
        yes_from, no_up_to = definitions()[entry["label"]]
        facts, measure = entry["facts"], entry["facts"]["measure"]
        assert entry["scored"] == (entry["answer"] != "")
        if entry["answer"] == "yes":
            assert measure >= yes_from, entry
            assert len(facts["signs"]) >= 2, entry
        elif entry["answer"] == "no":
            assert measure <= no_up_to, entry
        else:
            assert no_up_to < measure < yes_from, entry


@pytest.mark.parametrize("case", CASES)
def test_places_lie_in_the_volume_that_is_handed_out(case: str, stage) -> None:
    draw = stage(f"ct_abnormality/{case}")
    gold = gold_of(draw)
    hu, spacing = read_scan(draw.public)
    assert hu.shape == tuple(gold["shape"])
    assert np.allclose(spacing, gold["spacing_mm"], atol=1e-3)
    for entry in gold["labels"]:
        for place in entry["facts"]["places"]:
            assert np.all(np.array(place["voxel"]) >= -1), place
            assert np.all(np.array(place["voxel"]) <= np.array(hu.shape)), place


def test_nifti_is_int16_hu_on_the_patients_axes(stage) -> None:
    draw = stage(NIFTI)
    assert sorted(path.name for path in draw.public.iterdir()) == ["definitions.md", "labels.txt", "scan.nii.gz"]
    image = nibabel.load(draw.public / "scan.nii.gz")
    assert image.get_data_dtype() == np.int16
    assert nibabel.aff2axcodes(image.affine) == ("L", "A", "S")
    assert np.allclose(image.get_qform(), image.get_sform())
    assert image.header.get_xyzt_units()[0] == "mm"
    hu = np.asarray(image.dataobj)
    assert -1024 <= hu.min() < -950
    assert 700 < hu.max() <= 3071
    middle = hu[hu.shape[0] // 2, :, hu.shape[2] // 2]
    # the back of a lying patient has the spine: bone in the rear half of the middle line
    assert (middle[: len(middle) // 2] > 150).sum() > (middle[len(middle) // 2 :] > 150).sum()
    assert (draw.public / "scan.nii.gz").read_bytes()[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\x03"


def test_dicom_is_one_series_of_one_patient_without_identity(stage) -> None:
    draw = stage(DICOM)
    paths = sorted((draw.public / "series").iterdir())
    images = [pydicom.dcmread(path) for path in paths]
    assert all(re.fullmatch(r"[0-9a-f]{12}\.dcm", path.name) for path in paths)
    numbers = [int(image.InstanceNumber) for image in images]
    assert sorted(numbers) == list(range(1, len(images) + 1))
    assert numbers != sorted(numbers), "names in the order of slices"
    for name in ("PatientID", "StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"):
        assert len({str(image[name].value) for image in images}) == 1
    assert len({image.SOPInstanceUID for image in images}) == len(images)
    assert {str(image.PatientName) for image in images} == {"Anonymous"}
    assert not images[0].PatientBirthDate
    assert not images[0].StudyDate
    heights = np.sort([float(image.ImagePositionPatient[2]) for image in images])
    assert np.allclose(np.diff(heights), np.diff(heights)[0], atol=1e-4)
    assert images[0].file_meta.TransferSyntaxUID.is_little_endian
    assert not images[0].file_meta.TransferSyntaxUID.is_implicit_VR


def test_both_formats_hold_the_same_voxels_at_the_same_place(tmp_path: Path) -> None:
    hu = np.random.default_rng(0).integers(-1024, 3072, (12, 10, 5), dtype=np.int16)
    write_nifti(tmp_path / "scan.nii.gz", hu, AFFINE)
    image = nibabel.load(tmp_path / "scan.nii.gz")
    assert np.array_equal(np.asarray(image.dataobj), hu)
    assert np.allclose(image.affine, AFFINE)
    (tmp_path / "public").mkdir()
    write_series(tmp_path / "public" / "series", hu, AFFINE, opaque, {"PatientSex": "F"})
    back, spacing = read_scan(tmp_path / "public")
    assert np.array_equal(back, hu)
    assert np.allclose(spacing, (0.7, 0.71, 1.1))
    for path in (tmp_path / "public" / "series").iterdir():
        image = pydicom.dcmread(path)
        x, y, z = image.ImagePositionPatient
        # the upper left pixel is the patient's right front: L and P grow along columns and rows
        number = round((z + 300) / 1.1)
        first = AFFINE @ [0, 9, number, 1]
        assert np.allclose((-x, -y, z), first[:3], atol=1e-5)
        assert int(image.pixel_array[0, 0]) - 1024 == hu[0, 9, number]


def opaque(*label: str | int, length: int = 12) -> str:
    return hashlib.sha256(repr(label).encode()).hexdigest()[:length]


def test_equal_volumes_give_equal_files(tmp_path: Path) -> None:
    hu = np.random.default_rng(0).integers(-1000, 100, (20, 20, 9), dtype=np.int16)
    for name in ("a.nii.gz", "b.nii.gz"):
        write_nifti(tmp_path / name, hu, AFFINE)
    assert (tmp_path / "a.nii.gz").read_bytes() == (tmp_path / "b.nii.gz").read_bytes()
    assert len(gzip.decompress((tmp_path / "a.nii.gz").read_bytes())) == 352 + hu.nbytes


def test_the_agent_reads_the_same_list_and_definitions_in_every_case(stage) -> None:
    texts = set()
    for case in CASES[:3]:
        public = stage(f"ct_abnormality/{case}").public
        texts.add(((public / "labels.txt").read_text(), (public / "definitions.md").read_text()))
    assert len(texts) == 1
    assert texts.pop()[0].splitlines() == list(JUDGED)


@pytest.mark.parametrize("with_gold", [False, True])
@pytest.mark.parametrize("task_id", [NIFTI, DICOM])
def test_a_picture_is_drawn(task_id: str, with_gold: bool, stage, tmp_path: Path) -> None:
    draw = stage(task_id)
    out = tmp_path / "figure.png"
    draw_figure(draw.public, draw.gold if with_gold else None, out)
    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert out.stat().st_size > 50_000


@pytest.mark.parametrize("with_gold", [False, True])
def test_answers_show_in_the_picture_and_hostile_ones_do_no_harm(with_gold: bool, stage, tmp_path: Path) -> None:
    draw = stage(NIFTI)
    pictures = []
    for number, answer in enumerate(("", "Emphysema: yes\nLung nodule: no\n", "\x00" * 100_000, "$x^$: yes\n<b>: no")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "predictions.txt").write_text(answer)
        draw_figure(draw.public, draw.gold if with_gold else None, folder / "figure.png", folder)
        pictures.append((folder / "figure.png").read_bytes())
    assert pictures[0] == pictures[2] == pictures[3]
    assert pictures[0] != pictures[1]
