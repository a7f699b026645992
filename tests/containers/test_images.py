"""When an image is built, from what, and what it does not give away."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from docker import APIClient

from containers import images
from containers.box import EngineError
from containers.images import ensure_image, ensure_task_image, image_tag, prune, roles
from containers.scripted_engine import Reply, ScriptedEngine


@pytest.fixture
def scripted():
    return ScriptedEngine(lambda _: Reply())


@pytest.fixture
def two_roles(tmp_path, monkeypatch):
    """``small`` stands on ``base``; both may be edited."""
    folders = tmp_path / "images"
    shutil.copytree(images.FOLDERS / "base", folders / "base")
    (folders / "small").mkdir()
    (folders / "small" / "Dockerfile").write_text("ARG PARENT=base\nFROM ${PARENT}\nCOPY note.txt /note.txt\n")
    (folders / "small" / "note.txt").write_text("one")
    monkeypatch.setattr(images, "FOLDERS", folders)
    return folders


def test_every_folder_is_a_role_and_every_parent_exists():
    assert {"base", "tabular", "verifier", "verifier-base"} <= set(roles())
    for role in roles():
        assert image_tag(role, {}).startswith(f"hab-suite/{role}:")
    with pytest.raises(EngineError, match="base, "):
        image_tag("no-such-role", {})


def test_locked_roles_name_no_index_and_hash_everything():
    for lock in images.FOLDERS.glob("*/requirements.lock"):
        text = lock.read_text()
        assert "://" not in text and "--index" not in text and "--find-links" not in text, lock
        requirements = text.replace("\\\n", " ").splitlines()
        assert all("--hash=sha256:" in line for line in requirements if line and not line.lstrip().startswith("#")), (
            lock
        )


def test_tag_follows_content_and_parent(two_roles):
    first = image_tag("small", {})
    assert image_tag("small", {}) == first
    with_extra = image_tag("small", {"a.txt": b"1"})
    assert len({first, with_extra, image_tag("small", {"a.txt": b"2"}), image_tag("small", {"b.txt": b"1"})}) == 4
    (two_roles / "small" / "note.txt").write_text("two")
    second = image_tag("small", {})
    assert second != first
    (two_roles / "base" / "make-env.sh").write_text("#!/bin/sh\n")
    assert image_tag("small", {}) not in (first, second)
    before = image_tag("small", {})
    (two_roles / "small" / "requirements.in").write_text("numpy\n")
    assert image_tag("small", {}) == before, "what a lock was made from is not built"


def test_parents_are_built_first_and_nothing_twice(scripted, two_roles, tmp_path):
    said = []
    tag = ensure_image(scripted, "small", {"a.txt": b"1"}, tmp_path, said.append)
    assert [build.tag for build in scripted.record.builds] == [image_tag("base", {}), tag]
    base, small = scripted.record.builds
    assert base.args["PARENT"] == "hab-suite/debian:bookworm" and small.args["PARENT"] == base.tag
    assert {"Dockerfile", "note.txt", "extra/a.txt", "host/ca.crt", "host/pip.conf"} == set(small.context)
    assert said[-2:] == ["building image base", "building image small"]
    assert ensure_image(scripted, "small", {"a.txt": b"1"}, tmp_path) == tag and len(scripted.record.builds) == 2


def test_one_builds_and_the_others_wait(two_roles, tmp_path):
    engine = ScriptedEngine(lambda _: Reply())
    barrier = threading.Barrier(6)
    build = engine.build

    def slow_build(*arguments, **options):
        threading.Event().wait(0.1)
        build(*arguments, **options)

    engine.build = slow_build

    def ensure(_):
        barrier.wait()
        return ensure_image(engine, "small", {}, tmp_path)

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(ensure, range(6)))) == 1
    assert len(engine.record.builds) == 2


def test_prune_keeps_what_is_current(scripted, two_roles, tmp_path):
    old = ensure_image(scripted, "small", {}, tmp_path)
    verifier = ensure_image(scripted, "small", {"v.py": b""}, tmp_path)
    (two_roles / "small" / "note.txt").write_text("two")
    new = ensure_image(scripted, "small", {}, tmp_path)
    task = ensure_task_image(scripted, {"task/instruction.md": b"do"}, new, tmp_path)
    assert prune(scripted, {verifier, task}) == [old]
    assert set(scripted.images()) == {image_tag("base", {}), new, verifier, task, "hab-suite/debian:bookworm"}
    assert prune(scripted, set()) == sorted([verifier, task])


@pytest.mark.engine
def test_second_ensure_is_no_build(engine, base, two_roles, tmp_path, monkeypatch):
    tag = ensure_image(engine, "small", {}, tmp_path)
    monkeypatch.setattr(engine, "build", lambda *_, **__: pytest.fail("built again"))
    assert ensure_image(engine, "small", {}, tmp_path) == tag
    assert tag in engine.images() and engine.image_mb(tag) >= engine.image_mb(base) > 50
    engine.remove_image(tag)
    engine.remove_image(tag)
    assert not engine.has_image(tag)


@pytest.mark.engine
def test_task_image_holds_its_files(engine, base, tmp_path, spec, opened, say):
    tag = ensure_task_image(engine, {"task/instruction.md": b"Find the error.\n"}, base, tmp_path)
    box = opened(replace(spec, image=tag))
    assert say(box, "cat /task/instruction.md; id -un") == (0, "Find the error.\nagent")
    box.remove()
    engine.remove_image(tag)


@pytest.mark.engine
def test_build_settings_stay_out_of_the_image(engine, base, tmp_path, two_roles, monkeypatch):
    for name in ("http_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://user:hunter2@127.0.0.1:9")
    monkeypatch.setattr(images, "build_files", lambda: {"host/pip.conf": b"index-url = https://u:hunter2@h/\n"})
    (two_roles / "small" / "Dockerfile").write_text(
        "ARG PARENT=base\n"
        "FROM ${PARENT} AS packages\nARG STAGE\nLABEL hab-suite.stage=${STAGE}\nCOPY host/pip.conf /tmp/pip.conf\n"
        'RUN test -n "$http_proxy" && grep -c hunter2 /tmp/pip.conf > /opt/env/seen\n'
        'FROM ${PARENT}\nCOPY --from=packages /opt/env /opt/env\nRUN test -n "$HTTPS_PROXY" && cat /opt/env/seen\n'
    )
    api = APIClient()
    drop, held, stages = engine._drop_stages, [], []

    def watched(stage: str) -> None:
        stages.append({"dangling": True, "label": [f"hab-suite.stage={stage}"]})
        held.extend(api.images(filters=stages[0]))
        drop(stage)

    monkeypatch.setattr(engine, "_drop_stages", watched)
    tag = ensure_image(engine, "small", {}, tmp_path)
    told = str(api.history(tag)) + str(api.inspect_image(tag))
    left = api.images(filters=stages[0])
    api.close()
    engine.remove_image(tag)
    assert "hunter2" not in told
    assert held and not left, "the stage that held the password is gone"


@pytest.mark.engine
def test_failed_build_shows_its_last_lines(engine, base, tmp_path, two_roles):
    (two_roles / "small" / "Dockerfile").write_text("ARG PARENT=base\nFROM ${PARENT}\nRUN echo the reason; exit 9\n")
    with pytest.raises(EngineError, match=r"(?s)Building hab-suite/small.*the reason.*returned a non-zero code: 9"):
        ensure_image(engine, "small", {}, tmp_path)


@pytest.mark.engine
def test_pull_of_what_no_registry_has(engine):
    assert engine.pull("localhost:1/nothing:1") is False
