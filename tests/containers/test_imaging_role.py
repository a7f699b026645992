"""The imaging image reads and writes what its categories hand out, on a read-only root as the agent's user."""

from dataclasses import replace

import pytest

from containers.box import BoxLimits

pytestmark = [pytest.mark.engine, pytest.mark.slow]
SCRIPT = """
import cv2, imagecodecs, nibabel, numpy as np, openslide, pydicom, SimpleITK, tifffile
from PIL import Image
from skimage.filters import threshold_otsu
picture = np.random.default_rng(0).integers(0, 255, (512, 512, 3), dtype=np.uint8)
tifffile.imwrite("/tmp/a.svs", picture, tile=(256, 256), compression="jpeg", photometric="rgb",
                 description="Aperio Image Library |AppMag = 40|MPP = 0.25", metadata=None)
with openslide.OpenSlide("/tmp/a.svs") as slide:
    print(slide.dimensions, slide.properties["openslide.vendor"])
nibabel.save(nibabel.Nifti1Image(np.zeros((3, 4, 5), np.int16), np.eye(4)), "/tmp/a.nii.gz")
print(SimpleITK.ReadImage("/tmp/a.nii.gz").GetSize())
print(cv2.imdecode(cv2.imencode(".png", picture)[1], 1).shape, Image.fromarray(picture).size)
print(threshold_otsu(picture) > 0, len(imagecodecs.jpeg8_encode(picture)) > 0, hasattr(pydicom, "dcmread"))
"""


def test_imaging_packages_open_their_formats(opened, spec, role_image, say) -> None:
    limits = BoxLimits(cpus=2, memory_mb=1500, pids=200)
    box = opened(replace(spec, image=role_image("imaging"), limits=limits))
    code, text = say(box, f"python -W ignore - <<'E'\n{SCRIPT}\nE")
    assert code == 0, text
    assert text.splitlines()[-4:] == ["(512, 512) aperio", "(3, 4, 5)", "(512, 512, 3) (512, 512)", "True True True"]
