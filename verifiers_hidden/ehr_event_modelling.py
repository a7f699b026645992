"""Judge predicted probabilities: AUROC by true risks against the gate on the same patients.

Gold: ``gold.csv`` (patient_id, prediction_time, label, gate, embedding and, where the edition knows it, risk) and
``plain.json`` (the AUROC of the best ordering by record length, dates, ids or demographics alone, by the same measure).
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from verifiers_hidden.kit import GoldError, Reason, Refused, Verdict, finite, gold_json, integer, read_csv

FILE = "predictions.csv"
COLUMNS = ("patient_id", "prediction_time", "probability")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(?::(\d\d)(?:\.0{1,9})?)?")
RESAMPLES = 300
LEVEL = 0.95

Floats = NDArray[np.float64]
Key = tuple[int, str]


@dataclass(frozen=True)
class Gold:
    """What is known of the test patients, row by row."""

    keys: list[Key]
    label: Floats
    risk: Floats
    """True risks, or the labels where the edition has no better."""
    gate: Floats
    embedding: Floats
    plain: float


def judge(submission: Path, gold: Path, rule: dict[str, float]) -> Verdict:
    """Score a submission. It passes with the gate's AUROC or more, if no plain ordering comes near it."""
    known = _read_gold(gold)
    score = _read_scores(submission / FILE, known.keys)
    auroc, gate = weighted_auroc(score, known.risk), weighted_auroc(known.gate, known.risk)
    bar = max(gate, known.plain + float(rule["plain_margin"]))
    realised, gate_realised = weighted_auroc(score, known.label), weighted_auroc(known.gate, known.label)
    # the last bits of a sum must not decide: a billionth of an AUROC is less than one pair
    reward = int(auroc + 1e-9 >= bar)
    metrics = {
        "auroc": auroc,
        "gate_auroc": gate,
        "bar_auroc": bar,
        "plain_auroc": known.plain,
        "embedding_auroc": weighted_auroc(known.embedding, known.risk),
        "best_auroc": weighted_auroc(known.risk, known.risk),
        "margin": auroc - bar,
        "realised_auroc": realised,
        "gate_realised_auroc": gate_realised,
        "embedding_realised_auroc": weighted_auroc(known.embedding, known.label),
        "published_reward": float(realised + 1e-9 >= gate_realised),
        "n_test": float(len(score)),
        "n_positive": float(known.label.sum()),
        **_intervals(score, known.label),
    }
    words = f"AUROC {auroc:.4f}, {'at least' if reward else 'below'} the {bar:.4f} to be reached"
    details = {
        "roc": roc_curve(score, known.label),
        "gate_roc": roc_curve(known.gate, known.label),
        "calibration": calibration(score, known.label),
    }
    return Verdict(reward, Reason.PASSED if reward else Reason.BELOW_THRESHOLD, auroc, metrics, words, details)


def missing(gold: Path) -> tuple[float, dict[str, float]]:
    """Return the metrics of a submission that cannot be measured: it orders nobody."""
    known = _read_gold(gold)
    metrics = {
        "auroc": 0.5,
        "realised_auroc": 0.5,
        "gate_auroc": weighted_auroc(known.gate, known.risk),
        "plain_auroc": known.plain,
        "n_test": float(len(known.label)),
        "n_positive": float(known.label.sum()),
    }
    return 0.5, metrics


def perfect(gold: Path, out: Path) -> None:
    """Write the true risks."""
    known = _read_gold(gold)
    with (out / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for (patient, time), risk in zip(known.keys, known.risk, strict=True):
            writer.writerow([patient, time, f"{risk:.6f}"])


def weighted_auroc(score: Floats, risk: Floats) -> float:
    """Return the AUROC over pairs (i, j) weighted by risk_i x (1 - risk_j); ties count a half.

    With labels as risks it is the ordinary AUROC.
    """
    order = np.argsort(score, kind="stable")
    score, risk = score[order], risk[order]
    first = np.searchsorted(score, score, side="left")
    after = np.searchsorted(score, score, side="right")
    below = np.concatenate([[0.0], np.cumsum(1.0 - risk)])
    won = risk * (below[first] + 0.5 * (below[after] - below[first]))
    itself = float((risk * (1.0 - risk)).sum())
    return (float(won.sum()) - 0.5 * itself) / (float(risk.sum()) * float((1.0 - risk).sum()) - itself)


def average_precision(score: Floats, label: Floats) -> float:
    """Return the area under the precision-recall curve by steps at each distinct score."""
    order = np.argsort(-score, kind="stable")
    score, label = score[order], label[order]
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)
    hits = np.cumsum(label)[last]
    gained = np.diff(np.append(0.0, hits))
    return float((gained * hits / (last + 1.0)).sum() / label.sum())


def roc_curve(score: Floats, label: Floats) -> list[list[float]]:
    """Return at most 101 points (false positive rate, true positive rate) of the ROC curve, both ends included."""
    order = np.argsort(-score, kind="stable")
    score, label = score[order], label[order]
    last = np.append(np.flatnonzero(np.diff(score)), len(score) - 1)
    hits, others = np.cumsum(label)[last] / label.sum(), np.cumsum(1.0 - label)[last] / (1.0 - label).sum()
    points = np.stack([np.append(0.0, others), np.append(0.0, hits)], axis=1)
    picked = np.unique(np.linspace(0, len(points) - 1, 101).round().astype(int))
    return [[float(x), float(y)] for x, y in points[picked].round(5)]


