"""Where sources are asked and how: defaults, overridden by a settings file, overridden by the environment.

The file is ``sources.toml`` in the configuration folder (``HAB_SUITE_CONFIG``, else ``~/.config/hab-suite``)::

    [download]
    attempts = 6            # in a row without progress
    backoff_s = 1.0         # doubles, up to a minute
    parallel = 4            # connections to one source, over all processes of this machine
    timeout_s = 60.0        # of silence
    spare_gb = 1.0          # what stays free on the disk

    [mimic_iv_demo]
    endpoint = "https://mirror.example"    # or HAB_SUITE_MIMIC_IV_DEMO_URL
    folder = "/data/mimic-iv-demo/2.2"     # or HAB_SUITE_MIMIC_IV_DEMO_DIR: a copy on this machine, used in place
    files = {"hosp/patients.csv.gz" = "<SHA-256>"}     # pins of your own, above those of the suite
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError

from categories.sources.errors import SourceError
from categories.sources.spec import SourceSpec, load_sources
from categories.spec import Frozen


class Manners(Frozen):
    """How downloads behave."""

    attempts: int = Field(default=6, ge=1)
    backoff_s: float = Field(default=1.0, ge=0)
    parallel: int = Field(default=4, ge=1)
    timeout_s: float = Field(default=60.0, gt=0)
    spare_gb: float = Field(default=1.0, ge=0)


class Place(Frozen):
    """Where one source is, other than its default."""

    endpoint: str = ""
    folder: str = ""
    table: str = ""
    """A table of one's own beside the source, where its category knows one."""
    files: dict[str, str] = {}  # noqa: RUF012 (pydantic copies it)


@dataclass(frozen=True)
class Settings:
    """What the user has set."""

    config: Path
    """The folder of what was agreed to, and of the settings file."""
    env_file: Path
    manners: Manners = field(default_factory=Manners)
    places: Mapping[str, Place] = field(default_factory=dict)
    offline: bool = False

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Read the settings of this user.

        Raises:
            SourceError: the settings file is wrong; the message says where.
        """
        env = os.environ if environ is None else environ
        base = env.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        config = Path(env.get("HAB_SUITE_CONFIG") or Path(base) / "hab-suite").expanduser()
        file = config / "sources.toml"
        document = _read(file) if file.is_file() else {}
        try:
            manners = Manners.model_validate(document.pop("download", {}))
            places = {name: Place.model_validate(entry) for name, entry in document.items()}
        except ValidationError as error:
            first = error.errors()[0]
            raise SourceError(f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        unknown = sorted(set(places) - set(load_sources()))
        if unknown:
            raise SourceError(f"{file}: no source {unknown[0]!r}; there are: {', '.join(load_sources())}")
        for name, source in load_sources().items():
            own = places.get(name, Place())
            places[name] = Place(
                endpoint=env.get(source.url_variable) or own.endpoint,
                folder=env.get(source.folder_variable) or own.folder,
                table=own.table,
                files=own.files,
            )
        env_file = Path(env.get("HAB_SUITE_ENV_FILE") or ".env")
        return cls(config, env_file, manners, places, offline=env.get("HAB_SUITE_OFFLINE", "") not in ("", "0"))

    def for_child(self) -> dict[str, str]:
        """Return what a child process elsewhere needs to find the same settings."""
        return {"HAB_SUITE_ENV_FILE": str(self.env_file.resolve()), "HAB_SUITE_CONFIG": str(self.config.resolve())}

    def endpoint(self, source: SourceSpec) -> str:
        """Return the address a source is asked at, without a closing slash."""
        return (self.places.get(source.id, Place()).endpoint or source.endpoint).rstrip("/")

    def pins(self, source: SourceSpec) -> dict[str, str]:
        """Return the SHA-256 of the files of a source that are pinned."""
        return {**source.files, **self.places.get(source.id, Place()).files}

    def folder(self, source: SourceSpec) -> Path | None:
        """Return the copy on this machine that the user named, or null."""
        named = self.places.get(source.id, Place()).folder
        return Path(named).expanduser().resolve() if named else None

    def table(self, source: SourceSpec) -> Path | None:
        """Return the table of the user's own that is named beside a source, or null."""
        named = self.places.get(source.id, Place()).table
        return Path(named).expanduser() if named else None


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{file}: {error}") from None
