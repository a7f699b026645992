"""A running container of a Docker engine."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import docker
import requests
from docker.errors import APIError, NotFound

from containers.box import BoxState, EngineError, Finished, Sink
from containers.cgroup import MemoryUse, memory_use
from containers.docker_client import engine_errors, gone_is_fine
from containers.docker_stream import CHUNK_BYTES, Conversation
from containers.docker_terminal import join

LONGEST_PAUSE_S = 0.25
BOX_END_S = 1.0
RESIZE_TRIES = 5
KILLED = 128 + 9


class DockerBox:
    """Implements ``containers.box.Box``; safe to use from several threads."""

    def __init__(self, api: docker.APIClient, box_id: str) -> None:
        self._api = api
        self._id = box_id
        self._stopping = threading.Lock()
        self._stopped = threading.Event()
        self._dead = False
        self._memory = MemoryUse()

    @property
    def id(self) -> str:
        return self._id

    def exec(
        self,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        sink: Sink | None = None,
        timeout_s: float | None = None,
        user: str | None = None,
        workdir: str | None = None,
    ) -> Finished:
        began = time.monotonic()
        options: dict[str, Any] = {
            "environment": dict(env or {}),
            "user": user or "",
            "workdir": workdir,
            "stdin": bool(stdin),
        }
        try:
            with engine_errors(f"run {argv[0]} in a box"):
                exec_id = self._api.exec_create(self._id, list(argv), **options)["Id"]
                hijacked = self._api.exec_start(exec_id, socket=True)
        except EngineError:
            if not self._stopped.is_set():
                raise
            return Finished(None, timed_out=False, seconds=time.monotonic() - began)
        with closing(Conversation(hijacked)) as conversation:
            timed_out = conversation.pump(stdin, sink, timeout_s=timeout_s, ended=lambda: self._exec_ended(exec_id))
        exit_code = None
        if not timed_out:
            exit_code, timed_out = self._exit_code(exec_id, None if timeout_s is None else began + timeout_s)
        return Finished(exit_code, timed_out=timed_out, seconds=time.monotonic() - began)

    def terminal(
        self, argv: tuple[str, ...], *, env: Mapping[str, str] | None = None, workdir: str | None = None
    ) -> int:
        options: dict[str, Any] = {"environment": dict(env or {}), "workdir": workdir, "stdin": True, "tty": True}
        with engine_errors(f"open a terminal for {argv[0]}"):
            exec_id = self._api.exec_create(self._id, list(argv), **options)["Id"]
            hijacked = self._api.exec_start(exec_id, tty=True, socket=True)

        def resize(rows: int, columns: int) -> None:
            for _ in range(RESIZE_TRIES):
                try:
                    self._api.exec_resize(exec_id, height=rows, width=columns)
                except APIError:
                    # Not started yet, or over already: a size is no reason to fail.
                    time.sleep(0.02)
                else:
                    return

        with closing(Conversation(hijacked)) as conversation, engine_errors(f"carry the terminal of {argv[0]}"):
            join(conversation, resize)
        exit_code, _ = self._exit_code(exec_id, None)
        return KILLED if exit_code is None else exit_code

    def put(self, folder: str, tar: bytes) -> None:
        with engine_errors(f"copy files to {folder}"):
            self._api.put_archive(self._id, folder, tar)

    def get(self, path: str) -> Iterator[bytes]:
        url = f"{self._api.base_url}/v{self._api.api_version}/containers/{self._id}/archive"
        with engine_errors(f"copy {path}"):
            # Not the SDK's get_archive: it hides the response, and only closing that one drops the rest.
            response = self._api.get(url, params={"path": path}, stream=True)
        if response.status_code == requests.codes.not_found:
            raise FileNotFoundError(f"{path}: not in the box ({response.json().get('message', '')})")
        if not response.ok:
            raise EngineError(f"The engine failed to copy {path}: {response.text.strip()}")
        return self._stream(path, response)

    def _stream(self, path: str, response: requests.Response) -> Iterator[bytes]:
        with closing(response), engine_errors(f"copy {path}"):
            yield from response.iter_content(CHUNK_BYTES)

    def stop(self) -> None:
        with self._stopping:
            if self._dead:
                return
            self._memory = self._memory_use()
            self._stopped.set()  # wakes those who read from it, before the processes end
            with engine_errors("stop a box"), gone_is_fine():
                self._api.kill(self._id, "SIGKILL")
                self._api.wait(self._id, timeout=60)
            self._dead = True  # only now: a kill that failed is tried again

    def state(self) -> BoxState:
        with engine_errors("inspect a box"):
            state = self._api.inspect_container(self._id)["State"]
        running = bool(state["Running"])
        if running and not self._stopped.is_set():
            self._memory = self._memory_use()
        return BoxState(
            running=running,
            exit_code=None if running else state["ExitCode"],
            oom_killed=bool(state["OOMKilled"]) or self._memory.oom_kills > 0,
            peak_memory_mb=self._memory.peak_mb,
        )

    def remove(self) -> None:
        self._stopped.set()
        remove_container(self._api, self._id)

    def _memory_use(self) -> MemoryUse:
        """Ask the kernel of this host; else the engine, which knows the peak on cgroup version 1 alone."""
        try:
            pid = self._api.inspect_container(self._id)["State"]["Pid"]
            use = memory_use(pid) if pid else MemoryUse()
            if not pid or use.peak_mb is not None:
                return use
            stats: dict[str, Any] = self._api.stats(self._id, stream=False, one_shot=True)
            peak = stats.get("memory_stats", {}).get("max_usage")
        except (APIError, requests.RequestException):
            return self._memory
        return MemoryUse(peak / 1e6 if peak else None, use.oom_kills)

    def _running(self) -> bool:
        try:
            return bool(self._api.inspect_container(self._id)["State"]["Running"])
        except NotFound:
            return False

    def _ends(self) -> bool:
        """Return whether the box ends, too: the engine tells of its commands first, of itself a moment later."""
        deadline = time.monotonic() + BOX_END_S
        while self._running():
            if self._stopped.wait(0.02):
                return True
            if time.monotonic() > deadline:
                return False
        return True

    def _exec_ended(self, exec_id: str) -> bool:
        try:
            return not self._api.exec_inspect(exec_id)["Running"]
        except NotFound:
            return True
        except (APIError, requests.RequestException):
            return False

    def _exit_code(self, exec_id: str, deadline: float | None) -> tuple[int | None, bool]:
        """Wait for the end of a command whose output has ended; return its code, and whether the time ran out."""
        pause = 0.005
        with engine_errors("read an exit code"):
            while not self._stopped.is_set():
                try:
                    found = self._api.exec_inspect(exec_id)
                except NotFound:
                    break
                if not found["Running"] and found["ExitCode"] is not None:
                    ended_with_box = found["ExitCode"] == KILLED and self._ends()
                    return (None if ended_with_box or self._stopped.is_set() else found["ExitCode"]), False
                if deadline is not None and time.monotonic() >= deadline:
                    return None, True
                if pause > LONGEST_PAUSE_S and not self._running():
                    break
                # It closed its output and works on, or the engine is a moment late.
                self._stopped.wait(pause)
                pause = min(2 * pause, 2 * LONGEST_PAUSE_S)
        return None, False


def remove_container(api: docker.APIClient, box_id: str) -> None:
    """Remove a container, running or not, with its anonymous volumes; one that is gone already is fine."""
    with engine_errors("remove a box"):
        try:
            api.remove_container(box_id, force=True, v=True)
        except NotFound:
            return
        except APIError as error:
            if error.status_code != requests.codes.conflict:
                raise
            with gone_is_fine():
                # Somebody else is removing it: gone means gone when this returns.
                api.wait(box_id, timeout=60, condition="removed")
