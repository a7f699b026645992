"""What a radiologist's report says of each label: seen, not seen, or nothing that decides it.

A clause speaks of a label when it names it. A negation counts before the finding, in it and after it ("no effusion",
"effusion was not observed"). A label with doubtful, contradictory or no clauses is not decided, nor is a finding that
the report calls smaller than the agent's definitions count.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

RULES = Path(__file__).parent / "report_rules.toml"
State = Literal["present", "absent", "undecided"]
CLAUSE_ENDS = re.compile(
    r"(?<!\d)\.(?!\d)|\.\s|[;\n]|:(?!\s*(?:none|not|no|nil|absent|negative)\b)"
    r"|\b(?:but|however|except|although|while|whereas|other than|apart from)\b"
)
DOUBT_OF_CAUSE = re.compile(r"\([^()]*\?\s*\)")
"""``(small airway disease?)``: the finding itself is not in doubt."""
RELATIVE = re.compile(r"\b(?:that|which) (?:is|are|was|were)\b")
AT_ONCE = re.compile(r"\w*\W*(?:none|not|nil|absent|negative)\b")
VERB = re.compile(r"\b(?:is|are|was|were|has|have|had)\b")
AUXILIARY = re.compile(r"\b(?:is|are|was|were|has|have)(?: been)?(?: \w+ly)? $")
STATES = re.compile(
    r"\b(?:is|are|was|were|seen|observed|detected|noted|found|identified|present)\b|(?<!not )\b(?:shows?|reveals?)\b"
)
"""Ends the reach of a negation: what follows is a statement of its own."""
SIZE = re.compile(r"(\d+(?:[.,]\d+)?(?:\s*x\s*\d+(?:[.,]\d+)?)*)\s*(mm|cm)\b")
NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True)
class Rule:
    """How one label is spoken of."""

    finding: Patterns
    normal: Patterns
    exclude: Patterns
    small: Patterns
    """Words for less than what ``definitions.md`` counts."""
    least_mm: float
    """A size below which a finding is not counted, where reports state one; 0 where they do not."""


@dataclass(frozen=True)
class Rules:
    """All labels, and the words that turn a mention round."""

    before: Patterns
    after: Patterns
    unsure: Patterns
    labels: dict[str, Rule]


@cache
def load_rules() -> Rules:
    """Return ``report_rules.toml``."""
    document: dict[str, Any] = tomllib.loads(RULES.read_text(encoding="utf-8"))

    def patterns(texts: list[str]) -> Patterns:
        return tuple(re.compile(text) for text in texts)

    labels = {
        key: Rule(
            finding=patterns(entry["finding"]),
            normal=patterns(entry["normal"]),
            exclude=patterns(entry.get("exclude", [])),
            small=patterns(entry.get("small", [])),
            least_mm=entry.get("least_mm", 0),
        )
        for key, entry in document.items()
        if isinstance(entry, dict)
    }
    before, after, unsure = (patterns(document[name]) for name in ("before", "after", "unsure"))
    return Rules(before, after, unsure, labels)


def read_report(text: str) -> dict[str, State]:
    """Return the state of every label."""
    clauses = [" ".join(clause.split()) for clause in CLAUSE_ENDS.split(DOUBT_OF_CAUSE.sub(" ", text.lower()))]
    return {key: _decide(rule, clauses) for key, rule in load_rules().labels.items()}


def _decide(rule: Rule, clauses: list[str]) -> State:
    said = {state for clause in clauses if clause for state in _said(rule, clause)}
    return said.pop() if len(said) == 1 else "undecided"


def _said(rule: Rule, clause: str) -> set[State]:
    """Return what one clause says of a label; nothing where it does not speak of it."""
    if any(pattern.search(clause) for pattern in rule.exclude):
        return set()
    rules = load_rules()
    normal = next((match for pattern in rule.normal if (match := pattern.search(clause))), None)
    if normal:
        near = clause[max(0, normal.start() - 15) : normal.end()]
        return {"undecided" if any(pattern.search(near) for pattern in rules.before) else "absent"}
    found = [match for pattern in rule.finding for match in pattern.finditer(clause)]
    if not found:
        return set()
    if any(pattern.search(clause) for pattern in rules.unsure):
        return {"undecided"}
    states = {_state(clause, match.start(), match.end()) for match in found}
    return {"undecided" if state == "present" and _too_small(rule, clause) else state for state in states}


def _too_small(rule: Rule, clause: str) -> bool:
    """Whether the clause calls the finding smaller than ``definitions.md`` counts: it is then neither yes nor no."""
    if any(pattern.search(clause) for pattern in rule.small):
        return True
    sizes = [
        min(float(number.replace(",", ".")) for number in NUMBER.findall(match[1])) * (10 if match[2] == "cm" else 1)
        for match in SIZE.finditer(clause)
    ]
    return bool(sizes) and max(sizes) < rule.least_mm


def _state(clause: str, start: int, stop: int) -> State:
    """Return what is said of one mention.

    Absent: a negation stands in the mention ("heart is not enlarged"), or earlier in the clause without a statement in
    between ("no nodule, effusion or mass"), or what follows takes it back, at once ("effusion: none") or by its first
    verb ("effusion in both lungs was not seen"). Undecided: it is stated, then taken back ("seen right and not left").
    """
    rules = load_rules()
    head, tail = clause[:start], RELATIVE.sub(" ", clause[stop:])
    inside = next((match for pattern in rules.before if (match := pattern.search(clause, start, stop))), None)
    if inside and inside.group() != "without" and STATES.search(AUXILIARY.sub("", clause[start : inside.start()])):
        return "undecided"  # "calcified plaques are seen, no aneurysm of the aorta": a negation of something else
    ends = [match.end() for pattern in rules.before for match in pattern.finditer(head)]
    if inside or AT_ONCE.match(tail) or (ends and not STATES.search(head, max(ends))):
        return "absent"
    verb = VERB.search(tail)
    if verb is None:
        return "present"
    if any(pattern.match(tail, verb.start()) for pattern in rules.after):
        return "absent"
    rest = tail[verb.start() :].partition(",")[0]
    return "undecided" if any(pattern.search(rest) for pattern in rules.after) else "present"
