"""The honest solver: categories instead of codes, recent against older history, drifting values; agent's data only.

More can be learnt from the training patients than their labelled discharges: whenever a patient had no diagnosis yet
and 365 days of record ahead, the year ahead is a further example. The diagnosis is the code whose first appearance
explains the labels.
"""

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import lightgbm
import numpy as np
import polars as pl
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
DAY = 86_400_000_000
YEAR = 365 * DAY
CODE_DAYS = (120, 365, 730)
LAB_DAYS = (60, 120, 365, 730, 1460, 36500)
"""The last one lies before every record: nothing stands before it."""
WINDOWS = [(days, earlier) for days in LAB_DAYS for earlier in LAB_DAYS[1:] if days <= min(earlier, 730)]
WANDER = 0.05
"""How far a person's level moves by itself, as a variance of standardised values."""
LANDMARKS = 5  # further examples per training patient
NEVER = np.iinfo(np.int64).max
Array = np.ndarray


@dataclass
class Timelines:
    """Events by patient and time."""

    patients: Array
    edges: Array
    start: Array
    concept: Array
    lab: Array
    z: Array
    concepts: int
    labs: int
    noise: Array
    """Variance of an item's values around a person's level, as a share of all their variance."""
    age_from: Array
    male: Array
    firsts: dict[str, Array]
    """SNOMED code -> first time per patient."""

    def rows(self, table: pl.DataFrame) -> Array:
        """Return (patient, time) of examples."""
        place = np.searchsorted(self.patients, table["patient_id"].to_numpy())
        time = table["prediction_time"].str.to_datetime(time_unit="us").cast(pl.Int64)
        return np.column_stack([place, time.to_numpy()])


def read_events() -> tuple[Array, Array, Array, Array, list[str]]:
    schema = {"patient_id": pl.Int64, "start": pl.String, "code": pl.String, "value": pl.Float64}
    lazy = pl.scan_csv(DATA / "events.csv", schema_overrides=schema)
    names = lazy.select(pl.col("code").unique().sort()).collect(engine="streaming")["code"].to_list()
    table = lazy.select(
        "patient_id",
        pl.col("start").str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us").cast(pl.Int64),
        pl.col("code").cast(pl.Enum(names)),
        pl.col("value").cast(pl.Float32),
    ).collect(engine="streaming")
    if not table["patient_id"].is_sorted():
        table = table.sort("patient_id", "start")
    code = table["code"].to_physical().to_numpy()
    return table["patient_id"].to_numpy(), table["start"].to_numpy(), code, table["value"].to_numpy(), names


def build() -> Timelines:
    patient, start, code, value, names = read_events()
    patients, edges = np.unique(patient, return_index=True)
    edges = np.append(edges, len(patient))
    whose = np.repeat(np.arange(len(patients)), np.diff(edges))
    first = {name: np.full(len(patients), NEVER) for name in names if name.startswith("SNOMED/")}
    for name, when in first.items():
        at = np.flatnonzero(code == names.index(name))
        np.minimum.at(when, whose[at], start[at])
    birth = start[edges[:-1]]
    male = np.zeros(len(patients))
    male[whose[code == (names.index("Gender/M") if "Gender/M" in names else -1)]] = 1
    # of ICD-10-CM the ancestor of three characters is counted
    ancestors = [name[:11] if name.startswith("ICD10CM/") else name for name in names]
    groups = {name: i for i, name in enumerate(sorted({a for a in ancestors if a.startswith(("ICD10CM/", "RxNorm/"))}))}
    to_group = np.array([groups.get(ancestor, -1) for ancestor in ancestors])
    to_lab = np.array([i if name.startswith("LOINC/") else -1 for i, name in enumerate(names)])
    used = np.unique(to_lab[to_lab >= 0])
    to_lab[used] = np.arange(len(used))
    lab = to_lab[code]
    z = standardise(lab, value, len(used), male[whose])
    lab = np.where(np.isfinite(z), lab, -1)
    widths = len(groups), len(used), scatter(whose, lab, z, len(used))
    return Timelines(patients, edges, start, to_group[code], lab, z, *widths, birth, male, first)


