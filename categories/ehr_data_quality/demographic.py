"""Demographic conflicts: a person's registered sex or age, or one drug, that everything else contradicts."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from categories.draw import Draw
from categories.ehr_data_quality.catalogue import drugs, injection, lab_items, text_item
from categories.ehr_data_quality.ledger import INDEX, Cluster, Ledger, Trace
from categories.ehr_data_quality.prescribing import number_text, product_columns

FAMILY = "demographic_conflict"
Rng = np.random.Generator
DISCRETE = ("test", "drug", "device", "history")
DECISIVE = (*DISCRETE, "height")


@dataclass
class Evidence:
    """Which channels speak for a patient's sex or age, and in which rows."""

    channels: set[str] = field(default_factory=set)
    rows: set[tuple[str, int]] = field(default_factory=set)


def inject_demographic(ledger: Ledger, draw: Draw, rng: Rng) -> None:
    """Add the family's clusters: the patients row (or the drug), and the rows that contradict it."""
    counts = injection()["counts"][FAMILY]
    used: set[int] = set()
    proof = sex_evidence(ledger)
    _flip(ledger, rng, proof, counts["gender_via_patients_flip"], used)
    _swap(ledger, draw, rng, proof, counts["gender_via_prescription_swap"], used)
    _age(ledger, rng, counts["age_via_patients_change"], used)


def _collect(found: dict[int, Evidence], table: str, rows: pl.DataFrame, channel: str) -> None:
    for subject, row in rows.select("subject_id", INDEX).rows():
        found[subject].channels.add(channel)
        found[subject].rows.add((table, row))


def sex_evidence(ledger: Ledger) -> dict[int, Evidence]:
    """Return per patient what agrees with the registered sex and would contradict the other."""
    book = injection()["demographic"]
    sex = ledger.tables["patients"].select("subject_id", "gender")
    labs = ledger.tables["labevents"].join(sex, on="subject_id", how="left", maintain_order="left")
    chart = ledger.tables["chartevents"].join(sex, on="subject_id", how="left", maintain_order="left")
    orders = ledger.tables["prescriptions"].join(sex, on="subject_id", how="left", maintain_order="left")
    found: dict[int, Evidence] = defaultdict(Evidence)
    history = [text_item(label).itemid for label in book["history_labels"]]
    decisive = {"M": pl.col("valuenum") >= book["tall"], "F": pl.col("valuenum") <= book["short"]}
    for gender in ("M", "F"):
        own = pl.col("gender") == gender
        _collect(found, "labevents", labs.filter(own & (pl.col("itemid") == book["tests"][gender])), "test")
        _collect(found, "prescriptions", orders.filter(own & pl.col("drug").is_in(book["drugs"][gender])), "drug")
        worn = pl.col("value").is_in(book["texts"][gender]) & ~pl.col("itemid").is_in(history)
        _collect(found, "chartevents", chart.filter(own & worn), "device")
        tall = (pl.col("itemid") == book["heights"][0]) & decisive[gender]
        _collect(found, "chartevents", chart.filter(own & tall), "height")
    _collect(found, "chartevents", chart.filter((pl.col("gender") == "F") & pl.col("itemid").is_in(history)), "history")
    blood = labs.filter(pl.col("itemid") == book["haemoglobin"]).group_by("subject_id", "gender", maintain_order=True)
    for subject, gender, middle in blood.agg(pl.col("valuenum").median()).rows():
        if (gender == "M" and middle >= 13.8) or (gender == "F" and middle <= 9.8):
            found[subject].channels.add("haemoglobin")
    return found


def _patient(ledger: Ledger, subject: int) -> int:
    return int(ledger.tables["patients"].filter(pl.col("subject_id") == subject)[INDEX][0])


def _traces(ledger: Ledger, rows: set[tuple[str, int]]) -> list[Trace]:
    return [Trace(table, row) for table, row in sorted(rows) if (table, row) not in ledger.taken]


def _flip(ledger: Ledger, rng: Rng, proof: dict[int, Evidence], count: int, used: set[int]) -> None:
    """Flip the registered sex of patients whom at least three channels contradict, no channel in more than 60 %."""
    men = set(ledger.tables["patients"].filter(pl.col("gender") == "M")["subject_id"].to_list())
    women = set(ledger.tables["patients"].filter(pl.col("gender") == "F")["subject_id"].to_list())
    other = _contrary(ledger)
    able = [s for s in sorted(proof) if _decided(proof[s]) and s not in other]
    if len(able) < count and not ledger.strict:
        able = [s for s in sorted(proof) if _told(proof[s]) and s not in other]
        count = min(count, len(able))
    chosen = _balanced(rng, able, proof, count, men, women) if count else []
    for subject in chosen:
        used.add(subject)
        row = _patient(ledger, subject)
        old = ledger.row("patients", row)["gender"]
        new = "F" if old == "M" else "M"
        ledger.edit("patients", row, gender=new)
        _follow_register(ledger, subject, old, new)
        head = Trace("patients", row, "gender", old, new)
        rows = (head, *_traces(ledger, proof[subject].rows))
        ledger.record(Cluster(FAMILY, "gender_via_patients_flip", rows))


