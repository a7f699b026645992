"""Many cases of chest X-ray reports without their pictures, for tests of the texts."""

from collections.abc import Callable, Iterator

import numpy as np

from categories.draw import Draw
from categories.spec import Case
from categories.xray_report_correction.casefile import CaseFile, draw_case, labelled
from categories.xray_report_correction.kinds import Setting

PRIORS = (1, 2, 3, 2, 1, 0, 2, 0, 3, 1)
SETTINGS: tuple[Setting, ...] = ("pa", "ap")


def rng_of(seed: int) -> Callable[..., np.random.Generator]:
    """Return the generators of one of many draws."""
    return labelled(Draw("case", Case(title="case"), seed.to_bytes(32, "big"), "small"))


def cases(count: int, first: int = 0) -> Iterator[CaseFile]:
    """Yield cases with the suite's mix of settings and earlier studies."""
    for seed in range(first, first + count):
        yield draw_case(rng_of(seed), SETTINGS[seed % 2], PRIORS[seed // 2 % len(PRIORS)])
