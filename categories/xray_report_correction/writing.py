"""Files that a view is handed over in: PNG or JPEG (8 bits), or a DICOM DX image (12 bits)."""

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import DigitalXRayImageStorageForPresentation, ExplicitVRLittleEndian

from categories.xray_report_correction.film import DEPTH
from categories.xray_report_correction.radiograph import View

ORIENTATION = {"PA": ["L", "F"], "AP": ["L", "F"], "LATERAL": ["P", "F"]}
"""Where the rows and the columns run to: a lateral's face looks to the left of the picture."""
ORIENTATION_CODE = {"PA": "PA", "AP": "AP", "LATERAL": "LL"}
JPEG_QUALITY = 95
EMPTY = ("StudyDate", "StudyTime", "AccessionNumber", "ReferringPhysicianName", "PatientBirthDate", "PatientSex")


def write_view(view: View, path: Path, kind: str, uid_bytes: bytes, study_bytes: bytes | None = None) -> None:
    """Write one view.

    Args:
        view: the picture.
        path: is overwritten.
        kind: ``png``, ``jpg`` or ``dcm``.
        uid_bytes: the image's unique number is made of these.
        study_bytes: the examination's likewise; of ``uid_bytes`` if it is left out.

    Raises:
        ValueError: ``kind`` is none of the three.
    """
    dots = 25.4 / view.pixel_mm
    if kind == "png":
        Image.fromarray(_bytes(view.pixels)).save(path, "PNG", dpi=(dots, dots), pnginfo=PngInfo(), compress_level=6)
    elif kind == "jpg":
        whole = round(dots)
        Image.fromarray(_bytes(view.pixels)).save(path, "JPEG", quality=JPEG_QUALITY, dpi=(whole, whole))
    elif kind == "dcm":
        _write_dicom(view, path, uid_bytes, study_bytes or uid_bytes)
    else:
        raise ValueError(f"no writer for {kind!r}: a view is written as png, jpg or dcm")


def _bytes(pixels: NDArray[np.uint16]) -> NDArray[np.uint8]:
    return np.asarray(np.rint(pixels * (255.0 / DEPTH)).astype(np.uint8))


def _write_dicom(view: View, path: Path, uid_bytes: bytes, study_bytes: bytes) -> None:
    image = _described(view)
    image.SOPInstanceUID = _uid(uid_bytes, "image")
    image.StudyInstanceUID = _uid(study_bytes, "study")
    image.SeriesInstanceUID = _uid(uid_bytes, "series")
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = image.SOPClassUID
    meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    file = FileDataset(str(path), image, file_meta=meta, preamble=bytes(128))
    file.save_as(path, enforce_file_format=True)


def _described(view: View) -> Dataset:
    """Return the elements of a DX image for presentation, without a person's name, date or place."""
    image = Dataset()
    image.SOPClassUID = DigitalXRayImageStorageForPresentation
    image.Modality = "DX"
    image.ImageType = ["ORIGINAL", "PRIMARY"]
    image.PresentationIntentType = "FOR PRESENTATION"
    image.PatientName, image.PatientID = "Anonymous", ""
    for name in EMPTY:
        setattr(image, name, "")
    image.StudyID, image.SeriesNumber, image.InstanceNumber = "1", "1", "1"
    image.BodyPartExamined = "CHEST"
    image.ViewPosition = ORIENTATION_CODE[view.name]
    image.ImageLaterality = "U"
    image.PatientOrientation = ORIENTATION[view.name]
    image.PixelSpacing = image.ImagerPixelSpacing = [f"{view.pixel_mm:.4f}"] * 2
    image.SamplesPerPixel = 1
    image.PhotometricInterpretation = "MONOCHROME2"
    image.PixelIntensityRelationship, image.PixelIntensityRelationshipSign = "LOG", 1
    image.PresentationLUTShape = "IDENTITY"
    image.BurnedInAnnotation = "NO"
    image.Rows, image.Columns = view.pixels.shape
    image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 16, 12, 11, 0
    image.RescaleIntercept, image.RescaleSlope, image.RescaleType = "0", "1", "US"
    image.WindowCenter, image.WindowWidth = "2048", "4096"
    image.PixelData = view.pixels.astype("<u2").tobytes()
    return image


def _uid(seed: bytes, what: str) -> str:
    """Return a unique number under the arc of UUIDs."""
    return f"2.25.{int.from_bytes(hashlib.sha256(seed + what.encode()).digest()[:16], 'big')}"
