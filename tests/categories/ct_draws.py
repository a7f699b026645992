"""Draws of CT cases for tests that look into the generator."""

from categories.assets import asset_of, assets_folder, make_ready
from categories.catalog import find_task
from categories.draw import Draw
from categories.seed import case_key
from categories.spec import Scale
from runners.cache import default_cache


def draw_of(case: str, seed: str, instance: int = 0, scale: Scale = "small") -> Draw:
    """Return the draw that staging would make."""
    asset = asset_of("chest")
    assert asset is not None
    folder = make_ready(asset, assets_folder(default_cache().root)).folder
    key = case_key(seed, "ct_abnormality", case, instance)
    return Draw(case=case, spec=find_task(f"ct_abnormality/{case}").spec, key=key, scale=scale, assets=folder)
