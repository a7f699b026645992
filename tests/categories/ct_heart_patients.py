"""Patients for tests of what is drawn in mediastinum, pleura and vessels."""

from functools import cache, lru_cache

import numpy as np
from ct_findings import draw_on

from categories.assets import asset_of, assets_folder, make_ready
from categories.chest.patient import Body, draw_patient
from categories.draw import Draw
from runners.cache import default_cache

NOISE_HU = 20.0


@cache
def patient(number, ratio=None):
    """Return one of a few patients, women and men, on the small grid."""
    folder = make_ready(asset_of("chest"), assets_folder(default_cache().root)).folder
    draw = Draw(case="test", spec=None, key=bytes([number] * 32), scale="small", assets=folder)
    body = Body(cardiothoracic_ratio=ratio) if ratio else None
    return draw_patient(draw, "small", sex="FM"[number % 2], age=55 + 9 * number, body=body)


@lru_cache(24)
def drawn(key, kind, seed, **states):
    """Return (canvas, HU before, facts) of one form of a finding."""
    return draw_on(patient(seed % 3), key, kind, seed, {"atelectasis": "lookalike", **states})


def noisy(canvas):
    """Return the volume with a scanner's noise on it, so that a detector reads what a reader would."""
    return canvas.hu + np.random.default_rng(3).normal(0, NOISE_HU, canvas.hu.shape)


def ras_of(canvas, mask):
    """Return the middle of a mask in patient coordinates, mm."""
    return canvas.patient.ras_mm(np.argwhere(mask).mean(0))
