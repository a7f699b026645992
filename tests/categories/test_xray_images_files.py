"""The files of a view: what a reader of them learns, and what not."""

import hashlib

import numpy as np
import pydicom
import pytest
from PIL import Image

from categories.xray_report_correction.radiograph import View
from categories.xray_report_correction.writing import write_view


def view(name="PA", marker="L") -> View:
    pixels = np.linspace(0, 4095, 240 * 200).reshape(240, 200).astype(np.uint16)
    return View(name, pixels, 0.1667, marker)


@pytest.mark.parametrize(("kind", "size"), [("png", 240), ("jpg", 240)])
def test_pictures_keep_grey_levels_and_pixel_size(tmp_path, kind, size) -> None:
    path = tmp_path / f"view.{kind}"
    write_view(view(), path, kind, uid_bytes=b"one")
    with Image.open(path) as image:
        pixels = np.asarray(image)
        dots = image.info["dpi"][0]
        assert image.mode == "L"
    assert pixels.shape == (size, 200)
    assert np.abs(pixels - view().pixels / 4095 * 255).max() < 3
    assert 25.4 / dots == pytest.approx(0.1667, abs=0.001)


@pytest.mark.parametrize(
    ("name", "position", "orientation"),
    [("PA", "PA", ["L", "F"]), ("AP", "AP", ["L", "F"]), ("LATERAL", "LL", ["P", "F"])],
)
def test_dicom_says_view_and_orientation_and_nobody(tmp_path, name, position, orientation) -> None:
    path = tmp_path / "view.dcm"
    write_view(view(name), path, "dcm", uid_bytes=b"one", study_bytes=b"both")
    image = pydicom.dcmread(path)
    assert image.ViewPosition == position
    assert list(image.PatientOrientation) == orientation
    assert image.PhotometricInterpretation == "MONOCHROME2"
    assert [float(mm) for mm in image.PixelSpacing] == pytest.approx([0.1667] * 2, abs=1e-4)
    assert np.array_equal(image.pixel_array, view().pixels)
    assert image.PatientName == "Anonymous"
    assert not image.PatientID
    assert not any(image.get(word) for word in ("PatientBirthDate", "StudyDate", "AccessionNumber", "InstitutionName"))


def test_numbers_are_unique_and_the_same_each_time(tmp_path) -> None:
    found = []
    for seed in (b"one", b"one", b"two"):
        path = tmp_path / "view.dcm"
        write_view(view(), path, "dcm", uid_bytes=seed, study_bytes=b"both")
        found.append((hashlib.sha256(path.read_bytes()).hexdigest(), pydicom.dcmread(path)))
    assert found[0][0] == found[1][0] != found[2][0]
    assert found[0][1].SOPInstanceUID != found[2][1].SOPInstanceUID
    assert found[0][1].StudyInstanceUID == found[2][1].StudyInstanceUID
    assert all(len(image.SOPInstanceUID) <= 64 for _, image in found)


@pytest.mark.parametrize("kind", ["png", "jpg"])
def test_equal_pictures_give_equal_bytes(tmp_path, kind) -> None:
    for number in (1, 2):
        write_view(view(), tmp_path / f"{number}.{kind}", kind, uid_bytes=bytes([number]))
    assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()


def test_another_format_is_refused_with_those_there_are(tmp_path) -> None:
    with pytest.raises(ValueError, match="png, jpg or dcm"):
        write_view(view(), tmp_path / "view.bmp", "bmp", uid_bytes=b"one")
