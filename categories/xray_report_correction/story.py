"""A patient's story as reports tell it: the earlier reports, the draft, and where the truth differs from both.

The draft comes first: it follows from the last report by the kernel. Which of its statements are wrong is drawn next,
without looking at what they say, and only then what is true there, again from the kernel. So nothing in the texts
tells a wrong statement from a right one of the same polarity: only the pictures, which show the truth, do.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from categories.xray_report_correction.claims import Change, Claim, claim_of
from categories.xray_report_correction.errors import Alternative, Line, alternatives, flipped
from categories.xray_report_correction.kernel import Held, draw_held, pick, together
from categories.xray_report_correction.kinds import Kind, Setting, Value, load_kinds

SPOKEN_NEW, SPOKEN_CHANGE, SPOKEN_UNCHANGED, SPOKEN_RESOLVED = 0.35, 0.75, 0.75, 0.5
SEVERITY_LEFT_OUT = 0.6
"""How often a stated increase or decrease goes without the severity."""
WRONG_PRESENT, WRONG_ABSENT = 0.64, 0.25
"""Shares of the drafted findings, and of the drafted absences that could be, that are wrong."""
LEAST_ERRORS, MOST_ERRORS, LEAST_RIGHT = 3, 8, 2
"""Bounds of the errors of a draft, and least number of findings that it states rightly."""
DRAFTED = (6, 11)
"""So many findings and devices a draft states at least (upper end excluded)."""
EARLIER, LAST_PRIOR = (1, 4), (3, 5)
"""So many findings and devices the earlier reports hold at least (upper end excluded)."""
PRIOR_MAY_BE_WRONG = 0.4
"""How often a contradiction between an earlier report and the truth is the earlier report's fault, not a change."""
MOST_WRONG_PRIORS = 2
Generator = Callable[..., np.random.Generator]


@dataclass
class Story:
    """Everything about a case that is not a picture and not yet a sentence."""

    setting: Setting
    reported: list[dict[str, Value]]
    """What each earlier report says is present."""
    prior_claims: list[list[Claim]]
    real: list[dict[str, Value]]
    """What was really present at each earlier study."""
    lines: list[Line]
    """The statements of the target: draft and truth."""
    truth: dict[str, Value]
    steps: dict[str, int] = field(default_factory=dict)
    """Kind -> +1 or -1 where it grew or shrank within its severity since the last earlier study."""
    wrong_priors: list[str] = field(default_factory=list)
    """Kinds that the last earlier report states wrongly."""


def draw_story(rng_of: Generator, setting: Setting, priors: int) -> Story:
    """Return a story with 3 to 8 wrong statements in its draft."""
    attempt = 0
    while True:
        story = _attempt(rng_of("story", attempt), setting, priors)
        if story is not None:
            return story
        attempt += 1


def _attempt(rng: np.random.Generator, setting: Setting, priors: int) -> Story | None:
    reported: list[dict[str, Value]] = []
    claims = []
    for number in range(priors):
        before = reported[-1] if number else {}
        held = draw_held(rng, setting, before, int(rng.integers(*(LAST_PRIOR if number == priors - 1 else EARLIER))))
        claims.append([line.draft for line in speak(rng, before if number else None, held, within=False)])
        reported.append(held)
    last = reported[-1] if priors else None
    draft = draw_held(rng, setting, last or {}, int(rng.integers(*DRAFTED)))
    lines = speak(rng, last, draft, within=True)
    chosen = choose(rng, lines)
    if chosen is None:
        return None
    story = Story(setting, reported, claims, [dict(held) for held in reported], lines, dict(draft))
    story.steps = {line.name: line.step for line in lines if line.step}
    for number in chosen:
        if not _correct(rng, story, number, last):
            return None
    _blame_priors(rng, story)
    return story


def speak(rng: np.random.Generator, before: Held | None, now: Held, *, within: bool) -> list[Line]:
    """Return the statements of a study about all kinds; ``before`` None: no earlier study to compare with.

    ``within``: a finding may grow or shrink within its severity.
    """
    lines = []
    for name, kind in load_kinds().items():
        old = None if before is None else before.get(name)
        if name in now:
            lines.append(_speak_present(rng, kind, old, now[name], compared=before is not None, within=within))
        elif old is not None and rng.random() < SPOKEN_RESOLVED:
            lines.append(Line(name, old, None, Claim(name, "absent", change="resolved")))
        elif rng.random() < kind.negative:
            lines.append(Line(name, old, None, Claim(name, "absent")))
    return lines


