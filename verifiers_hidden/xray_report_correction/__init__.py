"""X-ray report correction: the claims of a corrected FINDINGS section against the true ones."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verifiers_hidden import kit
from verifiers_hidden.kit import GoldError, Reason, Refused, Verdict
from verifiers_hidden.xray_report_correction.compare import Difference, Told, differences
from verifiers_hidden.xray_report_correction.gold import Gold, read_gold
from verifiers_hidden.xray_report_correction.lexicon import key, plain
from verifiers_hidden.xray_report_correction.parse import Claim, claims
from verifiers_hidden.xray_report_correction.sentences import clean, findings, split
from verifiers_hidden.xray_report_correction.weigh import KINDS, Error, weigh

FILE = "findings.txt"
ORIGINS = ("residual", "damaged", "added", "missing")


@dataclass(frozen=True)
class Reading:
    """A submission's sentences, the draft's sentence each is or resembles, and all claims."""

    sentences: list[str]
    alike: list[int | None]
    told: list[Told]


def judge(submission: Path, gold: Path, rule: dict[str, float]) -> Verdict:
    """Judge ``findings.txt``: a FINDINGS section, or a JSON object with a list of edits of the draft."""
    truth = read_gold(gold)
    draft = _draft_differences(truth)
    text, hidden = clean(kit.read_text(submission / FILE))
    sentences = _sentences(text, truth, submission / FILE)
    reading = read_sentences(sentences, truth)
    if not reading.told:
        raise Refused(Reason.UNPARSED, f"{FILE} says nothing of any finding")
    errors = weigh(differences(truth.truths(), reading.told), draft)
    errors += _kept(sentences, errors, draft, truth)
    metrics = _metrics(errors, truth) | {"sentences": float(len(sentences)), "hidden_characters": float(hidden)}
    passed = metrics["significant_errors"] <= rule["significant_errors"]
    metrics["published_reward"] = float(metrics["significant_errors"] <= rule["published_significant_errors"])
    message = (
        f"{metrics['significant_errors']:g} significant errors; {metrics['fixed']:g} of {len(truth.errors)} errors "
        f"of the draft corrected"
    )
    reason = Reason.PASSED if passed else Reason.BELOW_THRESHOLD
    details = {"sentences": _details(reading, errors, truth), "not_said": _not_said(errors, truth)}
    return Verdict(int(passed), reason, metrics["significant_errors"], metrics, message, details)


def missing(gold: Path) -> tuple[float | None, dict[str, float]]:
    """Return the metrics of a report that says nothing: every true finding is missing."""
    truth = read_gold(gold)
    errors = weigh(differences(truth.truths(), []), _draft_differences(truth))
    metrics = _metrics(errors, truth) | {"fixed": 0.0, "sentences": 0.0, "hidden_characters": 0.0}
    return metrics["significant_errors"], metrics


def perfect(gold: Path, out: Path) -> None:
    """Write the true sentences."""
    (out / FILE).write_text("FINDINGS:\n" + "\n".join(read_gold(gold).sentences) + "\n", encoding="utf-8")


def read_sentences(sentences: list[str], truth: Gold) -> Reading:
    """Return what sentences claim; one that stands in the draft or in the truth claims what the gold says of it."""
    known = {key(text): number for number, text in enumerate(truth.draft)}
    right = {key(text): number for number, text in enumerate(truth.sentences)}
    parsed = claims(sentences)
    alike: list[int | None] = []
    told: list[Told] = []
    for place, text in enumerate(sentences):
        number = right.get(key(text), known.get(key(text)))
        stated = parsed[place]
        if number is not None:
            stated = truth.statements[number] if key(text) in right else truth.draft_statements[number]
        else:
            number = _resembled(text, truth)
        alike.append(number)
        told += [Told(claim, place, number) for claim in stated]
    return Reading(sentences, alike, told)


def _kept(sentences: list[str], errors: list[Error], draft: list[Difference], truth: Gold) -> list[Error]:
    """Return the errors of wrong draft sentences handed in unchanged, however right what stands beside them."""
    right = {key(text) for text in truth.sentences}
    kept = {key(text) for text in sentences} - right
    numbers = {number for number in truth.errors if key(truth.draft[number]) in kept}
    known = {error.difference.true_sentence for error in errors if error.origin == "residual"}
    return [error for error in weigh(draft, draft) if error.difference.true_sentence in numbers - known]


def _resembled(text: str, truth: Gold) -> int | None:
    """Return the draft's sentence that shares most words with a text, null where none shares a third."""
    words = set(plain(text).split())
    shares = []
    for number, (draft, right) in enumerate(zip(truth.draft, truth.sentences, strict=True)):
        shares += [(_share(words, set(plain(other).split())), -number) for other in (draft, right)]
    best, number = max(shares)
    return -number if best >= 1 / 3 else None


