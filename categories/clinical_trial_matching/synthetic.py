"""The synthetic edition: an admission note, a pool of trial protocols, and which of them fit the patient."""

import json
import os
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

from categories.clinical_trial_matching.bank import Bank, Library, load_library
from categories.clinical_trial_matching.criteria import Leaf, Node
from categories.clinical_trial_matching.eligibility import Eligibility, write_eligibility
from categories.clinical_trial_matching.note import MIN_WORDS, compose_note
from categories.clinical_trial_matching.patient import Patient, draw_patient
from categories.clinical_trial_matching.phrasing import Wording, british, load_packs
from categories.clinical_trial_matching.pool import SIZES, PoolDrawer, Protocol, Size, quotas
from categories.clinical_trial_matching.record import FIRST_NUMBER, LAST_NUMBER, About, RecordWriter
from categories.draw import Draw

BRITISH_SHARE = 0.3
FLOORS = {"inferred": 0.40, "inferred_distinct": 0.40, "negated": 0.20, "negated_distinct": 0.20}
"""Least shares of the decisive facts that need inference, and that the note documents as absent."""
ATTEMPTS = 200
_FILE_TIME_NS = 1_600_000_000_000_000_000


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path) -> str | None:  # noqa: ARG001 (nothing writable is staged)
    """Write ``patient.txt`` and ``trials/<id>.xml`` into public, ``gold.json`` into gold."""
    library = load_library()
    bank = library.banks[str(draw.spec.parameters["disease"])]
    patient, note, pool = draw_task(draw, bank, library, SIZES[draw.scale])
    ids = _trial_ids(draw, len(pool))
    trials: dict[str, Any] = {}
    (public / "trials").mkdir()
    for nct_id, protocol in sorted(zip(ids, pool, strict=True), key=lambda pair: pair[0]):
        rng = _rng(draw, "record", nct_id)
        record, eligibility = _write(rng, nct_id, protocol, patient, bank, library)
        _put(public / "trials" / f"{nct_id}.xml", record)
        trials[nct_id] = _gold_entry(protocol, eligibility)
    _put(public / "patient.txt", note.encode())
    eligible = sorted(nct_id for nct_id, trial in trials.items() if trial["bucket"] == "eligible")
    document = {"eligible": eligible, "pool": sorted(trials), "trials": trials, "patient": _state(patient)}
    (gold / "gold.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return None


def draw_task(draw: Draw, bank: Bank, library: Library, size: Size) -> tuple[Patient, str, list[Protocol]]:
    """Return patient, note and pool; draws that miss a quota are drawn again, from the key, in a fixed order."""
    for attempt in range(ATTEMPTS):
        rng = _rng(draw, "patient", attempt)
        patient = draw_patient(rng, bank, library.common)
        note = compose_note(rng, patient, bank.dependent(library.common))
        pool = PoolDrawer(rng, patient, bank, library).draw(size)
        shares = quotas(pool, patient)
        if len(note.split()) >= MIN_WORDS and all(shares[name] >= floor for name, floor in FLOORS.items()):
            return patient, note, pool
    raise RuntimeError(f"{draw.case}: no draw met the quotas {FLOORS} in {ATTEMPTS} attempts; the last had {shares}")


def _rng(draw: Draw, *label: str | int) -> random.Random:
    return random.Random(int.from_bytes(draw.digest(*label), "big"))


def _trial_ids(draw: Draw, count: int) -> list[str]:
    numbers = _rng(draw, "ids").sample(range(FIRST_NUMBER, LAST_NUMBER), count)
    return [f"NCT{number:08d}" for number in numbers]


def _put(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    os.utime(path, ns=(_FILE_TIME_NS, _FILE_TIME_NS))


def _write(
    rng: random.Random, nct_id: str, protocol: Protocol, patient: Patient, bank: Bank, library: Library
) -> tuple[bytes, Eligibility]:
    topic = None if protocol.target == "main" else library.topics[protocol.target]
    names, mesh = (bank.names, bank.mesh) if topic is None else (topic.names, topic.mesh)
    pack = rng.choice(list(load_packs().values()))
    wording = Wording(rng, pack, patient.known, library.common)
    eligibility = write_eligibility(rng, protocol, wording, rng.choice(names), topic)
    text = british(eligibility.text) if rng.random() < BRITISH_SHARE else eligibility.text
    about = About(
        condition=rng.choice(names),
        mesh=mesh,
        background=bank.background if topic is None else (f"{names[0]} is a common reason to seek care.",) * 3,
        endpoints=bank.endpoints if topic is None else ("Change in symptom score", *bank.endpoints[-4:]),
    )
    return RecordWriter(rng, nct_id, about, text, protocol.limits).write(), eligibility


def _gold_entry(protocol: Protocol, eligibility: Eligibility) -> dict[str, Any]:
    limits = asdict(protocol.limits)
    criteria = [
        {
            "side": criterion.side,
            "kind": criterion.kind,
            "tree": tree(criterion.node),
            "text": text,
            "holds": criterion.value,
            "passes": criterion.passes,
        }
        for criterion, text in eligibility.readings
    ]
    return {
        "bucket": protocol.bucket,
        "target": protocol.target,
        "failing": protocol.failing,
        "limits": limits,
        "criteria": criteria,
    }


def tree(node: Node) -> Any:
    """Return a criterion as plain lists: ``[form, part, part]`` or ``[kind, key, op, limit, unit, values]``."""
    if isinstance(node, Leaf):
        return [node.kind, node.key, node.op, node.limit, node.unit, list(node.values)]
    return [node.form, *(tree(part) for part in node.parts)]


def _state(patient: Patient) -> dict[str, Any]:
    facts = patient.facts
    events = {key: (None if weeks == float("inf") else round(weeks, 3)) for key, weeks in facts.events.items()}
    taken = [{**asdict(m), "classes": sorted(m.classes)} for m in facts.medications]
    return {
        "age": facts.age,
        "sex": facts.sex,
        "months_since_diagnosis": facts.months,
        "flags": facts.flags,
        "weeks_since_event": events,
        "values": {key: round(value, 4) for key, value in facts.nums.items()},
        "categories": facts.categories,
        "medications": taken,
    }
