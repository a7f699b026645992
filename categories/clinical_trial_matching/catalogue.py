"""Every criterion that a protocol of the disease could hold, and what becomes of this patient under it."""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from categories.clinical_trial_matching.bank import Bank, Common, Unit
from categories.clinical_trial_matching.criteria import (
    Definitions,
    Leaf,
    Node,
    Side,
    evaluate,
    is_clear_cut,
    leaves,
    parse_composition,
)
from categories.clinical_trial_matching.patient import Patient

ULN_MENU = (1, 1.5, 2, 2.5, 3, 5)
_INVERSE = {">=": "<", "<=": ">"}
_INCLUSION = {"num": 0.65, "uln": 0.6, "class": 0.0, "stable": 1.0, "event": 0.35, "flag": 0.5, "cat": 0.75, "dur": 1.0}
"""Chance that a criterion of a kind stands among the inclusions, the same whether it passes or fails."""


@dataclass(frozen=True)
class Criterion:
    """One item of an inclusion or exclusion list, judged for the patient."""

    side: Side
    node: Node
    kind: str
    value: bool | None
    """Kleene truth of the statement itself."""
    tags: frozenset[tuple[str, str]]
    """Facts, drug relatives and groups: two criteria that share one never meet in a protocol."""
    facts: frozenset[tuple[str, str]]
    """The facts (kind, key) it asks for."""
    inferred: bool
    negated: bool

    @property
    def passes(self) -> bool:
        """An inclusion must be met; an exclusion must not be met. What is open counts as not met on either side."""
        return self.value is True if self.side == "inc" else self.value is not True


