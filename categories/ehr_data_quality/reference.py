"""An auditor with a textbook: limits of life, doses, units, repeats, and what a whole record says.

Sees only the tables. Numbers are clinical knowledge: living ranges, within-subject variation, usual differences.
"""

import os
from pathlib import Path

import polars as pl

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
LIVING = {
    50912: (0.05, 30), 50931: (8, 1800), 50971: (1.4, 9.8), 50983: (95, 185), 50893: (3, 18), 50960: (0.35, 9),
    50970: (0.2, 17), 50862: (0.7, 7.5), 50808: (0.4, 2.3), 50817: (10, 100), 50813: (0.1, 40), 51265: (0, 2500),
    51222: (1.5, 25), 51250: (45, 150), 50820: (6.5, 8.0), 50882: (1, 60), 51006: (0, 300),
    220045: (12, 260), 220179: (20, 320), 220180: (5, 220), 220050: (15, 330), 223761: (82, 109), 220277: (20, 100),
    220210: (0, 75), 223835: (20.5, 100), 225664: (12, 1500), 224685: (0, 2000), 220074: (-10, 50), 224639: (20, 320),
}  # fmt: skip
"""itemid -> values that a living patient, or the device, can show."""
WITHIN = {
    50912: 5, 51006: 9, 50971: 6, 50931: 13, 50893: 2.2, 50960: 5, 50970: 9, 51222: 2.8, 51301: 12, 51265: 8,
    51277: 2.5,
    50861: 11, 50878: 12, 50863: 6.5, 50862: 3.3, 50954: 8, 50885: 16, 51275: 7, 50813: 16, 50821: 17, 50808: 2.2,
    50809: 13, 50811: 2.8, 50822: 6, 50924: 11, 50952: 20, 50910: 20, 50963: 13, 51000: 20, 50907: 6, 50904: 7,
    51237: 4.5, 50956: 13, 50976: 2.8, 51007: 9, 50998: 4.5, 51003: 20, 50911: 16, 51214: 9, 50867: 10,
}  # fmt: skip
"""itemid -> within-subject CV in percent."""
SODIUM = {50983, 50824}
VITALS = {220045: 29.0, 220210: 11.5, 220277: 8.5, 220179: 36.0, 220050: 36.0}
"""itemid -> a difference within five minutes that no patient and no cuff explains."""
COPIES = {
    220645: 50983, 227442: 50971, 225624: 51006, 220615: 50912, 220621: 50931, 225625: 50893, 220635: 50960,
    225677: 50970, 220228: 51222, 220546: 51301, 227457: 51265,
}  # fmt: skip
SAME = [
    {"mEq/L", "mmol/L", "mM"}, {"K/uL", "10^3/uL"}, {"IU/L", "U/L"}, {"mg/dL", "MG/DL"}, {"g/dL", "gm/dl", "g/dl"},
    {"ng/mL", "ug/L"}, {"ug/mL", "mg/L"}, {"mm Hg", "mmHg"}, {"m/uL", "10^6/uL"}, {"sec", "s"}, {"bpm", "beats/min"},
    {"kg", "Kg"}, {"insp/min", "breaths/min"}, {"cmH2O", "cm H2O"}, {"°F", "Deg. F"}, {"%", ""}, {"units", ""},
]  # fmt: skip
PER_MOLE = {51006: 0.357, 50960: 0.411, 50970: 0.323}
"""mg/dL -> mmol/L."""
WEIGHTS, DIALYSIS = (224639, 226512), "Dialysis Patient"
PSA, HCG, AFP, HAEMOGLOBIN, HEIGHT = 50974, 50946, 50864, 51222, 226730
SEX_DRUGS = {
    "M": ["Finasteride", "Dutasteride", "Vardenafil", "Sildenafil", "Tadalafil", "Testosterone"],
    "F": ["Estradiol", "Norethindrone Acetate", "Levonorgestrel-Ethin Estradiol", "Raloxifene", "Medroxyprogesterone"],
}
OLD_DRUGS, YOUNG_DRUGS = ["Donepezil", "Memantine", "Alendronate Sodium"], ["Isotretinoin", "MethylPHENIDATE"]
WIDE = "(?i)insulin|prednis|dexameth|morph|furosemide|potassium|gabapentin|vitamin d|thiamine|quetiapine|aspirin"
"""Products whose doses span a factor of ten and more in daily practice."""
Tables = dict[str, pl.DataFrame]
Flags = list[pl.DataFrame]


