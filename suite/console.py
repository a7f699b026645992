"""What a run looks like while it runs: a live panel on a terminal, plain lines elsewhere. The only user of rich."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from categories.sources.progress import under_way
from results.records import Event, Outcome, TrialRecord

CostOf = Callable[[TrialRecord], float | None]
"""Prices a record's usage; null where the model has no price."""
STYLES = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.AGENT_TIMEOUT: "yellow"}


class Tally:
    """Counts a run's events."""

    def __init__(self, planned: int, done: int, cost_of: CostOf) -> None:
        self.planned = planned
        self.done = done
        self.began_with = done
        self.passes = 0
        self.broken = 0
        self.cost_usd = 0.0
        self.running: dict[str, tuple[str, datetime]] = {}
        self.notes: list[str] = []
        self.started_at = datetime.now(UTC)
        self._cost_of = cost_of

    def see(self, event: Event) -> None:
        if event.kind == "trial_started":
            self.running[event.trial_id] = ("", event.at)
        elif event.kind == "phase_started":
            since = self.running.get(event.trial_id, ("", event.at))[1]
            self.running[event.trial_id] = (event.detail, since)
        elif event.kind in ("trial_ended", "trial_cancelled"):
            self.running.pop(event.trial_id, None)
        elif event.kind == "brake":
            self.notes.append(event.detail)
        if event.kind == "trial_ended" and event.record is not None:
            self.done += 1
            self.passes += event.record.outcome is Outcome.PASSED
            self.broken += event.record.outcome.broken
            self.cost_usd += self._cost_of(event.record) or 0.0

    def left_s(self) -> float | None:
        """Return the time left if the rest goes as the trials so far; null before the first has ended."""
        ended = self.done - self.began_with
        if not ended:
            return None
        return (datetime.now(UTC) - self.started_at).total_seconds() / ended * (self.planned - self.done)


class Progress(Protocol):
    """Shows a run; is its pool's observer."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __call__(self, event: Event) -> None: ...

    def say(self, line: str) -> None:
        """Print a line without disturbing the rest."""
        ...


def make_progress(tally: Tally, *, plain: bool = False) -> Progress:
    """Return the live panel on a terminal, plain lines elsewhere or where asked; both write to standard error."""
    console = Console(stderr=True)
    return LiveProgress(tally, console) if console.is_terminal and not plain else PlainProgress(tally)


class PlainProgress:
    """One line when a trial ends, is retried, or the brake is pulled."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._tally.see(event)
        if line := describe(event, self._tally):
            self.say(line)

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201 (this is the console)


class LiveProgress:
    """A bar with counts, cost and time left, and a line for every running trial."""

    def __init__(self, tally: Tally, console: Console) -> None:
        self._tally = tally
        self._console = console
        self._lock = threading.Lock()
        self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._tally.see(event)
        if line := describe(event, self._tally):
            style = STYLES.get(event.record.outcome, "magenta") if event.record else "yellow"
            self._console.print(Text(line, style=style))

    def say(self, line: str) -> None:
        self._console.print(Text(line))

    def _draw(self) -> Group:
        with self._lock:
            tally = self._tally
            left = tally.left_s()
            words = [f"{tally.done}/{tally.planned}", f"{tally.passes} passed"]
            words += [f"{tally.broken} broken"] if tally.broken else []
            words += [f"${tally.cost_usd:.2f}"] if tally.cost_usd else []
            words += [f"{clock(left)} left"] if left is not None and tally.running else []
            head = Table.grid(padding=(0, 1), expand=True)
            head.add_column(ratio=1)
            head.add_column(no_wrap=True)
            head.add_row(ProgressBar(total=max(tally.planned, 1), completed=tally.done), "  ".join(words))
            rows = Table.grid(padding=(0, 2))
            now = datetime.now(UTC)
            for trial_id, (phase, since) in list(tally.running.items())[:12]:
                rows.add_row(Text(clock((now - since).total_seconds())), Text(phase, style="cyan"), Text(trial_id))
            if len(tally.running) > 12:
                rows.add_row("", "", Text(f"and {len(tally.running) - 12} more"))
        return Group(head, rows)


@contextmanager
def download_bars(root: Path) -> Iterator[None]:
    """Show the downloads under way while something waits for them: bars on a terminal, a line for each elsewhere."""
    console = Console(stderr=True)
    ended = threading.Event()
    if not console.is_terminal:
        seen: set[str] = set()
        show = threading.Thread(target=_say_downloads, args=(root, ended, seen), daemon=True)
        show.start()
        try:
            yield
        finally:
            ended.set()
            show.join()
        return
    with Live(get_renderable=lambda: _draw_downloads(root), console=console, refresh_per_second=4, transient=True):
        yield


def _draw_downloads(root: Path) -> Table:
    rows = Table.grid(padding=(0, 2))
    for step in under_way(root):
        share = f"{step.done / 1e6:.0f} of {step.total / 1e6:.0f} MB" if step.total else f"{step.done / 1e6:.0f} MB"
        rows.add_row(
            ProgressBar(total=step.total or None, completed=step.done, width=30), share, step.source, step.name
        )
    return rows


def _say_downloads(root: Path, ended: threading.Event, seen: set[str]) -> None:
    while not ended.wait(1.0):
        for step in under_way(root):
            if step.source not in seen:
                seen.add(step.source)
                print(f"fetching {step.source} ...", file=sys.stderr, flush=True)  # noqa: T201 (this is the console)


def describe(event: Event, tally: Tally) -> str:
    """Return the line that an event deserves; empty for most."""
    if event.kind == "trial_ended" and event.record is not None:
        record = event.record
        why = "" if record.outcome is Outcome.PASSED else f" ({record.reason})"
        seconds = record.seconds("run_agent") or 0.0
        message = f": {record.message.splitlines()[0]}" if record.outcome.broken and record.message else ""
        return f"[{tally.done}/{tally.planned}] {record.outcome}{why}  {event.trial_id}  {seconds:.1f} s{message}"
    if event.kind == "trial_retried":
        return f"retrying {event.trial_id}: {event.detail}"
    if event.kind == "trial_cancelled":
        return f"cancelled {event.trial_id}"
    return event.detail if event.kind == "brake" else ""


def clock(seconds: float) -> str:
    """Return ``1:02:03`` or ``2:03``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
