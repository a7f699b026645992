"""The shape of a staged file: what a test of the layout compares between editions."""

import gzip
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq


def tree(folder: Path, depth: int = 9) -> dict[str, Any]:
    """Return name -> shape of all files below a folder; numbers and drawn names are written as #.

    ``depth``: how far into JSON documents; what gold says beside the answer differs between editions.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [re.sub(r"[0-9a-f]{8,}|\d+", "#", path.relative_to(folder).as_posix()) for path in files]
    return {name: shape(path, depth) for name, path in zip(names, files, strict=True)}


def shape(path: Path, depth: int) -> Any:
    """Return columns, keys or kinds, by the format."""
    name = path.name
    if depth == 1 and not name.endswith(".json"):
        return path.suffix
    if name.endswith((".csv", ".csv.gz")):
        text = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
        return text.partition(b"\n")[0].decode().strip().split(",")
    if name == "sha256.json":
        return "seal"
    if name.endswith(".json"):
        return kinds(json.loads(path.read_text()), depth)
    if name.endswith(".parquet"):
        return {field.name: str(field.type) for field in pq.read_schema(path)}
    if name.endswith(".xml"):
        return ET.parse(path).getroot().tag
    return path.suffix


def kinds(value: Any, depth: int) -> Any:
    """Return a document's structure: keys of objects (a mapping by id is one entry), kind of values."""
    if depth == 0:
        return type(value).__name__
    if isinstance(value, dict):
        keys = list(value)
        if len(keys) > 3 and len({re.sub(r"[0-9a-f]+", "#", key) for key in keys}) == 1:
            return {"#": kinds(next(iter(value.values())), depth - 1)}
        return {key: kinds(inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [kinds(value[0], depth - 1)] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
