"""The house: who may import whom, and how large a thing may grow."""

import ast
import tomllib
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent
ROOMS = ("suite", "runners", "categories", "containers", "results", "verifiers_hidden")
ALLOWED = {
    "suite": {"runners", "categories", "containers", "results"},
    "runners": {"categories", "containers", "results"},
    "categories": set(),
    "containers": set(),
    "results": set(),
    "verifiers_hidden": set(),
}
FILE_LINES, FUNCTION_LINES, HARNESS_LINES, VERIFIER_LINES = 300, 50, 120, 250
LOADERS = {"suite/launcher/__init__.py"}
"""May import inside a function: the path must be set first. Other loaders use importlib, by name."""
SOURCES = sorted(path for room in ROOMS for path in (HOUSE / room).rglob("*.py"))
IN_BOX = ("reference.py", "probes.py")
"""Run in the agent's box, alone: they import nothing of the house."""


def name(path: Path) -> str:
    return path.relative_to(HOUSE).as_posix()


def imported_rooms(tree: ast.Module) -> set[str]:
    rooms = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            rooms.add(node.module.split(".")[0])
    return rooms & set(ROOMS)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_imports_and_budgets(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    room = path.relative_to(HOUSE).parts[0]
    wrong = imported_rooms(tree) - ALLOWED[room] - {room}
    if name(path) not in LOADERS:
        assert not wrong, f"{name(path)} imports {sorted(wrong)}; {room} may import {sorted(ALLOWED[room])}"
    if path.name in IN_BOX:
        assert not imported_rooms(tree), f"{name(path)} runs alone in the box and imports nothing of the house"
    judge = room == "verifiers_hidden" and path.name not in ("kit.py", "__main__.py")
    limit = VERIFIER_LINES if judge else FILE_LINES
    if path.parent == HOUSE / "runners" / "harnesses":
        limit = HARNESS_LINES
    assert text.count("\n") <= limit, f"{name(path)} has {text.count(chr(10))} lines, the budget is {limit}"
    assert ast.get_docstring(tree), f"{name(path)} has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES, (
                f"{name(path)}:{node.lineno} {node.name} has {length} lines, the budget is {FUNCTION_LINES}"
            )
            inner = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert not inner or name(path) in LOADERS, f"{name(path)}:{node.lineno} imports inside {node.name}"


def test_categories_do_not_import_one_another() -> None:
    for path in (HOUSE / "categories").glob("*/**/*.py"):
        own = path.relative_to(HOUSE / "categories").parts[0]
        others = {folder.parent.name for folder in (HOUSE / "categories").glob("*/category.toml")} - {own}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert not any(module.startswith(f"categories.{other}") for other in others), (
                f"{name(path)} imports {module}"
            )


def test_what_a_category_imports_beside_its_folder_is_declared() -> None:
    """Undeclared, a change of it would leave old data in the cache and old scores comparable."""
    rooms = HOUSE / "categories"
    folders = {path.parent.name for path in rooms.glob("*/__init__.py")} - {"sources"}  # brings bytes, makes none
    for file in rooms.glob("*/category.toml"):
        declared = tomllib.loads(file.read_text(encoding="utf-8")).get("shares", [])
        used = set()
        for path in file.parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("categories."):
                    used.add((node.module or "").split(".")[1])
        assert used & folders - {file.parent.name} == set(declared), f"shares of {name(file)}"


def test_no_import_cycle() -> None:
    modules = {name(path)[:-3].replace("/", ".").removesuffix(".__init__"): path for path in SOURCES}
    edges = {}
    for module, path in modules.items():
        targets = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} & set(modules)
        edges[module] = targets - {module}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"import cycle: {' -> '.join([*path, module])}"
        if module not in done:
            for target in edges[module]:
                visit(target, (*path, module))
            done.add(module)

    for module in modules:
        visit(module, ())
