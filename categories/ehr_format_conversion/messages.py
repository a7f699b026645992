"""Requests that grew: a ticket with comments, an e-mail with a postscript, a thread, minutes with amendments."""

from categories.ehr_format_conversion.blocks import paragraphs, rules, simple_lines, simple_prose, split_parts
from categories.ehr_format_conversion.change import Wanted
from categories.ehr_format_conversion.drafting import Correction, drafted
from categories.ehr_format_conversion.parts import correction_words, split_words, turned_down
from categories.ehr_format_conversion.voice import Voice, enumerated, wordings


def ticket(voice: Voice, wanted: Wanted) -> list[str]:
    draft, corrections = drafted(voice, wanted, int(voice.rng.integers(1, 3)))
    blocks, details, exceptions = split_parts(voice, draft, listed=voice.chance(0.5))
    apart = [voice.paragraph(said) for said in (details, exceptions) if said]
    lines = [line for said in simple_lines(voice, draft).values() for line in said]
    reporter, other = voice.shuffled(wordings("layouts")["people"])[:2]
    comments = [[f"**{other}**, {_day(voice, 1)}:", voice.frame("answer")]]
    comments.append([f"**{reporter}**, {_day(voice, 2)}:", *_said(voice, corrections)])
    return [
        f"# [ETL-{int(voice.rng.integers(100, 2000))}] {voice.frame('title')}",
        f"Reporter: {reporter} ({voice.frame('role')})  \nOpened: {_day(voice, 0)}",
        voice.paragraph([voice.frame("why"), voice.frame("against")]),
        *blocks,
        *apart,
        "### Acceptance criteria",
        voice.bullets(voice.shuffled(lines), "- [ ] "),
        f"### {voice.frame('heading.rules')}",
        voice.bullets(rules(voice, "later")),
        f"### {voice.frame('heading.comments')}",
        *(voice.paragraph(comment) for comment in comments),
    ]


def email(voice: Voice, wanted: Wanted) -> list[str]:
    draft, corrections = drafted(voice, wanted, 1)
    sender = voice.frame("people")
    refused = [voice.paragraph([turned_down(voice, wanted.prefixes)])] if voice.chance(0.5) else []
    return [
        f"From: {sender}  \nDate: {_day(voice, 0)}  \nSubject: {voice.frame('title')}",
        voice.frame("greeting"),
        voice.paragraph([voice.frame("why"), voice.frame("against")]),
        *paragraphs(voice, draft),
        *refused,
        voice.paragraph(rules(voice, "later")),
        f"{voice.frame('thanks')}  \n{sender}",
        voice.paragraph(["P.S.", *_said(voice, corrections)]),
    ]


def thread(voice: Voice, wanted: Wanted) -> list[str]:
    """Return three messages; those of a thread with the newest on top read from the bottom."""
    draft, corrections = drafted(voice, wanted, int(voice.rng.integers(2, 4)))
    sender, other = voice.shuffled(wordings("layouts")["people"])[:2]
    first = [voice.frame("greeting"), voice.paragraph([voice.frame("why"), voice.frame("against")])]
    first += [*paragraphs(voice, draft), voice.paragraph(rules(voice, "later"))]
    refused = [turned_down(voice, wanted.prefixes)] if voice.chance(0.5) else []
    last = voice.shuffled([*_said(voice, corrections), *refused])
    bodies = [first, [voice.frame("answer")], [voice.paragraph([said]) for said in last]]
    messages = []
    for number, (author, body) in enumerate(zip((sender, other, sender), bodies, strict=True)):
        messages.append([f"---\nFrom: {author}  \nDate: {_day(voice, number)}", *body])
    if voice.chance(0.5):
        messages.reverse()
    return [f"# {voice.frame('title')}", *(block for message in messages for block in message)]


def minutes(voice: Voice, wanted: Wanted) -> list[str]:
    draft, corrections = drafted(voice, wanted, int(voice.rng.integers(1, 3)))
    decisions = [[said] for part in simple_prose(voice, draft).values() for said in part]
    for split in draft.splits:
        words = split_words(voice, split, listed=False, apart=False)
        decisions.append([*words.move, *words.assign, *words.details])
    present = enumerated(voice.shuffled(wordings("layouts")["people"])[:3])
    return [
        f"# {voice.frame('title')} (minutes of {_day(voice, 0)[:10]})",
        f"Present: {present}",
        voice.paragraph([voice.frame("why"), voice.frame("against")]),
        f"## {voice.frame('heading.decided')}",
        voice.numbered(voice.shuffled(decisions)),
        "## Not decided",
        voice.paragraph([turned_down(voice, wanted.prefixes)]),
        f"## {voice.frame('heading.rules')}",
        voice.bullets(rules(voice, "later")),
        f"## {voice.frame('heading.amended')}",
        voice.bullets(_said(voice, corrections)),
    ]


def _day(voice: Voice, number: int) -> str:
    """Return date and time of the first, second, ... message."""
    day, hour, minute = (int(voice.rng.integers(*span)) for span in ((0, 3), (8, 18), (0, 60)))
    return f"2026-03-{2 + 3 * number + day:02d} {hour:02d}:{minute:02d}"


def _said(voice: Voice, corrections: list[Correction]) -> list[str]:
    return [correction_words(voice, one) for one in corrections]
