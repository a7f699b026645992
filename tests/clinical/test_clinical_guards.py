"""The guards of the synthetic edition, over miniature data of the real sources; and what only real data need."""

import json
import os
from pathlib import Path

import pytest
import shapes
import test_guards as guards
from ehrshot import users_cache

from categories.catalog import find_task, load_catalog
from categories.spec import Category
from categories.staging import StageRequest, staged

CLINICAL = [category.id for category in load_catalog() if "clinical" in category.editions]
LEAST = {"ehr_data_quality": 4, "tumor_area_selection": 1}
"""Draws of a category that are guarded, else two: the others differ by what the synthetic edition tests already."""


def guarded(category: Category) -> list[str]:
    """Return one case of every file format, and the first others until there are enough."""
    own = [case for case, spec in category.cases.items() if not spec.draw_as]
    of_format = {str(category.cases[case].parameters.get("format")): case for case in reversed(own)}
    chosen = list(dict.fromkeys([*of_format.values(), *own]))[: max(LEAST.get(category.id, 2), len(of_format))]
    return [f"{category.id}/{case}" for case in sorted(chosen, key=own.index)]


DRAWS = [task for category in load_catalog() if category.id in CLINICAL for task in guarded(category)]


@pytest.mark.parametrize("task_id", DRAWS)
def test_oracle_earns_1(task_id: str, stage, judge, perfect, tmp_path: Path) -> None:
    guards.test_oracle_earns_1_and_five_verdicts_agree(task_id, stage, judge, perfect, tmp_path)


@pytest.mark.parametrize("task_id", DRAWS)
def test_nop_earns_0(task_id: str, stage, judge, tmp_path: Path) -> None:
    guards.test_nothing_submitted_earns_0_with_the_fixed_metrics(task_id, stage, judge, tmp_path)


@pytest.mark.parametrize(("category_id", "probe"), [case for case in guards.probe_cases() if case[0] in CLINICAL])
def test_probe_earns_0(category_id: str, probe: str, stage, judge, tmp_path: Path) -> None:
    guards.assert_probe_earns_0(category_id, probe, stage, judge, tmp_path, ("0",), "small", 1)


@pytest.mark.parametrize(
    ("category_id", "number", "name"), [case for case in guards.mutation_cases() if case[0] in CLINICAL]
)
def test_mutation_lands_on_the_documented_side(
    category_id: str, number: int, name: str, stage, judge, perfect, tmp_path: Path
) -> None:
    guards.test_mutation_lands_on_the_documented_side(category_id, number, name, stage, judge, perfect, tmp_path)


@pytest.mark.parametrize("name", guards.HOSTILE)
@pytest.mark.parametrize("category_id", CLINICAL)
def test_hostile_submission_earns_0(category_id: str, name: str, stage, judge, tmp_path: Path) -> None:
    guards.test_hostile_submission_earns_0_with_a_reason(category_id, name, stage, judge, tmp_path)


@pytest.mark.parametrize("task_id", DRAWS)
def test_what_the_agent_sees_names_nothing(task_id: str, stage) -> None:
    guards.test_what_the_agent_sees_names_nothing(task_id, lambda task, _: stage(task))


@pytest.mark.parametrize("task_id", DRAWS)
def test_the_layout_is_that_of_the_synthetic_edition(task_id: str, stage) -> None:
    clinical = stage(task_id)
    with staged(StageRequest(find_task(task_id), "0", 0, "small"), users_cache()) as synthetic:
        for part in ("public", "workspace"):
            assert shapes.tree(clinical.folder / part) == shapes.tree(synthetic.folder / part), part
        assert shapes.tree(clinical.gold, depth=1) == shapes.tree(synthetic.gold, depth=1)


@pytest.mark.parametrize("category_id", CLINICAL)
def test_the_same_draw_again_is_the_same_bytes_without_a_network(
    category_id: str, stage, tmp_path, monkeypatch
) -> None:
    task_id = next(task for task in DRAWS if task.startswith(f"{category_id}/"))
    first = stage(task_id)
    monkeypatch.setenv("HAB_SUITE_OFFLINE", "1")
    (tmp_path / "sources").symlink_to(Path(os.environ["HAB_SUITE_CACHE"]) / "sources")
    with staged(StageRequest(find_task(task_id), "0", 0, "small", "clinical"), tmp_path) as again:
        assert again.content_digest == first.content_digest


@pytest.mark.parametrize("category_id", CLINICAL)
def test_another_seed_hides_the_same_records_otherwise(category_id: str, stage) -> None:
    task_id = next(task for task in DRAWS if task.startswith(f"{category_id}/"))
    assert stage(task_id).content_digest != stage(task_id, "another seed").content_digest


@pytest.mark.parametrize("task_id", DRAWS)
def test_real_data_are_their_owners_only_and_no_credential_is_staged(task_id: str, stage, clinic) -> None:
    draw = stage(task_id)
    assert draw.folder.stat().st_mode & 0o077 == 0
    secrets = [os.environ[name].encode() for name in ("HF_TOKEN", "PN_PASS", "REDIVIS_API_TOKEN")]
    for path in draw.folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(secret in content for secret in secrets), path
    assert json.loads((draw.folder / "staged.json").read_text())["about"].split()[3] == "clinical"
