import json
from pathlib import Path

import pytest

from verifiers_hidden import ehr_data_quality as verifier
from verifiers_hidden.kit import GoldError, Reason, Refused

RULE = {"recall": 1.0, "precision": 0.3, "published_recall": 1.0, "published_precision": 0.01}


def row(number: int, table: str = "labevents", field: str = "valuenum") -> dict:
    return {"table": table, "_row_id": f"{number:016x}", "field": field, "original": "1", "corrupted": "10"}


def write_gold(folder: Path, clusters: list[list[dict]], crude: int = 0) -> Path:
    document = {
        "rows": {"labevents": 100, "patients": 10},
        "clusters": [
            {"id": f"c{i}", "family": "f", "subtype": f"s{i % 2}", "crude": i < crude, "rows": rows}
            for i, rows in enumerate(clusters)
        ],
    }
    folder.mkdir(exist_ok=True)
    (folder / "clusters.json").write_text(json.dumps(document))
    return folder


def judged(tmp_path: Path, gold: Path, flagged: list[tuple[str, int]]):
    text = "table,_row_id\n" + "".join(f"{table},{number:016x}\n" for table, number in flagged)
    (tmp_path / "flagged_rows.csv").write_text(text)
    return verifier.judge(tmp_path, gold, RULE)


def test_wide_clusters_count_once_and_their_rows_are_not_held_against_the_auditor(tmp_path: Path) -> None:
    wide = [row(0, "patients"), *(row(i, field="") for i in range(50))]
    gold = write_gold(tmp_path / "gold", [wide, [row(90)]])
    verdict = judged(tmp_path, gold, [("labevents", i) for i in range(50)] + [("labevents", 90), ("labevents", 95)])
    assert verdict.metrics["clusters_hit"] == 2
    assert verdict.metrics["precision"] == pytest.approx(2 / 3)
    assert verdict.metrics["row_precision"] == pytest.approx(51 / 52)
    assert verdict.reward == 1


def test_flagging_all_patients_fails_the_floor_though_the_published_rule_passes(tmp_path: Path) -> None:
    gold = write_gold(tmp_path / "gold", [[row(i, "patients")] for i in range(7)])
    verdict = judged(tmp_path, gold, [("patients", i) for i in range(100)])
    assert verdict.metrics["recall"] == 1
    assert verdict.metrics["precision"] == pytest.approx(0.07)
    assert (verdict.reward, verdict.reason) == (0, Reason.BELOW_THRESHOLD)
    assert verdict.metrics["published_reward"] == 1


def test_unknown_ids_and_tables_count_as_flagged_and_duplicates_collapse(tmp_path: Path) -> None:
    gold = write_gold(tmp_path / "gold", [[row(1)]])
    verdict = judged(tmp_path, gold, [("labevents", 1)] * 5 + [("nowhere", 1), ("labevents", 77)])
    assert verdict.metrics["flagged_rows"] == 3
    assert verdict.metrics["flagged_outside"] == 2
    assert verdict.metrics["flagged_unknown_table"] == 1
    assert verdict.metrics["precision"] == pytest.approx(1 / 3)


def test_crude_subset_and_subtypes_are_reported_apart(tmp_path: Path) -> None:
    gold = write_gold(tmp_path / "gold", [[row(1)], [row(2)], [row(3)]], crude=1)
    metrics = judged(tmp_path, gold, [("labevents", 1), ("labevents", 2)]).metrics
    assert metrics["crude_subset_recall"] == 1
    assert metrics["recall_without_crude"] == 0.5
    assert metrics["recall_subtype_s0"] == 0.5
    assert metrics["recall_subtype_s1"] == 1


def test_missing_submission_has_every_metric_at_zero(tmp_path: Path) -> None:
    gold = write_gold(tmp_path / "gold", [[row(1)]])
    headline, metrics = verifier.missing(gold)
    assert headline == 0
    assert metrics["f1"] == metrics["recall"] == metrics["precision"] == 0
    with pytest.raises(Refused):
        verifier.judge(tmp_path / "gold" / "none", gold, RULE)


@pytest.mark.parametrize(
    "damage",
    [
        lambda g: (g / "clusters.json").unlink(),
        lambda g: (g / "clusters.json").write_text("{"),
        lambda g: (g / "clusters.json").write_text("[]"),
        lambda g: (g / "clusters.json").write_text('{"rows": {}, "clusters": []}'),
        lambda g: write_gold(g, [[]]),
        lambda g: write_gold(g, [[row(1, field="")]]),
        lambda g: write_gold(g, [[row(1, table="elsewhere")]]),
    ],
)
def test_damaged_gold_is_no_verdict(tmp_path: Path, damage) -> None:
    gold = write_gold(tmp_path / "gold", [[row(1)]])
    damage(gold)
    (tmp_path / "flagged_rows.csv").write_text("table,_row_id\nlabevents,1\n")
    with pytest.raises(GoldError):
        verifier.judge(tmp_path, gold, RULE)
