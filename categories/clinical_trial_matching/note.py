"""Compose the admission note of a patient within its word budget."""

import random

from categories.clinical_trial_matching.bank import Section
from categories.clinical_trial_matching.patient import Patient, Sentence

MIN_WORDS, MAX_WORDS = 150, 390
PRESENT_FIRST = 0.6
_ORDERS: tuple[tuple[Section, ...], ...] = (
    ("pmh", "med", "soc", "exam", "lab"),
    ("med", "pmh", "soc", "exam", "lab"),
    ("pmh", "soc", "med", "exam", "lab"),
    ("soc", "pmh", "med", "exam", "lab"),
)
_HEADS: dict[Section, tuple[str, ...]] = {
    "pmh": ("", "Past history: ", "PMH: "),
    "med": ("Medications: ", "Meds: ", "Medication list: "),
    "soc": ("", "Social: ", "At home: "),
    "exam": ("On examination: ", "Exam: ", "Findings: "),
    "lab": ("Laboratory: ", "Labs: ", "Results: "),
}
_DENIALS = ("No history of {list}.", "Denies {list}.", "Negative for {list}.")


def compose_note(rng: random.Random, patient: Patient, keep: set[tuple[str, str]]) -> str:
    """Return the note; flags that do not fit are forgotten by the patient first, so that note and facts agree.

    Present flags go first more often than absent ones, which are fewer; those in ``keep`` never go.
    """
    order = rng.choice(_ORDERS)
    heads = {section: rng.choice(words) for section, words in _HEADS.items()}
    denial = rng.choice(_DENIALS)
    joint = " and " if denial.startswith("Denies") else " or "
    rng.shuffle(patient.sentences)
    while True:
        note = _note(patient.sentences, order, heads, denial, joint)
        if len(note.split()) <= MAX_WORDS:
            return note
        optional = sorted({s.fact for s in patient.sentences if s.fact[0] == "flag"} - keep)
        present = [fact for fact in optional if fact not in patient.negated]
        patient.forget(*rng.choice(present if present and rng.random() < PRESENT_FIRST else optional))


def _note(
    sentences: list[Sentence], order: tuple[Section, ...], heads: dict[Section, str], denial: str, joint: str
) -> str:
    opening = [s.text for s in sentences if s.section == "open"]
    story = [s.text for s in sentences if s.section == "hpi"]
    paragraphs = [" ".join(opening + story)]
    denied = [s.text[0].lower() + s.text[1:] if s.text[1:2].islower() else s.text for s in sentences if s.denied]
    for section in order:
        told = [s.text for s in sentences if s.section == section]
        whole = [text for text in told if text.endswith((".", "!", "?"))]
        pieces = [text for text in told if text not in whole]
        text = " ".join(whole)
        if pieces:
            listed = "; ".join(pieces) if section == "med" else ", ".join(_lowered(piece) for piece in pieces)
            text = f"{capital(listed)}. {text}".strip()
        if section == "pmh" and denied:
            text = f"{text} {denial.format(list=_enumerate(denied, joint))}".strip()
        if text:
            paragraphs.append(heads[section] + text)
    return "\n\n".join(paragraphs) + "\n"


def _enumerate(items: list[str], joint: str) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + joint + items[-1]


def capital(text: str) -> str:
    """Begin with a capital, unless the first word is an abbreviation in mixed case (eGFR)."""
    return text if text[1:2].isupper() else text[:1].upper() + text[1:]


def _lowered(text: str) -> str:
    """Lower the first letter of a fragment unless it begins an abbreviation."""
    first = text.split(maxsplit=1)[0]
    abbreviated = first == "Hb" or any(letter.isupper() for letter in first[1:])
    return text if abbreviated else text[0].lower() + text[1:]
