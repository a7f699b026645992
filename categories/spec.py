"""The words of a category: what is asked, under which limits, and when an answer passes.

``category.toml`` and ``cases.toml`` are read into these models and nowhere else; unknown keys are refused.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Scale = Literal["full", "small"]
Edition = Literal["synthetic", "clinical"]
Number = bool | int | float


class Frozen(BaseModel):
    """Immutable, and strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Resources(Frozen):
    """What a trial of this category may use at one scale."""

    cpus: float = Field(gt=0)
    memory_mb: int = Field(ge=64)
    storage_mb: int = Field(ge=16)
    """One size-limited disk holds ``/workspace``, ``$HOME`` and ``/tmp``."""
    pids: int = Field(ge=16, default=512)
    agent_timeout_s: int = Field(gt=0)
    verifier_timeout_s: int = Field(gt=0)
    prepare_timeout_s: int = Field(gt=0)


class Axes(Frozen):
    """The five axes by which results are grouped."""

    modality: str
    workflow_stage: str
    output_shape: str
    scope: str
    """Patient and temporal scope."""
    data_access: str


class Headline(Frozen):
    """The one metric shown beside the success rate."""

    metric: str
    direction: Literal["higher", "lower"]
    missing: float | None = None
    """The value a trial without a usable submission is given; left out where it depends on the case
    (then the verifier's gold decides and the metric of such a trial is always present)."""


class PassRule(Frozen):
    """When a submission earns reward 1. The numbers go to the verifier, the words to the agent and the reader."""

    numbers: dict[str, Number]
    words: str
    """One sentence; ``{name}`` stands for a number, so that no number stands twice."""

    def sentence(self) -> str:
        """Return the words with the numbers filled in."""
        return self.words.format(**self.numbers)


class Submission(Frozen):
    """What the agent writes under ``/workspace/submission/``, and how much of it is collected."""

    path: str
    """Relative to ``/workspace/submission/``; a folder ends in a slash."""
    description: str
    """The schema, as the instruction states it."""
    max_bytes: int = Field(gt=0)
    max_files: int = Field(gt=0, default=1)
    max_depth: int = Field(gt=0, default=1)


class Source(Frozen):
    """A pinned file or data set that an edition draws on."""

    edition: Edition
    title: str
    licence: str
    access: Literal["open", "gated", "credentialed"]
    home: str = ""
    """Where a reader finds it and its terms."""
    variables: tuple[str, ...] = ()
    """Environment variables that hold the credentials."""
    size_mb: float | None = None
    files: dict[str, str] = {}
    """File name -> SHA-256."""


class Case(Frozen):
    """One table of ``cases.toml``."""

    title: str
    draw_as: str | None = None
    """The case whose data and gold this one shares (it then differs in the instruction only)."""
    parameters: dict[str, str | Number | tuple[str | Number, ...]] = {}
    clinical: dict[str, str | Number | tuple[str | Number, ...]] = {}
    """Identifiers in the clinical sources; never shown to the agent."""


class Category(Frozen):
    """A folder under ``categories/``."""

    id: str
    folder: Path
    title: str
    image: str
    """The role of the category image: a folder under ``containers/images/``."""
    verifier_image: str = "verifier"
    """The role of the image that judges; another than the default only where a verifier needs more than that has."""
    shares: tuple[str, ...] = ()
    """Folders under ``categories/`` that its generator imports beside its own; no categories themselves."""
    axes: Axes
    editions: tuple[Edition, ...]
    resources: dict[Scale, Resources]
    headline: Headline
    pass_rule: PassRule
    published_rule: PassRule
    """The rule of the published benchmark, computed beside ours as ``published_reward``."""
    submission: Submission
    sources: tuple[Source, ...] = ()
    clinical_sources: tuple[str, ...] = ()
    """What the clinical edition draws on, by the names of ``categories/sources/catalogue.toml``."""
    cases: dict[str, Case]


class Task(Frozen):
    """One of the suite's tasks."""

    category: Category
    case: str

    @property
    def id(self) -> str:
        """``<category>/<case>``: what users type and what paths are made of."""
        return f"{self.category.id}/{self.case}"

    @property
    def spec(self) -> Case:
        return self.category.cases[self.case]

    @property
    def data_case(self) -> str:
        """The case that names the draw: twins share it."""
        return self.spec.draw_as or self.case