def read() -> Tables:
    """Read the tables."""
    texts = {"_row_id": pl.String, "value": pl.String, "valuenum": pl.Float64, "valueuom": pl.String, "flag": pl.String}
    texts |= {"dose_val_rx": pl.String, "form_val_disp": pl.String, "form_rx": pl.String, "comments": pl.String}
    return {
        path.name.removesuffix(".csv.gz"): pl.read_csv(
            path, schema_overrides=texts, infer_schema_length=20_000, try_parse_dates=True
        )
        for path in sorted(DATA.rglob("*.csv.gz"))
    }


def flag(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    return frame.select(pl.lit(table).alias("table"), "_row_id")


def limits(tables: Tables) -> Flags:
    """Values outside what a living patient can have."""
    low = pl.col("itemid").replace_strict({k: float(v[0]) for k, v in LIVING.items()}, default=None)
    high = pl.col("itemid").replace_strict({k: float(v[1]) for k, v in LIVING.items()}, default=None)
    out = (pl.col("valuenum") < low) | (pl.col("valuenum") > high)
    return [flag(tables[name].filter(out), name) for name in ("labevents", "chartevents")]


IN_TIME = ("charttime", "storetime", "_row_id")
"""Order of one item's records: ties are told apart, so that the same data always give the same flags."""


def units(tables: Tables) -> Flags:
    """Labels that are not another spelling of the item's usual unit."""
    found = []
    for name in ("labevents", "chartevents"):
        frame = tables[name].filter(pl.col("valuenum").is_not_null()).with_columns(pl.col("valueuom").fill_null(""))
        method = ["itemid", *(["ref_range_upper"] if name == "labevents" else [])]  # another range: another method
        usual = frame.group_by(*method, "valueuom").len()
        usual = usual.sort("len", "valueuom", descending=[True, False]).unique(
            method, keep="first", maintain_order=True
        )
        frame = frame.join(usual.select(*method, usual="valueuom"), on=method, nulls_equal=True)
        odd = frame.filter(pl.col("valueuom") != pl.col("usual"))
        wrong = [
            row for row, label, known in odd.select("_row_id", "valueuom", "usual").rows()
            if not any(label in group and known in group for group in SAME)
        ]  # fmt: skip
        found.append(flag(odd.filter(pl.col("_row_id").is_in(wrong)), name))
    return found


def doses(tables: Tables) -> Flags:
    """A dose that stands alone, far from all others of a product that is always ordered alike."""
    orders = tables["prescriptions"].filter(pl.col("route") != "IV DRIP")
    orders = orders.with_columns(dose=pl.col("dose_val_rx").cast(pl.Float64, strict=False))
    dose, group = pl.col("dose"), ["drug", "dose_unit_rx"]
    top, bottom = dose.top_k(2).min().over(group), dose.bottom_k(2).max().over(group)
    high = (dose >= 2.3 * top) & (top <= 5 * dose.min().over(group))
    low = (dose <= bottom / 2.3) & (dose.max().over(group) <= 5 * bottom)
    known = ~pl.col("drug").str.contains(WIDE) & (pl.len().over(group) >= 8)
    return [flag(orders.filter(known & (high | low)), "prescriptions")]


def moles(tables: Tables) -> Flags:
    """One value that is the neighbours' in another unit; a dialysis patient's course falls by itself."""
    chart, labs = tables["chartevents"], tables["labevents"].sort("hadm_id", "itemid", *IN_TIME)
    item = tables["d_items"].filter(pl.col("label") == DIALYSIS)["itemid"]
    treated = chart.filter(pl.col("itemid").is_in(item.to_list()))["hadm_id"].unique().to_list()
    factor = pl.col("itemid").replace_strict(PER_MOLE, default=None)
    group = ["hadm_id", "itemid"]
    before, after = (pl.col("valuenum").shift(step).over(group) for step in (1, -1))
    hours = [(pl.col("charttime") - pl.col("charttime").shift(s).over(group)).dt.total_hours().abs() for s in (1, -1)]
    labs = labs.filter(pl.col("itemid").is_in(list(PER_MOLE)) & ~pl.col("hadm_id").is_in(treated))
    labs = labs.with_columns(
        ratio=pl.col("valuenum") / ((before + after) / 2) / factor, steady=before / after, gap=pl.max_horizontal(hours)
    )
    odd = labs.filter(
        pl.col("ratio").is_between(0.76, 1.3) & pl.col("steady").is_between(0.7, 1.43) & (pl.col("gap") < 50)
    )
    weights = chart.filter(pl.col("itemid").is_in(WEIGHTS))
    ratio = pl.col("valuenum") / pl.col("valuenum").min().over("subject_id")
    heavy = weights.filter(ratio.is_between(1.9, 2.5) & (pl.len().over("subject_id") >= 2))
    return [flag(odd, "labevents"), flag(heavy, "chartevents")]


def apart(one: pl.Expr, other: pl.Expr, item: pl.Expr) -> pl.Expr:
    """Tell whether two results of an analyte differ by far more than measuring twice, and not by rounding alone."""
    cv = item.replace_strict({k: v / 100 for k, v in WITHIN.items()}, default=None, return_dtype=pl.Float64)
    places = pl.col("value").str.extract(r"\.(\d+)$").str.len_chars().fill_null(0).cast(pl.Int64)
    step = places.replace_strict({0: 1.0, 1: 0.1, 2: 0.01}, default=0.001, return_dtype=pl.Float64)
    large = (pl.max_horizontal(one, other) / pl.min_horizontal(one, other) - 1) > 1.75 * 3.1 * cv
    fine = (large & ((one - other).abs() > 2.2 * step)).fill_null(value=False)
    return fine | (item.is_in(list(SODIUM)) & ((one - other).abs() >= 6.5))


def pairs(frame: pl.DataFrame, key: str) -> pl.DataFrame:
    """Successive records of an item within five minutes."""
    frame = frame.filter(pl.col("valuenum").is_not_null()).sort(key, "itemid", *IN_TIME)
    past = [pl.col(c).shift(1).over(key, "itemid").alias(f"{c}_before") for c in ("valuenum", "charttime")]
    return frame.with_columns(past).filter((pl.col("charttime") - pl.col("charttime_before")).dt.total_minutes() <= 5)


def repeats(tables: Tables) -> Flags:
    """Specimens and vital signs that disagree with their repetition."""
    now, before = pl.col("valuenum"), pl.col("valuenum_before")
    labs = pairs(tables["labevents"], "subject_id").filter(apart(now, before, pl.col("itemid")))
    labs = labs.filter(~pl.col("comments").fill_null("").str.contains("HEMOLY"))  # the laboratory explains it
    chart = pairs(tables["chartevents"].filter(pl.col("itemid").is_in(list(VITALS))), "stay_id")
    limit = pl.col("itemid").replace_strict(VITALS, return_dtype=pl.Float64)
    return [flag(labs, "labevents"), flag(chart.filter((now - before).abs() >= limit), "chartevents")]


def copies(tables: Tables) -> Flags:
    """Charted laboratory values against the laboratory."""
    chart = tables["chartevents"].filter(pl.col("itemid").is_in(list(COPIES)))
    chart = chart.with_columns(lab=pl.col("itemid").replace_strict(COPIES))
    labs = tables["labevents"].select("hadm_id", "charttime", lab="itemid", there="valuenum")
    both = chart.join(labs, on=["hadm_id", "charttime", "lab"])
    return [flag(both.filter(apart(pl.col("valuenum"), pl.col("there"), pl.col("lab"))), "chartevents")]


def count(people: pl.DataFrame, rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return people.join(rows.group_by("subject_id").agg(pl.len().alias(name)), on="subject_id", how="left")


def sex(tables: Tables) -> Flags:
    """Weigh tests, drugs, devices, history, height and blood count; report the record that stands alone."""
    labs, chart, orders, people = (tables[n] for n in ("labevents", "chartevents", "prescriptions", "patients"))
    labels = tables["d_items"].select("itemid", "label")
    chart = chart.filter(pl.col("value").is_not_null()).join(labels, on="itemid")
    worn = pl.col("label").str.contains("Urinary")
    female_text = (worn & pl.col("value").str.contains("female")) | pl.col("label").is_in(
        ["Pregnant", "Last menstrual period documented"]
    )
    markers = labs.filter(pl.col("itemid") == AFP).select("subject_id", pl.col("charttime").dt.date())
    hcg = labs.filter(pl.col("itemid") == HCG)
    rows = {
        "M": [
            (labs.filter(pl.col("itemid") == PSA), 2.5),
            (orders.filter(pl.col("drug").is_in(SEX_DRUGS["M"])), 2.2),
            (orders.filter(pl.col("drug") == "Tamsulosin"), 1.3),
            (chart.filter(worn & pl.col("value").str.contains("Condom")), 3.0),
        ],
        "F": [
            (hcg, 2.2),
            (orders.filter(pl.col("drug").is_in(SEX_DRUGS["F"])), 2.2),
            (chart.filter(female_text & worn), 3.0),
            (chart.filter(female_text & ~worn), 2.5),
        ],
    }
    score = pl.lit(0.0)
    for gender, sign in (("M", 1.0), ("F", -1.0)):
        for number, (found, weight) in enumerate(rows[gender]):
            people = count(people, found, f"{gender}{number}")
            score += pl.when(pl.col(f"{gender}{number}") > 0).then(sign * weight).otherwise(0.0)
    tall = (
        chart.filter(pl.col("itemid") == HEIGHT).group_by("subject_id").agg(pl.col("valuenum").median().alias("tall"))
    )
    blood = labs.filter(pl.col("itemid") == HAEMOGLOBIN).group_by("subject_id")
    people = people.join(tall, on="subject_id", how="left")
    people = people.join(blood.agg(pl.col("valuenum").median().alias("hb")), on="subject_id", how="left")
    # log likelihood ratio of height: men 176, women 162, SD 7; blood counts of the sick say little
    score += ((pl.col("tall") - 169) * 14 / 49).clip(-2.5, 2.5).fill_null(0.0)
    score += ((pl.col("hb") - 12.3) * 0.35).clip(-0.8, 0.8).fill_null(0.0)
    people = people.with_columns(score=pl.when(pl.col("gender") == "M").then(score).otherwise(-score))
    tumour = count(people, markers, "afp")
    odd_test = (tumour["gender"] == "M") & tumour["F0"].is_not_null() & tumour["afp"].is_not_null()
    contradicted = people.filter((pl.col("score") <= -2.4) & ~odd_test)
    clear = people.filter(pl.col("score") >= 0.0).select("subject_id", "gender")
    wrong = orders.join(clear, on="subject_id").filter(
        ((pl.col("gender") == "M") & pl.col("drug").is_in(SEX_DRUGS["F"]))
        | ((pl.col("gender") == "F") & pl.col("drug").is_in(SEX_DRUGS["M"]))
    )
    return [flag(contradicted, "patients"), flag(wrong, "prescriptions")]


def age(tables: Tables) -> Flags:
    """Old age or youth that at least two kinds of evidence show and the register denies."""
    chart = tables["chartevents"].filter(pl.col("value").is_not_null())
    chart = chart.join(tables["d_items"].select("itemid", "label"), on="itemid")
    orders, stays, people = tables["prescriptions"], tables["admissions"], tables["patients"]
    frail = pl.col("label").is_in(["Dentures", "Hearing aid", "Walker or cane at home"]) & (pl.col("value") == "Yes")
    signs = {
        "old": [
            (orders.filter(pl.col("drug").is_in(OLD_DRUGS)), 1.2),
            (chart.filter(frail), 0.8),
            (chart.filter(pl.col("value").is_in(["Assisted living", "Retired"])), 0.9),
            (stays.filter(pl.col("insurance") == "Medicare"), 0.6),
            (stays.filter(pl.col("marital_status") == "WIDOWED"), 0.8),
        ],
        "young": [
            (orders.filter(pl.col("drug").is_in(YOUNG_DRUGS)), 1.2),
            (chart.filter(pl.col("value") == "Lives with parents"), 1.2),
            (chart.filter(pl.col("value") == "Student"), 1.2),
        ],
    }
    for name, kinds in signs.items():
        total = pl.lit(0.0)
        for number, (rows, weight) in enumerate(kinds):
            people = count(people, rows, f"{name}{number}")
            total += pl.when(pl.col(f"{name}{number}") > 0).then(weight).otherwise(0.0)
        people = people.with_columns(total.alias(name))
    old, young, years = pl.col("old"), pl.col("young"), pl.col("anchor_age")
    return [flag(people.filter(((years < 50) & (old > 1.9)) | ((years > 55) & (young > 1.9))), "patients")]


CHECKS = (limits, units, doses, moles, repeats, copies, sex, age)


def main() -> None:
    """Write the union of all checks."""
    tables = read()
    found = pl.concat([rows for check in CHECKS for rows in check(tables)]).unique(maintain_order=True)
    SUBMISSION.mkdir(parents=True, exist_ok=True)
    found.write_csv(SUBMISSION / "flagged_rows.csv")


if __name__ == "__main__":
    main()
