"""From what happened in the phases to the one record of a trial."""

from datetime import UTC, datetime
from typing import Any

from results.records import AgentExit, Collected, Outcome, TrialPlan, TrialRecord
from runners.errors import ENVIRONMENT_CLASSES, settle
from runners.place import Job, Place
from runners.state import Trial
from runners.text import clean


def conclude(trial: Trial) -> TrialRecord:
    """Return the record; the outcome is decided here and nowhere else."""
    outcome, reason, message = _outcome(trial)
    place, plan, verdict, staged = trial.place, trial.job.plan, trial.verdict, trial.staged
    disk = trial.disk.mode if trial.disk else "none"
    return TrialRecord(
        **_planned(place, plan),
        content_digest=staged.content_digest if staged else "",
        harness_version=trial.job.harness_version,
        images={"box": place.box_images[plan.task], "verifier": place.verifier_images[plan.category]},
        network=_network(trial),
        login_in_box=bool(place.login_of(trial.job.harness)),
        variant=staged.variant if staged else "",
        outcome=outcome,
        reason=clean(reason),
        message=clean(message),
        reward=verdict.reward if verdict else None,
        headline=verdict.headline if verdict else None,
        metrics=verdict.metrics if verdict else {},
        usage=tuple(usage.model_copy(update={"model": clean(usage.model)}) for usage in trial.usage),
        harness_cost_usd=trial.reading.cost_usd,
        phases=tuple(trial.phases),
        started_at=trial.started_at,
        ended_at=datetime.now(UTC),
        limits=trial.job.limits.model_copy(update={"disk": disk}),
        agent=_agent_exit(trial),
        submission=_collected(trial),
        warnings=tuple(clean(warning) for warning in trial.warnings),
    )


def _planned(place: Place, trial: TrialPlan) -> dict[str, Any]:
    """Return the fields of a record that its run's plan decides."""
    run = place.plan
    return {
        "run_id": run.run_id,
        "plan": trial,
        "edition": run.edition,
        "scale": run.scale,
        "seed_fingerprint": run.seed_fingerprint,
        "task_version": run.task_versions[trial.task],
    }


def _collected(trial: Trial) -> Collected | None:
    """Return what was collected; its message names files, and an agent chooses their names."""
    found = trial.collected
    return found and found.model_copy(update={"message": clean(found.message)})


def _network(trial: Trial) -> str:
    """Return the egress policy that held: without a model to ask a box has no way out unless it is open."""
    policy = trial.place.plan.network
    return policy if trial.job.harness.needs_model or policy == "open" else "none"


def _agent_exit(trial: Trial) -> AgentExit | None:
    if trial.exit is None:
        return None
    error_class, message = _agent_error(trial)
    said = clean(message or trial.exit.message)
    return trial.exit.model_copy(update={"error_class": error_class, "message": said})


def _agent_error(trial: Trial) -> tuple[str, str]:
    """What the logs say counts before what the exit status says, and the gateway's word before both: it knows why."""
    if trial.stopped_for in ("timeout", "cancelled"):
        return "", ""
    if trial.stopped_for:
        return trial.stopped_for, trial.exit.message if trial.exit else ""
    error_class, message = trial.reading.error_class, trial.reading.message
    if not error_class and trial.agent_error is not None:
        error_class, message = trial.agent_error.error_class, str(trial.agent_error)
    return settle(error_class, message, trial.door_report)


def _outcome(trial: Trial) -> tuple[Outcome, str, str]:
    if trial.stopped_for == "cancelled" or (trial.cancel.is_set() and trial.finished is None):
        return Outcome.CANCELLED, "cancelled", "the run was stopped before the trial ended"
    if trial.broken_phase == "verify":
        return Outcome.VERIFIER_ERROR, "verify", trial.broken_message
    if trial.broken_phase:
        return Outcome.ENVIRONMENT_ERROR, trial.broken_phase, trial.broken_message
    if trial.stopped_for == "timeout":
        return Outcome.AGENT_TIMEOUT, "timeout", trial.exit.message if trial.exit else ""
    error_class, message = _agent_error(trial)
    if error_class:
        outcome = Outcome.ENVIRONMENT_ERROR if error_class in ENVIRONMENT_CLASSES else Outcome.AGENT_ERROR
        return outcome, error_class, message
    assert trial.verdict is not None
    outcome = Outcome.PASSED if trial.verdict.reward == 1 else Outcome.FAILED
    return outcome, trial.verdict.reason, trial.verdict.message


def broken_record(place: Place, job: Job, error: Exception) -> TrialRecord:
    """Return the record of a try that ended in a fault of the orchestrator itself."""
    now = datetime.now(UTC)
    return TrialRecord(
        **_planned(place, job.plan),
        outcome=Outcome.ENVIRONMENT_ERROR,
        reason="orchestrator",
        message=clean(f"{type(error).__name__}: {error}"),
        started_at=now,
        ended_at=now,
        limits=job.limits,
    )
