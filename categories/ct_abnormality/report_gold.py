"""What a radiologist's report says of each label: seen, not seen, or nothing that decides it.

A clause speaks of a label when it names it. A negation counts before the finding and after it ("no effusion",
"effusion was not observed"). A label with doubtful, contradictory or no clauses is not decided.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

RULES = Path(__file__).parent / "report_rules.toml"
State = Literal["present", "absent", "undecided"]
CLAUSE_ENDS = re.compile(r"(?<!\d)\.(?!\d)|\.\s|[;:\n]|\bbut\b|\bhowever\b|\bexcept\b")
Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True)
class Rule:
    """How one label is spoken of."""

    finding: Patterns
    normal: Patterns
    exclude: Patterns


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
        key: Rule(patterns(entry["finding"]), patterns(entry["normal"]), patterns(entry.get("exclude", [])))
        for key, entry in document.items()
        if isinstance(entry, dict)
    }
    before, after, unsure = (patterns(document[name]) for name in ("before", "after", "unsure"))
    return Rules(before, after, unsure, labels)


def read_report(text: str) -> dict[str, State]:
    """Return the state of every label."""
    clauses = [" ".join(clause.split()) for clause in CLAUSE_ENDS.split(text.lower())]
    return {key: _decide(rule, clauses) for key, rule in load_rules().labels.items()}


def _decide(rule: Rule, clauses: list[str]) -> State:
    said = {state for clause in clauses if clause for state in _said(rule, clause)}
    return said.pop() if len(said) == 1 else "undecided"


def _said(rule: Rule, clause: str) -> set[State]:
    """Return what one clause says of a label; nothing where it does not speak of it."""
    if any(pattern.search(clause) for pattern in rule.exclude):
        return set()
    if any(pattern.search(clause) for pattern in rule.normal):
        turned = any(pattern.search(clause) for pattern in load_rules().before)
        return {"undecided" if turned else "absent"}
    found = [match for pattern in rule.finding for match in pattern.finditer(clause)]
    if not found:
        return set()
    if any(pattern.search(clause) for pattern in load_rules().unsure):
        return {"undecided"}
    return {"absent" if _negated(clause, match.start(), match.end()) else "present" for match in found}


def _negated(clause: str, start: int, stop: int) -> bool:
    """Whether a negation before the finding reaches it, or one after it takes it back.

    Before: it stands anywhere earlier in the clause ("no nodule, effusion or mass"), unless a verb that states
    something stands between. After: the first verb that follows decides, whatever is listed before it.
    """
    rules = load_rules()
    head, tail = clause[:start], clause[stop:]
    earlier = [match.end() for pattern in rules.before for match in pattern.finditer(head)]
    if earlier and not re.search(
        r"\b(?:is|are|was|were|there is|shows?|seen|observed|detected)\b", head[max(earlier) :]
    ):
        return True
    verb = re.search(r"\b(?:is|are|was|were|has|have)\b.*", tail)
    return verb is not None and any(pattern.search(verb.group()[:60]) for pattern in rules.after)
