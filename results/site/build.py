"""Writes the site: a page for the whole, one per task, one for any trial, and the data they load."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from results.blocks import Block, split
from results.columns import COLUMNS
from results.folder import RunFolder
from results.frame import planned_frame, trial_frame
from results.frontier import published_frontier
from results.pricing import PriceBook
from results.records import Outcome
from results.redaction import redacted, require_redaction
from results.render import cell_text
from results.report import report_of
from results.site.detail import Painter, detail_of
from results.site.pictures import PICTURES
from results.site.safe import readable, script_data
from results.site.views import HEAT, block_view, panel, task_file
from results.trial_folder import TrialFolder

HERE = Path(__file__).parent
MARK = "made-by-hab-suite"
"""A file that says that a folder is a site and may be replaced."""
GOLD_WRITER = "oracle"
"""The harness whose submission is the gold."""
TRIAL_FIELDS = (
    *("trial_id", "agent", "harness", "instance", "attempt", "outcome", "reason", "message", "headline", "cost_usd"),
    *("run_agent_s", "input_tokens", "cache_read_tokens", "output_tokens", "tries", "harness_version"),
    *("started_at", "limits", "run_id"),
)


class SiteError(Exception):
    """The site cannot be written there; the message says why."""


@dataclass(frozen=True)
class Options:
    """What the site shows."""

    with_gold: bool = False
    """Show what verdicts say of the gold. Off, a published site leaks nothing."""
    with_published: bool = False
    mix: bool = False
    redact: bool = False
    """Leave out what may quote records of real people: the pages of single trials, and the words of verdicts."""
    here_only: bool = False
    """The site stays on this machine and is gone with the command: nothing is published."""
    refresh_s: int = 0
    """Reload pages so often: for following a run."""
    pictures: Mapping[str, Painter] = field(default_factory=lambda: PICTURES)
    """Category -> what draws its trials."""


def build_site(
    runs: Sequence[RunFolder], out: Path, options: Options | None = None, *, prices: PriceBook | None = None
) -> Path:
    """Write the site to ``out``, replacing an earlier site there, and return its front page.

    Raises:
        MixError: the runs differ in what must be equal and ``options.mix`` is false.
        RedactionError: a run holds records of real people and ``options.redact`` is false.
        SiteError: ``out`` holds something else.
    """
    chosen = options or Options()
    require_redaction(runs, redact=chosen.redact or chosen.here_only, what="site")
    book = prices or PriceBook()
    frame = trial_frame(runs, book)
    blocks = split(runs, redacted(frame) if chosen.redact else frame, planned_frame(runs), mix=chosen.mix)
    report = report_of(blocks, book)
    clinical = any(block.settings.edition == "clinical" for block in blocks)
    _prepare(out, private=clinical)
    pages = _environment(clinical=clinical, options=chosen, report=report)
    pairs = enumerate(zip(blocks, report.blocks, strict=True))
    views = [block_view(number, block, made, out) for number, (block, made) in pairs]
    published = panel(published_frontier(), out / "published.svg") if chosen.with_published else None
    _write(out / "index.html", pages.get_template("index.html.j2").render(blocks=views, published=published, root=""))
    _write(out / "trial.html", pages.get_template("trial.html.j2").render(root=""))
    for view, block in zip(views, blocks, strict=True):
        _task_pages(pages, out, view, block, chosen)
    return out / "index.html"


def _prepare(out: Path, *, private: bool) -> None:
    if out.exists() and any(out.iterdir()):
        if not (out / MARK).is_file():
            raise SiteError(f"{out} is not empty and no site of hab-suite; choose another folder")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    if private:
        out.chmod(0o700)
    (out / MARK).touch()
    for folder in ("tasks", "data"):
        (out / folder).mkdir()
    for asset in (HERE / "assets").iterdir():
        shutil.copyfile(asset, out / asset.name)


def _environment(**shared: Any) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= shared | {"columns": COLUMNS, "heat": HEAT}
    environment.filters |= {"readable": readable, "cell": cell_text}
    return environment


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _task_pages(pages: Environment, out: Path, view: dict[str, Any], block: Block, options: Options) -> None:
    """Write a page and a data file per task, and a data file per trial that left something to show."""
    template = pages.get_template("task.html.j2")
    runs = {run.plan.run_id: run for run in block.runs}
    titles = {name: title for run in block.runs for name, title in run.plan.titles.items()}
    ordered = block.trials.sort("task", "agent", "instance", "attempt")
    for (name,), part in ordered.group_by("task", maintain_order=True):
        task, category = str(name), str(part["category"][0])
        file = task_file(view["number"], task)
        trials = []
        for number, trial in enumerate(part.select(TRIAL_FIELDS).iter_rows(named=True)):
            folder = runs[trial["run_id"]].trial(trial["trial_id"])
            detail = _detail(folder, trial["harness"], category, options)
            if detail is not None:
                _write(out / "data" / f"{file}.{number}.js", script_data("detail", detail))
            trials.append(_shown_trial(trial, options) | {"number": number, "detail": detail is not None})
        _write(out / "data" / f"{file}.js", script_data("task", {"task": readable(task), "trials": trials}))
        title, summary = titles.get(category, category), list(_summary(part))
        page = template.render(
            root="../", task=task, title=title, block=view, trials=trials, file=file, summary=summary
        )
        _write(out / "tasks" / f"{file}.html", page)


def _detail(folder: TrialFolder, harness: str, category: str, options: Options) -> dict[str, Any] | None:
    if options.redact or (harness == GOLD_WRITER and not options.with_gold):
        return None
    return detail_of(folder, category, with_gold=options.with_gold, pictures=options.pictures)


def _shown_trial(trial: dict[str, Any], options: Options) -> dict[str, Any]:
    """Return the record's fields for the pages; a verdict's words may quote gold, other messages are no verdict's."""
    made = {key: readable(value, 500) if isinstance(value, str) else value for key, value in trial.items()}
    judged = trial["outcome"] in (Outcome.PASSED.value, Outcome.FAILED.value)
    return made | ({"message": ""} if judged and not options.with_gold else {})


def _summary(part: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield one line per agent: passes of trials, mean metric, cost and time."""
    table = part.group_by("agent", maintain_order=True).agg(
        pl.col("passed").sum(),
        pl.len().alias("trials"),
        pl.col("headline").mean(),
        pl.col("cost_usd").mean(),
        (pl.col("run_agent_s").mean() / 60).alias("minutes"),
    )
    yield from table.iter_rows(named=True)
