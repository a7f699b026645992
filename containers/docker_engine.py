"""A Docker engine, reached through its SDK."""

import io
import secrets
import tarfile
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import requests
from docker.errors import APIError, ImageNotFound, NotFound
from docker.types import LogConfig
from docker.types import Mount as BindMount

from containers.box import LABEL, Box, BoxInfo, BoxSpec, Captured, EngineError, EngineInfo, Mount, Stream
from containers.docker_box import DockerBox, remove_container
from containers.docker_client import connect, engine_errors, gone_is_fine
from containers.docker_stream import Conversation

CPU_PERIOD_US = 100_000
PULL_SILENCE_S = 20
"""A registry that says nothing for so long is taken as absent: hospitals drop packets rather than refuse them."""
STAGE_LABEL = f"{LABEL}.stage"
"""Carried by build stages that no image needs once it is built. Its value, the build argument ``STAGE``, is another for
each build: a stage of somebody else's build is still in use."""
LAST_LINES = 30
HOST_HELPER: dict[str, Any] = {
    # Not "privileged", which asks for every capability there is: a host that lacks one itself would refuse.
    "pid_mode": "host",
    "cap_add": ["SYS_ADMIN", "SYS_PTRACE", "SYS_CHROOT", "CHOWN", "DAC_OVERRIDE", "FOWNER"],
    "security_opt": ["apparmor=unconfined", "seccomp=unconfined", "label=disable"],
    "device_cgroup_rules": ["b 7:* rmw", "c 10:237 rmw"],
}
"""Enters the host's mount namespace and uses its loop devices."""


