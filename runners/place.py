"""What all trials of a run share, and what one trial is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from categories.spec import Resources, Task
from containers.box import Engine, EngineInfo, Mount
from containers.disk import Disk
from containers.door import Gateway
from results.folder import RunFolder
from results.records import Limits, RunPlan, TrialPlan
from runners.cache import Cache
from runners.harness import Harness, HarnessOptions
from runners.keys import AsksModel

MEMORY_RESERVE_MB = 512
"""Left to the host when a task asks for more memory than the machine has."""


class DiskMaker(Protocol):
    """Makes the size-limited disk of a box."""

    def __call__(self, folder: Path, size_mb: int, uid: int, gid: int, *, over: Callable[[], None]) -> Disk: ...


@dataclass(frozen=True)
class InstalledAgent:
    """An agent CLI on this machine."""

    version: str
    mount: Mount


@dataclass(frozen=True)
class Place:
    """What all trials of a run share."""

    engine: Engine
    machine: EngineInfo
    cache: Cache
    folder: RunFolder
    plan: RunPlan
    seed: str
    mounts: Path
    """``<cache>/mnt/<run id>/``: disks, doors and data links; held by the run's lease."""
    labels: Mapping[str, str]
    make_disk: DiskMaker
    box_images: Mapping[str, str]
    """Task -> tag of its image."""
    verifier_images: Mapping[str, str]
    """Category -> tag of its verifier's image."""
    agents: Mapping[str, InstalledAgent] = field(default_factory=dict)
    gateway: Gateway | None = None
    """Null where no harness of the run needs a model."""
    logins: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Provider -> the token that its CLI needs in the box; see ``runners.keys.BoxLogin``."""

    def login_of(self, harness: Harness) -> str:
        """Return the token that enters the box of this harness; empty for nearly all."""
        return self.logins.get(harness.provider, "") if isinstance(harness, AsksModel) else ""


@dataclass(frozen=True)
class Job:
    """One trial to be run."""

    plan: TrialPlan
    task: Task
    harness: Harness
    options: HarnessOptions
    harness_version: str
    """Version of the agent CLI; empty for harnesses that are part of the suite."""
    resources: Resources
    """Under the limits in force on this machine."""
    limits: Limits


def clamp(resources: Resources, machine: EngineInfo, timeout_s: int | None = None) -> tuple[Resources, Limits]:
    """Return the limits in force: on a machine that may be smaller than the task asks for, in a time of the user's."""
    cpus = min(resources.cpus, machine.cpus)
    memory_mb = min(resources.memory_mb, max(machine.memory_mb - MEMORY_RESERVE_MB, 64))
    fitted = resources.model_copy(
        update={"cpus": cpus, "memory_mb": memory_mb, "agent_timeout_s": timeout_s or resources.agent_timeout_s}
    )
    limits = Limits(
        cpus=cpus,
        memory_mb=memory_mb,
        storage_mb=resources.storage_mb,
        pids=resources.pids,
        agent_timeout_s=fitted.agent_timeout_s,
        clamped=fitted != resources,
    )
    return fitted, limits
