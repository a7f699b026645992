"""What was written first and put right later: a draft that differs from what is wanted, and its corrections."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from categories.ehr_format_conversion.change import Carry, Prefix, Split, Wanted, forms_of, found
from categories.ehr_format_conversion.files import document
from categories.ehr_format_conversion.voice import Voice


@dataclass(frozen=True)
class Correction:
    """One statement that overrules the draft."""

    kind: str
    """A key of ``[correction]`` in ``sentences.toml``."""
    part: Split | Prefix | Carry
    """What holds in the end; what is given up, where it is given up whole."""
    old: str = ""
    """The prefix, column or name given up."""
    field: str = ""
    """The moved field in question."""


def drafted(voice: Voice, wanted: Wanted, count: int) -> tuple[Wanted, list[Correction]]:
    """Return a draft and what has to be said later so that draft and corrections together mean what is wanted.

    No two corrections touch the same statement.
    """
    draft, corrections = wanted, list[Correction]()
    for wrong in voice.shuffled(_WRONG):
        if len(corrections) == count:
            break
        made = wrong(voice, wanted, draft)
        if made:
            draft, correction = made
            corrections.append(correction)
    return draft, corrections


_Made = tuple[Wanted, Correction] | None


def _menus() -> dict[str, dict[str, Any]]:
    """Return what each kind of split may ask for, by event."""
    menu = document("changes.json")["splits"]
    return {f"{one['table']}.{one['event']}": one for one in [*menu["always"], *menu["one_of"]]}


def _with_split(draft: Wanted, wrong: Split) -> Wanted:
    return replace(draft, splits=tuple(wrong if one.event == wrong.event else one for one in draft.splits))


def _of(draft: Wanted, event: str) -> Split:
    return next(one for one in draft.splits if one.event == event)


def _prefix(voice: Voice, wanted: Wanted, draft: Wanted) -> _Made:
    menu = document("changes.json")["prefixes"]
    part = voice.one(wanted.prefixes)
    (known,) = [one["menu"] for one in [*menu["always"], *menu["one_of"]] if tuple(one["events"]) == part.events]
    old = voice.one([prefix for prefix in known if prefix != part.prefix])
    prefixes = tuple(replace(one, prefix=old) if one == part else one for one in draft.prefixes)
    return replace(draft, prefixes=prefixes), Correction("prefix", part, old)


def _field(voice: Voice, wanted: Wanted, draft: Wanted) -> _Made:
    part = voice.one(wanted.splits)
    field = voice.one([*part.fields])
    known = _menus()[part.event]["fields"][field]
    old = voice.one([prefix for prefix in known if prefix != part.fields[field]])
    first = _of(draft, part.event)
    return _with_split(draft, replace(first, fields={**first.fields, field: old})), Correction(
        "field", part, old, field
    )


def _when(voice: Voice, wanted: Wanted, draft: Wanted) -> _Made:
    part = voice.one(wanted.splits)
    others = [when for when in _menus()[part.event]["times"] if when != part.when]
    if not others:
        return None
    old = voice.one(others)
    host = found(document("events.json"), part.event)
    wrong = replace(_of(draft, part.event), when=old, forms=forms_of(host, old))
    return _with_split(draft, wrong), Correction("when", part, old)


def _along(voice: Voice, wanted: Wanted, draft: Wanted) -> _Made:
    part = voice.one(wanted.splits)
    menu = _menus()[part.event]["carried"]
    old = voice.one([name for name in menu if name != part.name])
    wrong = replace(_of(draft, part.event), name=old, column=menu[old])
    return _with_split(draft, wrong), Correction("along", part, old)


def _kept(voice: Voice, wanted: Wanted, draft: Wanted) -> _Made:
    menus = _menus()
    more = [part for part in wanted.splits if len(part.fields) < len(menus[part.event]["fields"])]
    if not more:
        return None
    part = voice.one(more)
    known = menus[part.event]["fields"]
    field = voice.one([one for one in known if one not in part.fields])
    first = _of(draft, part.event)
    fields = {**first.fields, field: voice.one(known[field])}
    ordered = {one: fields[one] for one in known if one in fields}
    return _with_split(draft, replace(first, fields=ordered)), Correction("kept", part, field=field)


def _withdrawn(voice: Voice, wanted: Wanted, draft: Wanted) -> _Made:
    taken = {one.event for one in wanted.carried}
    menu = voice.one([one for one in document("changes.json")["carried"] if one["event"] not in taken])
    part = Carry(menu["event"], *voice.one([*menu["menu"].items()]))
    return replace(draft, carried=(*draft.carried, part)), Correction("withdrawn", part)


def _late(voice: Voice, wanted: Wanted, draft: Wanted) -> _Made:
    part = voice.one(wanted.carried)
    return replace(draft, carried=tuple(one for one in draft.carried if one != part)), Correction("late", part)


_WRONG: tuple[Callable[[Voice, Wanted, Wanted], _Made], ...] = (
    _prefix,
    _field,
    _when,
    _along,
    _kept,
    _withdrawn,
    _late,
)
