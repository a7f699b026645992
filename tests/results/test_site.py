"""The site as files: what it shows, what it leaves out, and that hostile text stays text."""

import json
import random
import stat
import threading
import urllib.request
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import simulate
from test_trajectory import bash, step, story

from results.folder import RunFolder
from results.records import Event, Outcome
from results.site.build import Options, SiteError, build_site
from results.site.detail import Picture
from results.site.pictures import cluster_bars, event_curves, matching_trees, tile_grid
from results.site.safe import head_of, readable, script_data, tail_of
from results.site.serve import serve_site
from results.trial_folder import TrialFolder

TWO = {name: simulate.CATEGORIES[name] for name in ("ehr_data_quality", "ehr_format_conversion")}
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\x1b[0m\x00\u202e"


def fill(run, trial, trajectory=None, submission=b"a,b\n", details=None, log=b""):
    folder = run.trial(trial)
    folder.begin()
    folder.trajectory.write_text(json.dumps(trajectory or story()))
    (folder.submission / "flagged_rows.csv").write_bytes(submission)
    verdict = {"reward": 0, "reason": "below_threshold", "message": "missed cluster GOLD-7", "headline": 0.4,
               "metrics": {"recall": 0.4}, "details": details or {"cluster": "GOLD-7"}}  # fmt: skip
    (folder.next_verifier() / "verdict.json").write_text(json.dumps(verdict))
    (folder.agent / "stderr.log").write_bytes(log)


@pytest.fixture
def run(tmp_path):
    made = simulate.simulate(tmp_path / "run", categories=TWO, attempts=2, durable=False)
    for trial in made.plan.trials[:3]:
        fill(made, trial)
    return made


def everything(site: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in site.rglob("*") if path.is_file())


def test_pages(run, tmp_path):
    site = build_site([run], tmp_path / "site").parent
    index = (site / "index.html").read_text()
    assert "codex" in index and "ehr_data_quality" in index
    assert {path.name for path in (site / "tasks").iterdir()} == {
        *(f"0-ehr_data_quality--case-0{n}.html" for n in range(8)),
        "0-ehr_format_conversion--case-00.html",
    }
    data = (site / "data" / "0-ehr_data_quality--case-00.js").read_text()
    value = json.loads(data.partition('window.hab["task"]=')[2].rstrip(";\n"))
    assert len(value["trials"]) == 6 and sum(trial["detail"] for trial in value["trials"]) == 3
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert "http://" not in text and "https://" not in text, "no request leaves the page"
        assert "<script>" not in text and " style=" not in text and "onclick" not in text


def test_gold_only_when_asked_for(run, tmp_path):
    assert "GOLD-7" not in everything(build_site([run], tmp_path / "a").parent)
    shown = everything(build_site([run], tmp_path / "b", Options(with_gold=True)).parent)
    assert "GOLD-7" in shown and "Shows gold" in shown


def test_neither_verdicts_words_nor_the_oracles_submission_without_gold(tmp_path):
    agents = (("oracle", "-", "", 0), ("codex", "gpt-5.4", "", 0))
    plan = simulate.run_plan(simulate.trial_plans(agents, 1, 1, TWO), run_id="run")
    run = RunFolder.create(tmp_path / "run", plan, "0")
    for trial in plan.trials[:2]:
        fill(run, trial, submission=b"THE-ANSWER" if trial.harness == "oracle" else b"a guess")
        run.append(Event(at=simulate.START, kind="trial_ended", trial_id=trial.trial_id, record=simulate.record(
            plan, trial, Outcome.FAILED, random.Random(0), message="missed cluster GOLD-7")))  # fmt: skip
    public = everything(build_site([run], tmp_path / "a").parent)
    assert "GOLD-7" not in public and "THE-ANSWER" not in public and "a guess" in public
    private = everything(build_site([run], tmp_path / "b", Options(with_gold=True)).parent)
    assert "GOLD-7" in private and "THE-ANSWER" in private


def test_published_agents_only_when_asked_for(run, tmp_path):
    assert "Claude Code (Opus 5)" not in everything(build_site([run], tmp_path / "a").parent)
    page = (build_site([run], tmp_path / "b", Options(with_published=True))).read_text()
    assert "Claude Code (Opus 5)" in page and "not comparable" in page


def test_hostile_text_stays_text(tmp_path):
    plan = simulate.run_plan(simulate.trial_plans(simulate.AGENTS[:1], 1, 1, TWO), run_id="run")
    run = RunFolder.create(tmp_path / "run", plan, "0")
    for trial in plan.trials:
        record = simulate.record(
            plan, trial, Outcome.AGENT_ERROR, random.Random(0), message=EVIL, reason=EVIL, headline=None
        )
        run.append(Event(at=simulate.START, kind="trial_ended", trial_id=trial.trial_id, record=record))
    hostile = {"steps": [step(1, bash(EVIL), message=EVIL, results=[EVIL + "x" * 10_000_000], reasoning_content=EVIL)]}
    fill(run, plan.trials[0], hostile, EVIL.encode(), log=b"\x00\xff" * 10_000)
    site = build_site([run], tmp_path / "site").parent
    for path in site.rglob("*"):
        if path.suffix in (".html", ".js") and path.name not in ("tables.js", "trial.js"):
            text = path.read_text(encoding="utf-8")
            assert "<script>alert" not in text and "<img src=x" not in text
            assert not any(mark in text for mark in ("\x1b", "\x00", "\u202e"))
    assert (site / "data" / "0-ehr_data_quality--case-00.0.js").stat().st_size < 200_000
    assert "onerror" in (site / "tasks" / "0-ehr_data_quality--case-00.html").read_text(), "shown, harmlessly"


def test_readable():
    assert readable("\x1b[1;31mred\x1b[0m \x1b]0;title\x07ok\x1b(B") == "red ok\N{REPLACEMENT CHARACTER}(B"
    assert readable("a\r\nb\x00c\ud800") == "a\nb\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}"
    assert "9980000 characters left out" in readable("x" * 10_000_000)
    assert len(readable("x" * 10_000_000)) < 21_000
    assert script_data("a", "</script>\u2028") == (
        '"use strict";window.hab=window.hab||{};window.hab["a"]="\\u003c/script\\u003e\\u2028";\n'
    )


def test_heads_and_tails(tmp_path):
    file = tmp_path / "f"
    file.write_bytes(b"x" * 50_000)
    assert "30000 bytes left out" in head_of(file)
    file.write_bytes(b"ab\0")
    assert head_of(file) is None
    file.write_bytes(b"1" * 9000 + b"end\xff")
    assert tail_of(file).endswith("end\N{REPLACEMENT CHARACTER}") and len(tail_of(file)) == 4000


def test_a_broken_verdict_or_link_does_not_stop_the_site(run, tmp_path):
    folder = run.trial(run.plan.trials[0])
    folder.verdict.write_text("{")
    (folder.submission / "link").symlink_to("/etc/passwd")
    site = build_site([run], tmp_path / "site").parent
    assert "root:x" not in everything(site)


def test_only_a_site_is_replaced(run, tmp_path):
    out = tmp_path / "site"
    build_site([run], out)
    (out / "stale.html").touch()
    build_site([run], out)
    assert not (out / "stale.html").exists()
    other = tmp_path / "home"
    other.mkdir()
    (other / "thesis.txt").touch()
    with pytest.raises(SiteError, match="not empty"):
        build_site([run], other)
    assert (other / "thesis.txt").exists()


def test_clinical_sites_say_so_and_are_closed_to_others(tmp_path):
    run = simulate.simulate(tmp_path / "run", categories=TWO, attempts=1, durable=False, edition="clinical")
    site = build_site([run], tmp_path / "site", Options(redact=True)).parent
    assert stat.S_IMODE(site.stat().st_mode) == 0o700
    assert "real patients" in (site / "index.html").read_text()


def test_pictures_are_drawn_by_category(run, tmp_path):
    asked = []

    def paint(trial, with_gold):
        asked.append((trial.path.name, with_gold))
        return [Picture("Tiles", "image/svg+xml", b"<svg/>", "three tiles")]

    site = build_site([run], tmp_path / "site", Options(pictures={"ehr_data_quality": paint})).parent
    assert sorted(asked) == [("t1", False), ("t1", False), ("t2", False)]
    assert "data:image/svg+xml;base64,PHN2Zy8+" in everything(site) and "three tiles" in everything(site)


def test_tiles_hit_missed_and_wrong(tmp_path):
    trial = TrialFolder(tmp_path)
    trial.begin()
    (trial.submission / "tumor_tiles.json").write_text(json.dumps({"tiles": [[3, 4], [4, 4], [9, 9]]}))
    wrong = [{"tile": [9, 9], "submitted": True}, {"tile": [5, 4], "submitted": False}]
    verdict = {
        "reward": 0,
        "reason": "below_threshold",
        "headline": 0.5,
        "metrics": {},
        "details": {"wrong_tiles": wrong},
    }
    (trial.next_verifier() / "verdict.json").write_text(json.dumps(verdict))
    (shown,) = tile_grid(trial, True)
    assert shown.alt == "Grid of tiles: 2 tumour, named, 1 named, no tumour, 1 tumour, missed."
    assert ET.fromstring(shown.content).tag.endswith("svg")
    (plain,) = tile_grid(trial, False)
    assert plain.alt == "Grid of tiles: 3 named." and "missed" not in plain.content.decode()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"tiles": 3}', '{"tiles": [[1]]}', '{"tiles": [[-1, 1e9]]}', '{"tiles": [[1, 99999999]]}']
)
def test_odd_tiles_draw_nothing(tmp_path, text):
    trial = TrialFolder(tmp_path)
    trial.begin()
    (trial.submission / "tumor_tiles.json").write_text(text)
    assert tile_grid(trial, True) == [] == tile_grid(trial, False)


