"""The submitted package as data: its files are hashed, its configuration is parsed safely, nothing of it is run."""

import ast
import hashlib
import json
import re
import reprlib
from pathlib import Path
from typing import Any

import yaml

from verifiers_hidden.kit import GoldError, Reason, Refused, read_bytes, read_text

DEFAULT, CUSTOM = "configs/event_configs.yaml", "configs/custom_event_configs.yaml"
MAY_CHANGE = ("__main__.py", "configs/main.yaml")
"""Where a way to name another event configuration may be added."""
MAX_BYTES = 256 << 10
MAX_NODES = 20_000
MAX_EVENTS, MAX_KEYS = 200, 40
"""Events of a configuration, and keys of an event: what it may make the ETL write is bounded by them."""
TAGS = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "null", "map", "seq", "bool", "int", "merge"))
MAX_DIGITS = 18
TABLE = re.compile(r"[A-Za-z0-9_-]{1,80}(/[A-Za-z0-9_-]{1,80})?")
Config = dict[str, Any]
YAML_ERRORS = (yaml.YAMLError, RecursionError, LookupError, AttributeError, ArithmeticError, TypeError, ValueError)
"""What the parser raises: its own errors, and what its constructors stumble over (a bool that is none: KeyError)."""


def same_file(submitted: Path, pristine: Path) -> bool:
    """Compare two files by content, line endings aside."""
    try:
        found = read_bytes(submitted, limit=MAX_BYTES)
    except Refused as refusal:
        if refusal.reason != Reason.EMPTY_SUBMISSION:
            return False
        found = b""
    digests = [hashlib.sha256(data.replace(b"\r\n", b"\n")).digest() for data in (found, pristine.read_bytes())]
    return digests[0] == digests[1]


def changed_files(package: Path, pristine: Path) -> list[str]:
    """Return the package's own files that were changed or left out although they must not be."""
    files = [path.relative_to(pristine) for path in sorted(pristine.rglob("*")) if path.is_file()]
    fixed = [name for name in files if name.as_posix() not in (*MAY_CHANGE, DEFAULT)]
    changed = [name.as_posix() for name in fixed if not same_file(package / name, pristine / name)]
    main = package / "__main__.py"
    if not same_file(main, pristine / "__main__.py") and not _uses_default(main):
        changed.append("__main__.py (it no longer uses EVENT_CFG)")
    try:
        read_bytes(package / "configs/main.yaml", limit=MAX_BYTES)
    except Refused as refusal:
        changed.append(str(refusal))
    return changed


def check_pristine(pristine: Path) -> None:
    """Tell a gold package that lost files from a submission that changed them.

    Raises:
        GoldError: files of the package are missing or empty.
    """
    try:
        for name in (*MAY_CHANGE, DEFAULT, "__init__.py"):
            if not (pristine / name).stat().st_size:
                raise GoldError(f"gold {name} is empty")
        empty = [path.name for path in pristine.rglob("*") if path.is_file() and not path.stat().st_size]
    except OSError as error:
        raise GoldError(f"gold package: {error}") from error
    if set(empty) - {"__init__.py"}:
        raise GoldError(f"gold package: empty files: {', '.join(sorted(empty))}")


def gold_config(path: Path) -> Config:
    """Parse one of our own configurations.

    Raises:
        GoldError: it is missing or damaged.
    """
    try:
        return load_config(path)
    except Refused as refusal:
        raise GoldError(f"gold {path.name}: {refusal}") from refusal


