"""What a submission is measured against: counts with LightGBM (the gate), SVD + logistic regression beside it."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import lightgbm
import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from categories.ehr_event_modelling.measures import expected_auroc, quantise
from categories.ehr_event_modelling.vocabulary import Floats, Ints

TREES = 300
FITS = 3
"""Each draws its own columns and examples; what one of them owes to luck is no skill."""
EMBEDDING = 64
GRID = [
    {"max_depth": depth, "learning_rate": rate, "num_leaves": leaves}
    for depth in (3, 6, -1)
    for rate in (0.02, 0.1, 0.5)
    for leaves in (10, 25, 100)
]
"""EHRSHOT's grid for its count baseline."""


def with_age(counts: sparse.csr_matrix, age_y: Floats) -> sparse.csr_matrix:
    """Append the age at prediction, in whole years."""
    return sparse.hstack([counts, sparse.csr_matrix(np.floor(age_y)[:, None])], format="csr")


FIXED: dict[str, object] = {
    "objective": "binary",
    "min_child_samples": 20,
    "feature_fraction": 0.1,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
    "seed": 0,
    "deterministic": True,
    "force_col_wise": True,
    "enable_bundle": False,
    "num_threads": 1,
    "verbose": -1,
}
"""Each tree sees a tenth of the columns and seven tenths of the examples: of many weak counts more are then used.

Column by column, unbundled: columns that a tree does not see then cost nothing (15 s a fit, 24 s row by row; the AUROC
is the same to four digits). One thread: the same on any machine; fits run side by side instead."""
WORKERS = 2


def as_dataset(features: sparse.csr_matrix, label: Ints) -> lightgbm.Dataset:
    """Return binned features, which serve every point of the grid."""
    return lightgbm.Dataset(features, label=label, params=FIXED, free_raw_data=False).construct()


def fit_trees(data: lightgbm.Dataset, settings: Mapping[str, object]) -> lightgbm.Booster:
    """Fit the gate's LightGBM."""
    return lightgbm.train({**FIXED, **settings}, data, num_boost_round=TREES)


def validation_aurocs(features: sparse.csr_matrix, label: Ints, train: Ints, val: Ints) -> list[float]:
    """Return the AUROC by labels on some rows of one fit on others, for each point of the grid."""
    data, wanted = as_dataset(features[train], label[train]), label[val].astype(np.float64)
    return [
        expected_auroc(np.asarray(fit_trees(data, settings).predict(features[val]), dtype=np.float64), wanted)
        for settings in GRID
    ]


def gate_scores(
    features: sparse.csr_matrix, label: Ints, test: sparse.csr_matrix, settings: Mapping[str, object]
) -> Floats:
    """Fit on the labelled examples, return quantised probabilities for the test rows: the mean of a few fits."""

    def fit(seed: int) -> Floats:
        # binned anew for each: training writes its settings into the data set
        model = fit_trees(as_dataset(features, label), {**settings, "seed": seed})
        return np.asarray(model.predict(test), dtype=np.float64)

    with ThreadPoolExecutor(WORKERS) as pool:
        fits = list(pool.map(fit, range(FITS)))
    return quantise(np.mean(fits, axis=0), 6)


def embedding_scores(features: sparse.csr_matrix, label: Ints, test: sparse.csr_matrix) -> Floats:
    """Return the second baseline's probabilities: truncated SVD of log counts, then ridge logistic regression."""
    everything = sparse.vstack([features, test]).tocsr().astype(np.float64)
    everything.data = np.log1p(everything.data)
    width = min(EMBEDDING, min(everything.shape) - 2)
    left, size, _ = svds(everything, k=width, v0=np.ones(min(everything.shape)), tol=0)
    embedded = left * size
    embedded = (embedded - embedded.mean(axis=0)) / embedded.std(axis=0)
    design = np.column_stack([np.ones(len(embedded)), embedded])
    n = features.shape[0]
    weights = _ridge_logistic(design[:n], label.astype(np.float64), penalty=30.0)
    return quantise(1.0 / (1.0 + np.exp(-design[n:] @ weights)))


def _ridge_logistic(design: Floats, label: Floats, penalty: float) -> Floats:
    """Newton's method to the last bit: where it stops does not depend on the machine."""
    weights = np.zeros(design.shape[1])
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = 1e-6
    for _ in range(25):
        chance = 1.0 / (1.0 + np.exp(-design @ weights))
        gradient = design.T @ (chance - label) + ridge * weights
        curvature = (design * (chance * (1.0 - chance))[:, None]).T @ design + np.diag(ridge)
        weights = weights - np.linalg.solve(curvature, gradient)
    return weights
