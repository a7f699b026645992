"""One case without its pictures: the studies as they really are, the reports, the draft and the truth."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from categories.draw import Draw
from categories.xray_report_correction.body import embody
from categories.xray_report_correction.claims import Change, Claim, claim_of
from categories.xray_report_correction.errors import Line
from categories.xray_report_correction.kinds import SLOTS, Setting, Value, load_kinds
from categories.xray_report_correction.reports import Sentence, write_heads, write_impression, write_sentences
from categories.xray_report_correction.state import Study
from categories.xray_report_correction.story import Story, draw_story

SIZED = {"nodule": 0.6, "granuloma": 0.3}
"""How often a diameter is stated, where no change is."""
NEVER_PRESENT = ("mediastinal_widening", "rib_fracture")
Generator = Callable[..., np.random.Generator]


@dataclass(frozen=True)
class CaseFile:
    """Everything about a case but its pictures."""

    story: Story
    studies: list[Study]
    """Chronological, the target last."""
    prior_reports: list[str]
    heads: str
    """What stands above the target's findings."""
    sentences: list[Sentence]

    @property
    def draft(self) -> str:
        return " ".join(sentence.draft for sentence in self.sentences)

    @property
    def truth(self) -> str:
        return " ".join(sentence.truth for sentence in self.sentences)


def labelled(draw: Draw, *label: str | int) -> Generator:
    """Return the draw's generators under a label."""
    return lambda *more: draw.rng(*label, *more)


def draw_case(rng_of: Generator, setting: Setting, priors: int) -> CaseFile:
    """Return a case whose findings are all taken to be visible."""
    story = draw_story(rng_of, setting, priors)
    return write_case(rng_of, story, embody(rng_of, story))


def write_case(rng_of: Generator, story: Story, studies: list[Study]) -> CaseFile:
    """Put a story with its studies into words."""
    reports = []
    for number, claims in enumerate(story.prior_claims):
        before = studies[number].day - studies[number - 1].day if number else None
        own = _under(rng_of, "prior", number)
        said = [_sized(own("size", claim.finding), claim, studies[number]) for claim in claims]
        findings = write_sentences(own, [Line(claim.finding, None, None, claim) for claim in said])
        heads = write_heads(own("heads"), story.setting, before)
        impression = write_impression(own("impression"), said)
        reports.append(f"{heads}FINDINGS: {' '.join(sentence.draft for sentence in findings)}\n\n{impression}")
    ago = studies[-1].day - studies[-2].day if len(studies) > 1 else None
    own = _under(rng_of, "target")
    lines = [_sized_line(own, line, studies[-1]) for line in story.lines]
    heads = write_heads(own("heads"), story.setting, ago)
    return CaseFile(story, studies, reports, heads, write_sentences(own, lines))


def _under(rng_of: Generator, *label: str | int) -> Generator:
    return lambda *more: rng_of(*label, *more)


def _sized_line(rng_of: Generator, line: Line, study: Study) -> Line:
    draft = _sized(rng_of("size", line.name), line.draft, study)
    right = line.right and _sized(rng_of("size", line.name), line.right, study)
    return replace(line, draft=draft, right=right)


def _sized(rng: np.random.Generator, claim: Claim, study: Study) -> Claim:
    """State the diameter of a claim's lesion in some cases; a lesion that is not there gets a usual one."""
    stated = rng.random() < SIZED.get(claim.finding, 0.0)
    usual = round(float(rng.uniform(*load_kinds()[claim.finding].bands[""]))) if stated else None
    if not stated or not claim.present or claim.change not in (None, "new"):
        return claim
    real = [finding.size_mm for finding in study.found(claim.finding)]
    return replace(claim, size_mm=real[0] if real else usual)


def gold_of(case: CaseFile, hidden: Collection[str] = ()) -> dict[str, Any]:
    """Return what the verifier reads; nothing is asserted of the kinds in ``hidden``."""
    errors = []
    for number, sentence in enumerate(case.sentences):
        for line in sentence.lines:
            if line.kind is not None:
                slot = str(line.slot)
                truth, draft = (claim.statement()[slot] for claim in (line.truth, line.draft))
                errors.append({"sentence": number, "kind": line.kind, "slot": slot, "truth": truth, "draft": draft})
    return {
        "draft": [sentence.draft for sentence in case.sentences],
        "truth": [sentence.truth for sentence in case.sentences],
        "statements": [[claim.statement() for claim in sentence.claims] for sentence in case.sentences],
        "draft_statements": [[claim.statement() for claim in sentence.draft_claims] for sentence in case.sentences],
        "errors": errors,
        "other_truths": [one.statement() for one in all_truths(case.story, case.studies) if one.finding not in hidden],
    }


def all_truths(story: Story, studies: Sequence[Study]) -> list[Claim]:
    """Return everything that is true of the target, stated or not, with its real change since the last study."""
    found = []
    before = story.real[-1] if story.real else None
    for name in load_kinds():
        value, old = story.truth.get(name), before.get(name) if before else None
        if value is None:
            found.append(Claim(name, "absent", change="resolved" if old else None))
            continue
        sizes = [finding.size_mm for finding in studies[-1].found(name)]
        change = real_change(name, old, value, story.steps.get(name, 0)) if before is not None else None
        found.append(claim_of(name, value, size_mm=sizes[0] if sizes else None, change=change))
    return found + [Claim(name, "absent") for name in NEVER_PRESENT]


def real_change(name: str, old: Value | None, value: Value, step: int) -> Change | None:
    """Return how a finding really changed; None where another slot than the severity differs."""
    if old is None:
        return "new"
    if any(getattr(old, slot) != getattr(value, slot) for slot in SLOTS if slot != "severity"):
        return None
    degrees = load_kinds()[name].degrees()
    moved = degrees.index(value.severity or "") - degrees.index(old.severity or "") if degrees else 0
    direction = moved or step
    return "unchanged" if direction == 0 else "increased" if direction > 0 else "decreased"