def _share(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(1, len(one | other))


def _draft_differences(truth: Gold) -> list[Difference]:
    """Return the differences of the draft as it was handed out; a draft without any is no task."""
    told = [Told(claim, n, n) for n, group in enumerate(truth.draft_statements) for claim in group]
    found = differences(truth.truths(), told)
    if not any(error.significant for error in weigh(found, found)):
        raise GoldError("gold findings.json: the draft holds no significant error")
    return found


def _sentences(text: str, truth: Gold, path: Path) -> list[str]:
    """Return the sentences of free text, or of the draft after a list of edits."""
    if text.lstrip().startswith("{"):
        return [part for sentence in _edited(kit.read_json(path), truth.draft) for part in split(sentence)]
    lines = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    sentences = split(findings("\n".join(lines)))
    if not sentences:
        raise Refused(Reason.NO_RECORDS, f"{FILE} holds no sentence")
    return sentences


def _edited(document: Any, draft: list[str]) -> list[str]:
    """Apply ``{"edits": [{"sentence": 3, "replace": "..."}, {"sentence": 5, "delete": true}]}`` to the draft."""
    if not isinstance(document, dict) or set(document) != {"edits"} or not isinstance(document["edits"], list):
        raise Refused(Reason.BAD_SHAPE, f'{FILE}: an edit list is an object {{"edits": [...]}}')
    result: list[str | None] = list(draft)
    seen: set[int] = set()
    for edit in document["edits"]:
        if not isinstance(edit, dict) or set(edit) not in ({"sentence", "replace"}, {"sentence", "delete"}):
            raise Refused(Reason.BAD_SHAPE, f"{FILE}: an edit holds sentence, and either replace or delete")
        number = edit["sentence"]
        if (
            type(number) is not int
            or not isinstance(edit.get("replace", ""), str)
            or edit.get("delete", True) is not True
        ):
            raise Refused(Reason.BAD_TYPE, f"{FILE}: sentence is an integer, replace a text, delete true")
        if not 1 <= number <= len(draft):
            raise Refused(Reason.OUT_OF_RANGE, f"{FILE}: the draft has no sentence {number}")
        if number in seen:
            raise Refused(Reason.DUPLICATE_KEY, f"{FILE}: sentence {number} is edited twice")
        seen.add(number)
        result[number - 1] = clean(edit["replace"])[0] if "replace" in edit else None
    return [sentence for sentence in result if sentence is not None]


def _metrics(errors: list[Error], truth: Gold) -> dict[str, float]:
    significant = [error for error in errors if error.significant]
    kinds, origins = Counter(error.kind for error in significant), Counter(error.origin for error in errors)
    left = {error.difference.true_sentence for error in errors if error.origin == "residual"}
    false = {error.difference.finding for error in errors if error.origin == "residual" and error.kind == KINDS[0]}
    wrong = [
        number
        for number in truth.errors
        if number in left or false & {claim.finding for claim in truth.draft_statements[number]}
    ]
    metrics = {
        "significant_errors": len(significant),
        "insignificant_errors": len(errors) - len(significant),
        "fixed": len(truth.errors) - len(wrong),
    }
    metrics |= {origin: origins[origin] for origin in ORIGINS} | {kind: kinds[kind] for kind in KINDS}
    return {name: float(value) for name, value in metrics.items()}


def _details(reading: Reading, errors: list[Error], truth: Gold) -> list[dict[str, Any]]:
    """Return, for people, each sentence with the draft's and the true one beside it and what is wrong with it."""
    rows = []
    for place, (text, number) in enumerate(zip(reading.sentences, reading.alike, strict=True)):
        rows.append(
            {
                "text": text,
                "draft": "" if number is None else truth.draft[number],
                "truth": "" if number is None else truth.sentences[number],
                "claims": [_words(one.claim) for one in reading.told if one.sentence == place],
                "errors": [_explain(error) for error in errors if error.difference.sentence == place],
            }
        )
    return rows


def _not_said(errors: list[Error], truth: Gold) -> list[dict[str, Any]]:
    lost = [error for error in errors if error.difference.sentence is None]
    numbers = [error.difference.true_sentence for error in lost]
    return [
        {"truth": "" if n is None else truth.sentences[n], "errors": [_explain(error)]}
        for n, error in zip(numbers, lost, strict=True)
    ]


def _words(claim: Claim) -> str:
    slots = [f"{name}={'/'.join(sorted(map(str, values)))}" for name, values in sorted(claim.slots.items())]
    return " ".join([claim.status or "unstated", claim.finding, *sorted(map(str, claim.sides)), *slots])


def _explain(error: Error) -> str:
    one = error.difference
    true, told = ("/".join(sorted(map(str, values))) or "nothing" for values in (one.true, one.told))
    weight = "significant" if error.significant else "insignificant"
    return f"{weight}, {error.origin}, {error.kind}: {one.finding} {one.slot}: true {true}, told {told}"
