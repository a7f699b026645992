"""Impossible values: out of any living range, a shifted decimal point, an unconverted unit, a wrong unit label."""

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from categories.ehr_data_quality.catalogue import injection
from categories.ehr_data_quality.ledger import INDEX, Cluster, Ledger, Trace, decimals_of, equivalent, set_result

FAMILY = "impossible_value"
Rng = np.random.Generator
KEYS = {"labevents": "subject_id", "chartevents": "stay_id"}


def inject_impossible(ledger: Ledger, rng: Rng) -> None:
    """Add the family's clusters; each has one row."""
    counts, book = injection()["counts"][FAMILY], injection()
    for table in KEYS:
        bands = book["range_extreme"][table]
        crude = [bands["crude"][int(rng.integers(len(bands["crude"])))]]
        narrow = [band for band in bands["narrow"] if band[0] != crude[0][0]]
        order = rng.permutation(len(narrow)).tolist()
        chosen = [(band, True) for band in crude] + [(narrow[i], False) for i in order]
        _until(
            ledger, counts[f"range_extreme_{table}"], [partial(_extreme, ledger, rng, table, *pair) for pair in chosen]
        )
    shifts = book["decimal_shift"]["items"]
    _until(
        ledger,
        counts["decimal_shift"],
        [partial(_shift, ledger, rng, shifts[i]) for i in rng.permutation(len(shifts))],
    )
    _shift_doses(ledger, rng, counts["decimal_shift_rx"])
    units = book["unit_confusion"]["labevents"]
    _until(
        ledger,
        counts["unit_confusion_labevents"],
        [partial(_confuse, ledger, rng, units[i]) for i in rng.permutation(len(units))],
    )
    _until(ledger, counts["unit_confusion_chartevents"], [partial(_weigh, ledger, rng)])
    for table in KEYS:
        _mislabel(ledger, rng, table, counts[f"valueuom_mismatch_{table}"])


def _until(ledger: Ledger, count: int, attempts: list[Callable[[], bool]]) -> None:
    """Make attempts in turn until enough have succeeded."""
    done = 0
    for attempt in attempts:
        if done < count:
            done += int(attempt())
    if done < count:
        ledger.short(f"{count - done} of {count} clusters")


def _alone(ledger: Ledger, table: str, itemid: int) -> pl.DataFrame:
    """Return rows of an item that no other record of the same observation stands beside: no repeat, no copy."""
    key = KEYS[table]
    frame = ledger.tables[table].filter((pl.col("itemid") == itemid) & pl.col("valuenum").is_not_null())
    frame = frame.sort(key, "charttime", INDEX)
    gap = pl.col("charttime").diff().over(key).dt.total_minutes()
    frame = frame.with_columns(before=gap, after=gap.shift(-1).over(key), peers=pl.len().over(key))
    frame = frame.filter((pl.col("before").fill_null(99) > 10) & (pl.col("after").fill_null(99) > 10))
    side = list(KEYS).index(table)
    other = list(KEYS)[1 - side]
    partner = [pair[1 - side] for pair in injection()["cross_table_conflict"]["copies"] if pair[side] == itemid]
    if partner:
        there = ledger.tables[other].filter(pl.col("itemid") == partner[0]).select("hadm_id", "charttime")
        frame = frame.join(there, on=["hadm_id", "charttime"], how="anti", maintain_order="left")
    rows = [row for row in frame[INDEX].to_list() if ledger.free(table, [row])]
    return frame.filter(pl.col(INDEX).is_in(rows) & (pl.col("peers") > 2 - side))


def _extreme(ledger: Ledger, rng: Rng, table: str, band: list[float], crude: bool) -> bool:
    itemid = int(band[0])
    pool = _alone(ledger, table, itemid)
    if pool.is_empty():
        return False
    row = int(pool[INDEX][int(rng.integers(pool.height))])
    value = float(rng.uniform(band[1], band[2]))
    trace = set_result(ledger, table, row, value, decimals_of(ledger.tables[table], itemid))
    ledger.record(Cluster(FAMILY, "range_extreme", (trace,), crude))
    return True


def _shift(ledger: Ledger, rng: Rng, item: list[float]) -> bool:
    """Shift the point; the digit that was cut off when the value was printed comes back, so no zero gives it away."""
    itemid, factor = int(item[0]), float(item[1 + int(rng.integers(len(item) - 1))])
    pool = _alone(ledger, "labevents", itemid)
    if pool.is_empty():
        return False
    decimals = decimals_of(ledger.tables["labevents"], itemid)
    row = int(pool[INDEX][int(rng.integers(pool.height))])
    hidden = float(pool.filter(pl.col(INDEX) == row)["valuenum"][0]) + float(rng.uniform(-0.49, 0.49)) * 10**-decimals
    trace = set_result(ledger, "labevents", row, hidden * factor, decimals)
    ledger.record(Cluster(FAMILY, "decimal_shift", (trace,)))
    return True