class DockerEngine:
    """Implements ``containers.box.Engine``; safe to use from several threads."""

    def __init__(self) -> None:
        """Connect.

        Raises:
            EngineUnavailableError: nothing answers, or it is too old.
        """
        self._api = connect()

    def info(self) -> EngineInfo:
        with engine_errors("describe itself"):
            about = self._api.info()
        return EngineInfo("docker", about["ServerVersion"], about["NCPU"], about["MemTotal"] // 1_000_000)

    def open(self, spec: BoxSpec) -> Box:
        box_id = self._create(spec, attach=False, stdin=False)
        try:
            with engine_errors(f"start a box of {spec.image}"):
                self._api.start(box_id)
        except BaseException:
            remove_container(self._api, box_id)
            raise
        return DockerBox(self._api, box_id)

    def run(self, spec: BoxSpec, *, stdin: bytes = b"", timeout_s: float, keep_bytes: int = 1 << 24) -> Captured:
        began = time.monotonic()
        kept: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

        def keep(stream: Stream, data: bytes) -> None:
            kept[stream] += data[: keep_bytes - len(kept[stream])]

        box_id = self._create(spec, attach=True, stdin=bool(stdin))
        try:
            with engine_errors(f"run a box of {spec.image}"):
                wanted = {"stdin": int(bool(stdin)), "stdout": 1, "stderr": 1, "stream": 1}
                with closing(Conversation(self._api.attach_socket(box_id, params=wanted))) as conversation:
                    self._api.start(box_id)
                    timed_out = conversation.pump(
                        stdin, keep, timeout_s=timeout_s, ended=lambda: not self._running(box_id)
                    )
                if timed_out:
                    with gone_is_fine():
                        self._api.kill(box_id, "SIGKILL")
                exit_code = self._api.wait(box_id, timeout=60)["StatusCode"]
                oom_killed = bool(self._api.inspect_container(box_id)["State"]["OOMKilled"])
        finally:
            remove_container(self._api, box_id)
        return Captured(
            exit_code=None if timed_out else exit_code,
            stdout=bytes(kept["stdout"]),
            stderr=bytes(kept["stderr"]),
            timed_out=timed_out,
            oom_killed=oom_killed,
            seconds=time.monotonic() - began,
        )

    def find(self, labels: Mapping[str, str]) -> list[BoxInfo]:
        wanted = [f"{name}={value}" if value else name for name, value in labels.items()]
        with engine_errors("list containers"):
            found = self._api.containers(all=True, filters={"label": wanted})
        return [BoxInfo(one["Id"], one["Image"], one["Labels"] or {}, one["State"] == "running") for one in found]

    def remove(self, box_id: str) -> None:
        remove_container(self._api, box_id)

    def has_image(self, tag: str) -> bool:
        with engine_errors(f"look for {tag}"):
            try:
                self._image(tag)
            except ImageNotFound:
                return False
        return True

    def build(
        self, context: Mapping[str, bytes | Path], *, tag: str, labels: Mapping[str, str], args: Mapping[str, str]
    ) -> None:
        stage = secrets.token_hex(8)
        with engine_errors(f"build {tag}"):
            try:
                self._build(context, tag, {LABEL: "", **labels}, {**args, "STAGE": stage})
            finally:
                self._drop_stages(stage)

    def _drop_stages(self, stage: str) -> None:
        """Remove what a build's stages left, one by one: an engine refuses a second prune while one runs."""
        for image in self._api.images(filters={"dangling": True, "label": [f"{STAGE_LABEL}={stage}"]}):
            with suppress(NotFound):
                self._api.remove_image(image["Id"])

    def _build(
        self, context: Mapping[str, bytes | Path], tag: str, labels: dict[str, str], args: dict[str, str]
    ) -> None:
        tail: list[str] = []
        steps = self._api.build(
            fileobj=_context_tar(context),
            custom_context=True,
            tag=tag,
            labels=labels,
            buildargs=args,
            network_mode="host",
            use_config_proxy=False,
            rm=True,
            forcerm=True,
            decode=True,
        )
        for step in steps:
            tail = [*tail, *str(step.get("stream", step.get("error", ""))).splitlines()][-LAST_LINES:]
            if "error" in step:
                raise EngineError(
                    f"Building {tag} failed; mend what it says (a proxy, a package index, a full disk) and run "
                    "`hab-suite build images`. Its last lines:\n" + "\n".join(filter(None, tail))
                )

    def pull(self, reference: str) -> bool:
        try:
            with closing(connect(PULL_SILENCE_S)) as api:
                for step in api.pull(reference, stream=True, decode=True):
                    if "error" in step:
                        return False
        except (APIError, requests.RequestException):
            return False
        return self.has_image(reference)

    def load_root(self, tar: Path, *, tag: str, labels: Mapping[str, str]) -> None:
        repository, _, version = tag.rpartition(":")
        changes = [f'LABEL "{name}"="{value}"' for name, value in {LABEL: "", **labels}.items()]
        with engine_errors(f"import {tag}"):
            self._api.import_image_from_file(str(tar), repository=repository, tag=version, changes=changes)
        if not self.has_image(tag):
            raise EngineError(f"The engine did not import {tag} from {tar}. Is its disk full? See `docker system df`.")

    def tag(self, source: str, target: str) -> None:
        repository, _, version = target.rpartition(":")
        with engine_errors(f"name {source} {target}"):
            self._api.tag(source, repository, version, force=True)

    def images(self) -> list[str]:
        with engine_errors("list images"):
            found = self._api.images(filters={"reference": f"{LABEL}/*"})
        return sorted(tag for image in found for tag in image["RepoTags"] or () if tag.startswith(f"{LABEL}/"))

    def image_mb(self, tag: str) -> float:
        with engine_errors(f"measure {tag}"):
            return float(self._image(tag)["Size"]) / 1e6

    def remove_image(self, tag: str) -> None:
        with engine_errors(f"remove {tag}"):
            try:
                self._api.remove_image(tag)
            except ImageNotFound:
                return

    def _image(self, tag: str) -> dict[str, Any]:
        found: dict[str, Any] = self._api.inspect_image(tag)  # type: ignore[no-untyped-call]
        return found

    def _running(self, box_id: str) -> bool:
        try:
            return bool(self._api.inspect_container(box_id)["State"]["Running"])
        except NotFound:
            return False

    def _create(self, spec: BoxSpec, *, attach: bool, stdin: bool) -> str:
        with engine_errors(f"make a box of {spec.image}"):
            made = self._api.create_container(
                spec.image,
                command=list(spec.command),
                name=f"hab-{secrets.token_hex(6)}",
                hostname=secrets.token_hex(6),
                user=spec.user,
                working_dir=spec.workdir,
                environment=dict(spec.env),
                labels={LABEL: "", **spec.labels},
                stdin_open=stdin,
                detach=not attach,
                host_config=self._api.create_host_config(**_host_config(spec)),
            )
        return str(made["Id"])


def _host_config(spec: BoxSpec) -> dict[str, Any]:
    limits = spec.limits
    config: dict[str, Any] = {
        "init": True,
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "ipc_mode": "private",
        "network_mode": spec.network,
        "read_only": spec.read_only_root,
        "mounts": [_bind(mount) for mount in spec.mounts],
        "tmpfs": dict(spec.tmpfs),
        "mem_limit": limits.memory_mb * 1_000_000,
        "memswap_limit": limits.memory_mb * 1_000_000,
        "pids_limit": limits.pids,
        # A quota, not NanoCpus: the engine refuses those above its number of processors, and a task's limit is a limit.
        "cpu_period": CPU_PERIOD_US,
        "cpu_quota": int(limits.cpus * CPU_PERIOD_US),
    }
    if spec.host_helper:
        return {**config, **HOST_HELPER}
    return {**config, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}


def _bind(mount: Mount) -> BindMount:
    return BindMount(
        target=mount.target, source=str(mount.source), type="bind", read_only=mount.read_only, propagation="rprivate"
    )


def _context_tar(context: Mapping[str, bytes | Path]) -> io.BytesIO:
    """Return a tar of the context with neither times nor owners, so that the engine's build cache holds."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(context.items()):
            data = content if isinstance(content, bytes) else content.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if name.endswith(".sh") else 0o644
            tar.addfile(entry, io.BytesIO(data))
    buffer.seek(0)
    return buffer
