"""Inconsistency: two records of one observation disagree, within a table or between laboratory and chart."""

from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from categories.ehr_data_quality.catalogue import injection, lab_items
from categories.ehr_data_quality.formulae import PARENTS, RECALCULATED
from categories.ehr_data_quality.ledger import (
    INDEX,
    Cluster,
    Ledger,
    Trace,
    change_value,
    decimals_of,
    flag_of,
    printed,
    set_result,
)

FAMILY = "inconsistency"
Rng = np.random.Generator
FLAG_NOISE = 0.007
PROPORTIONAL = (51221, 51274, 50953, 52075, 51133, 52074, 52073, 52069)
"""Calculated members that keep their ratio to the member they come from (haematocrit to haemoglobin, and so on)."""
WHITE_CELLS = 51301
TIMED = pl.col("charttime").is_not_null() & pl.col("storetime").is_not_null()


def inject_inconsistent(ledger: Ledger, rng: Rng) -> None:
    """Add the family's clusters; each holds both sides of the disagreement."""
    counts = injection()["counts"][FAMILY]
    _redraw_panels(ledger, rng, counts["in_table_conflict_labevents"])
    _retake_vitals(ledger, rng, counts["in_table_conflict_chartevents"])
    _contradict_copies(ledger, rng, counts["cross_table_conflict"])


def _away(rng: Rng, itemid: int, value: float, decimals: int, bounds: tuple[float, float]) -> float | None:
    """Return a value in conflict with the given one, or None where neither direction stays within natural bounds."""
    book = injection()["in_table_conflict"]
    share = float(rng.uniform(*book["change"])) * change_value(itemid)
    up, down = value * (1 + share), value / (1 + share)
    if itemid in book["sodium"]["items"]:
        shift = float(rng.uniform(book["sodium"]["least"], book["sodium"]["most"]))
        up, down = value + shift, value - shift
    choices = [up, down] if rng.random() < 0.5 else [down, up]
    step = 10.0**-decimals
    for choice in choices:
        new = round(choice, decimals)
        if abs(new - value) >= 2.9 * step and bounds[0] <= new <= bounds[1]:
            return new
    return None


def _bounds(table: pl.DataFrame, itemid: int) -> tuple[float, float]:
    values = table.filter(pl.col("itemid") == itemid)["valuenum"]
    low, high = values.quantile(0.002, "nearest"), values.quantile(0.998, "nearest")
    assert low is not None
    assert high is not None
    return float(low), float(high)


def _single_specimens(labs: pl.DataFrame, itemid: int) -> pl.DataFrame:
    """Return rows of an item whose specimen nothing repeats within ten minutes."""
    rows = labs.filter((pl.col("itemid") == itemid) & pl.col("valuenum").is_not_null())
    rows = rows.sort("subject_id", "charttime", INDEX)
    gap = pl.col("charttime").diff().over("subject_id").dt.total_minutes()
    rows = rows.with_columns(before=gap.fill_null(99), after=gap.shift(-1).over("subject_id").fill_null(99))
    return rows.filter((pl.col("before") > 10) & (pl.col("after") > 10))


def _redraw_panels(ledger: Ledger, rng: Rng, count: int) -> None:
    """Draw whole specimens again one to five minutes later, one member in conflict."""
    panels = injection()["in_table_conflict"]["panels"]
    labs = ledger.tables["labevents"]
    done, turn = 0, 0
    while done < count:
        if turn > 40 * count:
            ledger.short("panel conflicts")
            break
        panel = panels[turn % len(panels)]
        itemid = int(panel[int(rng.integers(len(panel)))])
        turn += 1
        pool = _single_specimens(labs, itemid)
        if pool.is_empty():
            continue
        picked = pool.row(int(rng.integers(pool.height)), named=True)
        specimen = labs.filter(pl.col("specimen_id") == picked["specimen_id"]).sort(INDEX).rows(named=True)
        if not ledger.free("labevents", [row[INDEX] for row in specimen]):
            continue
        decimals = decimals_of(labs, itemid)
        new = _away(rng, itemid, picked["valuenum"], decimals, _bounds(labs, itemid))
        if new is not None:
            _redraw(ledger, rng, specimen, itemid, new)
            done += 1