def calibration(score: Floats, label: Floats) -> list[dict[str, float]]:
    """Return mean prediction, observed share and size of ten groups of equal size, from the lowest prediction up."""
    groups = np.array_split(np.argsort(score, kind="stable"), 10)
    return [
        {"predicted": float(score[g].mean()), "observed": float(label[g].mean()), "n": len(g)} for g in groups if len(g)
    ]


def _intervals(score: Floats, label: Floats) -> dict[str, float]:
    """Return AUPRC and Brier score, and 95 % intervals: DeLong for the AUROC, percentile bootstrap for the others."""
    low, high = _delong(score, label)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        pick = rng.integers(0, len(label), len(label))
        if label[pick].sum() > 0:
            drawn.append((average_precision(score[pick], label[pick]), float(((score - label)[pick] ** 2).mean())))
    edges = np.quantile(np.array(drawn), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return {
        "realised_auroc_low": low,
        "realised_auroc_high": high,
        "auprc": average_precision(score, label),
        "auprc_low": float(edges[0, 0]),
        "auprc_high": float(edges[1, 0]),
        "brier": float(((score - label) ** 2).mean()),
        "brier_low": float(edges[0, 1]),
        "brier_high": float(edges[1, 1]),
    }


def _delong(score: Floats, label: Floats) -> tuple[float, float]:
    """DeLong's variance of the AUROC, on the logit scale."""
    ill, well = np.sort(score[label == 1]), np.sort(score[label == 0])
    over = (np.searchsorted(well, ill, "left") + np.searchsorted(well, ill, "right")) / (2.0 * len(well))
    under = 1.0 - (np.searchsorted(ill, well, "left") + np.searchsorted(ill, well, "right")) / (2.0 * len(ill))
    area = float(over.mean())
    if len(ill) < 2 or not 0.0 < area < 1.0:
        return (0.0, 1.0) if len(ill) < 2 else (area, area)
    spread = float(np.sqrt(over.var(ddof=1) / len(ill) + under.var(ddof=1) / len(well)))
    centre = np.log(area / (1.0 - area))
    reach = float(norm.ppf((1 + LEVEL) / 2)) * spread / (area * (1.0 - area))
    return float(1 / (1 + np.exp(reach - centre))), float(1 / (1 + np.exp(-reach - centre)))


def _read_scores(path: Path, keys: list[Key]) -> Floats:
    """Read one probability for every test row and for no other."""
    given: dict[Key, float] = {}
    for row in read_csv(path, columns=COLUMNS):
        key = (_patient(row["patient_id"]), _time(row["prediction_time"]))
        if key in given:
            raise Refused(Reason.DUPLICATE_KEY, f"{FILE}: patient {key[0]} at {key[1]} stands twice")
        given[key] = finite(row["probability"])
        if not 0.0 <= given[key] <= 1.0:
            raise Refused(Reason.OUT_OF_RANGE, f"{FILE}: probability {row['probability'][:40]} is not within 0 and 1")
    unknown = given.keys() - set(keys)
    if unknown:
        raise Refused(Reason.UNKNOWN_KEYS, f"{FILE}: {len(unknown)} rows are not in test_examples.csv")
    absent = [key for key in keys if key not in given]
    if absent:
        raise Refused(Reason.MISSING_KEYS, f"{FILE}: {len(absent)} rows of test_examples.csv are missing")
    return np.array([given[key] for key in keys])


def _patient(text: str) -> int:
    if re.fullmatch(r"\d+\.0*", text, flags=re.ASCII):
        raise Refused(Reason.BAD_TYPE, f"{FILE}: patient_id {text[:40]} is not an integer")
    return integer(text)


def _time(text: str) -> str:
    """Return the time as the gold writes it: ``2014-03-05 23:59:00``."""
    match = _TIME.fullmatch(text) if text.isascii() else None
    if not match:
        raise Refused(Reason.BAD_TOKEN, f"{FILE}: prediction_time {text[:40]!r} is not of the form 2014-03-05 23:59:00")
    day, minute, second = match.groups()
    return f"{day} {minute}:{second or '00'}"


def _read_gold(gold: Path) -> Gold:
    try:
        with (gold / "gold.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        keys = [(int(row["patient_id"]), row["prediction_time"]) for row in rows]
        columns = {name: np.array([float(row[name]) for row in rows]) for name in ("label", "gate", "embedding")}
        risk = np.array([float(row["risk"]) for row in rows]) if "risk" in rows[0] else columns["label"]
        plain = float(gold_json(gold / "plain.json")["auroc"])
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise GoldError(f"gold {gold}: {error!r}") from error
    label = columns["label"]
    sound = len(set(keys)) == len(keys) and set(label.tolist()) == {0.0, 1.0} and 0.0 <= plain <= 1.0
    if not sound or not np.isfinite(columns["gate"]).all() or not ((risk >= 0.0) & (risk <= 1.0)).all():
        raise GoldError(f"gold {gold}: labels, risks, keys or the gate's scores are damaged")
    return Gold(keys, label, risk, columns["gate"], columns["embedding"], plain)
