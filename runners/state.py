"""The state of one trial, passed from phase to phase and read by the conclusion."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

from categories.staging import Staged
from containers.box import Box, Finished
from containers.disk import Disk
from containers.door import Door, DoorReport
from results.records import AgentExit, Collected, Phase, Usage, Verdict
from runners.harness import AgentFailedError, Reading
from runners.place import Job, Place
from runners.verify import VerifierBox
from runners.watchdog import Watchdog

Notice = Callable[[str], None]
"""Told the name of each phase as it begins."""


class Trial:
    """The state that the phases pass on."""

    def __init__(self, place: Place, job: Job, cancel: threading.Event, notice: Notice) -> None:
        self.place = place
        self.job = job
        self.cancel = cancel
        self.notice = notice
        self.folder = place.folder.trial(job.plan)
        self.stack = ExitStack()
        self.started_at = datetime.now(UTC)
        self.phases: list[Phase] = []
        self.warnings: list[str] = []
        self.staged: Staged | None = None
        self.disk: Disk | None = None
        self.box: Box | None = None
        self.door: Door | None = None
        self.door_report: DoorReport | None = None
        self.usage: tuple[Usage, ...] = ()
        self.finished: Finished | None = None
        self.dog: Watchdog | None = None
        self.stopped_for = ""
        self.agent_error: AgentFailedError | None = None
        self.exit: AgentExit | None = None
        self.reading = Reading()
        self.collected: Collected | None = None
        self.verdict: Verdict | None = None
        self.broken_phase = ""
        self.broken_message = ""

    def at_end(self, what: str, do: Callable[[], object]) -> None:
        """Clean up when the trial ends; a fault there is a warning and keeps nothing else from being cleaned up."""

        def guarded() -> None:
            try:
                do()
            except Exception as error:  # noqa: BLE001 (the verdict is not lost for a mess)
                self.warnings.append(f"{what} could not be cleaned up: {error}")

        self.stack.callback(guarded)

    def disk_is_full(self) -> None:
        """Stop the box: called for a disk whose limit is only watched."""
        if self.dog is not None:
            self.dog.bark("disk", "the disk grew beyond its limit")

    @property
    def verifier_box(self) -> VerifierBox:
        image = self.place.verifier_images[self.job.plan.category]
        return VerifierBox(self.place.engine, image, dict(self.place.labels))
