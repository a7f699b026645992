"""Nest the top-level folders under ``hab_suite`` in the wheel, so that no generic name lands in site-packages."""

from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = ("suite", "categories", "containers", "runners", "results", "verifiers_hidden")
found = find_packages(include=[*FOLDERS, *(f"{folder}.*" for folder in FOLDERS)], exclude=["suite.launcher"])


def files(folder: str) -> list[str]:
    """Return every file of a room: images, catalogues and templates lie in folders that are no packages."""
    paths = (path for path in Path(folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(folder).as_posix() for path in paths)


setup(
    packages=["hab_suite", *(f"hab_suite.{name}" for name in found)],
    package_dir={"hab_suite": "suite/launcher", **{f"hab_suite.{folder}": folder for folder in FOLDERS}},
    package_data={f"hab_suite.{folder}": files(folder) for folder in FOLDERS},
)
