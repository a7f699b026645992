"""The parts of a request in words: each part as sentences or as the lines of a list."""

from dataclasses import dataclass
from itertools import starmap
from typing import Any

from categories.ehr_format_conversion.change import Carry, Prefix, Retime, Split, first_part, found
from categories.ehr_format_conversion.drafting import Correction
from categories.ehr_format_conversion.files import document
from categories.ehr_format_conversion.voice import Voice, enumerated, quoted, wordings

PLAIN = {"code", "time", "time_format", "_metadata"}
FEW = 5
"""Columns that an event may carry at most for a request to say "every column but"."""


@dataclass
class SplitWords:
    """A split in words; what is empty was not told apart."""

    move: list[str]
    assign: list[str]
    listed: bool
    """Whether ``assign`` is a list of lines."""
    details: list[str]
    exceptions: list[str]


def split_words(voice: Voice, split: Split, *, listed: bool, apart: bool) -> SplitWords:
    """Word a split; ``apart`` says its exceptions, time and columns where the event has to be named again."""
    host = found(document("events.json"), split.event)
    carried = [key for key in host if key not in PLAIN]
    kept = [key for key in carried if key not in split.fields]
    event, exceptions = voice.event(split.event), []
    if len(carried) <= FEW and all(host[key] == key for key in carried) and voice.chance(0.6):
        left = enumerated(voice.column(split.event, one) for one in kept)
        move = voice.say("move.apart" if apart else "move.all_but", event=event, kept=left)
        exceptions = [voice.say("move.exception", event=voice.event(split.event), kept=left)] if apart else []
    else:
        fields = enumerated(voice.column(split.event, one) for one in voice.shuffled(split.fields))
        move = voice.say("move.many" if len(split.fields) > 1 else "move.one", event=event, fields=fields)
    assign, listed = _assign(voice, split, listed=listed)
    return SplitWords([move], assign, listed, details(voice, split, apart=apart), exceptions)


def _assign(voice: Voice, split: Split, *, listed: bool) -> tuple[list[str], bool]:
    """Say which prefix each new event gets; also whether that is a list of lines."""
    fields = voice.shuffled(split.fields.items())
    capitals = [field for field, prefix in fields if prefix == field.upper()]
    if capitals and voice.chance(0.5):
        rest = [(field, prefix) for field, prefix in fields if field not in capitals]
        said = [f"{quoted(prefix)} for {voice.column(split.event, field)}" for field, prefix in rest]
        but = str(voice.one(wordings("sentences")["assign"]["but"])).format(rest=enumerated(said)) if rest else ""
        return [voice.say("assign.capitals", but=but)], False
    if listed:
        template = str(voice.one(wordings("sentences")["assign"]["line"]))
        return [
            template.format(field=voice.column(split.event, field), prefix=prefix) for field, prefix in fields
        ], True
    named = [(voice.column(split.event, field), quoted(prefix)) for field, prefix in fields]
    of = enumerated(f"{prefix} for {field}" for field, prefix in named)
    if len(named) == 1:
        return [voice.say("assign.single", of=of)], False
    if voice.chance(0.5):
        return [voice.say("assign.pairs", of=of)], False
    first, second = zip(*named, strict=True)
    return [voice.say("assign.respectively", fields=enumerated(first), prefixes=enumerated(second))], False


def details(voice: Voice, split: Split, *, apart: bool) -> list[str]:
    """Say when a split's new events happen and what they carry."""
    host = found(document("events.json"), split.event)
    own = host["time"].removeprefix("col(").removesuffix(")")
    date = voice.say(
        "date.prose",
        they=they(voice, split, apart=apart),
        when=voice.column(split.event, split.when),
        form=voice.form(split, own),
    )
    along = voice.say(
        "along.prose",
        they=they(voice, split, apart=apart),
        column=voice.column(split.event, split.column),
        name=split.name,
    )
    return voice.shuffled([date, along])


