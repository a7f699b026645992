"""Trial pages over the task's data: what was handed in is drawn over what the agent saw, gold only when asked."""

import io
import json
import random

import numpy as np
import pytest
from PIL import Image

from categories.catalog import find_task
from categories.figure import draw_figure
from results.folder import RunFolder
from results.records import Outcome
from suite.picturing import painters
from tests.results import simulate

TASK = "tumor_area_selection/slide_01"


@pytest.fixture(scope="module")
def draw(stage):
    return stage(TASK)


@pytest.fixture
def run(tmp_path, draw):
    """A run of one trial whose record names the staged draw."""
    (plan,) = simulate.trial_plans(agents=simulate.AGENTS[:1], attempts=1, categories={"tumor_area_selection": (1,)})
    plan = plan.model_copy(update={"case": "slide_01", "trial_id": f"{TASK}/i0/codex@gpt-5.4/t1"})
    run = RunFolder.create(tmp_path / "run", simulate.run_plan((plan,), scale="small"), "0")
    return run, plan


def finished(run, digest: str):
    folder, plan = run
    trial = folder.trial(plan)
    trial.begin()
    (trial.submission / "tumor_tiles.json").write_text(json.dumps({"tiles": [[0, 0], [2, 1]]}))
    trial.write_record(simulate.record(folder.plan, plan, Outcome.PASSED, random.Random(0), content_digest=digest))
    return trial


def test_the_picture_shows_the_submission_over_the_data(run, draw) -> None:
    trial = finished(run, draw.content_digest)
    paint = painters([run[0]])["tumor_area_selection"]
    plain, *_ = paint(trial, False)
    judged, *_ = paint(trial, True)
    assert plain.media_type == judged.media_type == "image/png"
    shown = [np.asarray(Image.open(io.BytesIO(picture.content)).convert("RGB")) for picture in (plain, judged)]
    assert shown[0].std() > 20
    assert (shown[0] != shown[1]).any(), "the gold is drawn only when asked for"


def test_no_picture_of_data_that_are_not_the_trials(run, capsys) -> None:
    trial = finished(run, "another digest")
    assert not any(p.media_type == "image/png" for p in painters([run[0]])["tumor_area_selection"](trial, False))
    assert "data have changed" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"[]", b'{"tiles": [[-1, 3], ["a", 1], [1e9, 2]]}', b"[" * 100_000, b"\xff"])
def test_a_damaged_submission_is_no_obstacle(tmp_path, draw, content) -> None:
    (tmp_path / "tumor_tiles.json").write_bytes(content)
    draw_figure(find_task(TASK).category, draw.public, draw.gold, tmp_path / "out.png", tmp_path)
    with Image.open(tmp_path / "out.png") as image:
        assert image.size[0] > 500
