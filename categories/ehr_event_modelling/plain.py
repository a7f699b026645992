"""The best that an ordering without any medicine reaches: no submission passes that is not better."""

from collections.abc import Callable

import numpy as np

from categories.ehr_event_modelling.vocabulary import Floats

Measure = Callable[[Floats], float]


def best_plain(
    columns: dict[str, Floats], age: Floats, male: Floats, risk: Floats, measure: Measure
) -> tuple[str, float]:
    """Return the name and AUROC of the best single column, in either direction, or of age and sex together.

    Age and sex are fitted to the very risks they are measured on, so that no honest fit of them does better.
    """
    orders = {"age and sex": _demographic(age, male, risk), "age": age, "sex": male, **columns}
    reached = {name: max(measure(order), measure(-order)) for name, order in orders.items()}
    name = max(reached, key=lambda key: reached[key])
    return name, reached[name]


def _demographic(age: Floats, male: Floats, risk: Floats) -> Floats:
    """Return the logit of a logistic curve of age, age squared and sex, fitted to risks by Newton's method."""
    x = (age - 55.0) / 15.0
    design = np.column_stack([np.ones(len(x)), x, x**2, male, male * x])
    weights = np.zeros(design.shape[1])
    for _ in range(25):
        chance = 1.0 / (1.0 + np.exp(-design @ weights))
        gradient = design.T @ (chance - risk) + 0.1 * weights
        curvature = (design * (chance * (1.0 - chance))[:, None]).T @ design + 0.1 * np.eye(design.shape[1])
        weights = weights - np.linalg.solve(curvature, gradient)
    return np.round(design @ weights, 4)
