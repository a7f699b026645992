"""Data quality: which of the injected errors were hit, and how many of the flagged rows belong to none."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from verifiers_hidden import kit
from verifiers_hidden.kit import GoldError, Reason, Verdict

FILE = "flagged_rows.csv"
COLUMNS = ("table", "_row_id")
ALIASES = {"row_id": "_row_id", "rowid": "_row_id"}
TABLES = (
    "patients", "admissions", "labevents", "prescriptions", "d_labitems", "icustays", "chartevents", "d_items",
)  # fmt: skip
Row = tuple[str, str]


def judge(submission: Path, gold: Path, rule: dict[str, float]) -> Verdict:
    """Judge ``flagged_rows.csv``: an error is hit by any of its rows, and each error counts once."""
    clusters, rows = _gold(gold)
    records = kit.read_csv(submission / FILE, columns=COLUMNS, aliases=ALIASES)
    flagged = {(record["table"], record["_row_id"]) for record in records}
    metrics = measure(clusters, rows, flagged)
    metrics["published_reward"] = float(
        metrics["recall"] >= rule["published_recall"] and metrics["row_precision"] >= rule["published_precision"]
    )
    passed = metrics["recall"] >= rule["recall"] and metrics["precision"] >= rule["precision"]
    hit = {cluster["id"]: _is_hit(cluster, flagged) for cluster in clusters}
    details = {
        "clusters": [
            {"id": c["id"], "family": c["family"], "subtype": c["subtype"], "hit": hit[c["id"]]} for c in clusters
        ]
    }
    message = (
        f"{int(metrics['clusters_hit'])} of {len(clusters)} errors hit, "
        f"{int(metrics['flagged_outside'])} flagged rows belong to none (precision {metrics['precision']:.3f})"
    )
    reason = Reason.PASSED if passed else Reason.BELOW_THRESHOLD
    return Verdict(int(passed), reason, metrics["cluster_recall"], metrics, message, details)


def missing(gold: Path) -> tuple[float | None, dict[str, float]]:
    """Return the metrics of an empty submission."""
    clusters, rows = _gold(gold)
    metrics = measure(clusters, rows, set())
    return metrics["cluster_recall"], metrics


def perfect(gold: Path, out: Path) -> None:
    """Flag every row in which something was changed."""
    clusters, _ = _gold(gold)
    lines = [",".join(COLUMNS)]
    lines += sorted({f"{r['table']},{r['_row_id']}" for c in clusters for r in c["rows"] if r["field"]})
    (out / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure(clusters: list[dict[str, Any]], rows: dict[str, int], flagged: set[Row]) -> dict[str, float]:
    """Return the flat metrics of a set of flagged rows."""
    belongs = {_key(row) for cluster in clusters for row in cluster["rows"]}
    useful = flagged & belongs
    outside = len(flagged) - len(useful)
    hits = sum(_is_hit(cluster, flagged) for cluster in clusters)
    recall = _share(hits, len(clusters))
    precision = _share(hits, hits + outside)
    row_precision = _share(len(useful), len(flagged))
    # a hit row may belong to two errors; F1 is of errors, as recall and precision are
    f1 = 0.0 if recall + precision == 0 else 2 * recall * precision / (recall + precision)
    metrics = {
        "cluster_recall": recall,
        "recall": recall,
        "precision": precision,
        "row_precision": row_precision,
        "f1": f1,
        "clusters": float(len(clusters)),
        "clusters_hit": float(hits),
        "flagged_rows": float(len(flagged)),
        "flagged_useful": float(len(useful)),
        "flagged_outside": float(outside),
        "flagged_unknown_table": float(sum(table not in rows for table, _ in flagged)),
        "flagged_malformed_id": float(sum(not _well_formed(name) for _, name in flagged)),
    }
    metrics |= _by("family", clusters, flagged) | _by("subtype", clusters, flagged)
    crude = [cluster for cluster in clusters if cluster["crude"]]
    if crude:
        metrics["crude_subset_recall"] = _share(sum(_is_hit(c, flagged) for c in crude), len(crude))
        fine = [cluster for cluster in clusters if not cluster["crude"]]
        metrics["recall_without_crude"] = _share(sum(_is_hit(c, flagged) for c in fine), len(fine))
    return metrics


def _by(key: str, clusters: Iterable[dict[str, Any]], flagged: set[Row]) -> dict[str, float]:
    """Return recall per family or sub-type."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for cluster in clusters:
        groups[cluster[key]].append(_is_hit(cluster, flagged))
    return {f"recall_{key}_{name}": _share(sum(hits), len(hits)) for name, hits in sorted(groups.items())}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _key(row: dict[str, str]) -> Row:
    return row["table"], row["_row_id"]


def _is_hit(cluster: dict[str, Any], flagged: set[Row]) -> bool:
    return any(_key(row) in flagged for row in cluster["rows"])


def _well_formed(name: str) -> bool:
    return len(name) == 16 and all(letter in "0123456789abcdef" for letter in name)


def _gold(gold: Path) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Read and check ``clusters.json``."""
    document = kit.gold_json(gold / "clusters.json")
    try:
        clusters, rows = list(document["clusters"]), {str(k): int(v) for k, v in document["rows"].items()}
        for cluster in clusters:
            if not cluster["rows"] or not {"id", "family", "subtype", "crude"} <= set(cluster):
                raise GoldError(f"gold clusters.json: cluster {cluster.get('id')} is incomplete")
            if any(row["table"] not in TABLES or not _well_formed(row["_row_id"]) for row in cluster["rows"]):
                raise GoldError(f"gold clusters.json: cluster {cluster['id']} names no row")
            if not any(row["field"] for row in cluster["rows"]):
                raise GoldError(f"gold clusters.json: cluster {cluster['id']} changes nothing")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise GoldError(f"gold clusters.json: {error!r}") from error
    if not clusters:
        raise GoldError("gold clusters.json: no clusters")
    return clusters, rows
