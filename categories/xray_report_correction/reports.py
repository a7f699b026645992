"""Reports: statements grouped into sentences, put in order, under the usual heads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from categories.xray_report_correction.claims import Claim
from categories.xray_report_correction.errors import Line
from categories.xray_report_correction.kinds import Setting, load_kinds
from categories.xray_report_correction.phrasing import bank, beside, deny, one_of, say, say_together

Generator = Callable[..., np.random.Generator]
BLOCK = {
    "pleural_effusion": "pleura",
    "pneumothorax": "pleura",
    "cardiomegaly": "heart",
    "hiatal_hernia": "rest",
}
ORDERS = (
    ("devices", "lungs", "pleura", "heart", "rest"),
    ("devices", "heart", "lungs", "pleura", "rest"),
    ("heart", "lungs", "pleura", "rest", "devices"),
    ("lungs", "pleura", "heart", "devices", "rest"),
    ("lungs", "pleura", "heart", "rest", "devices"),
)
JOINED = 0.35
"""How often a further denied finding joins the sentence before it."""
GROUPED = ("pneumothorax", "pleural_effusion", "consolidation", "pulmonary_edema", "atelectasis", "nodule")


@dataclass(frozen=True)
class Sentence:
    """One sentence of the target in both forms."""

    draft: str
    truth: str
    draft_claims: tuple[Claim, ...]
    claims: tuple[Claim, ...]
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class _Group:
    """Statements that make one sentence: several denied ones, or one; or a normal sentence ready-made."""

    block: str
    lines: tuple[Line, ...] = ()
    text: str = ""


def write_sentences(rng_of: Generator, lines: Sequence[Line]) -> list[Sentence]:
    """Return the sentences of a study in order.

    Groups and order follow from the draft's statements, never from what is wrong among them. Both forms of a sentence
    are made by the same draws, so they differ as little as their claims.
    """
    groups = [*_group(rng_of("group"), lines), *_normals(rng_of("normal"))]
    found = []
    for number in _ordered(rng_of("order"), groups):
        group = groups[number]
        if group.text:
            found.append(Sentence(group.text, group.text, (), ()))
            continue
        draft, truth = [line.draft for line in group.lines], [line.truth for line in group.lines]
        texts = [_one_sentence(rng_of("say", number), claims) for claims in (draft, truth)]
        found.append(Sentence(texts[0], texts[1], tuple(draft), tuple(truth), group.lines))
    return found


def _one_sentence(rng: np.random.Generator, claims: Sequence[Claim]) -> str:
    said = [claim for claim in claims if claim.present]
    denied = [claim for claim in claims if not claim.present]
    if said:
        return beside(rng, say(rng, said[0]) if len(said) == 1 else say_together(rng, said), denied)
    return deny(rng, denied)


def _group(rng: np.random.Generator, lines: Sequence[Line]) -> list[_Group]:
    alone: list[Line] = []
    denied: list[Line] = []
    for line in lines:
        joins = line.name in GROUPED and not line.draft.present and line.draft.change is None
        (denied if joins else alone).append(line)
    groups = [_Group(_block(line.name), (line,)) for line in alone]
    together: list[list[Line]] = []
    for number in rng.permutation(len(denied)):
        if together and len(together[-1]) < 3 and rng.random() < JOINED:
            together[-1].append(denied[number])
        else:
            together.append([denied[number]])
    return groups + [_Group(_block(members[0].name), tuple(members)) for members in together]


def _block(name: str) -> str:
    return "devices" if load_kinds()[name].device else BLOCK.get(name, "lungs")


def _normals(rng: np.random.Generator) -> list[_Group]:
    return [
        _Group(entry["block"], text=one_of(rng, entry["texts"]))
        for entry in bank("normals").values()
        if rng.random() < entry["share"]
    ]


def _ordered(rng: np.random.Generator, groups: Sequence[_Group]) -> list[int]:
    order = ORDERS[int(rng.integers(len(ORDERS)))]
    shuffled = [int(number) for number in rng.permutation(len(groups))]
    return sorted(shuffled, key=lambda number: order.index(groups[number].block))


def write_heads(rng: np.random.Generator, setting: Setting, ago_days: int | None) -> str:
    """Return the heads before the findings; they depend on the setting and the interval alone."""
    heads = bank("headers")
    if ago_days is None:
        comparison = one_of(rng, heads["comparison"]["none"])
    else:
        comparison = one_of(rng, heads["comparison"]["some"]).format(ago=interval(ago_days))
    return (
        f"EXAMINATION: {one_of(rng, heads[setting]['examination'])}\n\n"
        f"INDICATION: {one_of(rng, heads[setting]['indication'])}\n\n"
        f"TECHNIQUE: {one_of(rng, heads[setting]['technique'])}\n\n"
        f"COMPARISON: {comparison}\n\n"
    )


def interval(days: int) -> str:
    """Return how long ago the last study was, as one would say it."""
    if days == 1:
        return "from the day before"
    if days < 14:
        return f"from {days} days earlier"
    if days < 60:
        return f"from {round(days / 7)} weeks earlier"
    return f"from {round(days / 30.4)} months earlier"


def write_impression(rng: np.random.Generator, claims: Sequence[Claim]) -> str:
    """Return the impression of an earlier report: its findings once more, in other words."""
    devices = load_kinds()
    said = [claim for claim in claims if claim.present and not devices[claim.finding].device]
    if not said:
        return f"IMPRESSION: {one_of(rng, bank('headers')['impression']['clear'])}\n"
    texts = [say(rng, said[number]) for number in rng.permutation(len(said))]
    if len(texts) == 1:
        return f"IMPRESSION: {texts[0]}\n"
    return "IMPRESSION:\n" + "".join(f"{number}. {text}\n" for number, text in enumerate(texts, 1))