def test_errors_hit_and_missed_by_family(tmp_path):
    trial = TrialFolder(tmp_path)
    clusters = [{"id": n, "family": "<units>", "subtype": "mg", "hit": n < 2} for n in range(5)]
    verdict = {
        "reward": 0,
        "reason": "below_threshold",
        "headline": 0.4,
        "metrics": {},
        "details": {"clusters": clusters},
    }
    (trial.next_verifier() / "verdict.json").write_text(json.dumps(verdict))
    (shown,) = cluster_bars(trial, True)
    assert shown.alt == "<units>: mg: 2 of 5 hit" and b"<units>" not in shown.content
    assert cluster_bars(trial, False) == [], "which errors were made is gold"


def judged(folder: Path, details: dict, metrics: dict | None = None) -> TrialFolder:
    trial = TrialFolder(folder)
    trial.begin()
    verdict = {
        "reward": 0,
        "reason": "below_threshold",
        "headline": 0.5,
        "metrics": metrics or {},
        "details": details,
    }
    (trial.next_verifier() / "verdict.json").write_text(json.dumps(verdict))
    return trial


def test_curves_of_predicted_risks(tmp_path):
    groups = [{"predicted": 0.1, "observed": 0.05, "n": 40}, {"predicted": 0.6, "observed": 0.7, "n": 40}]
    details = {"roc": [[0, 0], [0.2, 0.7], [1, 1]], "gate_roc": [[0, 0], [1, 1]], "calibration": groups}
    trial = judged(tmp_path, details, {"realised_auroc": 0.75, "gate_realised_auroc": 0.5})
    (shown,) = event_curves(trial, True)
    assert "submission 0.750, gate 0.500" in shown.alt and "predicted 0.60, observed 0.70 of 40" in shown.alt
    assert ET.fromstring(shown.content).tag.endswith("svg")
    assert event_curves(trial, False) == [], "made of labels"