def _decided(evidence: Evidence) -> bool:
    """Three channels or more, two of them of the kind that only one sex has."""
    return len(evidence.channels) >= 3 and len(evidence.channels & set(DISCRETE)) >= 2


def _told(evidence: Evidence) -> bool:
    """Two channels or more, one of them of the kind that only one sex has: what real records offer at least."""
    return len(evidence.channels) >= 2 and bool(evidence.channels & set(DISCRETE))


def _contrary(ledger: Ledger) -> set[int]:
    """Return patients with natural evidence of the other sex (tamsulosin for a stone, hCG as a tumour marker)."""
    book = injection()["demographic"]
    sex = ledger.tables["patients"].select("subject_id", "gender")
    odd: set[int] = set()
    for gender, opposite in (("M", "F"), ("F", "M")):
        own = sex.filter(pl.col("gender") == gender)["subject_id"].to_list()
        mine = pl.col("subject_id").is_in(own)
        orders = ledger.tables["prescriptions"].filter(mine & pl.col("drug").is_in(book["drugs"][opposite]))
        tests = ledger.tables["labevents"].filter(mine & (pl.col("itemid") == book["tests"][opposite]))
        odd |= set(orders["subject_id"].to_list()) | set(tests["subject_id"].to_list())
    return odd


def _balanced(
    rng: Rng, order: list[int], proof: dict[int, Evidence], count: int, men: set[int], women: set[int]
) -> list[int]:
    """Take patients in turn so that no channel serves more than three fifths of them, nor one sex all of them."""
    aim = max(1, count * 3 // 5)
    for slack in range(count + 1):
        best: tuple[int, list[int]] | None = None
        for _ in range(80):
            shuffled = [order[i] for i in rng.permutation(len(order))]
            chosen = _greedy(shuffled, proof, count, aim + slack, (men, women))
            load = Counter(channel for subject in chosen for channel in proof[subject].channels)
            excess = sum(max(0, number - aim) for number in load.values())
            if len(chosen) == count and (best is None or excess < best[0]):
                best = (excess, chosen)
            if best is not None and best[0] == 0:
                break
        if best is not None:
            return best[1]
    raise ValueError("too few patients with three channels of sex")


def _greedy(
    order: list[int], proof: dict[int, Evidence], count: int, limit: int, sexes: tuple[set[int], set[int]]
) -> list[int]:
    chosen: list[int] = []
    load: dict[str, int] = defaultdict(int)
    for subject in order:
        full = any(load[channel] >= limit for channel in sorted(proof[subject].channels))
        one_sided = max(len({*chosen, subject} & group) for group in sexes) > limit
        if len(chosen) < count and not full and not one_sided:
            chosen.append(subject)
            for channel in sorted(proof[subject].channels):
                load[channel] += 1
    return chosen


def _follow_register(ledger: Ledger, subject: int, old: str, new: str) -> None:
    """Give the patient's results the reference ranges of the registered sex, and the flags that follow."""
    labs = ledger.tables["labevents"]
    place = {"F": 0, "M": 1}
    for item in (item for item in lab_items() if item.sexed):
        rows = labs.filter((pl.col("subject_id") == subject) & (pl.col("itemid") == item.itemid))
        for row in rows.rows(named=True):
            if (row["ref_range_lower"], row["ref_range_upper"]) != (item.low[place[old]], item.high[place[old]]):
                continue
            low, high, value = item.low[place[new]], item.high[place[new]], row["valuenum"]
            cells: dict[str, Any] = {"ref_range_lower": low, "ref_range_upper": high}
            if value is not None and low is not None and high is not None:
                was = (value < row["ref_range_lower"]) or (value > row["ref_range_upper"])
                noise = was != (row["flag"] == "abnormal")
                cells["flag"] = "abnormal" if ((value < low) or (value > high)) != noise else ""
            ledger.edit("labevents", row[INDEX], **cells)


def _swap(ledger: Ledger, draw: Draw, rng: Rng, proof: dict[int, Evidence], count: int, used: set[int]) -> None:
    """Turn one order into a product of the other sex, complete in every column, for a patient of clear sex."""
    book = injection()["demographic"]
    sex = dict(ledger.tables["patients"].select("subject_id", "gender").rows())
    other = _contrary(ledger)
    able = [s for s in sorted(proof) if len(proof[s].channels & set(DECISIVE)) >= 2 and s not in used | other]
    if not able and not ledger.strict:
        able = [s for s in sorted(proof) if _told(proof[s]) and s not in used | other]
    orders = ledger.tables["prescriptions"].filter(pl.col("route").is_in(["PO", "PO/NG"])).sort(INDEX)
    for subject in [able[i] for i in rng.permutation(len(able))[:count]]:
        used.add(subject)
        pool = [r for r in orders.filter(pl.col("subject_id") == subject)[INDEX] if ledger.free("prescriptions", [r])]
        if not pool:
            ledger.short("an order of the other sex")
            continue
        row = int(pool[int(rng.integers(len(pool)))])
        names = book["swap"]["F" if sex[subject] == "M" else "M"]
        name = names[int(rng.integers(len(names)))]
        drug = next(drug for drug in drugs() if drug.name == name)
        old = ledger.row("prescriptions", row)
        dose = np.array([drug.doses[int(rng.integers(len(drug.doses)))]])
        cells: dict[str, Any] = {**product_columns(drug, draw), "doses_per_24_hrs": drug.times}
        cells |= {"dose_val_rx": number_text(dose)[0], "form_val_disp": number_text(dose / drug.strength)[0]}
        ledger.edit("prescriptions", row, **cells)
        traces = [Trace("prescriptions", row, "drug", old["drug"], name), Trace("patients", _patient(ledger, subject))]
        ledger.record(Cluster(FAMILY, "gender_via_prescription_swap", tuple(traces)))


def age_evidence(ledger: Ledger) -> dict[int, Evidence]:
    """Return per patient what agrees with old age, or with youth."""
    book = injection()["demographic"]
    people = ledger.tables["patients"].select("subject_id", "anchor_age")
    found: dict[int, Evidence] = defaultdict(Evidence)
    for table, column in (("prescriptions", "drug"), ("chartevents", "value"), ("admissions", "insurance")):
        frame = ledger.tables[table].join(people, on="subject_id", how="left", maintain_order="left")
        old, young = pl.col("anchor_age") >= book["old"], pl.col("anchor_age") <= book["young"]
        value = pl.col(column)
        if table == "prescriptions":
            _collect(found, table, frame.filter(old & value.is_in(book["old_drugs"])), "drug")
            _collect(found, table, frame.filter(young & value.is_in(book["young_drugs"])), "drug")
        elif table == "admissions":
            _collect(found, table, frame.filter(old & (value == "Medicare")), "insurance")
            _collect(found, table, frame.filter(old & (pl.col("marital_status") == "WIDOWED")), "marital")
        else:
            frail = [text_item(label).itemid for label in book["old_texts"]]
            _collect(found, table, frame.filter(old & pl.col("itemid").is_in(frail) & (value == "Yes")), "frailty")
            _collect(found, table, frame.filter(old & value.is_in(["Assisted living", "Retired"])), "living")
            _collect(found, table, frame.filter(young & (value == "Lives with parents")), "living")
            _collect(found, table, frame.filter(young & (value == "Student")), "occupation")
    return found


def _age(ledger: Ledger, rng: Rng, count: int, used: set[int]) -> None:
    """Move the registered age by at least 35 years, within what MIMIC-IV shows, against at least three channels."""
    ages = dict(ledger.tables["patients"].select("subject_id", "anchor_age").rows())
    proof = age_evidence(ledger)
    able = [s for s in sorted(proof) if len(proof[s].channels) >= 3 and s not in used]
    lean = [s for s in able if "insurance" not in proof[s].channels or "drug" not in proof[s].channels]
    able = lean if lean and rng.random() < 0.5 else able  # neither insurance nor drug may decide most clusters
    able = able or [s for s in sorted(proof) if len(proof[s].channels) >= 2 and s not in used]
    for subject in [able[i] for i in rng.permutation(len(able))[:count]]:
        row = _patient(ledger, subject)
        old = int(ages[subject])
        new = int(rng.integers(22, 37)) if old >= 60 else int(rng.integers(old + 38, 86))
        ledger.edit("patients", row, anchor_age=new)
        head = Trace("patients", row, "anchor_age", str(old), str(new))
        ledger.record(Cluster(FAMILY, "age_via_patients_change", (head, *_traces(ledger, proof[subject].rows))))
