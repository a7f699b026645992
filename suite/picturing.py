"""Pictures of a trial over its task's data: the category draws them, from the cache or staged anew."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from categories.catalog import CatalogError, find_task, load_catalog
from categories.figure import draw_figure, draws_figures
from categories.sources.errors import SourceError
from categories.spec import Category
from categories.staging import StageRequest, StagingError, staged
from results.folder import RunFolder
from results.site.detail import Painter, Picture
from results.site.pictures import PICTURES
from results.trial_folder import TrialFolder
from runners.cache import default_cache
from suite.sourcing import provide_checks


def painters(runs: Sequence[RunFolder]) -> Mapping[str, Painter]:
    """Return what draws each category's trials: over the data where it has pictures, and from the folder alone."""
    drawn = {category.id: _over_data(category, runs) for category in load_catalog() if draws_figures(category)}
    return PICTURES | drawn


def _over_data(category: Category, runs: Sequence[RunFolder]) -> Painter:
    plain = PICTURES.get(category.id)

    def paint(trial: TrialFolder, with_gold: bool) -> Sequence[Picture]:
        beside = plain(trial, with_gold) if plain else []
        run = next((run for run in runs if trial.path.is_relative_to(run.path)), None)
        if run is None or not trial.finished:
            return beside
        return [*_picture(category, run, trial, with_gold), *beside]

    return paint


def _picture(category: Category, run: RunFolder, trial: TrialFolder, with_gold: bool) -> Sequence[Picture]:
    record = trial.read_record()
    try:
        request = StageRequest(
            find_task(record.plan.task), run.seed(), record.plan.instance, record.scale, edition=record.edition
        )
        provide_checks([request])
        with staged(request, default_cache().root) as draw, tempfile.TemporaryDirectory() as folder:
            if draw.content_digest != record.content_digest:
                typer.echo(f"{record.plan.trial_id}: no picture, the task's data have changed since", err=True)
                return []
            out = Path(folder) / "figure.png"
            draw_figure(category, draw.public, draw.gold if with_gold else None, out, trial.submission)
            content = out.read_bytes()
    except (CatalogError, SourceError, StagingError) as error:
        typer.echo(f"{record.plan.trial_id}: no picture: {error}", err=True)
        return []
    title = "Data, submission and gold" if with_gold else "Data and submission"
    alt = f"{category.title}: {title.lower()} of {record.plan.trial_id}; the numbers stand in the verdict."
    return [Picture(title, "image/png", content, alt)]
