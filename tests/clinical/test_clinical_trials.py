"""Trial matching on TREC: which trials make the pool, which are gold, and that no number leads back."""

import json
import re

import pytest
import trec

from categories.catalog import find_task
from categories.clinical_trial_matching.clinical import DRAWN, DRAWN_VARIANT, choose_pool, opaque_numbers
from categories.draw import Draw
from categories.sources.agreements import Agreements
from categories.sources.errors import SourceError
from categories.sources.readiness import sources_digest, state_of
from categories.sources.settings import Settings
from categories.sources.spec import find_source
from categories.staging import StageRequest, StagingError, staged

TASK = "clinical_trial_matching/nephrology"
TOPIC = 6


def draw_of(scale: str = "full") -> Draw:
    return Draw("nephrology", find_task(TASK).spec, b"k" * 32, scale)


def test_every_trial_judged_below_eligible_is_in_the_full_pool_and_of_the_eligible_only_gold() -> None:
    grades = trec.judged()[TOPIC]
    gold = tuple(trec.audited(TOPIC))
    pool = choose_pool(draw_of(), grades, gold)
    assert set(pool.grades) == {trial for trial, grade in grades.items() if grade < 2} | set(gold)
    assert pool.gold == tuple(sorted(gold))
    small = choose_pool(draw_of("small"), grades, gold)
    assert set(small.grades) < set(pool.grades)
    assert small.gold == pool.gold


def test_without_the_audit_four_to_nine_are_drawn_and_the_rest_left_out() -> None:
    grades = trec.judged()[TOPIC]
    pool = choose_pool(draw_of(), grades, None)
    assert DRAWN[0] <= len(pool.gold) <= DRAWN[1]
    assert [grade for trial, grade in pool.grades.items() if grade == 2] == [2] * len(pool.gold)
    assert choose_pool(draw_of(), grades, None) == pool


def test_an_audit_of_other_topics_is_refused() -> None:
    with pytest.raises(SourceError, match="does not call all audited trials eligible"):
        choose_pool(draw_of(), trec.judged()[TOPIC], ("NCT99999999",))


def test_what_is_shown_holds_no_number_name_or_citation_of_the_source(stage) -> None:
    draw = stage(TASK)
    real = {trial for pool in trec.judged().values() for trial in pool}
    files = list((draw.public / "trials").glob("*.xml"))
    shown = {path.stem for path in files}
    assert len(shown) == len(files) > 100
    assert not shown & real
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"NCT\d{8}", text)) & real == set()
        assert f"<nct_id>{path.stem}</nct_id>" in text
        assert f"https://clinicaltrials.gov/show/{path.stem}" in text
        for word in ("Real ", "EUDRACT", "SITE-", "PMID", "April 27, 2021", "example.org", "rank=", "NCT00000001"):
            assert word not in text, word
        assert "Inclusion Criteria:\n\n          -  Age of" in text
        assert re.search(r"<brief_title>Drug \d+ for a disease &amp; its mimics</brief_title>", text)
    note = (draw.public / "patient.txt").read_text()
    assert note == "A 6-year-old patient has a disease; no other complaint."
    assert str(TOPIC) not in {path.name for path in draw.public.iterdir()}


def test_gold_is_the_audited_trials_under_their_new_numbers(stage) -> None:
    draw = stage(TASK)
    gold = json.loads((draw.gold / "gold.json").read_text())
    numbers = {
        re.search(r"Drug (\d+) ", (draw.public / "trials" / f"{t}.xml").read_text())[1] for t in gold["eligible"]
    }
    assert numbers == {str(int(trial[3:])) for trial in trec.audited(TOPIC)}
    assert draw.variant == ""
    assert {entry["bucket"] for entry in gold["trials"].values()} == {
        "eligible",
        "excluded by a criterion",
        "not relevant",
    }


def test_order_and_size_of_files_do_not_follow_the_source(stage) -> None:
    draw = stage(TASK)
    numbers = [int(path.stem[3:]) for path in sorted((draw.public / "trials").glob("*.xml"))]
    real = [
        int(re.search(r"Drug (\d+) ", path.read_text())[1]) for path in sorted((draw.public / "trials").glob("*.xml"))
    ]
    assert numbers == sorted(numbers)
    assert real != sorted(real)


def test_declining_the_audit_makes_another_variant(clinic, tmp_path, monkeypatch) -> None:
    settings = Settings.load()
    monkeypatch.setenv("HAB_SUITE_CONFIG", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "sources.toml").write_text((settings.config / "sources.toml").read_text())
    for name in ("trec_ct_2021", "clinicaltrials_2021"):
        Agreements(tmp_path / "config").accept(find_source(name))
    clinic.open_for(find_task(TASK))
    before = len(clinic["audited_trials"].asked)
    with staged(StageRequest(find_task(TASK), "0", 0, "small", "clinical"), tmp_path) as draw:
        assert draw.variant == DRAWN_VARIANT
        assert DRAWN[0] <= len(json.loads((draw.gold / "gold.json").read_text())["eligible"]) <= DRAWN[1]
    assert len(clinic["audited_trials"].asked) == before


def test_the_audit_counts_only_once_it_was_accepted_however_it_would_come(user, tmp_path, monkeypatch) -> None:
    """Else a drawn gold would be kept under the name of the audited one."""
    task, audit = find_task(TASK), find_source("audited_trials")
    without = sources_digest(task, Settings.load(), tmp_path)
    for name, value in (("HAB_SUITE_OFFLINE", "1"), (audit.folder_variable, str(tmp_path))):
        monkeypatch.setenv(name, value)
        assert sources_digest(task, Settings.load(), tmp_path) == without
        assert state_of(audit, Settings.load(), tmp_path).word == "skipped"
    Agreements(user).accept(audit)
    assert sources_digest(task, Settings.load(), tmp_path) != without


def test_a_trial_that_the_snapshot_lacks_is_named(clinic, tmp_path, monkeypatch) -> None:
    host = clinic["trec_ct_2021"]
    more = host.files["qrels2021.txt"] + f"{TOPIC} 0 NCT09999999 1\n".encode()
    monkeypatch.setitem(host.files, "qrels2021.txt", more)
    with (
        pytest.raises(StagingError, match="lack 1 trials of the pool, first NCT09999999"),
        staged(StageRequest(find_task(TASK), "0", 0, "full", "clinical"), tmp_path),
    ):
        pass


def test_opaque_numbers_are_keyed_and_within_the_registrys_range() -> None:
    trials = sorted(trec.judged()[TOPIC])
    names = opaque_numbers(draw_of(), trials)
    assert len(set(names.values())) == len(trials)
    assert names == opaque_numbers(draw_of(), trials[::-1])
    other = Draw("nephrology", find_task(TASK).spec, b"l" * 32, "full")
    assert opaque_numbers(other, trials) != names