def _shift_doses(ledger: Ledger, rng: Rng, count: int) -> None:
    """Shift doses of products that are ordered in a narrow range; the number of units dispensed follows."""
    book = injection()["decimal_shift"]
    dose = pl.col("dose_val_rx").cast(pl.Float64, strict=False)
    orders = ledger.tables["prescriptions"].with_columns(dose=dose).filter(
        (pl.col("route") != "IV DRIP") & ~pl.col("dose_unit_rx").is_in(["TAB", "CAP", "NEB"])
    )  # fmt: skip
    group = ["drug", "dose_unit_rx"]
    orders = orders.with_columns(
        low=pl.col("dose").min().over(group), high=pl.col("dose").max().over(group), orders=pl.len().over(group)
    ).filter((pl.col("high") <= book["rx_span"] * pl.col("low")) & (pl.col("orders") >= 12))
    factors = [10.0] * book["rx_up"] + [0.1] * (count - book["rx_up"])
    seen: dict[str, int] = {}
    for factor in factors:
        shifted = pl.col("dose") * factor
        far = (shifted >= book["rx_outside"] * pl.col("high")) | (shifted <= pl.col("low") / book["rx_outside"])
        pool = orders.filter(far).sort(INDEX)
        rows = pool.select(INDEX, "drug").rows()
        free = [row for row, drug in rows if ledger.free("prescriptions", [row]) and seen.get(drug, 0) < 1]
        if not free:
            ledger.short("shifted doses")
            continue
        row = int(free[int(rng.integers(len(free)))])
        old = ledger.row("prescriptions", row)
        seen[old["drug"]] = seen.get(old["drug"], 0) + 1
        new = f"{round(float(old['dose_val_rx']) * factor, 6):g}"
        ledger.edit("prescriptions", row, dose_val_rx=new)
        units = pl.Series([old["form_val_disp"]], dtype=pl.String).cast(pl.Float64, strict=False)[0]
        if units is not None:  # real orders also hold ranges such as 1-2
            ledger.edit("prescriptions", row, form_val_disp=f"{round(units * factor, 6):g}")
        trace = Trace("prescriptions", row, "dose_val_rx", old["dose_val_rx"], new)
        ledger.record(Cluster(FAMILY, "decimal_shift_rx", (trace,)))


def _confuse(ledger: Ledger, rng: Rng, unit: list[float]) -> bool:
    """Print mmol/L under mg/dL between two steady neighbours: the patient's own course contradicts it."""
    itemid = int(unit[0])
    pool = _alone(ledger, "labevents", itemid)
    every = ledger.tables["labevents"].filter(pl.col("itemid") == itemid).sort("subject_id", "charttime", INDEX)
    value, when = pl.col("valuenum"), pl.col("charttime")
    near = [
        ((value.shift(step).over("hadm_id") / value - 1).abs() < 0.2)
        & ((when.shift(step).over("hadm_id") - when).dt.total_hours().abs() <= 44)
        for step in (1, -1)
    ]
    steady = every.filter(near[0] & near[1] & (value >= unit[2]))[INDEX].to_list()
    pool = pool.filter(pl.col(INDEX).is_in(steady))
    if pool.is_empty():
        return False
    row = int(pool[INDEX][int(rng.integers(pool.height))])
    new = float(pool.filter(pl.col(INDEX) == row)["valuenum"][0]) * unit[1]
    trace = set_result(ledger, "labevents", row, new, decimals_of(ledger.tables["labevents"], itemid))
    ledger.record(Cluster(FAMILY, "unit_confusion", (trace,)))
    return True


def _weigh(ledger: Ledger, rng: Rng) -> bool:
    """Print pounds under kilograms, where other weights of the stay say so."""
    book = injection()["unit_confusion"]
    frame = ledger.tables["chartevents"].filter(pl.col("itemid").is_in(book["weight_peers"]))
    frame = frame.with_columns(peers=pl.len().over("stay_id")).sort(INDEX)
    pool = frame.filter((pl.col("itemid") == book["weight"][0]) & (pl.col("peers") >= 2) & (pl.col("valuenum") > 50))
    if pool.is_empty():
        return False
    row = int(pool[INDEX][int(rng.integers(pool.height))])
    new = float(pool.filter(pl.col(INDEX) == row)["valuenum"][0]) * book["weight"][1]
    ledger.record(Cluster(FAMILY, "unit_confusion", (set_result(ledger, "chartevents", row, new, 1),)))
    return True


def _mislabel(ledger: Ledger, rng: Rng, table: str, count: int) -> None:
    """Replace the unit label by that of another quantity; the value stays."""
    labels = injection()["valueuom_mismatch"][f"labels_{table}"]
    frame = ledger.tables[table].filter(pl.col("valuenum").is_not_null() & pl.col("valueuom").is_in(labels))
    items = frame["itemid"].unique().sort().to_list()
    for itemid in [items[i] for i in rng.permutation(len(items))[:count]]:
        pool = frame.filter(pl.col("itemid") == itemid)[INDEX].to_list()
        pool = [row for row in pool if ledger.free(table, [row])]
        if not pool:
            ledger.short("mismatched units")
            continue
        row = int(pool[int(rng.integers(len(pool)))])
        old = str(ledger.row(table, row)["valueuom"])
        wrong = [label for label in labels if not equivalent(label, old)]
        new = str(wrong[int(rng.integers(len(wrong)))])
        ledger.edit(table, row, valueuom=new)
        ledger.record(Cluster(FAMILY, "valueuom_mismatch", (Trace(table, row, "valueuom", old, new),)))
