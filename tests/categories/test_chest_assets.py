"""The asset that chest tasks stand on: pinned, fetched once, replaced by a stand-in only where no registry answers."""

import hashlib
from pathlib import Path

import pytest

from categories import assets as module
from categories.assets import Asset, AssetError, asset_of, make_ready, needed, state
from categories.catalog import ROOT, folder_digest, load_catalog
from categories.spec import Category, Task
from categories.staging import StageRequest, generator_digest


def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sha256: str = "0" * 64) -> Asset:
    """An asset whose module writes a word: what it was given."""
    package = tmp_path / "toy_derive"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys, pathlib\n"
        "out = pathlib.Path(sys.argv[1])\n"
        "(out / 'made').write_text(pathlib.Path(sys.argv[2]).read_text() if len(sys.argv) > 2 else 'stand-in')\n"
    )
    monkeypatch.setattr(module, "HOUSE", tmp_path)
    asset = asset_of("chest")
    assert asset is not None
    return asset.model_copy(
        update={
            "package": "no-such-package-of-ours",
            "file": "toy.whl",
            "sha256": sha256,
            "derive": "toy_derive",
            "derived_by": ("chest/labels.py",),
        }
    )


def test_a_pinned_file_is_derived_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asset, root = toy(tmp_path, monkeypatch), tmp_path / "assets"
    root.mkdir()
    assert state(asset, root) == "missing"
    (root / "toy.whl").write_text("the real thing")
    monkeypatch.setattr(module, "_sha256", lambda path: asset.sha256)
    assert state(asset, root) == "fetched"
    first = make_ready(asset, root)
    assert first.variant == ""
    assert (first.folder / "made").read_text() == "the real thing"
    assert state(asset, root) == "ready"
    stamp = (first.folder / "made").stat().st_mtime_ns
    assert make_ready(asset, root) == first
    assert (first.folder / "made").stat().st_mtime_ns == stamp


def test_a_stand_in_is_named_where_no_registry_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asset, root, said = toy(tmp_path, monkeypatch), tmp_path / "assets", []
    monkeypatch.setattr(module, "_download", lambda asset, target: "no route")
    made = make_ready(asset, root, said.append)
    assert made.variant == "phantom"
    assert "-phantom-" in made.folder.name
    assert (made.folder / "made").read_text() == "stand-in"
    assert "variant=phantom" in said[0]
    assert "no route" in said[0]


def test_another_file_than_the_pinned_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asset, root = toy(tmp_path, monkeypatch), tmp_path / "assets"
    root.mkdir()
    (root / "toy.whl").write_text("something else")
    with pytest.raises(AssetError, match="remove it"):
        make_ready(asset, root)


def test_a_failing_derivation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asset, root = toy(tmp_path, monkeypatch), tmp_path / "assets"
    (tmp_path / "toy_derive" / "__main__.py").write_text("raise SystemExit('out of paint')")
    monkeypatch.setattr(module, "_download", lambda asset, target: "no route")
    with pytest.raises(AssetError, match="out of paint"):
        make_ready(asset, root)
    assert not list(root.glob("*/done"))


def test_variant_and_shared_code_are_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    category = load_catalog()[0]
    task = Task(category=category, case=next(iter(category.cases)))
    request = StageRequest(task, "s", 0, "small")
    assert request.cache_key() != request.cache_key("phantom")
    sharing = Task(category=Category.model_validate({**dict(category), "shares": ("chest",)}), case=task.case)
    assert generator_digest(sharing) != generator_digest(task)
    assert set(needed((sharing.category,))) == {"chest"}
    before = generator_digest(sharing)
    monkeypatch.setattr(
        "categories.staging.folder_digest",
        lambda folder, besides: "edited" if folder == ROOT / "chest" else folder_digest(folder, besides),
    )
    assert generator_digest(sharing) != before


def test_the_pin_is_in_the_generators_digest() -> None:
    """What decides the template's bytes decides the draw's key: the pin lies in the shared folder."""
    asset = asset_of("chest")
    assert asset is not None
    assert asset.sha256 in (ROOT / "chest" / "asset.toml").read_text()
    assert len(bytes.fromhex(asset.sha256)) == hashlib.sha256().digest_size
