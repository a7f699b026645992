"""How well scores order patients, by labels or by true risks."""

import numpy as np

from categories.ehr_event_modelling.vocabulary import Floats


def expected_auroc(score: Floats, risk: Floats) -> float:
    """Return the AUROC over pairs (i, j) weighted by risk_i x (1 - risk_j); ties count a half.

    With 0/1 labels as risks this is the ordinary AUROC.
    """
    order = np.argsort(score, kind="stable")
    score, risk = score[order], risk[order]
    first = np.searchsorted(score, score, side="left")
    after = np.searchsorted(score, score, side="right")
    below = np.concatenate([[0.0], np.cumsum(1.0 - risk)])
    won = risk * (below[first] + 0.5 * (below[after] - below[first]))
    own = risk * (1.0 - risk)
    return float((won.sum() - 0.5 * own.sum()) / (risk.sum() * (1.0 - risk).sum() - own.sum()))


def quantise(score: Floats, decimals: int = 4) -> Floats:
    """Round scores, so that the last bits of a floating-point unit never decide an order."""
    rounded: Floats = np.round(score * 10.0**decimals) / 10.0**decimals
    return rounded
