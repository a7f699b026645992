"""The pool: admits trials by what they may use, retries what broke, and stops when it must."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from containers.box import EngineError
from results.records import Event, Outcome, TrialRecord, Usage
from runners.conclusion import broken_record
from runners.errors import CONFIGURATION_CLASSES
from runners.place import Job, Place
from runners.trial import run_trial
from runners.usage import add_up

MAX_TRIES = 3
BRAKE_AFTER = 3
RETRY_WAIT_S = {"rate_limit": (20.0, 60.0), "provider": (10.0, 30.0)}
QUICK_RETRY_S = (0.5, 2.0)
HEARTBEAT_S = 10.0

Kind = Literal[
    "run_started", "trial_started", "phase_started", "trial_retried", "trial_cancelled", "brake", "run_ended"
]
Observer = Callable[[Event], None]
"""Sees every event as it is written to the journal."""


@dataclass(frozen=True)
class Stop:
    """How a run is stopped from outside: first nothing new, then nothing at all."""

    started: threading.Event = field(default_factory=threading.Event)
    """Set once trials run: before that there is nothing to finish, and a signal ends the opening at once."""
    no_more: threading.Event = field(default_factory=threading.Event)
    cancel: threading.Event = field(default_factory=threading.Event)

    def now(self) -> None:
        self.no_more.set()
        self.cancel.set()


@dataclass(frozen=True)
class RunEnd:
    """How a run ended."""

    interrupted: bool
    brakes: tuple[str, ...]
    spent: str = ""
    """Says so where the run's budget was spent before its end."""
    lost: tuple[str, ...] = ()
    """Records that could not be written: what and why. ``resume`` runs these trials again."""


class Budget:
    """The machine's CPUs and memory, lent to trials."""

    def __init__(self, cpus: float, memory_mb: float) -> None:
        self._total = (cpus, memory_mb)
        self._free = [cpus, memory_mb]
        self._lent = 0
        self._changed = threading.Condition()

    def take(self, cpus: float, memory_mb: float, until: threading.Event) -> bool:
        """Wait until there is room (one trial always fits); False when ``until`` is set first."""
        with self._changed:
            while not until.is_set():
                if self._lent == 0 or (cpus <= self._free[0] + 1e-9 and memory_mb <= self._free[1]):
                    self._free[0] -= cpus
                    self._free[1] -= memory_mb
                    self._lent += 1
                    return True
                self._changed.wait(0.2)
        return False

    def give_back(self, cpus: float, memory_mb: float) -> None:
        with self._changed:
            self._free[0] += cpus
            self._free[1] += memory_mb
            self._lent -= 1
            self._changed.notify_all()


