"""Put a change into the words of a request: one of eight layouts, everything stated, hardly a sentence as before."""

from collections.abc import Callable

import numpy as np

from categories.ehr_format_conversion.change import Wanted
from categories.ehr_format_conversion.documents import by_table, form, grid, specification
from categories.ehr_format_conversion.messages import email, minutes, thread, ticket
from categories.ehr_format_conversion.voice import Voice

LAYOUTS: tuple[Callable[[Voice, Wanted], list[str]], ...] = (
    *(specification, by_table, grid, form),
    *(ticket, email, thread, minutes),
)


def request(wanted: Wanted, rng: np.random.Generator) -> str:
    """Return the change request as the agent reads it (Markdown)."""
    voice = Voice(rng)
    layout = voice.one(LAYOUTS)
    return "\n\n".join(layout(voice, wanted)) + "\n"
