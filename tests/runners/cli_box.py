"""A real agent CLI in a real box without a network, behind the real gateway, against the stub model.

A small driver for what a trial does between ``open_box`` and ``collect``; whole trials are tested end to end elsewhere.
"""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from containers import agents
from containers.box import LABEL, BoxLimits, BoxSpec, Engine, Finished, Mount
from containers.docker_engine import DockerEngine
from containers.door import Door, DoorReport, Gateway
from containers.endpoints import GatewaySettings, Upstream
from containers.images import ensure_base, ensure_image
from runners.agent_log import AgentLog
from runners.archive import keep_files
from runners.cache import default_cache
from runners.errors import settle
from runners.harness import HarnessOptions, Reading, Seat, load_harness
from runners.scene import BOX_ENV, HOME, write_as_agent
from runners.watchdog import Watchdog
from tests.stub_model.script import Script
from tests.stub_model.server import Request, StubModel

CANARIES = {
    "openai": "canary-openai-7f31",
    "anthropic": "canary-anthropic-5d02",
    "google": "canary-google-c9e4",
}
AUTHS = {"openai": "bearer", "anthropic": "x-api-key", "google": "x-goog-api-key"}
MODELS = {
    "codex": "gpt-5.5",
    "claude-code": "claude-sonnet-5",
    "copilot-cli": "gpt-5.4",
    "gemini-cli": "gemini-2.5-pro",
    "opencode": "gpt-5.4",
}
LABELS = {LABEL: "test", f"{LABEL}.purpose": "cli-box"}


def upstreams(stub: StubModel) -> tuple[Upstream, ...]:
    """The stub as every provider."""
    return tuple(
        Upstream(
            name,
            name,
            stub.url + ("/v1" if name == "openai" else ""),
            AUTHS[name],
            key,
            source=f"CANARY_{name.upper()}",
        )
        for name, key in CANARIES.items()
    )


@dataclass
class Stage:
    """What several drives share: an engine, images, agents in a cache."""

    engine: Engine
    base: str
    gateway_image: str
    cache: Path
    folder: Path

    @contextmanager
    def gateway(self, stub: StubModel, **settings: Any) -> Iterator[Gateway]:
        folder = self.folder / secrets.token_hex(4)
        folder.mkdir()
        made = Gateway(
            self.engine,
            image=self.gateway_image,
            folder=folder / "doors",
            journal=folder / "gateway.jsonl",
            labels=LABELS,
            settings=GatewaySettings(upstreams(stub), **settings),
        )
        made.start()
        over = threading.Event()
        beating = threading.Thread(target=lambda: [made.heartbeat() for _ in iter(lambda: over.wait(5), True)])
        beating.start()
        try:
            yield made
        finally:
            over.set()
            beating.join()
            made.stop()


def make_stage(folder: Path) -> Stage:
    """Everything from this machine's cache; what is missing there is built and fetched."""
    cache = default_cache()
    cache.locks.mkdir(parents=True, exist_ok=True)
    engine = DockerEngine()
    images = ensure_base(engine, cache.locks), ensure_image(engine, "gateway", {}, cache.locks)
    return Stage(engine, *images, cache.root, folder)


@dataclass
class Driven:
    """How a drive went."""

    finished: Finished
    stopped_for: str
    reading: Reading
    report: DoorReport
    requests: list[Request]
    logs: Path
    workspace: Path
    seconds: float
    first_request_s: float | None
    warnings: list[str] = field(default_factory=list)

    @property
    def ended(self) -> tuple[str, str]:
        """Class and message, as a trial would record them."""
        return settle(self.reading.error_class, self.reading.message, self.report)


def drive(stage: Stage, name: str, script: Script, **more: Any) -> Driven:
    """Drive one CLI through a script."""
    return drive_with(stage, name, lambda _: script, **more)


def drive_with(
    stage: Stage,
    name: str,
    make_script: Callable[[StubModel], Script],
    *,
    model: str = "",
    effort: str = "",
    extra: dict[str, str] | None = None,
    limit_s: float = 120,
    workspace: dict[str, str] | None = None,
    instruction: str = "Write 42 into /workspace/answer.txt.",
    unreachable: bool = False,
    **settings: Any,
) -> Driven:
    """Drive one CLI through a script that may name the stub's address."""
    options = HarnessOptions(model=model or MODELS[name], effort=effort, extra={"retries": "1", **(extra or {})})
    with StubModel(Script(())) as stub:
        stub.script = make_script(stub)
        with stage.gateway(stub, **settings) as gateway:
            if unreachable:
                stub.close()
            door = gateway.open_door(f"test/{name}")
            return drive_door(stage, name, options, stub, gateway, door, limit_s, workspace or {}, instruction)


def drive_door(
    stage: Stage,
    name: str,
    options: HarnessOptions,
    stub: StubModel,
    gateway: Gateway,
    door: Door,
    limit_s: float,
    workspace: dict[str, str],
    instruction: str,
) -> Driven:
    harness = load_harness(name, options)
    disk, logs = stage.folder / secrets.token_hex(4), stage.folder / secrets.token_hex(4)
    logs.mkdir()
    for folder in ("workspace", "home", "tmp"):
        (disk / folder).mkdir(parents=True)
        os.chown(disk / folder, 1000, 1000)
    for path, text in workspace.items():
        file = disk / "workspace" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    mounts = [Mount(disk / inner, outer, read_only=False) for outer, inner in ON_DISK.items()]
    began, wall = time.monotonic(), time.time()
    spec = BoxSpec(
        image=stage.base,
        command=("sleep", "600"),
        user="1000:1000",
        limits=BoxLimits(cpus=2, memory_mb=1024, pids=256),
        mounts=(*mounts, door.mount, agents.mount(harness.agent, installed(stage, harness.agent))),
        env=BOX_ENV | door.env,
        labels=LABELS,
        workdir="/workspace",
    )
    box = stage.engine.open(spec)
    try:
        assert box.exec(door.forwarder).exit_code == 0
        with AgentLog(logs) as log, Watchdog(box.stop, limit_s=limit_s, cancel=threading.Event()) as dog:
            seat = Seat(
                box=box,
                task=None,
                instruction=instruction,
                options=options,
                logs=logs,
                endpoint=door.endpoint,
                exec=lambda argv, env=None, stdin=b"": box.exec(
                    argv, env=env, stdin=stdin, sink=log.sink, workdir="/workspace"
                ),
                put=lambda files: [write_as_agent(disk, Path(path), data) for path, data in files.items()],
                login="",
                perfect=lambda: None,
            )
            finished = harness.drive(seat)
        seconds = time.monotonic() - began
        box.stop()
        warnings = []
        for path in harness.keep:
            kept = logs / "kept" / path.removeprefix("~/").lstrip("/")
            warnings += keep_files(box, path.replace("~", HOME, 1), kept)
        reading = harness.read(logs, None if dog.reason else finished)
        report = gateway.close_door(door)
    finally:
        box.remove()
    asked = [request for request in stub.requests if request.method == "POST"]
    first = asked[0].at - wall if asked else None
    return Driven(finished, dog.reason, reading, report, asked, logs, disk / "workspace", seconds, first, warnings)


ON_DISK = {"/workspace": "workspace", HOME: "home", "/tmp": "tmp"}


def installed(stage: Stage, name: str) -> Path:
    return agents.install(name, cache=stage.cache, engine=stage.engine, image=stage.base)