def _speak_present(
    rng: np.random.Generator, kind: Kind, old: Value | None, value: Value, *, compared: bool, within: bool
) -> Line:
    claim = claim_of(kind.name, value)
    if not compared:
        return Line(kind.name, old, value, claim)
    if old is None:
        change: Change | None = "new" if rng.random() < SPOKEN_NEW else None
        return Line(kind.name, old, value, claim_of(kind.name, value, change=change))
    if claim_of(kind.name, value, severity=None) != claim_of(kind.name, old, severity=None):
        return Line(kind.name, old, value, claim)
    degrees = kind.degrees()
    moved = degrees.index(value.severity or "") - degrees.index(old.severity or "") if degrees else 0
    step = 0
    if moved == 0 and within and kind.step:
        step = pick(rng, (0, 1, -1), (0.34, 0.33, 0.33))
    direction = step or moved
    if direction == 0:
        change = "unchanged" if rng.random() < SPOKEN_UNCHANGED else None
        return Line(kind.name, old, value, claim_of(kind.name, value, change=change))
    if not step and rng.random() > SPOKEN_CHANGE:
        return Line(kind.name, old, value, claim)
    change = "increased" if direction > 0 else "decreased"
    severity = None if rng.random() < SEVERITY_LEFT_OUT else value.severity
    return Line(kind.name, old, value, claim_of(kind.name, value, change=change, severity=severity), step=step)


def choose(rng: np.random.Generator, lines: list[Line]) -> list[int] | None:
    """Return which statements are wrong, drawn without looking at their values; None if there are too few."""
    said = np.array([may_be_wrong(line) and line.draft.present for line in lines])
    denied = np.array([may_be_wrong(line) and not line.draft.present for line in lines])
    if said.sum() < LEAST_ERRORS + LEAST_RIGHT:
        return None
    share = WRONG_PRESENT * said + WRONG_ABSENT * denied
    while True:
        wrong = rng.random(len(lines)) < share
        if LEAST_ERRORS <= wrong.sum() <= MOST_ERRORS and (said & ~wrong).sum() >= LEAST_RIGHT:
            return [int(number) for number in rng.permutation(np.flatnonzero(wrong))]


def may_be_wrong(line: Line) -> bool:
    """Tell whether a drafted statement may be in error at all."""
    return line.name != "sternal_wires" if line.draft.present else load_kinds()[line.name].flip


def _correct(rng: np.random.Generator, story: Story, number: int, last: Held | None) -> bool:
    """Draw what is true instead of one drafted statement; False if nothing goes with the rest."""
    line = story.lines[number]
    find = alternatives if line.draft.present else flipped
    options = [option for option in find(line, story.setting, compared=last is not None) if _fits(story, line, option)]
    if not options:
        return False
    by_kind: dict[str, list[Alternative]] = {}
    for option in options:
        by_kind.setdefault(option.kind, []).append(option)
    kind = pick(rng, list(by_kind), [KIND_WEIGHTS[name] for name in by_kind])
    chosen = pick(rng, by_kind[kind], [option.weight for option in by_kind[kind]])
    story.lines[number] = line.corrected(chosen)
    story.steps.pop(line.name, None)
    if chosen.step:
        story.steps[line.name] = chosen.step
    _put(story.truth, line.name, chosen.value)
    if chosen.prior_wrong:
        _put(story.real[-1], line.name, chosen.value)
        story.wrong_priors.append(line.name)
    return True


def _fits(story: Story, line: Line, option: Alternative) -> bool:
    if not together(_with(story.truth, line.name, option.value)):
        return False
    if not option.prior_wrong:
        return True
    return len(story.wrong_priors) < MOST_WRONG_PRIORS and together(_with(story.real[-1], line.name, option.value))


def _blame_priors(rng: np.random.Generator, story: Story) -> None:
    """Explain some contradictions between the last report and the truth by that report; then trace them back."""
    for line in story.lines if story.real else []:
        if line.name in story.wrong_priors or load_kinds()[line.name].device:
            continue
        unsaid = line.draft.change is None and line.truth.change is None
        value = story.truth.get(line.name)
        if not unsaid or value == line.before or len(story.wrong_priors) >= MOST_WRONG_PRIORS:
            continue
        if rng.random() < PRIOR_MAY_BE_WRONG and together(_with(story.real[-1], line.name, value)):
            _put(story.real[-1], line.name, value)
            story.wrong_priors.append(line.name)
    for name in story.wrong_priors:
        _trace_back(story, name)


def _trace_back(story: Story, name: str) -> None:
    """What the last report states wrongly the reports before it stated wrongly too, as long as they say the same."""
    for number in range(len(story.real) - 2, -1, -1):
        if story.reported[number].get(name) != story.reported[-1].get(name):
            return
        held = _with(story.real[number], name, story.real[-1].get(name))
        if not together(held):
            return
        story.real[number] = held


def _with(held: Held, name: str, value: Value | None) -> dict[str, Value]:
    found = dict(held)
    _put(found, name, value)
    return found


def _put(held: dict[str, Value], name: str, value: Value | None) -> None:
    held.pop(name, None)
    if value is not None:
        held[name] = value


KIND_WEIGHTS = {
    "laterality": 1.0,
    "severity": 1.0,
    "direction": 5.0,
    "invented_change": 6.0,
    "count": 1.5,
    "location": 0.6,
    "flipped_negative": 0.12,
}
"""How the errors of drafted findings are spread over the published kinds, where a statement allows several."""
