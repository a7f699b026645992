"""L1: ten minutes. Code counts over all time and over the last year, ICD families, last year's mean values; LightGBM."""

import os
from pathlib import Path

import lightgbm as lgb
import numpy as np
import polars as pl
from scipy import sparse

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
BY = ["row", "name"]


def examples() -> pl.DataFrame:
    names = ("train_labels.csv", "val_labels.csv", "test_examples.csv")
    table = pl.concat([pl.read_csv(DATA / name) for name in names], how="diagonal")
    return table.with_columns(at=pl.col("prediction_time").str.to_datetime()).with_row_index("row")


def counts(table: pl.DataFrame) -> pl.DataFrame:
    """One line for each example and code seen before its prediction time, and one for each ICD-10 family."""
    number = pl.col("value").cast(pl.Float32, strict=False)
    recent = pl.col("start") > pl.col("at") - pl.duration(days=365)
    events = pl.scan_csv(DATA / "events.csv", schema_overrides={"value": pl.String})
    events = events.select("patient_id", pl.col("start").str.to_datetime(), pl.col("code").alias("name"), number)
    joined = events.join(table.lazy().select("row", "patient_id", "at"), on="patient_id")
    wanted = joined.filter(pl.col("start") <= pl.col("at")).group_by(BY)
    seen = wanted.agg(
        n=pl.len(), new=recent.sum(), mean=pl.col("value").filter(recent).mean(), first=pl.col("start").min()
    ).collect(engine="streaming")
    families = seen.filter(pl.col("name").str.starts_with("ICD10CM/"))
    families = families.with_columns(name=pl.col("name").str.slice(0, 11) + "*").group_by(BY)
    return pl.concat([seen, families.agg(pl.col("n").sum(), pl.col("new").sum())], how="diagonal_relaxed")


def features(table: pl.DataFrame, seen: pl.DataFrame) -> sparse.csr_matrix:
    seen = seen.with_columns(column=pl.col("name").rank("dense").cast(pl.Int64) - 1).sort("row", "column")
    at, width = (seen["row"].to_numpy(), seen["column"].to_numpy()), seen["column"].max() + 1
    birth = table.join(seen.group_by("row").agg(pl.col("first").min()), on="row", how="left").sort("row")
    age = (birth["at"] - birth["first"]).dt.total_days().to_numpy()[:, None]
    blocks = [sparse.csr_matrix((seen[c].fill_null(0).to_numpy(), at), (len(age), width)) for c in ("n", "new", "mean")]
    return sparse.hstack([sparse.csr_matrix(age), *blocks], format="csr", dtype=np.float32)


def main() -> None:
    table = examples()
    matrix = features(table, counts(table))
    known = table["label"].is_not_null().to_numpy()
    model = lgb.LGBMClassifier(n_estimators=300, learning_rate=0.03, num_leaves=15, colsample_bytree=0.3, verbose=-1)
    model.set_params(n_jobs=1, random_state=0).fit(matrix[known], table["label"].cast(pl.Int8).to_numpy()[known])
    out = table.filter(~pl.Series(known)).select("patient_id", "prediction_time")
    out = out.with_columns(probability=pl.Series(model.predict_proba(matrix[~known])[:, 1]))
    out.write_csv(SUBMISSION / "predictions.csv")


if __name__ == "__main__":
    main()
