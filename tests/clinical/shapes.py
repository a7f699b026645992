"""The shape of a staged file: what a test of the layout compares between editions."""

import gzip
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq


def tree(folder: Path) -> dict[str, Any]:
    """Return name -> shape of all files below a folder; numbers in names are written as #."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {re.sub(r"\d+", "#", path.relative_to(folder).as_posix()): shape(path) for path in files}


def shape(path: Path) -> Any:
    """Return columns, keys or kinds, by the format."""
    name = path.name
    if name.endswith((".csv", ".csv.gz")):
        text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
        return text.partition(b"\n")[0].decode().strip().split(",")
    if name == "sha256.json":
        return "seal"
    if name.endswith(".json"):
        return kinds(json.loads(path.read_text()))
    if name.endswith(".parquet"):
        return {field.name: str(field.type) for field in pq.read_schema(path)}
    if name.endswith(".xml"):
        return ET.parse(path).getroot().tag
    return path.suffix


def kinds(value: Any) -> Any:
    """Return a document's structure: keys of objects (a mapping by id is one entry), kind of values."""
    if isinstance(value, dict):
        keys = list(value)
        if len(keys) > 3 and len({re.sub(r"[0-9a-f]+", "#", key) for key in keys}) == 1:
            return {"#": kinds(next(iter(value.values())))}
        return {key: kinds(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [kinds(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