class Brake:
    """Stops a harness after three identical configuration errors without a success."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[str, Counter[str]] = {}
        self._worked: set[str] = set()
        self.pulled: dict[str, str] = {}

    def see(self, record: TrialRecord) -> str:
        """Take note of a record; returns the message when this one pulls the brake."""
        name = f"{record.plan.harness}@{record.plan.model}"
        with self._lock:
            if record.outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.AGENT_TIMEOUT):
                self._worked.add(name)
            if record.reason not in CONFIGURATION_CLASSES:
                return ""
            errors = self._errors.setdefault(name, Counter())
            errors[record.reason] += 1
            if errors[record.reason] < BRAKE_AFTER or name in self._worked or name in self.pulled:
                return ""
            self.pulled[name] = (
                f"{name} was stopped after {BRAKE_AFTER} {record.reason} errors and no success: {record.message}"
            )
            return self.pulled[name]

    def holds(self, job: Job) -> bool:
        return f"{job.plan.harness}@{job.plan.model}" in self.pulled


class Pool:
    """Runs jobs in their order on at most ``workers`` threads."""

    def __init__(self, place: Place, *, workers: int, stop: Stop, observer: Observer) -> None:
        self._place = place
        self._workers = workers
        self._stop = stop
        self._observer = observer
        self._budget = Budget(place.machine.cpus, place.machine.memory_mb)
        self._brake = Brake()
        self._spent = ""
        self._lost: list[str] = []

    def run(self, jobs: Sequence[Job]) -> RunEnd:
        """Run all jobs; returns when every one has ended, was cancelled, or was not started any more."""
        self._stop.started.set()
        self.tell("run_started")
        with self._heartbeat(), ThreadPoolExecutor(self._workers, thread_name_prefix="trial") as threads:
            slots = threading.Semaphore(self._workers)
            futures: list[Future[None]] = []
            for job in jobs:
                if not self._admit(job, slots):
                    continue
                futures.append(threads.submit(self._serve, job, slots))
            for future in futures:
                future.result()
        interrupted = self._stop.no_more.is_set()
        self.tell("run_ended", detail="interrupted" if interrupted else "finished")
        return RunEnd(
            interrupted=interrupted,
            brakes=tuple(self._brake.pulled.values()),
            spent=self._spent,
            lost=tuple(self._lost),
        )

    def tell(self, kind: Kind, trial_id: str = "", detail: str = "") -> None:
        """Write an event to the journal and show it to the observer."""
        event = Event(at=datetime.now(UTC), kind=kind, trial_id=trial_id, detail=detail)
        self._place.folder.append(event)
        self._show(event)

    def _show(self, event: Event) -> None:
        with contextlib.suppress(Exception):  # a closed terminal must not cost a verdict
            self._observer(event)

    def _admit(self, job: Job, slots: threading.Semaphore) -> bool:
        while not self._stop.no_more.is_set():
            if self._held(job):
                return False
            if slots.acquire(timeout=0.2):
                # the trial that gave its slot back may have pulled the brake
                if not self._held(job) and self._budget.take(job.limits.cpus, job.limits.memory_mb, self._stop.no_more):
                    return True
                slots.release()
        return False

    def _held(self, job: Job) -> bool:
        return self._brake.holds(job) or bool(self._spent and job.harness.needs_model)

    def _serve(self, job: Job, slots: threading.Semaphore) -> None:
        try:
            self._try_up_to_limit(job)
        except Exception as error:  # noqa: BLE001 (one trial's fault must not end the others)
            self._lost.append(f"{job.plan.trial_id}: {type(error).__name__}: {error}")
        finally:
            self._budget.give_back(job.limits.cpus, job.limits.memory_mb)
            slots.release()

    def _try_up_to_limit(self, job: Job) -> None:
        trial_id = job.plan.trial_id
        self.tell("trial_started", trial_id)
        spent: tuple[Usage, ...] = ()
        for number in range(1, MAX_TRIES + 1):
            record = self._try(job)
            spent += record.usage
            if record.outcome is Outcome.CANCELLED:
                self.tell("trial_cancelled", trial_id)
                return
            if not record.outcome.broken or number == MAX_TRIES:
                self._close(record.model_copy(update={"tries": number, "usage": add_up(spent)}))
                return
            self._place.folder.trial(job.plan).write_try(record)
            self.tell("trial_retried", trial_id, record.message.splitlines()[0] if record.message else record.reason)
            if self._stop.no_more.wait(RETRY_WAIT_S.get(record.reason, QUICK_RETRY_S)[number - 1]):
                self.tell("trial_cancelled", trial_id)
                return

    def _try(self, job: Job) -> TrialRecord:
        trial_id = job.plan.trial_id
        try:
            return run_trial(
                self._place, job, self._stop.cancel, lambda phase: self.tell("phase_started", trial_id, phase)
            )
        except Exception as error:  # noqa: BLE001 (the orchestrator's own fault: broken, not failed)
            return broken_record(self._place, job, error)

    def _close(self, record: TrialRecord) -> None:
        self._place.folder.finish(record)
        self._show(Event(at=datetime.now(UTC), kind="trial_ended", trial_id=record.plan.trial_id, record=record))
        if message := self._brake.see(record) or self._see_budget(record):
            self.tell("brake", detail=message)

    def _see_budget(self, record: TrialRecord) -> str:
        """Start no further trials that ask a model once the run's budget is spent."""
        limit = float(self._place.plan.options.get("max_usd", "inf"))
        gateway = self._place.gateway
        if record.reason != "budget" or gateway is None or self._spent or gateway.spent_usd < limit:
            return ""
        self._spent = f"the budget of --max-usd {limit:g} is spent (${gateway.spent_usd:.2f}); nothing more is started"
        return self._spent

    @contextlib.contextmanager
    def _heartbeat(self) -> Iterator[None]:
        """Keep the gateway alive: it refuses everything once the orchestrator is gone."""
        gateway = self._place.gateway
        over = threading.Event()

        def beat() -> None:
            while gateway is not None and not over.wait(HEARTBEAT_S):
                with contextlib.suppress(EngineError):  # trials say it when the gateway is gone
                    gateway.heartbeat()

        thread = threading.Thread(target=beat, daemon=True, name="heartbeat")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=HEARTBEAT_S)