def they(voice: Voice, split: Split, *, apart: bool) -> str:
    """Mention the new events of a split; ``apart`` from the split itself, by the event they come from."""
    key = ("they" if len(split.fields) > 1 else "it") + ("_of" if apart else "")
    return str(voice.one(wordings("sentences")["along"][key])).format(event=voice.event(split.event))


def prefix_slots(voice: Voice, prefix: Prefix) -> dict[str, str]:
    today = first_part(found(document("events.json"), prefix.events[0]))
    return {
        "event": voice.event(*prefix.events),
        "prefix": prefix.prefix,
        "today": "no prefix" if today.startswith("col(") else quoted(today),
    }


def carry_slots(voice: Voice, carry: Carry) -> dict[str, str]:
    return {"event": voice.event(carry.event), "column": voice.column(carry.event, carry.column), "name": carry.name}


def retime_slots(voice: Voice, retime: Retime) -> dict[str, str]:
    columns = {"old": voice.column(retime.event, retime.old), "new": voice.column(retime.event, retime.new)}
    return {"event": voice.event(retime.event), **columns}


def prefix_prose(voice: Voice, prefixes: tuple[Prefix, ...]) -> list[str]:
    """Say the prefixes, one sentence each or all in one."""
    slots = [prefix_slots(voice, one) for one in voice.shuffled(prefixes)]
    if voice.chance(0.5):
        return [voice.say("prefix.prose", **one) for one in slots]
    events, names = ([one["event"] for one in slots], [quoted(one["prefix"]) for one in slots])
    together = {
        "events": enumerated(events),
        "prefixes": enumerated(names),
        "of": enumerated(f"{name} for {event}" for event, name in zip(events, names, strict=True)),
        "gets": enumerated(f"{event} gets {name}" for event, name in zip(events, names, strict=True)),
    }
    return [voice.say("prefix.together", **together)]


def carry_prose(voice: Voice, carried: tuple[Carry, ...]) -> list[str]:
    """Say the carried columns, one sentence each or, where they are two, in one."""
    slots = [carry_slots(voice, one) for one in voice.shuffled(carried)]
    if len(slots) != 2 or voice.chance(0.5):
        return [voice.say("carry.prose", **one) for one in slots]
    second = {f"{key}2": value for key, value in slots[1].items()}
    return [voice.say("carry.together", **slots[0], **second)]


def correction_words(voice: Voice, correction: Correction) -> str:
    """Say one correction; a few words before it where a part comes late."""
    part, kind = correction.part, f"correction.{correction.kind}"
    if isinstance(part, Prefix):
        return voice.say(kind, **prefix_slots(voice, part), old=correction.old)
    if isinstance(part, Carry):
        slots = carry_slots(voice, part)
        said = voice.say(kind, **slots)
        return f"{said} {voice.say('carry.prose', **slots)}" if correction.kind == "late" else said
    slots = {"event": voice.event(part.event), "they": they(voice, part, apart=True)}
    if correction.kind in ("field", "kept"):
        slots |= {"column": voice.column(part.event, correction.field)}
        slots |= {"prefix": part.fields.get(correction.field, ""), "old": correction.old}
    elif correction.kind == "when":
        columns = starmap(voice.column, [(part.event, part.when), (part.event, correction.old)])
        slots |= dict(zip(("when", "old"), columns, strict=True)) | {"form": voice.form(part)}
    else:
        slots |= {"column": voice.column(part.event, part.column), "name": part.name, "old": correction.old}
    return voice.say(kind, **slots)


def turned_down(voice: Voice, prefixes: tuple[Prefix, ...]) -> str:
    """Say that a prefix that might have changed does not."""
    taken: set[Any] = {one.events for one in prefixes}
    menu = document("changes.json")["prefixes"]["one_of"]
    refused = voice.one([one for one in menu if tuple(one["events"]) not in taken])
    return voice.say("turned_down.prose", event=voice.event(*refused["events"]), prefix=voice.one(refused["menu"]))