def scatter(whose: Array, lab: Array, z: Array, labs: int) -> Array:
    """Return the variance of each item's values within people as a share of their whole variance."""
    known = lab >= 0
    cell, z = whose[known] * labs + lab[known], z[known].astype(np.float64)
    n, total, squares = (np.bincount(cell, weights, labs * (whose[-1] + 1)) for weights in (None, z, z * z))
    within = (squares - total**2 / np.maximum(n, 1)).reshape(-1, labs).sum(axis=0)
    free = np.maximum(n - 1, 0).reshape(-1, labs).sum(axis=0)
    return np.asarray(np.clip(within / np.maximum(free, 1), 0.05, 0.95))


def standardise(lab: Array, value: Array, labs: int, male: Array) -> Array:
    """Return values in standard deviations within item and sex, logarithms where an item is skewed."""
    z = np.full(len(value), np.nan, dtype=np.float32)
    group = np.where((lab >= 0) & np.isfinite(value), lab * 2 + male, 2 * labs).astype(np.int16)
    order = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[order], np.arange(2 * labs + 1))
    for first, last in pairwise(edges):
        at = order[first:last]
        if len(at) < 50:
            continue
        x = value[at].astype(np.float64)
        low, middle, high = np.percentile(x[:: max(1, len(x) // 20_000)], [5, 50, 95])
        if low > 0 and high - middle > 1.25 * (middle - low):
            x = np.log(np.maximum(x, low / 10))
        z[at] = np.clip((x - np.median(x)) / (x.std() + 1e-9), -5, 5)
    return z


def target_times(lines: Timelines, rows: Array) -> Array:
    """Return the first time of the code whose window best agrees with the labels."""
    place, time, label = rows.T

    windows = {code: (first[place] > time) & (first[place] < time + YEAR + DAY) for code, first in lines.firsts.items()}
    return lines.firsts[max(windows, key=lambda code: (windows[code] == (label == 1)).mean())]


def landmarks(lines: Timelines, patients: Array, first: Array) -> Array:
    """Return (patient, time, label): days with events, no diagnosis yet, a year of record ahead."""
    rng = np.random.default_rng(0)
    found = []
    for place in patients:
        start = lines.start[lines.edges[place] : lines.edges[place + 1]]
        days = np.unique(start // DAY)
        days = days[days > days[1] + 180] if len(days) > 2 else days[:0]
        time = (days + 1) * DAY - 60_000_000
        time = time[(time < first[place]) & (time + YEAR < start[-1])]
        if len(time):
            chosen = rng.choice(time, min(LANDMARKS, len(time)), replace=False)
            ahead = time[first[place] <= time + YEAR]
            chosen = np.union1d(chosen, rng.choice(ahead, min(3, len(ahead)), replace=False))
            found += [(place, t, int(first[place] <= t + YEAR)) for t in chosen]
    return np.array(found, dtype=np.int64)


@dataclass
class Histories:
    """What stands in the history of some rows (patient and time): all of it, and before each border."""

    concepts: list[sparse.csr_matrix]
    """Of all the history, then before each of ``CODE_DAYS``: how often each concept."""
    numbers: Array
    """(1 + borders, rows, items) values of each item: all of them, then before each of ``LAB_DAYS``."""
    sums: Array
    noise: Array

    def moved(self, days: int, earlier: int) -> tuple[Array, Array]:
        """Return how far each item's mean in the last days lies from the person's earlier level, and the variance.

        A level of few values is drawn to everybody's mean; without a recent value the variance is infinite.
        """
        at, before = 1 + LAB_DAYS.index(days), 1 + LAB_DAYS.index(earlier)
        n, n_before = self.numbers[0] - self.numbers[at], self.numbers[before] + self.noise / (1 - self.noise)
        mean = (self.sums[0] - self.sums[at]) / np.maximum(n, 1)
        variance = self.noise / n_before + np.where(n > 0, self.noise / np.maximum(n, 1), np.inf)
        return (mean - self.sums[before] / n_before).astype(np.float32), variance.astype(np.float32)


def histories(lines: Timelines, place: Array, time: Array) -> Histories:
    """Count patient by patient; events are sorted once into the stretches between all borders."""
    counts = np.zeros((1 + len(CODE_DAYS), len(place), lines.concepts), dtype=np.float32)
    numbers, sums = np.zeros((2, 1 + len(LAB_DAYS), len(place), lines.labs), dtype=np.float32)
    for p in np.unique(place):
        at = np.flatnonzero(place == p)
        span = slice(lines.edges[p], lines.edges[p + 1])
        borders = {days: time[at] - days * DAY for days in (0, *CODE_DAYS, *LAB_DAYS)}
        edges = np.unique(np.concatenate(list(borders.values())))
        stretch = np.searchsorted(edges, lines.start[span], side="right")
        until = {days: np.searchsorted(edges, border) for days, border in borders.items()}
        kinds = (counts, lines.concept, None), (numbers, lines.lab, None), (sums, lines.lab, lines.z)
        for (table, item, weights), windows in zip(kinds, (CODE_DAYS, LAB_DAYS, LAB_DAYS), strict=True):
            kept = np.flatnonzero(item[span] >= 0)
            cell = stretch[kept] * table.shape[2] + item[span][kept]
            size = (len(edges) + 1) * table.shape[2]
            total = np.bincount(cell, None if weights is None else weights[span][kept], size)
            total = total.reshape(-1, table.shape[2]).cumsum(axis=0)
            for i, days in enumerate((0, *windows)):
                table[i, at] = total[until[days]]
    return Histories([sparse.csr_matrix(table) for table in counts], numbers, sums, lines.noise)


def drift_scores(moves: list[tuple[Array, Array]], fit: Array, label: Array) -> Array:
    """Return (rows, windows): how much likelier the recent values are for those who fall ill than for the others.

    For each item the shift of the ill from their own level is learnt on the rows ``fit``, and none within its error.
    """
    ill, well = fit[label[fit] == 1], fit[label[fit] == 0]
    scores = []
    for moved, precision in moves:
        shift = [(precision[at] * moved[at]).sum(axis=0) / (precision[at].sum(axis=0) + 20) for at in (ill, well)]
        known = np.abs(shift[0] - shift[1]) - 1.5 / np.sqrt(precision[ill].sum(axis=0) + 1e-9)
        shift = np.sign(shift[0] - shift[1]) * np.maximum(known, 0)
        scores.append((precision * (moved * shift - shift**2 / 2)).sum(axis=1))
    return np.column_stack(scores)


def code_scores(seen: Histories, fit: Array, label: Array) -> Array:
    """Return (rows, windows): mean log ratio of how frequent a concept is in the last year of the ill and of others."""
    windows = [*(seen.concepts[0] - table for table in seen.concepts[1:]), *seen.concepts[2:]]
    year = windows[1][fit]
    ill, well = (np.asarray(year[label[fit] == k].sum(axis=0)).ravel() for k in (1, 0))
    usual = (well + 0.5) / (well.sum() + 0.5 * len(well))
    prior, expected = 3.0 * len(usual), ill.sum() * usual
    weight = np.log((ill + prior * usual) / (ill.sum() + prior) / usual) * expected / (expected + 20)
    level = [table @ weight / (np.asarray(table.sum(axis=1)).ravel() + 10) for table in windows]
    rises = [level[i] - level[j] for i, j in ((0, 4), (1, 4), (2, 4), (0, 3), (1, 3))]
    return np.column_stack([*level, *rises, windows[1] @ weight])


def learnt(seen: Histories, label: Array, patient: Array) -> Array:
    """Return both kinds of scores: for labelled rows (the first ones) from other patients', for the rest from all."""
    known, scores = np.arange(len(label)), []
    moves = [(moved, 1 / (variance + WANDER)) for moved, variance in (seen.moved(*window) for window in WINDOWS)]
    for fit, held in [(known, slice(None)), *GroupKFold(5).split(known, groups=patient[: len(label)])]:
        scores.append(np.column_stack([drift_scores(moves, fit, label), code_scores(seen, fit, label)]))
        scores[0][held] = scores[-1][held]
    return np.asarray(np.clip(scores[0], -1e3, 1e3))


def shares(seen: Histories) -> Array:
    """Return (rows, features): the square root of each frequent concept's share in each window."""
    tables = [*(seen.concepts[0] - table for table in seen.concepts[1:]), seen.concepts[-1]]
    often = [table.getnnz(axis=0) * 100 >= table.shape[0] for table in tables]
    totals = [np.asarray(table.sum(axis=1), dtype=np.float32) + 10 for table in tables]
    parts = zip(tables, often, totals, strict=True)
    return np.concatenate([np.sqrt(table[:, kept].toarray() / total) for table, kept, total in parts], axis=1)


def fit_predict(short: Array, long: Array, label: Array, weight: Array) -> Array:
    """Fit on the first rows, which have labels; return a probability for the others.

    Boosted trees on all features, twice, and on the few learnt ones, and logistic regression on these; mean logits.
    """
    n = len(label)

    def trees(matrix: Array, columns: float, seed: int) -> Array:
        model = lightgbm.LGBMClassifier(
            n_estimators=300, learning_rate=0.03, num_leaves=8, min_child_samples=40, colsample_bytree=columns,
            subsample=0.7, subsample_freq=1, reg_lambda=20.0, random_state=seed, verbose=-1,
        )  # fmt: skip
        return np.asarray(model.fit(matrix[:n], label, sample_weight=weight).predict(matrix[n:], raw_score=True))

    scaled = np.clip(StandardScaler().fit(short[:n]).transform(short), -4, 4)
    line = LogisticRegression(C=0.1, max_iter=200).fit(scaled[:n], label, sample_weight=weight)
    parts = [(1.0, trees(long, 0.2, seed)) for seed in (0, 1)]
    parts += [(0.5, trees(short, 0.5, 0)), (0.25, line.decision_function(scaled[n:]))]
    mixed = sum(share * (x - x.mean()) / (x.std() + 1e-9) for share, x in parts)
    return np.asarray(1 / (1 + np.exp(-(mixed - 2.5))))


def main() -> None:
    labelled = pl.concat([pl.read_csv(DATA / f"{name}_labels.csv") for name in ("train", "val")])
    test = pl.read_csv(DATA / "test_examples.csv")
    lines = build()
    own = np.column_stack([lines.rows(labelled), labelled["label"].to_numpy()])
    more = landmarks(lines, np.unique(own[:, 0]), target_times(lines, own))
    probability = predict(lines, np.concatenate([own, more]), len(own), lines.rows(test))
    SUBMISSION.mkdir(parents=True, exist_ok=True)
    test.with_columns(pl.Series("probability", probability.round(6))).write_csv(SUBMISSION / "predictions.csv")


def predict(lines: Timelines, rows: Array, given: int, wanted: Array) -> Array:
    """Learn from rows (patient, time, label), the given ones first; return the wanted probabilities."""
    place, time = np.concatenate([rows[:, :2], wanted]).T
    seen, label = histories(lines, place, time), rows[:, 2]
    age = (time - lines.age_from[place]) / YEAR
    short = np.column_stack([learnt(seen, label, place), age, age**2 / 100, lines.male[place]]).astype(np.float32)
    long = np.concatenate([short, shares(seen)], axis=1, dtype=np.float32)
    return fit_predict(short, long, label, np.where(np.arange(len(rows)) < given, 1.5, 1.0))


if __name__ == "__main__":
    main()
