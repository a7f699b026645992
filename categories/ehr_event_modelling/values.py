"""Laboratory values: a person's own level, the day's scatter, and the relations between items of one panel."""

from collections.abc import Callable

import numpy as np

from categories.ehr_event_modelling.vocabulary import Floats, Ints, Labs

BETWEEN, WITHIN = 0.80, 0.60
"""Scatter between people and from day to day, in standard deviations of the item."""


def person_levels(rng: np.random.Generator, labs: Labs, people: int) -> Floats:
    """Return (people, items) levels in standard deviations: chronic conditions move some people far from the mean."""
    levels = rng.standard_normal((people, len(labs.names))) * BETWEEN
    chronic = rng.random(levels.shape) < 0.06
    moved: Floats = levels + chronic * rng.standard_normal(levels.shape) * 1.2
    return moved


def lab_values(rng: np.random.Generator, labs: Labs, item: Ints, male: Ints, level: Floats) -> Floats:
    """Return values in the item's unit, rounded as a laboratory reports them, within what an analyser can read."""
    z = level + WITHIN * rng.standard_normal(len(item))
    mean, sd, log = labs.mean[male, item], labs.sd[item], labs.log[item]
    value = np.where(log, mean * np.exp(np.where(log, sd * z, 0.0)), mean + sd * z)
    _relate(labs, item, value)
    value = np.clip(value, labs.low[item], labs.high[item])
    scale = 10.0 ** labs.decimals[item]
    reported: Floats = np.round(value * scale) / scale
    return reported


def _relate(labs: Labs, item: Ints, value: Floats) -> None:
    """Make derived items follow from their panel, which stands in the order of ``labs.csv``.

    Haematocrit is three times haemoglobin, total cholesterol by Friedewald, body mass index from weight and height,
    INR from the prothrombin time, iron saturation from iron and binding capacity.
    """
    derived: dict[str, tuple[str, Callable[[Ints], Floats]]] = {
        "4544-3": ("718-7", lambda at: 2.98 * value[at]),
        "2093-3": ("2089-1", lambda at: value[at] + value[at + 1] + value[at + 2] / 5.0),
        "39156-5": ("29463-7", lambda at: value[at] / (value[at + 1] / 100.0) ** 2),
        "6301-6": ("5902-2", lambda at: value[at] / 11.9),
        "2502-3": ("2498-4", lambda at: 100.0 * value[at] / value[at + 1]),
    }
    for code, (source, formula) in derived.items():
        place = labs.at(code)
        at = np.flatnonzero(item == place)
        value[at] = formula(at - (place - labs.at(source)))
