"""Makes run folders with plausible records: the published categories, rates, costs and durations, seeded."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from results.folder import RunFolder
from results.records import (
    AgentExit,
    Collected,
    Event,
    Host,
    Limits,
    Outcome,
    Phase,
    RunPlan,
    TrialPlan,
    TrialRecord,
    Usage,
)

START = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
CATEGORIES = {
    # category: (tasks, success rate, metric, better, value of a missing submission)
    "xray_report_correction": (10, 0.33, "significant_errors", "lower", None),
    "tumor_area_selection": (10, 0.40, "tile_f1", "higher", 0.0),
    "ct_abnormality": (10, 0.33, "accuracy", "higher", 0.0),
    "clinical_trial_matching": (9, 0.52, "recall_at_50", "higher", 0.0),
    "ehr_data_quality": (8, 0.30, "cluster_recall", "higher", 0.0),
    "ehr_event_modelling": (6, 0.72, "auroc", "higher", 0.5),
    "ehr_format_conversion": (1, 0.90, "checks_passed", "higher", 0.0),
}
AGENTS = (("codex", "gpt-5.4", "high", 0.05), ("claude-code", "claude-opus-4-5", "", 0.0), ("nop", "-", "", -1.0))
LIMITS = Limits(cpus=2, memory_mb=8192, storage_mb=10240, pids=512, agent_timeout_s=3600)


def agent_id(harness: str, model: str, effort: str) -> str:
    return f"{harness}@{model}" + (f"@{effort}" if effort else "")


def trial_plans(agents=AGENTS, instances=1, attempts=3, categories=CATEGORIES) -> tuple[TrialPlan, ...]:
    return tuple(
        TrialPlan(
            trial_id=f"{category}/case-{case:02d}/i{instance}/{agent_id(*agent[:3])}/t{attempt}",
            category=category,
            case=f"case-{case:02d}",
            instance=instance,
            harness=agent[0],
            model=agent[1],
            effort=agent[2],
            attempt=attempt,
        )
        for category, (tasks, *_) in categories.items()
        for case in range(tasks)
        for instance in range(instances)
        for agent in agents
        for attempt in range(1, attempts + 1)
    )


def run_plan(trials: tuple[TrialPlan, ...], run_id="20260701-120000-sim", **changes) -> RunPlan:
    values = {
        "run_id": run_id,
        "created_at": START,
        "suite_version": "0.1.0",
        "edition": "synthetic",
        "scale": "full",
        "seed_fingerprint": "0000feed",
        "public_seed": True,
        "network": "model",
        "task_versions": {trial.task: "v1" for trial in trials},
        "titles": {c: c.replace("_", " ").capitalize() for c in CATEGORIES},
        "headlines": {c: (metric, better, missing) for c, (_, _, metric, better, missing) in CATEGORIES.items()},
        "axes": {c: {"modality": "imaging" if c[0] in "xtc" and "trial" not in c else "records"} for c in CATEGORIES},
        "trials": trials,
        "host": Host(name="host", cpus=8, memory_mb=65536, kernel="6.1", engine="docker 27", python="3.11"),
        "jobs": 4,
    }
    return RunPlan(**(values | changes))


def record(plan: RunPlan, trial: TrialPlan, outcome: Outcome, rng: random.Random, **changes) -> TrialRecord:
    minutes = rng.lognormvariate(2.3, 0.6) if trial.harness != "nop" else 0.01
    phases, at = [], START + timedelta(seconds=rng.randrange(100_000))
    started = at
    for name, seconds in zip(
        ("stage", "open_box", "run_agent", "collect", "verify"), (2, 3, minutes * 60, 1, 4), strict=True
    ):
        phases.append(Phase(name=name, started_at=at, seconds=round(seconds, 3)))
        at += timedelta(seconds=seconds)
    passed, judged = outcome is Outcome.PASSED, not outcome.broken and outcome is not Outcome.CANCELLED
    scale = rng.lognormvariate(0, 0.5)
    usage = Usage(
        model=trial.model,
        provider="openai" if trial.harness == "codex" else "anthropic",
        requests=40,
        input_tokens=int(60_000 * scale),
        cache_read_tokens=int(1_500_000 * scale),
        cache_write_tokens=int(80_000 * scale) if trial.harness == "claude-code" else 0,
        output_tokens=int(20_000 * scale),
        reasoning_tokens=int(12_000 * scale),
    )
    values = {
        "run_id": plan.run_id,
        "plan": trial,
        "edition": plan.edition,
        "scale": plan.scale,
        "seed_fingerprint": plan.seed_fingerprint,
        "task_version": plan.task_versions[trial.task],
        "content_digest": "c0ffee",
        "harness_version": "1.2.3",
        "images": {"box": "hab/tabular:1", "verifier": "hab/verifier:1"},
        "outcome": outcome,
        "reason": "passed" if passed else ("below_threshold" if outcome is Outcome.FAILED else "docker"),
        "reward": int(passed) if judged else None,
        "headline": (1.0 if passed else round(rng.random() * 0.9, 3)) if judged else None,
        "metrics": {"published_reward": float(passed), "n_files": 1.0} if judged else {},
        "usage": (usage,) if trial.harness != "nop" else (),
        "phases": tuple(phases),
        "started_at": started,
        "ended_at": at,
        "limits": LIMITS,
        "agent": AgentExit(exit_code=0, timed_out=outcome is Outcome.AGENT_TIMEOUT, peak_memory_mb=900.5),
        "submission": Collected(files=1, bytes=100, sha256="ab" * 32),
    }
    return TrialRecord(**(values | changes))


def outcome_of(trial: TrialPlan, skill: float, difficulty: dict[str, float], rng: random.Random) -> Outcome:
    """Task difficulty is drawn once per task and instance, so that trials of a task hang together (ICC about 0.45)."""
    key = f"{trial.task}/{trial.instance}"
    rate = CATEGORIES[trial.category][1]
    if key not in difficulty:
        difficulty[key] = rng.betavariate(rate * 1.2, (1 - rate) * 1.2)
    if rng.random() < 0.01:
        return Outcome.ENVIRONMENT_ERROR
    if rng.random() < difficulty[key] + skill:
        return Outcome.PASSED
    return Outcome.AGENT_TIMEOUT if rng.random() < 0.1 else Outcome.FAILED


def simulate(
    path: Path, agents=AGENTS, instances=1, attempts=3, seed=0, durable=True, categories=CATEGORIES, **changes
) -> RunFolder:
    """Write a whole run. ``durable=False`` writes the journal in one go and no trial folders: for 100,000 trials."""
    rng = random.Random(seed)
    plan = run_plan(trial_plans(agents, instances, attempts, categories), run_id=path.name, **changes)
    folder = RunFolder.create(path, plan, "0")
    skill = {agent_id(*agent[:3]): agent[3] for agent in agents}
    difficulty: dict[str, float] = {}
    lines = []
    for trial in plan.trials:
        outcome = outcome_of(trial, skill[agent_id(trial.harness, trial.model, trial.effort)], difficulty, rng)
        made = record(plan, trial, outcome, rng)
        if durable:
            folder.finish(made)
        else:
            event = Event(at=made.ended_at, kind="trial_ended", trial_id=trial.trial_id, record=made)
            lines.append(event.model_dump_json() + "\n")
    if lines:
        folder.events_file.write_text("".join(lines), encoding="utf-8")
    return folder
