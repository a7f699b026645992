"""The record format: every field with its meaning, its unit, and when it is null.

``run.json`` holds a ``RunPlan``, ``trial.json`` a ``TrialRecord``, ``verdict.json`` a ``Verdict``. Times are UTC with
zone, durations seconds, money USD, sizes in the unit of the field's name.
"""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

SCHEMA_VERSION = 1
"""Raised when a change would break a reader."""


class Frozen(BaseModel):
    """Immutable, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def first_fault(error: ValidationError) -> str:
    """Return the first thing that is wrong with a document, on one line."""
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


class Outcome(StrEnum):
    """How a trial ended. *Pass* is ``passed`` only; *broken* is ``environment_error`` and ``verifier_error``."""

    PASSED = "passed"
    FAILED = "failed"
    AGENT_TIMEOUT = "agent_timeout"
    AGENT_ERROR = "agent_error"
    ENVIRONMENT_ERROR = "environment_error"
    VERIFIER_ERROR = "verifier_error"
    CANCELLED = "cancelled"

    @property
    def broken(self) -> bool:
        """Whether the suite or its surroundings failed, not the agent."""
        return self in (Outcome.ENVIRONMENT_ERROR, Outcome.VERIFIER_ERROR)


class Verdict(Frozen):
    """What a verifier says of a submission."""

    schema_version: int = SCHEMA_VERSION
    reward: Literal[0, 1]
    reason: str
    """``passed``, ``below_threshold`` or the code of the first rule that the submission broke."""
    message: str = ""
    """One sentence for people."""
    headline: float | None
    """The category's headline metric; null where there was nothing to measure."""
    metrics: dict[str, float]
    """Flat, finite numbers; ``published_reward`` is the published rule's reward."""
    details: dict[str, Any] = {}
    """For people: per label, per cluster, per tile. Holds gold, so reports show it only when asked to."""


class Usage(Frozen):
    """Tokens recorded for one model in one trial. Cost is never stored: it is computed from these when reported."""

    model: str
    provider: str = ""
    """The API family: ``openai``, ``anthropic``, ``google``; empty where unknown."""
    requests: int = 0
    input_tokens: int = 0
    """Fresh input: not read from a cache."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    """Includes the reasoning tokens."""
    reasoning_tokens: int = 0


class Phase(Frozen):
    """One phase of a trial."""

    name: Literal["stage", "open_box", "run_agent", "collect", "verify"]
    started_at: datetime
    seconds: float


class Limits(Frozen):
    """The limits in force in the box."""

    cpus: float
    memory_mb: int
    storage_mb: int
    pids: int
    agent_timeout_s: int
    clamped: bool = False
    """Whether they differ from the task's own: the machine is smaller, or the user asked for another time limit. Such
    trials share no table with others."""
    disk: Literal["loop", "helper", "watched", "none"] = "none"
    """How ``storage_mb`` is held: a loop device, one made by a helper container, or by watching and stopping."""


class AgentExit(Frozen):
    """How the agent's process ended."""

    exit_code: int | None
    """Null where it was stopped with the box."""
    timed_out: bool = False
    error_class: str = ""
    """``auth``, ``model``, ``budget``, ``rate_limit``, ``provider``, ``context``, ``crash`` ...; empty on success."""
    message: str = ""
    log_bytes: int = 0
    log_cut: bool = False
    """Whether the log reached its cap and the rest was dropped."""
    oom_killed: bool = False
    peak_memory_mb: float | None = None


class Collected(Frozen):
    """What left the box as the submission."""

    files: int
    bytes: int
    sha256: str
    """Over names and contents; empty where nothing was collected."""
    refused: str = ""
    """The reason code where a rule of the collection was broken (``symlink``, ``too_large`` ...)."""
    message: str = ""


class TrialPlan(Frozen):
    """One line of the plan."""

    trial_id: str
    """``<category>/<case>/i<instance>/<harness>@<model>[@<effort>]/t<attempt>``: also its folder."""
    category: str
    case: str
    instance: int
    harness: str
    model: str
    """``-`` for harnesses that need none."""
    effort: str = ""
    attempt: int

    @property
    def task(self) -> str:
        return f"{self.category}/{self.case}"


