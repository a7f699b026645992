"""How well a finding can be told from the chest around it, on one view."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage as ndi

from categories.xray_report_correction.film import wide

Floats = NDArray[np.float64]
BANDS_MM = (0.7, 1.5, 3.0, 6.0, 12.0)
"""Fixed bands in which a finding is looked for: difference of Gaussians of this sigma and of four times it."""
NEAR_MM = 20.0
"""Reach (sigma) of the chest around a finding that is its noise."""
FLOOR = 0.004
"""Noise of the detector in such bands (of line integrals)."""
GATE = 4.0
"""Least ratio of a finding that may be reported, after Rose's criterion (3 to 5).

Measured on normal chests, median of the better view: nodules of 3, 5, 8, 10, 14, 28 mm 0.8, 2.2, 4.8, 6.1, 7.7, 16;
calcified ones of 2, 5, 9 mm 0.8, 6.2, 13; bands of 1, 4, 14 mm 4.1, 13, 20; consolidation of 15, 35, 75 mm 4.5, 10, 19.
Effusions are known by shape: 20 mL have 10 already, so their volume decides (200 mL on a frontal view).
"""
BARE, BLACK = 0.7, 6.5
"""Line integrals at which a film shows nothing: outside the body, and through too much of it."""


class _Band(NamedTuple):
    sigma_mm: float
    step: int
    noise: Floats
    """Root mean square of the chest's own response around each place; infinite where nothing can be seen."""


class Sight:
    """One view of a chest without findings, prepared to measure findings against."""

    def __init__(self, film: Floats, pixel_mm: float) -> None:
        """Take line integrals (rows, columns) and the pixel's size."""
        self.pixel_mm = pixel_mm
        self.bands = [self._band(film, sigma) for sigma in BANDS_MM]

    def contrast_to_noise(self, change: Floats) -> float:
        """Return the contrast-to-noise ratio of a finding (its line integrals): a matched filter in the best band.

        Within a band noise is alike over 4 pi sigma^2: the response counts once for each such area it covers.
        """
        return max(self._matched(change, band) for band in self.bands)

    def _matched(self, change: Floats, band: _Band) -> float:
        ratio = self._response(change, band.sigma_mm, band.step) / band.noise
        pixel_area = (self.pixel_mm * band.step) ** 2
        return float(np.sqrt((ratio**2).sum() * pixel_area / (4 * np.pi * band.sigma_mm**2)))

    def _band(self, film: Floats, sigma_mm: float) -> _Band:
        step = max(1, round(sigma_mm / 2 / self.pixel_mm))
        small = _shrunk(film, step)
        scale = self.pixel_mm * step
        seen = ndi.binary_erosion((small > BARE) & (small < BLACK), iterations=max(1, round(5 / scale)))
        energy = wide(np.where(seen, self._response(film, sigma_mm, step) ** 2, 0), NEAR_MM / scale)
        area = np.maximum(wide(seen.astype(float), NEAR_MM / scale), 1e-3)
        return _Band(sigma_mm, step, np.where(seen, np.sqrt(energy / area) + FLOOR, np.inf))

    def _response(self, picture: Floats, sigma_mm: float, step: int) -> Floats:
        small, sigma = _shrunk(picture, step), sigma_mm / (self.pixel_mm * step)
        return np.asarray(ndi.gaussian_filter(small, sigma) - ndi.gaussian_filter(small, 4 * sigma))


def _shrunk(picture: Floats, step: int) -> Floats:
    rows, columns = (n // step * step for n in picture.shape)
    return np.asarray(picture[:rows, :columns].reshape(rows // step, step, columns // step, step).mean((1, 3)))