def _redraw(ledger: Ledger, rng: Rng, specimen: list[dict[str, Any]], itemid: int, conflict: float) -> None:
    labs = ledger.tables["labevents"]
    decimals = {row["itemid"]: decimals_of(labs, row["itemid"]) for row in specimen}
    within = {item.itemid: item.within for item in lab_items()}
    old = {row["itemid"]: row["valuenum"] for row in specimen if row["valuenum"] is not None}
    new: dict[int, float] = {}
    for member, value in old.items():
        if member not in RECALCULATED:
            # what two tubes of one draw differ by; the same share of the within-subject CV as natural repeats show
            shaken = value * (1 + 0.4 * within.get(member, 0.0) * float(np.clip(rng.normal(), -3, 3)))
            new[member] = round(shaken, decimals[member])
    new[itemid] = conflict
    touched = _recalculate(old, new, decimals, {itemid})
    donors = labs.filter((pl.col("specimen_id") != specimen[0]["specimen_id"]) & TIMED)
    donor = donors.row(int(rng.integers(donors.height)), named=True)
    later = timedelta(minutes=int(rng.integers(1, 6)))
    lag = donor["storetime"] - donor["charttime"]
    own = {"specimen_id": ledger.unused("labevents", "specimen_id", 1, rng)[0], "priority": donor["priority"]}
    own |= {"order_provider_id": donor["order_provider_id"], "charttime": specimen[0]["charttime"] + later}
    own |= {"storetime": own["charttime"] + lag}
    numbers = ledger.unused("labevents", "labevent_id", len(specimen), rng)
    traces = []
    for row, number in zip(specimen, numbers, strict=True):
        peers = labs.filter(pl.col("itemid") == row["itemid"])
        peer = peers.row(int(rng.integers(peers.height)), named=True)
        values: dict[str, Any] = {**row, **own, "labevent_id": number, "comments": _plain(peer["comments"])}
        if row["valuenum"] is not None:
            text, values["valuenum"] = printed(new[row["itemid"]], decimals[row["itemid"]])
            values |= {"value": text, "flag": flag_of(row, values["valuenum"], bool(rng.random() < FLAG_NOISE))}
        added = ledger.add("labevents", values)
        if row["itemid"] in touched:
            traces += [Trace("labevents", added, "valuenum", str(row["value"]), str(values["value"]))]
            traces += [Trace("labevents", row[INDEX])]
    ledger.record(Cluster(FAMILY, "in_table_conflict", tuple(traces)))


def _plain(comment: str | None) -> str | None:
    """Return the comment of another row, unless it would explain the conflict away."""
    return "" if comment and "HEMOLY" in comment else comment


def _recalculate(old: dict[int, float], new: dict[int, float], decimals: dict[int, int], touched: set[int]) -> set[int]:
    """Fill the calculated members in; return the members that the conflict has reached."""
    touched = set(touched)
    for member in PROPORTIONAL + tuple(m for m in RECALCULATED if m not in PROPORTIONAL):
        if member not in old:
            continue
        parents = PARENTS.get(member, (WHITE_CELLS,))
        if not all(parent in new for parent in parents):
            new[member] = old[member]
            continue
        if touched & set(parents):
            touched.add(member)
        if member in PROPORTIONAL:
            value = old[member] * new[parents[0]] / old[parents[0]] if old[parents[0]] else old[member]
        else:
            arrays = {parent: np.array([new[parent]]) for parent in parents}
            value = float(RECALCULATED[member](arrays, {})[0])
        new[member] = round(round(value, 6), decimals[member])
    return touched


def _retake_vitals(ledger: Ledger, rng: Rng, count: int) -> None:
    """Take a set of vital signs again, one of them in conflict; a calculated mean follows its pressures."""
    book = injection()["in_table_conflict"]
    measured = pl.col("itemid").is_in(book["set"]) & pl.col("valuenum").is_not_null()
    chart = ledger.tables["chartevents"].filter(measured).sort("stay_id", "charttime", INDEX)
    sets = chart.select("stay_id", "charttime").unique(maintain_order=True)
    gap = pl.col("charttime").diff().over("stay_id").dt.total_minutes()
    sets = sets.with_columns(before=gap.fill_null(99), after=gap.shift(-1).over("stay_id").fill_null(99))
    alone = sets.filter((pl.col("before") > 10) & (pl.col("after") > 10)).select("stay_id", "charttime")
    chart = chart.join(alone, on=["stay_id", "charttime"], how="semi", maintain_order="left")
    stays = ledger.tables["icustays"].select("stay_id", "outtime")
    chart = chart.join(stays, on="stay_id", how="left", maintain_order="left")
    chart = chart.filter(pl.col("charttime") + timedelta(minutes=6) < pl.col("outtime")).drop("outtime")
    done, turn = 0, 0
    while done < count:
        if turn > 60 * count:
            ledger.short("conflicts between vital signs")
            break
        itemid, least, most = book["charted"][turn % len(book["charted"])]
        turn += 1
        pool = chart.filter(pl.col("itemid") == itemid)
        if pool.is_empty():
            continue
        picked = pool.row(int(rng.integers(pool.height)), named=True)
        here = (pl.col("stay_id") == picked["stay_id"]) & (pl.col("charttime") == picked["charttime"])
        rows = chart.filter(here).rows(named=True)
        low, high = _bounds(chart, int(itemid))
        change = float(rng.uniform(least, most)) * (1 if rng.random() < 0.5 else -1)
        new = next((v for v in (picked["valuenum"] + change, picked["valuenum"] - change) if low <= v <= high), None)
        if new is not None and ledger.free("chartevents", [row[INDEX] for row in rows]):
            _retake(ledger, rng, rows, int(itemid), round(new))
            done += 1


