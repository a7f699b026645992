"""What the agent is told: a strict rendering of ``instruction.md.j2``."""

from typing import Any

import jinja2

from categories.spec import Resources, Task

SUBMISSION_FOLDER = "/workspace/submission"


class _Blank:
    """Stands for the numbers of the box, which a task image must not hold: renders as a placeholder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "_Blank":
        if name.startswith("__"):
            raise AttributeError(name)
        return _Blank(f"{self._name}.{name}")

    def __str__(self) -> str:
        return f"<{self._name}>"


def render_instruction(task: Task, limits: Resources) -> str:
    """Return the instruction of a trial under the limits that are really in force."""
    minutes = limits.agent_timeout_s / 60
    box = {
        "time": f"{minutes:g} minutes" if minutes >= 1 else f"{limits.agent_timeout_s} seconds",
        "cpus": f"{limits.cpus:g}",
        "memory": f"{limits.memory_mb / 1024:.3g} GB",
        "storage": f"{limits.storage_mb / 1024:.3g} GB",
    }
    return _render(task, box)


def instruction_template(task: Task) -> str:
    """Return the instruction with placeholders for the box's numbers: what the task image carries."""
    return _render(task, _Blank("box"))


def _render(task: Task, box: Any) -> str:
    environment = jinja2.Environment(  # noqa: S701 (plain text)
        loader=jinja2.FileSystemLoader([task.category.folder, task.category.folder.parent]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    category = task.category
    return environment.get_template("instruction.md.j2").render(
        parameters=task.spec.parameters,
        rule=category.pass_rule.numbers,
        rule_words=category.pass_rule.sentence(),
        submission=category.submission,
        submission_path=f"{SUBMISSION_FOLDER}/{category.submission.path}",
        submission_size=size_words(category.submission.max_bytes),
        box=box,
    )


def size_words(size: int) -> str:
    """Return a number of bytes in the largest binary unit that it fills."""
    units = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
    unit, name = next(((u, n) for u, n in units if size >= u), (1, "bytes"))
    return f"{size / unit:.4g} {name}"
