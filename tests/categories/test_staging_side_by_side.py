"""``--jobs`` moves no byte: draws made beside one another are the draws made alone."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from categories.catalog import find_task
from categories.staging import StageRequest, staged

PAIRS = {
    "plain": ("ehr_data_quality/impossible_value", "ehr_data_quality/combined"),
    "with threads of their own": ("ct_abnormality/scan_01", "xray_report_correction/case_01"),
}


def made(task_id: str, cache: Path) -> str:
    with staged(StageRequest(find_task(task_id), "side by side", 0, "small"), cache) as draw:
        return draw.content_digest


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_draws_made_beside_one_another_are_the_draws_made_alone(pair: tuple[str, str], tmp_path: Path) -> None:
    alone = [made(task_id, tmp_path / "alone") for task_id in pair]
    assert alone[0] != alone[1]
    with ThreadPoolExecutor(3) as threads:
        asked = (*pair, pair[0])  # the third waits for the first
        beside = list(threads.map(made, asked, [tmp_path / "beside"] * 3))
    assert beside == [*alone, alone[0]]
