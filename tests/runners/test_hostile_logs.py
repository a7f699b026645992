"""What an agent may leave in its box to break the orchestrator: it becomes a warning, and nothing more."""

import io
import json
import os
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.box import Finished
from runners.archive import keep_files
from runners.harness import HarnessOptions, load_harness
from runners.trajectories import log, story
from runners.trajectories.claude_code import read_claude_code
from runners.trajectories.codex import read_codex
from runners.trajectories.log import rows, session_file
from runners.trajectories.story import Step, Story, Tokens, ToolCall

MODELS = {
    "codex": "gpt-5",
    "claude-code": "claude-sonnet-5",
    "copilot-cli": "gpt-5",
    "gemini-cli": "gemini-2.5-pro",
    "opencode": "gpt-5",
}
LOGS = {
    "codex": "kept/.codex/sessions/rollout-x.jsonl",
    "claude-code": "kept/.claude/projects/p/s.jsonl",
    "copilot-cli": "kept/.copilot/session-state/s/events.jsonl",
    "gemini-cli": "kept/.gemini/tmp/h/chats/session-x.jsonl",
    "opencode": "stdout.log",
}
ENDED = Finished(0, timed_out=False, seconds=1)


class TarBox:
    """A box whose archive somebody made up."""

    def __init__(self, *members: tuple[str, bytes, float], end: bytes = b"") -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, content, mtime in members:
                member = tarfile.TarInfo(name)
                member.size, member.mtime = len(content), mtime
                archive.addfile(member, io.BytesIO(content))
            ended = archive.offset
        self._bytes = packed.getvalue()[:ended] + end if end else packed.getvalue()

    def get(self, path: str) -> Iterator[bytes]:
        assert path
        yield self._bytes


def kept(into: Path) -> dict[str, str]:
    return {path.relative_to(into).as_posix(): path.read_text() for path in into.rglob("*") if path.is_file()}


def test_files_with_names_that_no_host_takes_are_kept_under_another(tmp_path: Path) -> None:
    long, deep, odd = "l" * 300 + ".jsonl", "/".join(["d" * 100] * 60), "a\nb\udcff"
    box = TarBox(*((f"top/{name}", b"x", 1e9) for name in (long, f"{deep}/f.txt", odd, "good")))
    assert keep_files(box, "~/top", tmp_path / "k") == []
    names = kept(tmp_path / "k")
    assert len(names) == 4
    assert "good" in names
    assert any(name.endswith("lll.jsonl") for name in names)
    assert all(len(name) < 100 and name.isprintable() for name in names)


def test_what_cannot_be_kept_is_a_warning_and_the_rest_is_kept(tmp_path: Path) -> None:
    box = TarBox(("top/a", b"x", 1e9), ("top/a/b", b"y", 1e9), ("top/c/d", b"z", 1e9), ("top/c", b"w", 1e9))
    (warning,) = keep_files(box, "~/top", tmp_path / "k")
    assert "2 files could not be kept" in warning
    assert kept(tmp_path / "k") == {"a": "x", "c/d": "z"}


@pytest.mark.parametrize("end", [b"\xff" * 700, b"x" * 512, b"\x00" * 100 + b"\x7f" * 400])
def test_a_damaged_archive_is_a_warning(tmp_path: Path, end: bytes) -> None:
    warnings = keep_files(TarBox(("top/a", b"x", 1e9), end=end), "~/top", tmp_path / "k")
    assert kept(tmp_path / "k") == {"a": "x"}
    (warning,) = warnings
    assert "could not be read" in warning


@pytest.mark.parametrize("mtime", [-1e30, 1e30, -5.0, 1e9])
def test_kept_files_have_their_time_where_it_is_one(tmp_path: Path, mtime: float) -> None:
    warnings = keep_files(TarBox(("top/a", b"x", mtime)), "~/top", tmp_path / "k")
    assert kept(tmp_path / "k") == {"a": "x"}
    if abs(mtime) < 1e12:
        assert not warnings
        assert (tmp_path / "k" / "a").stat().st_mtime == mtime


