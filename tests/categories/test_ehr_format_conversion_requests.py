"""The requests vary in words and layout, say all and nothing twofold, and an honest reader arrives at the change drawn."""

import importlib.util
import itertools
import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

from categories.catalog import find_task
from categories.draw import Draw
from categories.ehr_format_conversion.change import Change, draw_change
from categories.ehr_format_conversion.drafting import drafted
from categories.ehr_format_conversion.files import document
from categories.ehr_format_conversion.request import LAYOUTS, request
from categories.ehr_format_conversion.voice import Voice, wordings
from categories.seed import case_key

TASK = find_task("ehr_format_conversion/mimic_iv_to_meds")
DEFAULT = document("events.json")
PRIVATE = 200
LADDER = Path(__file__).parents[1] / "ladder" / "ehr_format_conversion_l1.py"


def asked(seed: str) -> tuple[Change, str]:
    """Return the change of a seed and its request."""
    key = case_key(seed, TASK.category.id, TASK.data_case, 0)
    draw = Draw(case=TASK.case, spec=TASK.spec, key=key, scale="small")
    change = draw_change(draw.rng("change"), DEFAULT)
    return change, request(change.wanted, draw.rng("wording"))


@pytest.fixture(scope="module")
def private() -> list[tuple[Change, str]]:
    return [asked(f"request {number}") for number in range(PRIVATE)]


def script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"conversion_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def meaning(events: dict[str, Any]) -> dict[str, list[str]]:
    """An event configuration without the names of events and with all times' forms as lists."""
    return {
        table: sorted(json.dumps({**e, "time_format": forms(e)}, sort_keys=True) for e in named.values())
        for table, named in events.items()
        if table != "subject_id_col"
    }


def forms(event: dict[str, Any]) -> list[str]:
    form = event.get("time_format") or []
    return [form] if isinstance(form, str) else form


def fresh() -> dict[str, Any]:
    return json.loads(json.dumps(DEFAULT))


def sentences(text: str) -> set[str]:
    """Return a request's statements: sentences, entries of lists, rows of tables."""
    lines = re.sub(r"\n\s+", " ", re.sub(r"(?<![:|\s])\n(?=[^\n*|#-])", " ", text)).splitlines()
    return {one for line in lines for one in re.split(r"(?<=\.) ", line) if len(one) > 3 and "---" not in one}


def test_changes_vary(private) -> None:
    assert len({json.dumps(change.events, sort_keys=True) for change, _ in private[:60]}) >= 55


def test_the_request_alone_leads_to_the_wanted_configuration(private) -> None:
    """The reference reads only what an agent reads; for all private requests it arrives at the gold's events."""
    reference = script(TASK.category.folder / "reference.py")
    for number, (change, text) in enumerate(private):
        assert meaning(reference.changed(fresh(), text)) == meaning(change.events), number


def test_patterns_fitted_to_one_request_do_not_read_the_others(private) -> None:
    """The ladder's L1 reads seed 0's request rightly, and at most one in ten of the others."""
    fitted = script(LADDER)
    change, text = asked("0")
    assert meaning(fitted.configured(text, fresh())) == meaning(change.events)
    right = 0
    for wanted, other in private:
        try:
            right += meaning(fitted.configured(other, fresh())) == meaning(wanted.events)
        except (KeyError, IndexError, AttributeError, TypeError):
            continue
    assert right <= PRIVATE / 10


def test_no_two_of_ten_requests_share_half_their_sentences(private) -> None:
    said = [sentences(text) for _, text in private[:10]]
    for one, other in itertools.combinations(said, 2):
        assert len(one & other) < min(len(one), len(other)) / 2


def test_every_layout_and_every_phrase_is_used(private) -> None:
    openings = Counter(layout.__name__ for layout in LAYOUTS)
    marks = {
        "specification": r"^## 1\. ",
        "by_table": r"^## `\w+/",
        "grid": r"^\| ---",
        "form": r"^\*\*Change 1 of",
        "ticket": r"^- \[ \] ",
        "email": r"^P\.S\. ",
        "thread": r"^---$",
        "minutes": r"^Present: ",
    }
    assert marks.keys() == openings.keys()
    for name, mark in marks.items():
        share = sum(bool(re.search(mark, text, re.MULTILINE)) for _, text in private) / PRIVATE
        assert 0.05 <= share <= 0.25, name
    everything = " ".join(" ".join(text.split()) for _, text in private).lower()
    mentions = wordings("mentions")
    phrases = [*mentions["events"].values(), *(m for table in mentions["columns"].values() for m in table.values())]
    unused = [phrase for some in phrases for phrase in some if phrase.lower() not in everything]
    assert len(unused) <= 3, unused  # rare draws


