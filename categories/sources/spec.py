"""What a source is: ``catalogue.toml`` read into models, unknown keys refused."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from categories.catalog import load_catalog
from categories.sources.errors import SourceError
from categories.spec import Frozen, Task

CATALOGUE = Path(__file__).parent / "catalogue.toml"
Protocol = Literal["physionet", "huggingface", "bucket", "web", "redivis"]


class SourceSpec(Frozen):
    """One source of the clinical edition."""

    id: str
    title: str
    protocol: Protocol
    endpoint: str
    """The default; every one can be set to a mirror."""
    path: str = ""
    """What stands between the endpoint and a file's name, in the protocol's own way."""
    revision: str = ""
    access: Literal["open", "gated", "credentialed"]
    optional: bool = False
    """Whether tasks can be made without it (as another variant)."""
    licence: str
    agreement: str
    """The page where its terms stand, and where access is asked for."""
    variables: tuple[tuple[str, ...], ...] = ()
    size_gb: float
    """What all tasks together need of it, roughly."""
    sums: str = ""
    """A file of the source that lists the SHA-256 of all others."""
    probe: str = ""
    files: dict[str, str] = {}  # noqa: RUF012 (pydantic copies it)
    """File -> SHA-256 of what is pinned."""

    @property
    def leaves_the_house(self) -> bool:
        """Whether sending its data to a model's provider is to be acknowledged."""
        return self.access != "open"

    @property
    def url_variable(self) -> str:
        return f"HAB_SUITE_{self.id.upper()}_URL"

    @property
    def folder_variable(self) -> str:
        return f"HAB_SUITE_{self.id.upper()}_DIR"


@cache
def load_sources() -> dict[str, SourceSpec]:
    """Return all sources by id, in the order of the catalogue."""
    document = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    return {name: SourceSpec.model_validate({**entry, "id": name}) for name, entry in document.items()}


def find_source(name: str) -> SourceSpec:
    """Return a source.

    Raises:
        SourceError: there is none of that name.
    """
    known = load_sources()
    if name not in known:
        raise SourceError(f"no source {name!r}; there are: {', '.join(known)} (`hab-suite sources` shows them)")
    return known[name]


def not_as_published(source: str, file: Path | str, what: str) -> SourceError:
    """Return the error of a file that came, and cannot be used: what is wrong with it, and what next."""
    spec = find_source(source)
    return SourceError(
        f"{spec.title}: {file} {what}. Compare it with the published one ({spec.agreement}): a file that was fetched "
        f"may be removed, and is then fetched anew; a copy of yours ({spec.folder_variable}) is to be replaced. "
        f"Tasks affected: {tasks_of(spec)}."
    )


def sources_of(task: Task) -> list[SourceSpec]:
    """Return what a task of the clinical edition draws on."""
    return [find_source(name) for name in task.category.clinical_sources]


def tasks_of(source: SourceSpec) -> str:
    """Return the tasks that need a source, for people: ``ehr_data_quality (8)``."""
    users = [category for category in load_catalog() if source.id in category.clinical_sources]
    counts = ((category.id, len(category.cases)) for category in users)
    return ", ".join(f"{name} ({count} task{'s' * (count > 1)})" for name, count in counts) or "no task"
