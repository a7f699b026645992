"""The contact sheet of a chest X-ray case, as ``hab-suite show TASK --figure FILE`` draws it."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from categories.xray_report_correction.figure import RIGHT, WRONG, draw_figure
from suite.reading import show

TASK = "xray_report_correction/case_01"


def picture(path: Path) -> np.ndarray:
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"), float)


def inked(seen: np.ndarray, colour: str) -> int:
    """Return how many points have about this colour."""
    wanted = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return int((np.abs(seen - wanted).max(axis=2) < 40).sum())


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> list[np.ndarray]:
    """The sheet without and with the gold."""
    drawn = []
    for with_gold in (False, True):
        out = tmp_path_factory.mktemp("sheet") / "figure.png"
        assert show(TASK, scale="small", figure=out, seed=None, with_gold=with_gold) == 0
        drawn.append(picture(out))
    return drawn


@pytest.mark.parametrize("number", [0, 1], ids=["plain", "with gold"])
def test_the_films_stand_above_the_texts(number: int, shown: list[np.ndarray], stage) -> None:
    seen = shown[number]
    views = len(list(stage(TASK).public.glob("study_*/view_*")))
    films = seen[: seen.shape[0] // 3]
    grey = (np.ptp(films, axis=2) < 8) & (films[..., 0] > 20) & (films[..., 0] < 235)
    assert views
    assert grey.mean() > 0.1, "films have half-tones"
    assert films[grey][:, 0].std() > 30
    texts = seen[seen.shape[0] * 3 // 4 :]
    assert 0.002 < (texts.min(axis=2) < 128).mean() < 0.3


def test_errors_are_marked_only_where_the_gold_is_asked_for(shown: list[np.ndarray]) -> None:
    plain, judged = shown
    assert inked(plain, WRONG) == inked(plain, RIGHT) == 0
    assert inked(judged, WRONG) > 200
    assert inked(judged, RIGHT) > 200


def test_what_was_handed_in_shows_and_hostile_texts_do_no_harm(stage, tmp_path: Path) -> None:
    draw = stage(TASK)
    truth = json.loads((draw.gold / "findings.json").read_text())["truth"]
    texts = ("FINDINGS: " + " ".join(truth), '{"edits": [{"sentence": 1, "replace": "Pink elephants."}]}')
    pictures = []
    for number, text in enumerate((*texts, "\x00" * 9000, "$x^$ <b> \\frac", '{"edits": [' * 9000, "")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "findings.txt").write_text(text)
        draw_figure(draw.public, draw.gold, folder / "figure.png", folder)
        pictures.append(picture(folder / "figure.png"))
    assert inked(pictures[0], WRONG) < inked(pictures[1], WRONG)