def _uses_default(path: Path) -> bool:
    """Tell whether a changed ``__main__.py`` still reads the package's default configuration by its name."""
    try:
        tree = ast.parse(read_text(path, limit=MAX_BYTES))
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    except (Refused, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(node.id == "EVENT_CFG" and isinstance(node.ctx, ast.Load) for node in names)


def load_config(path: Path) -> Config:
    """Parse an event configuration with no tags but YAML's own, bounded in size after all aliases are followed.

    Raises:
        Refused: it is missing, no valid YAML, or not of the form of an event configuration.
    """
    text = read_text(path, limit=MAX_BYTES)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        _measure(root, {}, set())
        document = yaml.safe_load(text)
    except YAML_ERRORS as error:
        raise _wrong(f"{path.name} is no acceptable YAML: {error}") from None
    return _checked(document)


def _measure(node: Any, sizes: dict[int, int], open_nodes: set[int]) -> int:
    """Return a node's size with every alias followed; refuse cycles, doubled keys and what grows too large."""
    if node is None:
        return 0
    if id(node) in open_nodes:
        raise ValueError("an alias refers to what contains it")
    if id(node) not in sizes:
        _check_tag(node)
        open_nodes.add(id(node))
        children: list[Any] = []
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(set(keys)) != len(keys):
                raise ValueError("a key stands twice in one mapping")
            children = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        sizes[id(node)] = 1 + sum(_measure(child, sizes, open_nodes) for child in children)
        open_nodes.discard(id(node))
    if sizes[id(node)] > MAX_NODES:
        raise ValueError(f"more than {MAX_NODES} nodes once aliases are followed")
    return sizes[id(node)]


def _check_tag(node: yaml.Node) -> None:
    """Refuse a value before it is made: a type that no configuration has, or a number of any size."""
    if node.tag not in TAGS:
        raise ValueError(f"a value has the type {_shown(node.tag)}")
    if node.tag.endswith(":int") and len(node.value) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")


def _checked(document: Any) -> Config:
    """Return the document if it has the form of an event configuration: tables of named events."""
    if not isinstance(document, dict) or not document:
        raise _wrong("the configuration is no mapping")
    for table, events in document.items():
        if table == "subject_id_col":
            _word(events, table)
            continue
        if not isinstance(table, str) or not TABLE.fullmatch(table) or not isinstance(events, dict):
            raise _wrong(f"{_shown(table)} is no table with its events")
        for name, event in events.items():
            _word(name, table)
            if name == "subject_id_col":
                _word(event, name)
            elif not isinstance(event, dict):
                raise _wrong(f"{table}.{name} is no event")
            else:
                _check_event(f"{table}.{name}", event)
    if sum(len(events) for events in document.values() if isinstance(events, dict)) > MAX_EVENTS:
        raise _wrong(f"more than {MAX_EVENTS} events")
    return document


def _check_event(where: str, event: dict[Any, Any]) -> None:
    if "code" not in event or "time" not in event:
        raise _wrong(f"{where} has no code or no time")
    if len(event) > MAX_KEYS:
        raise _wrong(f"{where} has more than {MAX_KEYS} keys")
    for key, value in event.items():
        _word(key, where)
        if key == "_metadata":
            _check_metadata(where, value)
        elif key in ("code", "time_format") and isinstance(value, list) and value:
            for part in value:
                _word(part, f"{where}.{key}")
        elif not (key == "time" and value is None):
            _word(value, f"{where}.{key}")


def _check_metadata(where: str, sources: Any) -> None:
    if not isinstance(sources, dict) or not all(isinstance(name, str) and TABLE.fullmatch(name) for name in sources):
        raise _wrong(f"{where}._metadata does not name its tables")
    left = list(sources.values())
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        elif not isinstance(value, bool | int):
            _word(value, f"{where}._metadata")


def _word(value: Any, where: str) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= 500 or not value.isprintable():
        raise _wrong(f"{where} holds {_shown(value)}")
    if "${" in value:
        raise _wrong(f"{where} holds an interpolation")


def _shown(value: Any) -> str:
    """Return a value as it can stand in a message: of bounded length, whatever it is."""
    return reprlib.repr(value)[:80]


def _wrong(message: str) -> Refused:
    return Refused(Reason.BAD_SHAPE, message.encode("ascii", "backslashreplace").decode()[:300])


def plain(config: Config) -> str:
    """Return the configuration in one plain notation: what the pristine ETL is given.

    Characters stand as they are: YAML reads the two escapes of JSON for one astral character as two characters.
    """
    return json.dumps(config, indent=1, ensure_ascii=False)


def has_parts(found: Config, wanted: Config, default: Config) -> bool:
    """Tell whether each event that differs from the default is there by code and time, without unwanted columns.

    This is the published benchmark's look at the configuration; ours is to run it.
    """
    for table, events in wanted.items():
        for name, event in events.items() if isinstance(events, dict) else ():
            if event == default.get(table, {}).get(name):
                continue
            there = [one for one in found.get(table, {}).values() if isinstance(one, dict)]
            if not any(_parts(one) == _parts(event) and set(one) <= set(event) for one in there):
                return False
    return True


def _parts(event: dict[str, Any]) -> tuple[list[str], Any]:
    return ([event["code"]] if isinstance(event["code"], str) else event["code"], event["time"])
