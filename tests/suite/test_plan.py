"""The order in which a plan runs its trials."""

from itertools import groupby

from categories.catalog import select_tasks
from suite.plan import contenders, plan_trials
from suite.request import RunRequest


def test_all_trials_of_a_draw_stand_together_and_draws_of_a_task_too() -> None:
    """Else ten slides would be held at once, or each be made anew for every agent and attempt."""
    tasks = select_tasks(["tumor_area_selection/slide_0*", "ehr_data_quality/combined"])
    agents = contenders(RunRequest(harness=("oracle", "nop", "codex", "claude-code@sonnet"), model=("m", "n")))
    trials = list(plan_trials(tasks, agents, instances=2, attempts=3))
    assert len(agents) == 5
    assert len({trial.trial_id for trial in trials}) == len(trials) == 10 * 5 * 2 * 3
    runs = [(draw, len(list(group))) for draw, group in groupby(trials, lambda trial: (trial.task, trial.instance))]
    assert runs == [((task.id, instance), 15) for task in tasks for instance in (0, 1)]
