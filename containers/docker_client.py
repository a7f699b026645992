"""The connection to a Docker engine, and its errors in the suite's words."""

from collections.abc import Iterator
from contextlib import contextmanager

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.utils import kwargs_from_env

from containers.box import EngineError, EngineUnavailableError

MINIMUM_API = (1, 41)
"""Docker 20.10."""
START_ENGINE = (
    "Start one with `make engine`, or set DOCKER_HOST to the one that runs; `docker version` shows both ends."
)


def connect(timeout_s: float = 120) -> docker.APIClient:
    """Return a client of the engine that the environment names (``DOCKER_HOST``) or of the local socket.

    Raises:
        EngineUnavailableError: nothing answers, or it is too old.
    """
    try:
        # One connection a thread: a hijacked one does not come back to the pool.
        api = docker.APIClient(version="auto", timeout=int(timeout_s), max_pool_size=64, **kwargs_from_env())
    except (DockerException, requests.RequestException) as error:
        raise EngineUnavailableError(f"No container engine answers: {error}. {START_ENGINE}") from error
    if tuple(int(part) for part in api.api_version.split(".")) < MINIMUM_API:
        raise EngineUnavailableError(
            f"The container engine speaks API {api.api_version}; 1.41 (Docker 20.10) or newer is needed. Update it."
        )
    return api


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn what the SDK raises into ``EngineError``; ``doing`` completes "The engine failed to"."""
    try:
        yield
    except APIError as error:
        hint = " Build it with `hab-suite build`." if "No such image" in str(error.explanation) else ""
        raise EngineError(f"The engine failed to {doing}: {error.explanation or error}.{hint}") from error
    except (requests.ConnectionError, requests.Timeout) as error:
        raise EngineUnavailableError(
            f"The engine stopped answering when asked to {doing}: {error}. {START_ENGINE}"
        ) from error
    except (DockerException, requests.RequestException) as error:
        raise EngineError(f"The engine failed to {doing}: {error}") from error


@contextmanager
def gone_is_fine() -> Iterator[None]:
    """Let pass that a container is not there, not running, or being removed by someone else."""
    try:
        yield
    except NotFound:
        return
    except APIError as error:
        if error.status_code != requests.codes.conflict:
            raise
