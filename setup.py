"""Nest the top-level folders under ``hab_suite`` in the wheel, so that no generic name lands in site-packages."""

from setuptools import find_packages, setup

FOLDERS = ("suite", "categories", "containers", "runners", "results", "verifiers_hidden")
found = find_packages(include=[*FOLDERS, *(f"{folder}.*" for folder in FOLDERS)], exclude=["suite.launcher"])
setup(
    packages=["hab_suite", *(f"hab_suite.{name}" for name in found)],
    package_dir={"hab_suite": "suite/launcher", **{f"hab_suite.{folder}": folder for folder in FOLDERS}},
)
