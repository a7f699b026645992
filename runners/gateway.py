"""The gateway of a run: which endpoints, which keys, which limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from containers.box import Engine
from containers.door import Gateway
from containers.lease import RunLease
from results.folder import RunFolder
from results.records import RunPlan
from runners.cache import Cache
from runners.harness import Harness


@dataclass(frozen=True)
class GatewayOptions:
    key_file: Path | None


def gateway_options(plan: RunPlan, key_file: Path | None) -> GatewayOptions:
    return GatewayOptions(key_file)


def start_gateway(
    options: GatewayOptions,
    engine: Engine,
    folder: RunFolder,
    lease: RunLease,
    harnesses: Sequence[Harness],
    cache: Cache,
    say: Callable[[str], None],
) -> Gateway | None:
    return None
