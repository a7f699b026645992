"""A report of one or more runs: rows, sections, warnings and how the numbers were made. Rendering is elsewhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import polars as pl

from results.blocks import Block, Settings, split
from results.columns import Row
from results.folder import RunFolder
from results.frame import planned_frame, trial_frame
from results.pricing import PriceBook
from results.published import published_section
from results.redaction import redacted, require_redaction
from results.rows import rows_of
from results.sections import sections_of
from results.tables import Section
from results.trajectory import behaviour_section

BROKEN_LIMIT = 0.05
"""Above this share of broken trials no ranking is claimed."""
DEPENDENT = (
    "Not independent, and named rather than modelled: the tasks of event modelling share one world of patients, the "
    "imaging tasks of a category one anatomy. Clue twins and variations of a task are one cluster."
)
METHOD = (
    "Success is passes / trials; whatever is no pass is a miss, broken trials included; cancelled and unstarted trials "
    "are missing and outside. Intervals are 95 %. For tasks like these: Wilson with the effective n of errors "
    "clustered by template within categories. For these tasks: of trial noise only. "
    "Cost is computed from recorded usage."
)


@dataclass(frozen=True)
class BlockReport:
    """What one table shows."""

    settings: Settings
    runs: tuple[str, ...]
    rows: list[Row]
    sections: list[Section]
    warnings: list[str]


@dataclass(frozen=True)
class Report:
    """All of it; ``rows`` is the stable interface of ``report --format json``."""

    blocks: list[BlockReport]
    prices: str
    made_at: datetime
    notes: tuple[str, ...] = (METHOD, DEPENDENT)
    published: Section | None = None
    """The published agents, apart from everything else."""

    @property
    def rows(self) -> list[Row]:
        return [row for block in self.blocks for row in block.rows]


def build_report(
    runs: Sequence[RunFolder],
    *,
    prices: PriceBook | None = None,
    mix: bool = False,
    details: bool = True,
    trajectories: bool = False,
    with_published: bool = False,
    redact: bool = False,
) -> Report:
    """Read the runs and compute everything.

    ``details=False`` leaves the sections out; ``trajectories`` adds what the agents did, reading every trial's folder;
    ``with_published`` adds the published agents as a table of their own; ``redact`` leaves out what may quote records.

    Raises:
        RedactionError: a run holds records of real people and ``redact`` is false.
        MixError: the runs differ in what must be equal and ``mix`` is false.
    """
    require_redaction(runs, redact=redact, what="report")
    book = prices or PriceBook()
    frame = trial_frame(runs, book)
    blocks = split(runs, redacted(frame) if redact else frame, planned_frame(runs), mix=mix)
    report = report_of(blocks, book, details=details)
    if trajectories:
        for made, block in zip(report.blocks, blocks, strict=True):
            made.sections.append(behaviour_section(block))
    return replace(report, published=published_section()) if with_published else report


def report_of(blocks: Sequence[Block], book: PriceBook, *, details: bool = True) -> Report:
    """Compute a report of blocks whose costs were made with ``book``."""
    made = [
        BlockReport(
            block.settings,
            tuple(run.plan.run_id for run in block.runs),
            rows_of(block),
            sections_of(block) if details else [],
            list(warnings_of(block, book)),
        )
        for block in blocks
    ]
    return Report(made, book.source, datetime.now(UTC))


def warnings_of(block: Block, book: PriceBook) -> Iterator[str]:
    """Yield what a reader must know before believing the table."""
    yield from _setting_warnings(block)
    trials = block.trials
    if trials["login_in_box"].any():
        yield "A subscription login was inside the box: the agent could read it, and reach the login's hosts unseen."
    if (trials["disk"] == "watched").any():
        yield "The disk limit was held by watching and stopping, not by a limited disk."
    if _uneven(trials):
        yield "The agents ran different tasks: their ALL rows do not compare; the pairs below use shared tasks only."
    share = trials["broken"].mean() if trials.height else None
    if isinstance(share, float) and share > BROKEN_LIMIT:
        limit = f"{100 * BROKEN_LIMIT:.0f} %"
        yield f"{100 * share:.1f} % of the trials are broken: above {limit} no ranking is claimed; see the best case."
    yield from _cost_warnings(trials, book)


def _setting_warnings(block: Block) -> Iterator[str]:
    settings = block.settings
    if settings.edition == "synthetic" and any(run.plan.public_seed for run in block.runs):
        yield "The seed is public: anybody can draw the answers. Use a private one for claims (hab-suite seed new)."
    if settings.network not in ("none", "model"):
        yield f"Network policy {settings.network}: the agent could reach more than its model; answers can be looked up."
    if settings.scale == "small":
        yield "Small scale: for trying out. Success here says nothing of the full tasks."
    if settings.clamped:
        yield "Limits were lowered to what the machine has; not comparable with unclamped runs."
    if settings.variant:
        yield f"Data of variant {settings.variant} (fall-back generator or other gold): not comparable with the rest."


def _cost_warnings(trials: pl.DataFrame, book: PriceBook) -> Iterator[str]:
    if book.unknown:
        names = ", ".join(sorted(book.unknown))
        yield f"No price is known for {names}: their cost is left out. Give one with --prices FILE."
    unknown = trials.filter(pl.col("cost_usd").is_null()).height
    if unknown:
        yield f"{unknown} trials have no known cost; totals are lower bounds, means leave them out."


def _uneven(trials: pl.DataFrame) -> bool:
    sets = trials.group_by("agent").agg(pl.struct("task", "instance").unique().sort().alias("tasks"))
    return sets["tasks"].n_unique() > 1