def test_criteria_trees_of_missed_and_wrong_trials(tmp_path):
    leaves = [
        {"side": "inc", "text": "age >= <18> years", "holds": True, "passes": True},
        {"side": "exc", "text": "dialysis", "holds": True, "passes": False},
    ]
    details = {
        "missed_eligible": [{"trial": "NCT1", "fails_by": [], "criteria": leaves[:1]}],
        "wrong_among_top": [{"trial": "NCT2", "fails_by": ["dialysis"], "criteria": leaves}],
    }
    trial = judged(tmp_path / "new", details)
    missed, wrong = matching_trees(trial, True)
    assert missed.alt == "Criteria of NCT1, missed: every criterion lets the patient in."
    assert wrong.alt == "Criteria of NCT2, wrongly listed: kept out by exclusion: dialysis."
    assert b"<18>" not in wrong.content and ET.fromstring(wrong.content).tag.endswith("svg")
    assert matching_trees(trial, False) == []
    older = {"missed_eligible": ["NCT1"], "wrong_among_top": [{"trial": "NCT2", "criteria": ["dialysis"]}]}
    assert matching_trees(judged(tmp_path / "old", older), True) == []


def test_an_empty_run_has_a_site(tmp_path):
    plan = simulate.run_plan(simulate.trial_plans(categories=TWO), run_id="run")
    index = build_site([RunFolder.create(tmp_path / "run", plan, "0")], tmp_path / "site").read_text()
    assert "no agent with a known value" in everything(tmp_path / "site") and "codex" in index


def test_serving_follows_a_run(tmp_path):
    plan = simulate.run_plan(simulate.trial_plans(simulate.AGENTS[:1], 1, 1, TWO), run_id="run")
    run = RunFolder.create(tmp_path / "run", plan, "0")
    addresses = []
    told = threading.Event()

    def ready(address):
        addresses.append(address)
        told.set()

    threading.Thread(target=serve_site, args=([run],), kwargs={"ready": ready}, daemon=True).start()
    assert told.wait(60)

    def trials():
        with urllib.request.urlopen(addresses[0], timeout=60) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            text = answer.read().decode()
        assert 'http-equiv="refresh"' in text
        return text.count("tasks/0-")

    assert trials() == 0
    run.finish(simulate.record(plan, plan.trials[0], Outcome.PASSED, random.Random(0)))
    assert trials() == 1