def test_what_has_to_be_written_as_asked_stands_in_the_request(private) -> None:
    """Prefixes and names of carried columns are never described; ``hadm_id`` is stated, the rules too."""
    for change, text in private:
        flat = " ".join(text.split())
        wanted = change.wanted
        for split in wanted.splits:
            assert f"`{split.name}`" in text
            for field, prefix in split.fields.items():
                assert f"`{prefix}" in text or (prefix == field.upper() and "in capitals" in flat)
        assert all(f"`{one.prefix}`" in text for one in wanted.prefixes)
        assert all(f"`{one.name}`" in text for one in wanted.carried)
        assert "`hadm_id`" in text
        for rule in ("copy", "prefix", "split", "time", "rest", "names"):
            assert sum(said in flat for said in wordings("rules")[rule]) == 1, rule


def test_a_change_touches_only_what_was_drawn(private) -> None:
    for change, _ in private[:60]:
        wanted = change.wanted
        touched = {one.event for one in (*wanted.splits, *wanted.carried, wanted.retime)}
        touched |= {name for one in wanted.prefixes for name in one.events}
        for table, named in change.events.items():
            for name, event in named.items() if isinstance(named, dict) else ():
                if name in DEFAULT[table] and f"{table}.{name}" not in touched:
                    assert event == DEFAULT[table][name]
        assert set(change.first_parts) >= {prefix for split in wanted.splits for prefix in split.fields.values()}


def test_a_draft_differs_from_what_is_wanted_and_every_kind_of_correction_occurs(private) -> None:
    kinds: Counter[str] = Counter()
    for number, (change, _) in enumerate(private):
        draft, corrections = drafted(Voice(np.random.default_rng(number)), change.wanted, 2)
        assert draft != change.wanted
        assert len(corrections) == 2
        kinds.update(one.kind for one in corrections)
    assert kinds.keys() == wordings("sentences")["correction"].keys()
    assert min(kinds.values()) >= PRIVATE / 50


def test_the_newest_message_may_stand_on_top(private) -> None:
    """The order of a thread has to be taken from its dates."""
    firsts = []
    for _, text in private:
        dates = re.findall(r"^Date: (.+?)\s*$", text, re.MULTILINE)
        if "\n---\n" in text:
            assert sorted(dates) in (dates, dates[::-1])
            firsts.append(dates == sorted(dates))
    assert 0.2 <= sum(firsts) / len(firsts) <= 0.8


def test_a_description_fits_one_column_or_event_alone() -> None:
    meant = defaultdict(set)
    for table, columns in wordings("mentions")["columns"].items():
        for name, phrases in columns.items():
            for phrase in phrases:
                meant[phrase].add(name)
                assert not any(phrase in other for one in columns for other in columns[one] if one != name), (
                    table,
                    phrase,
                )
    assert all(len(names) == 1 for names in meant.values())
    for name, phrases in wordings("mentions")["events"].items():
        hosts = name.split("+")
        assert all(host.rpartition(".")[2] in DEFAULT[host.rpartition(".")[0]] for host in hosts)
        for phrase in phrases:
            code = re.search(r"coded `(\S+)//\.\.\.`", phrase)
            table = re.search(r"made from `(\w+)`", phrase)
            if code:
                assert _coded(code[1].split("//")) == hosts
            if table:
                assert [one for one in _all_events() if one.partition(".")[0].endswith(f"/{table[1]}")] == hosts


def _all_events() -> dict[str, dict[str, Any]]:
    return {f"{t}.{n}": e for t, named in DEFAULT.items() if isinstance(named, dict) for n, e in named.items()}


def _coded(parts: list[str]) -> list[str]:
    return [name for name, event in _all_events().items() if [*event["code"]][: len(parts)] == parts]


def test_described_columns_exist_and_their_sample_values_tell_them_apart(stage) -> None:
    raw = stage(TASK.id, "tables").public / "raw_input"
    for name, columns in wordings("mentions")["columns"].items():
        table = pl.read_csv(raw / f"{name}.csv.gz", infer_schema=False)
        derived = {"hadm_discharge_time"} if name == "hosp/drgcodes" else set()
        assert {*columns} <= {*table.columns} | derived, name
        for column, phrases in columns.items():
            for value in re.findall(r"`([^`]+)`", " ".join(phrases)):
                holders = [one for one in table.columns if (table[one] == value).any()]
                assert holders == [column], (name, column, value)
