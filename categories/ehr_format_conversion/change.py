"""The change asked for: drawn per instance, applied to the event configuration, and written as a request."""

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from categories.ehr_format_conversion.etl import Events
from categories.ehr_format_conversion.files import HERE, document

SECONDS = "%Y-%m-%d %H:%M:%S"


@dataclass
class Change:
    """The wanted configuration and what was changed in it."""

    events: Events
    first_parts: list[str] = field(default_factory=list)
    """First parts of the codes whose rows differ from the default's: one check of the verifier each."""
    sections: list[str] = field(default_factory=list)

    def event(self, name: str) -> dict[str, Any]:
        """Return an event's configuration by ``table.event``."""
        table, _, event = name.rpartition(".")
        return self.events[table][event]

    def note(self, first_part: str) -> None:
        if first_part not in self.first_parts:
            self.first_parts.append(first_part)


def draw_change(rng: np.random.Generator, default: Events) -> Change:
    """Draw a change request: two splits, four prefixes, two more carried columns, one other time."""
    menu = document("changes.json")
    change = Change(copy.deepcopy(default))
    splits = [*menu["splits"]["always"], _one(rng, menu["splits"]["one_of"])]
    for number, split in enumerate(splits, start=1):
        change.sections.append(_split(rng, change, split, number))
    prefixes = [*menu["prefixes"]["always"], _one(rng, menu["prefixes"]["one_of"])]
    lines = [_prefix(change, prefix["events"], str(_one(rng, prefix["menu"]))) for prefix in prefixes]
    change.sections.append("## 3. Code prefixes\n\n" + "\n".join(lines))
    chosen = rng.choice(len(menu["carried"]), 2, replace=False)
    lines = [
        _carry(change, menu["carried"][one]["event"], _one(rng, [*menu["carried"][one]["menu"].items()]))
        for one in chosen
    ]
    change.sections.append("## 4. More columns\n\n" + "\n".join(lines))
    other = _one(rng, menu["times"])
    event = change.event(other["event"])
    event["time"] = f"col({other['to']})"
    change.note(_first(event))
    change.sections.append(
        f"## 5. Time\n\n- `{other['event']}` happens at `{other['to']}` instead of `{other['from']}`. "
        "A row without it gives no event."
    )
    return change


def _one(rng: np.random.Generator, menu: list[Any]) -> Any:
    return menu[int(rng.integers(len(menu)))]


def _first(event: dict[str, Any]) -> str:
    code = event["code"]
    return code if isinstance(code, str) else str(code[0])


def _split(rng: np.random.Generator, change: Change, split: dict[str, Any], number: int) -> str:
    """Move some of an event's fields into events of their own; each carries ``hadm_id`` and one more column."""
    table, host = split["table"], change.events[split["table"]][split["event"]]
    fields = [*split["fields"]]
    count = int(rng.integers(split["least"], len(fields) + 1))
    moved = [fields[at] for at in sorted(rng.choice(len(fields), count, replace=False))]
    when = _one(rng, split["times"])
    name, column = _one(rng, [*split["carried"].items()])
    form = SECONDS if f"col({when})" != host["time"] else host["time_format"]
    lines = []
    for one in moved:
        prefix = str(_one(rng, split["fields"][one]))
        host.pop(one)
        change.events[table][f"{split['event']}_{one}"] = {
            "code": [prefix, f"col({one})"],
            "time": f"col({when})",
            "time_format": form,
            "hadm_id": "hadm_id",
            name: column,
        }
        change.note(prefix)
        lines.append(f"- `{one}`: code `{prefix}//<{one}>`")
    change.note(_first(host))
    which = ", ".join(f"`{one}`" for one in moved)
    forms = " or ".join(f"`{one}`" for one in ([form] if isinstance(form, str) else form))
    return (
        f"## {number}. {split['title']}\n\n"
        f"The event `{table}.{split['event']}` no longer carries {which}. "
        f"Each becomes an event of its own in `{table}`:\n\n"
        + "\n".join(lines)
        + f"\n\nEach of these events happens at `{when}` (written as {forms}) and carries exactly two columns: "
        f"`hadm_id` (from `hadm_id`) and `{name}` (from `{column}`). It has no metadata. "
        "A missing value keeps its event and reads `UNK`, as the package does by itself."
    )


def _prefix(change: Change, events: list[str], prefix: str) -> str:
    """Give the events' codes another first part; a code that is a column alone gets the prefix before it."""
    for name in events:
        event = change.event(name)
        parts = event["code"]
        event["code"] = [prefix, parts] if isinstance(parts, str) else [prefix, *parts[1:]]
    change.note(prefix)
    shown = "//".join(part.replace("col(", "<").replace(")", ">") for part in change.event(events[0])["code"])
    which = " and ".join(f"`{name}`" for name in events)
    return f"- {which}: first part `{prefix}`, so `{shown}`" + (" and likewise" if len(events) > 1 else "")


def _carry(change: Change, name: str, column: tuple[str, str]) -> str:
    event = change.event(name)
    event[column[0]] = column[1]
    change.note(_first(event))
    return f"- `{name}` also carries `{column[0]}` (from `{column[1]}`)."


def request(change: Change) -> str:
    """Return the change request as the agent reads it."""
    text = (HERE / "request.md").read_text(encoding="utf-8")
    return text.replace("{changes}", "\n\n".join(change.sections))