def test_only_so_many_members_are_looked_at(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("runners.archive.SEEN_FILES", 3)
    keep_files(TarBox(*((f"top/{n}", b"", 1e9) for n in range(9))), "~/top", tmp_path / "k")
    assert len(kept(tmp_path / "k")) == 3


def test_the_session_is_chosen_by_its_id_and_else_by_its_time(tmp_path: Path) -> None:
    ids = ("01990000-aaaa-1", "01990000-bbbb-2")
    for age, name in enumerate(ids):
        (tmp_path / f"rollout-{name}.jsonl").write_text("")
        os.utime(tmp_path / f"rollout-{name}.jsonl", (1000 - age, 1000 - age))
    found = [session_file(tmp_path, "rollout-*.jsonl", session) for session in (*ids, "", "0199", "01990000-cccc")]
    assert [path.stem.removeprefix("rollout-") for path in found] == [*ids, ids[0], ids[0], ids[0]]
    (tmp_path / ids[1]).mkdir()
    (tmp_path / ids[1] / "events.jsonl").write_text("")
    assert session_file(tmp_path, "events.jsonl", ids[1]).parent.name == ids[1]


def test_codex_and_claude_read_the_session_that_standard_output_names(tmp_path: Path) -> None:
    out, sessions = tmp_path / "stdout.log", tmp_path / "sessions"
    sessions.mkdir()
    for name, text in (("session-one", "right"), ("session-two", "wrong")):
        item = {"type": "message", "role": "assistant", "content": [{"text": text}]}
        codex = {"type": "response_item", "payload": item}
        message = {"id": "m", "model": "c", "content": [{"type": "text", "text": text}]}
        (sessions / f"rollout-{name}.jsonl").write_text(json.dumps(codex))
        (sessions / f"{name}.jsonl").write_text(json.dumps({"type": "assistant", "message": message}))
    out.write_text('{"type": "thread.started", "thread_id": "session-one"}\n')
    assert [step.message for step in read_codex(out, sessions).steps] == ["right"]
    out.write_text('{"type": "system", "subtype": "init", "session_id": "session-one"}\n')
    assert [step.message for step in read_claude_code(out, sessions).steps] == ["right"]


DEEP = "[" * 900 + "]" * 900
ODD = {
    "deep": f'{{"type": "assistant", "message": {{"id": "m", "model": "c", "content": {DEEP}}}}}',
    "nested content": '{"type": "user", "message": {"content": %s}}' % ('{"content":' * 800 + '"x"' + "}" * 800),
    "infinite": '{"type": "result", "total_cost_usd": NaN, "modelUsage": {"m": {"inputTokens": Infinity}}}',
    "negative": '{"type": "result", "total_cost_usd": -1, "modelUsage": {"m": {"inputTokens": -5}}}',
    "huge": '{"type": "result", "modelUsage": {"m": {"inputTokens": %s}}}' % ("9" * 4200),
    "surrogates": '{"type": "result", "subtype": "\\ud800", "modelUsage": {"\\ud800": {"inputTokens": 5}}}',
    "types": '{"type": "assistant", "message": {"content": "x", "usage": 3}}',
    "arguments": '{"type": "assistant", "message": {"id": "m", "content": [{"type": "tool_use", "input": %s}]}}'
    % ('{"a":' * 700 + "1" + "}" * 700),
    "tokens": '{"type": "step_finish", "part": {"tokens": {"input": %s}}}' % ("9" * 4200),
    "step": '{"type": "step_start", "timestamp": 1e300}',
    "codex": json.dumps(
        {"type": "response_item", "payload": {"type": "function_call", "arguments": '{"a":' * 900 + "1" + "}" * 900}}
    ),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("cli", MODELS)
def test_no_log_raises(tmp_path: Path, cli: str, odd: str) -> None:
    for name in ("stdout.log", LOGS[cli]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(ODD[odd] + "\n")
    reading = load_harness(cli, HarnessOptions(model=MODELS[cli])).read(tmp_path, ENDED)
    json.dumps(reading.trajectory, indent=1)
    "".join((reading.message, *reading.warnings, *(usage.model for usage in reading.usage))).encode()
    assert all(0 <= usage.input_tokens <= story.MAX_COUNT for usage in reading.usage)
    assert reading.cost_usd is None or reading.cost_usd >= 0


def test_what_cannot_be_told_is_a_warning() -> None:
    deep: dict = {}
    for _ in range(3000):
        deep = {"a": deep}
    found = Story("codex", steps=[Step("agent", calls=[ToolCall("1", "f", deep)])])
    found.spend("good", Tokens(input=5))
    found.spend("bad", Tokens(input=-5))
    usage, cost, trajectory = found.told("openai")
    assert ([entry.model for entry in usage], cost, trajectory) == (["good"], None, None)
    assert len(found.warnings) == 2


def test_a_long_log_is_read_at_both_ends(tmp_path: Path, monkeypatch) -> None:
    path, teller = tmp_path / "log", Story("x")
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(1000, 2000)))
    monkeypatch.setattr(log, "HEAD_BYTES", 120)
    monkeypatch.setattr(log, "TAIL_BYTES", 60)
    assert [row["n"] for row in rows(path, teller)] == [*range(1000, 1010), *range(1996, 2000)]
    assert "left out" in teller.warnings[0]
    monkeypatch.undo()
    assert len(list(rows(path, Story("x")))) == 1000
    monkeypatch.setattr(log, "MAX_ROWS", 5)
    teller = Story("x")
    assert len(list(rows(path, teller))) == 10
    assert "more than 5 rows" in teller.warnings[0]


def test_steps_calls_models_and_warnings_have_an_end() -> None:
    found = Story("x")
    tracemalloc.start()
    for n in range(story.MAX_CALLS + 10):
        found.ask(found.add(Step("agent")), ToolCall(str(n), "f", {}))
        found.spend(f"m{n}", Tokens(input=1))
        found.warn(f"w{n}")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(found.steps), len(found.spent), len(found.warnings)) == (
        story.MAX_STEPS,
        story.MAX_MODELS,
        story.MAX_WARNINGS,
    )
    assert found.call("7").id == "7"
    assert found.call(str(story.MAX_CALLS + 5)) is None
    assert peak < 200 << 20


def test_a_message_grows_to_a_length_only() -> None:
    step = Step("agent")
    for _ in range(1000):
        step.say("x" * 1000)
    assert len(step.message) < 2 * story.MAX_TEXT
