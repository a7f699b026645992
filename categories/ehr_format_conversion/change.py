"""The change asked for: drawn per instance, applied to the event configuration; ``request.py`` puts it into words."""

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from categories.ehr_format_conversion.etl import Events
from categories.ehr_format_conversion.files import document

SECONDS = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True)
class Split:
    """Fields of an event that become events of their own."""

    event: str
    """``table.event``, as everywhere here."""
    fields: dict[str, str]
    """Moved column -> first part of the new event's code."""
    when: str
    forms: list[str]
    """Formats of ``when``."""
    name: str
    column: str
    """What is carried besides ``hadm_id``: the name it gets, and the column it comes from."""


@dataclass(frozen=True)
class Prefix:
    """Another first part of the events' codes."""

    events: tuple[str, ...]
    prefix: str


@dataclass(frozen=True)
class Carry:
    """One more column of an event."""

    event: str
    name: str
    column: str


@dataclass(frozen=True)
class Retime:
    """Another time of an event."""

    event: str
    old: str
    new: str


@dataclass(frozen=True)
class Wanted:
    """All parts of a request, in no order."""

    splits: tuple[Split, ...]
    prefixes: tuple[Prefix, ...]
    carried: tuple[Carry, ...]
    retime: Retime


@dataclass
class Change:
    """The wanted configuration and what was changed in it."""

    events: Events
    wanted: Wanted
    first_parts: list[str] = field(default_factory=list)
    """First parts of the codes whose rows differ from the default's: one check of the verifier each."""


def draw_change(rng: np.random.Generator, default: Events) -> Change:
    """Draw a change request: two splits, four prefixes, two more carried columns, one other time."""
    menu = document("changes.json")
    splits = [*menu["splits"]["always"], one_of(rng, menu["splits"]["one_of"])]
    moved = tuple(_draw_split(rng, default, split) for split in splits)
    prefixes = [*menu["prefixes"]["always"], one_of(rng, menu["prefixes"]["one_of"])]
    renamed = tuple(Prefix(tuple(one["events"]), str(one_of(rng, one["menu"]))) for one in prefixes)
    chosen = [menu["carried"][one] for one in rng.choice(len(menu["carried"]), 2, replace=False)]
    carried = tuple(Carry(one["event"], *one_of(rng, [*one["menu"].items()])) for one in chosen)
    other = one_of(rng, menu["times"])
    wanted = Wanted(moved, renamed, carried, Retime(other["event"], other["from"], other["to"]))
    return _applied(default, wanted)


def one_of(rng: np.random.Generator, menu: list[Any]) -> Any:
    """Return one entry of a menu, each as likely as the others."""
    return menu[int(rng.integers(len(menu)))]


def found(events: Events, name: str) -> dict[str, Any]:
    """Return an event's configuration by ``table.event``."""
    table, _, event = name.rpartition(".")
    return events[table][event]


def first_part(event: dict[str, Any]) -> str:
    """Return the first part of an event's code; ``col(...)`` where that is a column."""
    code = event["code"]
    return code if isinstance(code, str) else str(code[0])


def forms_of(host: dict[str, Any], when: str) -> list[str]:
    """Return the formats of a new event's time: the host's own where it is the host's time."""
    form = host["time_format"] if f"col({when})" == host["time"] else SECONDS
    return [form] if isinstance(form, str) else form


def _draw_split(rng: np.random.Generator, default: Events, split: dict[str, Any]) -> Split:
    host = default[split["table"]][split["event"]]
    fields = [*split["fields"]]
    count = int(rng.integers(split["least"], len(fields) + 1))
    moved = [fields[at] for at in sorted(rng.choice(len(fields), count, replace=False))]
    when = one_of(rng, split["times"])
    name, column = one_of(rng, [*split["carried"].items()])
    prefixes = {one: str(one_of(rng, split["fields"][one])) for one in moved}
    return Split(f"{split['table']}.{split['event']}", prefixes, when, forms_of(host, when), name, column)


def _applied(default: Events, wanted: Wanted) -> Change:
    """Carry the parts out on a copy of the default configuration."""
    change = Change(copy.deepcopy(default), wanted)
    touched: list[str] = []
    for split in wanted.splits:
        touched += _split(change.events, split)
    for prefix in wanted.prefixes:
        for event in (found(change.events, name) for name in prefix.events):
            parts = event["code"]
            event["code"] = [prefix.prefix, parts] if isinstance(parts, str) else [prefix.prefix, *parts[1:]]
        touched.append(prefix.prefix)
    for carry in wanted.carried:
        event = found(change.events, carry.event)
        event[carry.name] = carry.column
        touched.append(first_part(event))
    event = found(change.events, wanted.retime.event)
    event["time"] = f"col({wanted.retime.new})"
    change.first_parts = [*dict.fromkeys([*touched, first_part(event)])]
    return change


def _split(events: Events, split: Split) -> list[str]:
    """Move fields into events of their own; return the first parts of the codes that this touches."""
    table, _, name = split.event.rpartition(".")
    host = events[table][name]
    for one, prefix in split.fields.items():
        host.pop(one)
        events[table][f"{name}_{one}"] = {
            "code": [prefix, f"col({one})"],
            "time": f"col({split.when})",
            "time_format": split.forms if len(split.forms) > 1 else split.forms[0],
            "hadm_id": "hadm_id",
            split.name: split.column,
        }
    return [*split.fields.values(), first_part(host)]
