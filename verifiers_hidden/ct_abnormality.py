"""CT abnormality: yes or no for seventeen labels, of which the gold scores some; all scored ones must be right."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers_hidden import kit
from verifiers_hidden.kit import GoldError, Reason, Refused, Verdict

FILE = "predictions.txt"
LABELS = (
    "Medical material",
    "Arterial wall calcification",
    "Cardiomegaly",
    "Pericardial effusion",
    "Coronary artery wall calcification",
    "Hiatal hernia",
    "Lymphadenopathy",
    "Emphysema",
    "Atelectasis",
    "Lung nodule",
    "Lung opacity",
    "Pleural effusion",
    "Mosaic attenuation pattern",
    "Peribronchial thickening",
    "Consolidation",
    "Bronchiectasis",
    "Interlobular septal thickening",
)
BY_LOWER = {label.lower(): label for label in LABELS}
PUBLISHED_YES = ("yes", "y", "true", "t", "1", "positive", "pos")
PUBLISHED_NO = ("no", "n", "false", "f", "0", "negative", "neg")


@dataclass(frozen=True)
class Gold:
    """The true answer to each scored label, in the order of ``LABELS``, and what people may read about it."""

    answers: dict[str, bool]
    facts: dict[str, Any]


def judge(submission: Path, gold: Path, rule: dict[str, float]) -> Verdict:
    """Judge ``predictions.txt``: one line for each of the seventeen labels, no label twice."""
    truth = read_gold(gold)
    path = submission / FILE
    lines = kit.read_lines(path)
    answers = read_answers(lines)
    metrics = measure(truth, answers)
    passed = metrics["accuracy"] >= rule["accuracy"]
    metrics["published_reward"] = float(published_accuracy(truth, lines) >= rule["published_accuracy"])
    wrong = [label for label, yes in truth.answers.items() if answers[label] != yes]
    message = f"{int(metrics['n_correct'])} of {len(truth.answers)} scored labels right"
    if wrong:
        message += f"; wrong: {', '.join(wrong)}"
    details = {
        "labels": [
            {
                "label": label,
                "scored": label in truth.answers,
                "gold": _word(truth.answers.get(label)),
                "submitted": _word(answers[label]),
                "facts": truth.facts.get(label, {}),
            }
            for label in LABELS
        ]
    }
    reason = Reason.PASSED if passed else Reason.BELOW_THRESHOLD
    return Verdict(int(passed), reason, metrics["accuracy"], metrics, message, details)


def missing(gold: Path) -> tuple[float | None, dict[str, float]]:
    """Return the metrics of no answer at all: every scored label is wrong."""
    metrics = measure(read_gold(gold), {})
    return metrics["accuracy"], metrics


def perfect(gold: Path, out: Path) -> None:
    """Answer the scored labels by the gold and the others with no."""
    truth = read_gold(gold)
    lines = [f"{label}: {_word(truth.answers.get(label, False))}\n" for label in LABELS]
    (out / FILE).write_text("".join(lines), encoding="utf-8")


def measure(truth: Gold, answers: dict[str, bool]) -> dict[str, float]:
    """Return the flat metrics; an unanswered label counts as the opposite of the truth."""
    given = {label: answers.get(label, not yes) for label, yes in truth.answers.items()}
    counts = dict.fromkeys(("n_true_positives", "n_true_negatives", "n_false_positives", "n_false_negatives"), 0)
    for label, yes in truth.answers.items():
        right = "true" if given[label] == yes else "false"
        counts[f"n_{right}_{'positives' if given[label] else 'negatives'}"] += 1
    correct = counts["n_true_positives"] + counts["n_true_negatives"]
    return {
        "accuracy": correct / len(truth.answers),
        "n_scored": float(len(truth.answers)),
        "n_correct": float(correct),
        **{name: float(count) for name, count in counts.items()},
    }


def read_answers(lines: list[str]) -> dict[str, bool]:
    """Read ``label: yes`` or ``label: no`` lines, upper or lower case; each of the labels once and nothing else."""
    answers: dict[str, bool] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        label = BY_LOWER.get(" ".join(name.split()).lower()) if name.isascii() else None
        if not colon:
            raise Refused(Reason.BAD_TOKEN, f"{line[:60]!r} is not of the form `label: yes` or `label: no`")
        if label is None:
            raise Refused(Reason.UNKNOWN_KEYS, f"{name.strip()[:60]!r} is none of the seventeen labels")
        if label in answers:
            raise Refused(Reason.DUPLICATE_KEY, f"{label} stands twice")
        answer = kit.token(value.strip(" \t"), pattern="(?i:yes|no)", what=label)
        answers[label] = answer.lower() == "yes"
    absent = [label for label in LABELS if label not in answers]
    if absent:
        raise Refused(Reason.MISSING_KEYS, f"no line for {', '.join(absent)}")
    return answers


def published_accuracy(truth: Gold, lines: list[str]) -> float:
    """Return the share of scored labels right by the published reading: lenient values, a label's last line counts."""
    answers: dict[str, bool] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        word = value.partition(",")[0].strip().lower()
        if colon and word in (*PUBLISHED_YES, *PUBLISHED_NO):
            answers[name.strip().lower()] = word in PUBLISHED_YES
    right = [answers.get(label.lower()) is yes for label, yes in truth.answers.items()]
    return sum(right) / len(right)


def read_gold(gold: Path) -> Gold:
    """Read and check ``labels.json``: some labels scored yes, some no, all known."""
    document = kit.gold_json(gold / "labels.json")
    try:
        entries = {str(entry["label"]): entry for entry in document["labels"]}
        answers = {name: entry["answer"] for name, entry in entries.items() if entry["scored"]}
        facts = {name: dict(entry["facts"]) for name, entry in entries.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise GoldError(f"gold labels.json: {error!r}") from error
    if set(entries) - set(LABELS) or set(answers.values()) - {"yes", "no"} or not answers:
        raise GoldError("gold labels.json: an unknown label, a label without a yes or no, or nothing scored")
    return Gold({label: answers[label] == "yes" for label in LABELS if label in answers}, facts)


def _word(answer: bool | None) -> str:
    return "" if answer is None else "yes" if answer else "no"