READING_NOISE = {220045: 3.85, 220210: 1.76, 220277: 0.94, 220179: 5.5, 220180: 3.85, 220050: 6.05, 220051: 3.3}
"""By how much two readings within minutes differ (standard deviation), as natural repeats show."""


def _retake(ledger: Ledger, rng: Rng, rows: list[dict[str, Any]], itemid: int, conflict: float) -> None:
    book = injection()["in_table_conflict"]
    chart = ledger.tables["chartevents"]
    new: dict[int, float] = {}
    for row in rows:
        reading = row["valuenum"] + READING_NOISE.get(row["itemid"], 0.0) * float(np.clip(rng.normal(), -3, 3))
        new[row["itemid"]] = round(min(reading, 100.0) if row["itemid"] == 220277 else reading)
    new[itemid] = conflict
    touched = {itemid}
    for mean, systolic, diastolic in book["means"]:
        if mean in new and systolic in new and diastolic in new:
            new[diastolic] = min(new[diastolic], new[systolic] - 12)
            new[mean] = round(new[diastolic] + (new[systolic] - new[diastolic]) / 3)
            touched |= {mean, diastolic} if systolic == itemid else set()
    donors = chart.filter(TIMED)
    donor = donors.row(int(rng.integers(donors.height)), named=True)
    taken = rows[0]["charttime"] + timedelta(minutes=int(rng.integers(1, 6)))
    traces = []
    for row in rows:
        value = new[row["itemid"]]
        if row["itemid"] in book["cuff"] and row["itemid"] != itemid and rng.random() < 0.45:
            value = 2 * round(value / 2)  # people read even numbers
        peers = chart.filter(pl.col("itemid") == row["itemid"])
        peer = peers.row(int(rng.integers(peers.height)), named=True)
        text, number = printed(value, 0)
        values = {**row, "charttime": taken, "storetime": taken + (donor["storetime"] - donor["charttime"])}
        values |= {"value": text, "valuenum": number, "warning": peer["warning"]}
        added = ledger.add("chartevents", values)
        if row["itemid"] in touched:
            traces += [Trace("chartevents", added, "valuenum", str(row["value"]), text)]
            traces += [Trace("chartevents", row[INDEX])]
    ledger.record(Cluster(FAMILY, "in_table_conflict", tuple(traces)))


def _contradict_copies(ledger: Ledger, rng: Rng, count: int) -> None:
    """Change charted copies so that they disagree with the laboratory at the same time."""
    pairs = injection()["cross_table_conflict"]["copies"]
    labs, chart = ledger.tables["labevents"], ledger.tables["chartevents"]
    done, turn = 0, 0
    order = rng.permutation(len(pairs)).tolist()
    while done < count:
        if turn > 40 * count:
            ledger.short("conflicts between chart and laboratory")
            break
        lab_id, chart_id = pairs[order[turn % len(pairs)]]
        turn += 1
        source = _single_specimens(labs, lab_id).select("hadm_id", "charttime", lab=INDEX, there="valuenum")
        copies = chart.filter((pl.col("itemid") == chart_id) & pl.col("valuenum").is_not_null())
        both = copies.join(source, on=["hadm_id", "charttime"], how="inner", maintain_order="left").sort(INDEX)
        if both.is_empty():
            continue
        row = both.row(int(rng.integers(both.height)), named=True)
        decimals = decimals_of(chart, chart_id)
        new = _away(rng, lab_id, row["there"], decimals, _bounds(labs, lab_id))
        if new is None or not (ledger.free("chartevents", [row[INDEX]]) and ledger.free("labevents", [row["lab"]])):
            continue
        trace = set_result(ledger, "chartevents", row[INDEX], new, decimals)
        ledger.record(Cluster(FAMILY, "cross_table_conflict", (trace, Trace("labevents", row["lab"]))))
        done += 1
