"""Small sums about judges, probes and chance, as the cards of the categories state them. Pure functions.

Sources: Rogan and Gladen 1978 (prevalence under an imperfect test); exact binomial bounds; Mann-Whitney variance.
"""

import math

from scipy import stats


def majority_error(error: float, votes: int, correlation: float = 0.0) -> float:
    """Return the error of a majority of judges that each err so often; beta-binomial where they err together.

    ``correlation`` is the intraclass correlation of their errors, 0 to below 1.
    """
    needed = votes // 2
    if correlation == 0:
        return float(stats.binom.sf(needed, votes, error))
    size = (1 - correlation) / correlation
    return float(stats.betabinom.sf(needed, votes, error * size, (1 - error) * size))


def corrected_rate(observed: float, sensitivity: float, specificity: float) -> float:
    """Return the true rate behind one observed by an imperfect judge, within [0, 1]."""
    return min(max((observed + specificity - 1) / (sensitivity + specificity - 1), 0.0), 1.0)


def trials_without_a_pass(bound: float, level: float = 0.05) -> int:
    """Return how many trials, none passing, show that the rate is at most ``bound``."""
    return math.ceil(math.log(level) / math.log1p(-bound))


def bound_without_a_pass(trials: int, level: float = 0.05) -> float:
    """Return the one-sided bound on the rate after so many trials without a pass."""
    return float(-math.expm1(math.log(level) / trials))


def auroc_sd_by_chance(positives: int, negatives: int) -> float:
    """Return the standard deviation of the AUROC of a score that knows nothing."""
    return math.sqrt((positives + negatives + 1) / (12 * positives * negatives))


def chance_of_auroc(gate: float, positives: int, negatives: int) -> float:
    """Return how often such a score reaches ``gate``: normal approximation."""
    return float(stats.norm.sf((gate - 0.5) / auroc_sd_by_chance(positives, negatives)))
