"""Requests written as one document: a specification, lists by table, tables, forms."""

from categories.ehr_format_conversion.blocks import rules, simple_lines, simple_prose, split_parts
from categories.ehr_format_conversion.change import Split, Wanted
from categories.ehr_format_conversion.parts import carry_slots, prefix_slots, retime_slots, split_words
from categories.ehr_format_conversion.voice import Voice, quoted


def specification(voice: Voice, wanted: Wanted) -> list[str]:
    blocks, details, exceptions = split_parts(voice, wanted, listed=True)
    parts: dict[str, list[str]] = {"splits": blocks}
    lines, prose = simple_lines(voice, wanted), simple_prose(voice, wanted)
    for name, said in lines.items():
        parts[name] = [voice.bullets(said)] if voice.chance(0.7) else [voice.paragraph(prose[name])]
    names = voice.shuffled(parts)
    for name, said in (("details", details), ("exceptions", exceptions)):
        if said:
            parts[name] = [voice.bullets(said)]
            names.append(name)
    parts["rules"] = [voice.bullets(rules(voice))]
    names.insert(0 if voice.chance(0.5) else len(names), "rules")
    out = [f"# {voice.frame('title')}", voice.paragraph([voice.frame("against")])]
    for number, name in enumerate(names, start=1):
        out += [f"## {number}. {voice.frame(f'heading.{name}')}", *parts[name]]
    return out


def by_table(voice: Voice, wanted: Wanted) -> list[str]:
    """Return all that concerns a table under its name."""
    tables: dict[str, list[list[str]]] = {}
    for prefix in wanted.prefixes:
        line = voice.line("prefix", **prefix_slots(voice, prefix))
        tables.setdefault(prefix.events[0].partition(".")[0], []).append([line])
    for carry in wanted.carried:
        tables.setdefault(carry.event.partition(".")[0], []).append([voice.line("carry", **carry_slots(voice, carry))])
    line = voice.line("retime", **retime_slots(voice, wanted.retime))
    tables.setdefault(wanted.retime.event.partition(".")[0], []).append([line])
    for split in wanted.splits:
        words = split_words(voice, split, listed=True, apart=voice.chance(0.5))
        group = [*words.move, *words.assign, *words.details, *words.exceptions]
        tables.setdefault(split.event.partition(".")[0], []).append(group)
    out = [f"# {voice.frame('title')}", voice.paragraph([voice.frame("against")])]
    out += [voice.paragraph(rules(voice))] if voice.chance(0.5) else []
    for table in voice.shuffled(tables):
        lines = [line for group in voice.shuffled(tables[table]) for line in group]
        out += [f"## {quoted(table)}", voice.bullets(lines, "* ")]
    return out if len(out) > 2 + 2 * len(tables) else [*out, voice.paragraph(rules(voice))]


def _table(voice: Voice, rows: list[dict[str, str]]) -> str:
    """Return a Markdown table, its columns in an order of their own."""
    heads = voice.shuffled(rows[0])
    lines = [heads, ["---"] * len(heads), *([row[head] for head in heads] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _split_rows(voice: Voice, split: Split) -> list[dict[str, str]]:
    along = "carried, besides `hadm_id` (from `hadm_id`), and nothing else"
    return [
        {
            "becomes an event of its own": voice.column(split.event, field),
            "no longer carried by": voice.event(split.event),
            "prefix": quoted(prefix),
            "time of the new event": f"{voice.column(split.event, split.when)}, {voice.form(split)}",
            along: f"{voice.column(split.event, split.column)} as {quoted(split.name)}",
        }
        for field, prefix in voice.shuffled(split.fields.items())
    ]


def grid(voice: Voice, wanted: Wanted) -> list[str]:
    new = [row for split in voice.shuffled(wanted.splits) for row in _split_rows(voice, split)]
    rows = []
    for prefix in wanted.prefixes:
        slots = prefix_slots(voice, prefix)
        rows.append((slots["event"], "prefix", slots["today"], quoted(slots["prefix"])))
    for carry in wanted.carried:
        slots = carry_slots(voice, carry)
        rows.append((slots["event"], "one more column", "", f"{slots['column']} as {quoted(slots['name'])}"))
    slots = retime_slots(voice, wanted.retime)
    rows.append((slots["event"], "time", slots["old"], slots["new"]))
    heads = ("event", "what changes", "today", "wanted")
    changes = _table(voice, [dict(zip(heads, row, strict=True)) for row in voice.shuffled(rows)])
    tables = [[f"## {voice.frame('heading.splits')}", _table(voice, new)], ["## Existing events", changes]]
    ordered: list[list[str]] = voice.shuffled(tables)
    out = [f"# {voice.frame('title')}", voice.paragraph([voice.frame("against"), *rules(voice)])]
    return [*out, *(block for table in ordered for block in table)]


def form(voice: Voice, wanted: Wanted) -> list[str]:
    """Return one filled-in form for each new event and each change of an existing one."""
    forms = []
    for split in wanted.splits:
        for row in _split_rows(voice, split):
            forms.append({"kind": "new event", **row})
    for prefix in wanted.prefixes:
        slots = prefix_slots(voice, prefix)
        forms.append({"kind": "prefix", "event": slots["event"], "new prefix": quoted(slots["prefix"])})
    for carry in wanted.carried:
        slots = carry_slots(voice, carry)
        what = f"{slots['column']} as {quoted(slots['name'])}"
        forms.append({"kind": "one more column", "event": slots["event"], "column": what})
    slots = retime_slots(voice, wanted.retime)
    forms.append({"kind": "time", "event": slots["event"], "time today": slots["old"], "time wanted": slots["new"]})
    order = {key: at for at, key in enumerate(voice.shuffled(dict.fromkeys(key for form in forms for key in form)))}
    out = [f"# {voice.frame('title')}", voice.paragraph([voice.frame("against"), *rules(voice)])]
    for number, form in enumerate(voice.shuffled(forms), start=1):
        lines = [f"{key}: {form[key]}  " for key in sorted(form, key=order.__getitem__)]
        out.append("\n".join([f"**Change {number} of {len(forms)}**  ", *lines]).rstrip())
    return out
