"""Files that a volume is handed over in: one compressed NIfTI, or a DICOM series."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydicom.datadict import dictionary_VR
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

UNITS_MM = 2
SCANNER_ANATOMICAL = 1
NIFTI_HEADER = 352
"""Bytes before the voxels of a single-file NIfTI."""
GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\x03"
"""No name, no time, fastest compression, Unix."""
AIR_HU = -1024
Identify = Callable[..., str]


def write_nifti(path: Path, hu: NDArray[np.int16], affine: NDArray[np.float64]) -> None:
    """Write a ``.nii.gz`` of HU, (I, J, K); equal volumes give equal bytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    checksum = size = 0
    with path.open("wb") as file:
        file.write(GZIP_HEAD)
        for number in range(-1, hu.shape[2]):
            block = _nifti_header(hu, affine) if number < 0 else hu[:, :, number].T.astype("<i2").tobytes()
            checksum, size = zlib.crc32(block, checksum), size + len(block)
            file.write(packer.compress(block))
        file.write(packer.flush() + struct.pack("<II", checksum, size & 0xFFFFFFFF))


def _nifti_header(hu: NDArray[np.int16], affine: NDArray[np.float64]) -> bytes:
    """Return the header of NIfTI-1 with both transforms, and the empty extension flag."""
    head = bytearray(NIFTI_HEADER)
    spacing = np.sqrt((affine[:3, :3] ** 2).sum(0))
    # The quaternion of a matrix that only flips: i to the left, j to the front, k to the head.
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *hu.shape, 1, 1, 1, 1)
    struct.pack_into("<2h", head, 70, 4, 16)
    struct.pack_into("<8f", head, 76, -1.0, *spacing, 0, 0, 0, 0)
    struct.pack_into("<3f", head, 108, NIFTI_HEADER, 1.0, 0.0)
    struct.pack_into("<B", head, 123, UNITS_MM)
    struct.pack_into("<2h", head, 252, SCANNER_ANATOMICAL, SCANNER_ANATOMICAL)
    struct.pack_into("<6f", head, 256, 0.0, 1.0, 0.0, *affine[:3, 3])
    struct.pack_into("<12f", head, 280, *affine[:3].ravel())
    head[344:348] = b"n+1\x00"
    return bytes(head)


def write_series(
    folder: Path, hu: NDArray[np.int16], affine: NDArray[np.float64], identify: Identify, about: dict[str, str]
) -> None:
    """Write a DICOM series, one CT image a slice, named in no order.

    Args:
        folder: is made.
        hu: (I, J, K), i right to left, j back to front, k foot to head.
        affine: voxel -> RAS+ mm; its axes are the patient's.
        identify: returns a hexadecimal id for a label (``Draw.opaque_id``).
        about: further elements of every file by keyword, equal in all.
    """
    folder.mkdir()
    shared = _shared_elements(hu, affine, identify, about)
    for number in range(hu.shape[2]):
        corner = affine @ np.array([0, hu.shape[1] - 1, number, 1.0])
        image = Dataset()
        image.update(shared)
        image.SOPInstanceUID = _uid(identify, "image", number)
        image.InstanceNumber = str(hu.shape[2] - number)
        image.ImagePositionPatient = [_decimal(-corner[0]), _decimal(-corner[1]), _decimal(corner[2])]
        image.SliceLocation = _decimal(corner[2])
        pixels = hu[:, ::-1, number].T.astype(np.int32) - AIR_HU
        image.PixelData = np.clip(pixels, 0, 4095).astype("<u2").tobytes()
        _save(folder / f"{identify('file', number)}.dcm", image)


def _shared_elements(
    hu: NDArray[np.int16], affine: NDArray[np.float64], identify: Identify, about: dict[str, str]
) -> Dataset:
    """Return what all images of the series have in common."""
    shared = Dataset()
    shared.SOPClassUID = CTImageStorage
    shared.Modality = "CT"
    shared.ImageType = ["ORIGINAL", "PRIMARY", "AXIAL"]
    for name in ("StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID"):
        setattr(shared, name, _uid(identify, name))
    shared.PatientName = "Anonymous"
    shared.PatientID = identify("patient")
    shared.StudyID = "1"
    shared.SeriesNumber = "2"
    shared.PatientPosition = "HFS"
    shared.BodyPartExamined = "CHEST"
    shared.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    for name in ("StudyDate", "StudyTime", "AccessionNumber", "ReferringPhysicianName", "PatientBirthDate"):
        setattr(shared, name, "")
    for name, value in about.items():
        setattr(shared, name, float(value) if dictionary_VR(name) == "FD" else value)
    shared.SamplesPerPixel = 1
    shared.PhotometricInterpretation = "MONOCHROME2"
    shared.Rows, shared.Columns = hu.shape[1], hu.shape[0]
    shared.PixelSpacing = [_decimal(abs(affine[1, 1])), _decimal(abs(affine[0, 0]))]
    shared.BitsAllocated, shared.BitsStored, shared.HighBit = 16, 12, 11
    shared.PixelRepresentation = 0
    shared.RescaleIntercept, shared.RescaleSlope, shared.RescaleType = str(AIR_HU), "1", "HU"
    shared.WindowCenter, shared.WindowWidth = ["40", "-600"], ["400", "1500"]
    return shared


def _save(path: Path, image: Dataset) -> None:
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = image.SOPClassUID
    meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
    file = FileDataset(str(path), image, file_meta=meta, preamble=b"\x00" * 128)
    file.save_as(path, enforce_file_format=True)


def _uid(identify: Identify, *label: str | int) -> str:
    """Return a UID of the kind that is made from a UUID."""
    return f"2.25.{int(identify('uid', *label, length=32), 16)}"


def _decimal(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")
