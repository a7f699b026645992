"""What harnesses without a model share."""

from pathlib import Path
from typing import ClassVar

from containers.box import Finished
from runners.harness import AgentFailedError, HarnessOptions, Reading


class PlainHarness:
    """No model, no agent CLI, nothing to read from the logs."""

    needs_model: ClassVar[bool] = False
    agent: ClassVar[str] = ""
    keep: ClassVar[tuple[str, ...]] = ()

    def __init__(self, options: HarnessOptions) -> None:
        self.options = options

    def read(self, logs: Path, finished: Finished | None) -> Reading:  # noqa: ARG002 (the protocol's)
        return Reading()


def completed(finished: Finished, what: str) -> Finished:
    """Return ``finished`` where the command succeeded or was stopped with the box.

    Raises:
        AgentFailedError: it ended by itself with another status than 0.
    """
    if finished.exit_code not in (0, None):
        raise AgentFailedError("crash", f"{what} ended with status {finished.exit_code}")
    return finished