class Catalogue:
    """Criteria by kind, side and outcome; within them by fact, so that a fact with many thresholds is no likelier."""

    def __init__(self, patient: Patient, bank: Bank, common: Common, *, general: bool = False) -> None:
        """``general`` keeps to what any adult may be asked, for trials whose target is a comorbidity."""
        self._patient, self._bank, self._common = patient, bank, common
        self._general_classes = {
            name
            for name, spec in common.classes.items()
            if any(set(drug.products) & set(spec.products) for drug in common.drugs.values())
        }
        self._index: dict[tuple[str, Side, bool], dict[tuple[str, ...], list[Criterion]]] = defaultdict(dict)
        for kind, side, node in self._all():
            if general and not self._is_general(kind, node):
                continue
            criterion = self._judge(kind, side, node)
            if criterion is not None:
                facts = tuple(f"{leaf.kind}:{leaf.key}" for leaf in leaves(node))
                self._index[kind, side, criterion.passes].setdefault(facts, []).append(criterion)

    def kinds(self, *, passes: bool) -> set[str]:
        """Return the kinds of which some criterion has that outcome."""
        return {kind for kind, _, outcome in self._index if outcome is passes}

    def draw(
        self,
        rng: random.Random,
        kind: str,
        *,
        passes: bool,
        seen: set[tuple[str, str]],
        want: str = "",
    ) -> Criterion | None:
        """Return a criterion on facts not seen yet; ``want`` (``negated``, ``inferred``) says which are preferred."""
        first: Side = "inc" if rng.random() < _INCLUSION.get(kind, 0.5) else "exc"
        for side in (first, "exc" if first == "inc" else "inc"):
            table = self._index.get((kind, side, passes), {})
            open_facts = {facts: [c for c in found if not c.tags & seen] for facts, found in table.items()}
            open_facts = {facts: found for facts, found in open_facts.items() if found}
            if want:
                wanted = {f: [c for c in found if getattr(c, want)] for f, found in open_facts.items()}
                wanted = {f: found for f, found in wanted.items() if found}
                open_facts = wanted or open_facts
            if open_facts:
                return rng.choice(open_facts[rng.choice(list(open_facts))])
        return None

    def _is_general(self, kind: str, node: Node) -> bool:
        common = {
            "flag": set(self._common.flags),
            "event": set(self._common.events),
            "num": set(self._common.nums),
        }
        if kind in ("comp", "dur", "cat"):
            return False
        leaf = next(leaves(node))
        if leaf.kind in ("class", "stable"):
            return leaf.key in self._general_classes
        if leaf.kind == "unsaid":
            return leaf.values[0] in self._common.unsaid[leaf.key]
        return leaf.key in common["num" if leaf.kind == "uln" else leaf.kind]

    def _judge(self, kind: str, side: Side, node: Node) -> Criterion | None:
        patient, known = self._patient, self._patient.known
        if not is_clear_cut(node, patient.facts, known):
            return None
        facts = [self._fact(leaf) for leaf in leaves(node)]
        tags = {tag for leaf in leaves(node) for tag in self._tags(leaf, known)}
        value = evaluate(node, patient.facts, known)
        if kind == "comp" and value is None:
            return None
        return Criterion(
            side,
            node,
            kind,
            value,
            frozenset(tags),
            frozenset(facts),
            inferred=bool(patient.inferred_facts() & set(facts)) or kind in ("class", "stable"),
            negated=any(fact in patient.negated for fact in facts),
        )

    @staticmethod
    def _fact(leaf: Leaf) -> tuple[str, str]:
        kind = {"uln": "num", "stable": "class"}.get(leaf.kind, leaf.kind)
        return (kind, "" if kind == "dur" else leaf.key)

    def _tags(self, leaf: Leaf, known: Definitions) -> Iterator[tuple[str, str]]:
        fact = self._fact(leaf)
        if fact[0] == "unsaid":
            yield ("unsaid", leaf.values[0])
            return
        yield fact
        tables = {"flag": known.flags, "event": known.events, "num": known.nums, "cat": known.categories}
        if fact[0] in tables:
            group = tables[fact[0]][leaf.key].group  # type: ignore[index]
            yield ("group", group or leaf.key)
        if fact[0] == "class":
            yield ("group", leaf.key)
            mine = set(self._common.classes[leaf.key].products)
            for name, spec in self._common.classes.items():
                if mine & set(spec.products):
                    yield ("class", name)

    def _all(self) -> Iterator[tuple[str, Side, Node]]:
        yield from self._numbers()
        yield from self._history()
        yield from self._drugs()
        for text in self._bank.compositions:
            for side, tree in parse_composition(text):
                if all(self._is_known(leaf) for leaf in leaves(tree)):
                    yield "comp", side, tree
        for source in (self._common.unsaid, self._bank.unsaid):
            for text in source["inc"]:
                yield "unsaid", "inc", Leaf("unsaid", "inc", values=(text,))
            for text in source["exc"]:
                yield "unsaid", "exc", Leaf("unsaid", "exc", values=(text,))

    def _is_known(self, leaf: Leaf) -> bool:
        known = self._patient.known
        tables = {
            "flag": set(known.flags),
            "event": set(known.events),
            "num": set(known.nums),
            "cat": set(known.categories),
            "class": set(self._common.classes),
            "stable": set(self._common.classes),
        }
        return leaf.key in tables[leaf.kind]

    def _numbers(self) -> Iterator[tuple[str, Side, Node]]:
        for key, number in self._patient.known.nums.items():
            for op in number.ops:
                for unit, limit in _menu(number.units):
                    yield "num", "inc", Leaf("num", key, op, limit, unit)
                    yield "num", "exc", Leaf("num", key, _INVERSE[op], limit, unit)
            if number.uln is not None and "<=" in number.ops:
                for limit in ULN_MENU:
                    yield "uln", "inc", Leaf("uln", key, "<=", limit)
                    yield "uln", "exc", Leaf("uln", key, ">", limit)
        for months in self._bank.onset.at_least:
            yield "dur", "inc", Leaf("dur", "", ">=", months)
        for months in self._bank.onset.at_most:
            yield "dur", "inc", Leaf("dur", "", "<=", months)

    def _history(self) -> Iterator[tuple[str, Side, Node]]:
        known = self._patient.known
        sides: tuple[Side, Side] = ("inc", "exc")
        for key, flag in known.flags.items():
            for side in sides:
                if flag.side in (side, "both"):
                    yield "flag", side, Leaf("flag", key)
        for key, event in known.events.items():
            for weeks in event.inc:
                yield "event", "inc", Leaf("event", key, "<", weeks)
            for weeks in event.exc:
                yield "event", "exc", Leaf("event", key, "<", weeks)
        for key, category in known.categories.items():
            for values in category.inc:
                yield "cat", "inc", Leaf("cat", key, values=values)
            for values in category.exc:
                yield "cat", "exc", Leaf("cat", key, values=values)

    def _drugs(self) -> Iterator[tuple[str, Side, Node]]:
        for key in self._bank.classes:
            spec = self._common.classes[key]
            for days in spec.within:
                yield "class", "exc", Leaf("class", key, "<", days)
            for weeks in spec.stable:
                yield "stable", "inc", Leaf("stable", key, ">", weeks)


def _menu(units: tuple[Unit, ...]) -> Iterator[tuple[int, float]]:
    for place, unit in enumerate(units):
        for limit in unit.menu:
            yield place, limit
