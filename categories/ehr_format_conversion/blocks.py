"""What several layouts of a request have in common: rules, splits and the simple parts as paragraphs and lines."""

from categories.ehr_format_conversion.change import Wanted
from categories.ehr_format_conversion.parts import (
    SplitWords,
    carry_prose,
    carry_slots,
    prefix_prose,
    prefix_slots,
    retime_slots,
    split_words,
)
from categories.ehr_format_conversion.voice import Voice, wordings

RULES = ("copy", "prefix", "split", "time", "rest", "names")


def rules(voice: Voice, *more: str) -> list[str]:
    return [str(voice.one(wordings("rules")[key])) for key in voice.shuffled([*RULES, *more])]


def _split_blocks(voice: Voice, words: SplitWords, *, whole: bool) -> list[str]:
    """Return a split's paragraphs; with ``whole``, its details too."""
    details = words.details if whole else []
    if not words.listed:
        return [voice.paragraph([*words.move, *words.assign, *details])]
    tail = [voice.paragraph(details)] if details else []
    return [voice.paragraph(words.move), voice.bullets(words.assign), *tail]


def split_parts(voice: Voice, wanted: Wanted, *, listed: bool) -> tuple[list[str], list[str], list[str]]:
    """Return the paragraphs of both splits, and what is told apart: details and exceptions."""
    apart = voice.chance(0.5)
    words = [split_words(voice, one, listed=listed, apart=apart) for one in voice.shuffled(wanted.splits)]
    blocks = [block for one in words for block in _split_blocks(voice, one, whole=not apart)]
    details = [said for one in words for said in one.details] if apart else []
    return blocks, details, [said for one in words for said in one.exceptions]


def simple_lines(voice: Voice, wanted: Wanted) -> dict[str, list[str]]:
    """Return the simple parts as lines of lists, by heading."""
    return {
        "prefixes": [voice.line("prefix", **prefix_slots(voice, one)) for one in voice.shuffled(wanted.prefixes)],
        "carried": [voice.line("carry", **carry_slots(voice, one)) for one in voice.shuffled(wanted.carried)],
        "retime": [voice.line("retime", **retime_slots(voice, wanted.retime))],
    }


def simple_prose(voice: Voice, wanted: Wanted) -> dict[str, list[str]]:
    """Return the simple parts as sentences, by heading."""
    return {
        "prefixes": prefix_prose(voice, wanted.prefixes),
        "carried": carry_prose(voice, wanted.carried),
        "retime": [voice.say("retime.prose", **retime_slots(voice, wanted.retime))],
    }


def paragraphs(voice: Voice, wanted: Wanted) -> list[str]:
    """Return the whole change as paragraphs, in an order of their own; what is told apart follows."""
    blocks, details, exceptions = split_parts(voice, wanted, listed=voice.chance(0.3))
    simple = [voice.paragraph(said) for said in simple_prose(voice, wanted).values()]
    # a split's paragraphs stay together: the later ones speak of "the new events"
    ordered: list[list[str]] = voice.shuffled([blocks, *([one] for one in simple)])
    apart = voice.shuffled([voice.paragraph(said) for said in (details, exceptions) if said])
    return [block for one in ordered for block in one] + apart