class TrialRecord(Frozen):
    """``trial.json``: written last and atomically, never rewritten."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    plan: TrialPlan
    edition: Literal["synthetic", "clinical"]
    scale: Literal["full", "small"]
    seed_fingerprint: str
    task_version: str
    """Digest of the category folder, the verifier and the image lock."""
    content_digest: str = ""
    """Digest of the staged data, gold included; empty where staging failed."""
    harness_version: str = ""
    """Version of the agent CLI; empty for harnesses that are part of the suite."""
    images: dict[str, str] = {}
    """Role (``box``, ``verifier``) -> tag."""
    network: str = "model"
    """The egress policy: ``none``, ``model``, ``packages`` or ``open``."""
    login_in_box: bool = False
    """Whether a subscription login entered the box (only with ``--allow-login-in-box``)."""
    variant: str = ""
    """Set where the data come from a fall-back generator; never pooled with the rest."""
    outcome: Outcome
    reason: str = ""
    """The verdict's reason code, the agent's error class, or the phase that broke."""
    message: str = ""
    reward: Literal[0, 1] | None = None
    """Null where no verdict was reached."""
    headline: float | None = None
    metrics: dict[str, float] = {}
    usage: tuple[Usage, ...] = ()
    """Of all tries together."""
    harness_cost_usd: float | None = None
    """The agent's own figure, kept beside the computed one."""
    phases: tuple[Phase, ...] = ()
    started_at: datetime
    ended_at: datetime
    limits: Limits | None = None
    agent: AgentExit | None = None
    submission: Collected | None = None
    tries: int = 1
    """1 + retries of broken attempts; each kept under ``tries/<n>/``."""
    warnings: tuple[str, ...] = ()

    def seconds(self, phase: str) -> float | None:
        """Return the duration of a phase, or null where it was not reached."""
        return next((p.seconds for p in self.phases if p.name == phase), None)


class Host(Frozen):
    """The machine a run was made on."""

    name: str
    cpus: int
    memory_mb: int
    kernel: str
    engine: str
    """Name and version of the container engine."""
    python: str


class RunPlan(Frozen):
    """``run.json``: what was planned, on what, with which versions; with the journal, all that a report needs."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    created_at: datetime
    suite_version: str
    edition: Literal["synthetic", "clinical"]
    scale: Literal["full", "small"]
    seed_fingerprint: str
    public_seed: bool
    """Whether the seed is the public default, whose answers anybody can draw."""
    network: str
    options: dict[str, str] = {}
    """What the user asked for beyond the selection, as typed (``--command``, ``--max-usd`` ...). Never a key."""
    task_versions: dict[str, str]
    """Task -> version at planning time; ``resume`` refuses the tasks that have changed."""
    titles: dict[str, str] = {}
    """Category -> title, so that a report can be made without the suite's folders."""
    headlines: dict[str, tuple[str, str, float | None]] = {}
    """Category -> (metric, ``higher`` or ``lower``, value of a missing submission)."""
    axes: dict[str, dict[str, str]] = {}
    """Category -> the five axes."""
    templates: dict[str, str] = {}
    """Task -> the task whose draw it shares (clue twins share one); such tasks are one cluster in every interval."""
    trials: tuple[TrialPlan, ...]
    host: Host
    jobs: int


class Event(Frozen):
    """One line of ``events.jsonl``."""

    at: datetime
    kind: Literal[
        "run_started",
        "trial_started",
        "phase_started",
        "trial_retried",
        "trial_cancelled",
        "trial_ended",
        "rescored",
        "brake",
        "run_ended",
    ]
    trial_id: str = ""
    detail: str = ""
    """Phase name, reason of a retry, text of the brake, ``finished`` or ``interrupted``."""
    record: TrialRecord | None = Field(default=None)
    """The whole record (``trial_ended`` and ``rescored``): what reports read."""
