"""Judge a submission in a box of its own. The only module that knows where the verifiers are."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from categories.spec import Task
from containers.box import BoxLimits, BoxSpec, Captured, Engine, Mount
from results.records import Collected, Verdict
from runners.text import clean_tree

VERIFIERS = Path(__file__).parent.parent / "verifiers_hidden"


class VerifierError(Exception):
    """The verifier, its image or the gold is broken: no verdict."""


@dataclass(frozen=True)
class VerifierBox:
    """How to open a verifier's box."""

    engine: Engine
    image: str
    labels: dict[str, str]


def verifier_files() -> dict[str, bytes]:
    """Return the package as path -> content: what is installed in the verifier image."""
    return {
        f"verifiers_hidden/{path.relative_to(VERIFIERS).as_posix()}": path.read_bytes()
        for path in sorted(VERIFIERS.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def verifier_digest(category: str) -> str:
    """Return the digest of the code that judges a category: its module and the kit."""
    digest = hashlib.sha256()
    for name, content in verifier_files().items():
        module = name.removeprefix("verifiers_hidden/").split("/")[0].removesuffix(".py")
        if module in (category, "kit", "__main__", "__init__"):
            digest.update(f"{name}\0".encode() + content)
    return digest.hexdigest()


def judge(box: VerifierBox, task: Task, submission: Path, gold: Path, collected: Collected, log: Path) -> Verdict:
    """Return the verdict on a collected submission; what the verifier says on standard error goes to ``log``.

    Raises:
        VerifierError: no verdict was reached.
    """
    command = ["judge", task.category.id, "--gold", "/gold", "--submission", "/submission"]
    command += ["--rule", json.dumps(dict(task.category.pass_rule.numbers) | _published(task))]
    if collected.refused:
        command += ["--refused", collected.refused, collected.message]
    mounts = (Mount(gold, "/gold"), Mount(submission, "/submission"))
    captured = _run(box, task, tuple(command), mounts)
    log.write_bytes(captured.stderr)
    try:
        return Verdict.model_validate(clean_tree(json.loads(captured.stdout.strip().splitlines()[-1])))
    except (IndexError, ValueError, ValidationError, RecursionError) as error:
        raise VerifierError(f"{task.category.id}: the verifier gave no verdict: {error}") from None


def write_perfect(box: VerifierBox, task: Task, gold: Path, out: Path) -> None:
    """Write the perfect submission, made from gold, into the empty folder ``out``."""
    mounts = (Mount(gold, "/gold"), Mount(out, "/out", read_only=False))
    _run(box, task, ("perfect", task.category.id, "--gold", "/gold", "--out", "/out"), mounts)


def _published(task: Task) -> dict[str, bool | int | float]:
    return {f"published_{name}": value for name, value in task.category.published_rule.numbers.items()}


def _run(box: VerifierBox, task: Task, command: tuple[str, ...], mounts: tuple[Mount, ...]) -> Captured:
    limit_s = task.category.resources["full"].verifier_timeout_s
    spec = BoxSpec(
        image=box.image,
        command=("/opt/env/bin/python", "-I", "-m", "verifiers_hidden", *command),
        user=f"{os.getuid()}:{os.getgid()}",
        limits=BoxLimits(cpus=1, memory_mb=4096, pids=256),
        mounts=mounts,
        labels=box.labels,
        tmpfs={"/tmp": "size=1g,mode=1777"},  # noqa: S108 (the verifier's own)
    )
    captured = box.engine.run(spec, timeout_s=limit_s)
    if captured.timed_out:
        raise VerifierError(
            f"{task.category.id}: the verifier took more than {limit_s} s; judge again when the machine has less to do "
            "(`hab-suite rescore RUN`)"
        )
    if captured.exit_code != 0:
        last = captured.stderr.decode(errors="replace").strip()[-2000:]
        why = "ran out of memory" if captured.oom_killed else f"ended with status {captured.exit_code}"
        raise VerifierError(
            f"{task.category.id}: the verifier {why}; where its gold is damaged, `hab-suite cache prune` drops it, "
            f"and it is made anew\n{last}"
        )
    return captured
