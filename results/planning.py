"""What a planned run can show, and which designs would show a wanted difference: for ``plan --detect``."""

import math

from results.power import (
    Assumptions,
    Design,
    designs_that_detect,
    detectable_gap,
    independent_trials,
    power_of,
    templates_needed,
    trials_needed,
)
from results.tables import Cell, Section

MOST_ROWS = 8


def detect_section(gap: float, planned: Design, assumed: Assumptions | None = None) -> Section:
    """Return the designs on these templates that detect ``gap`` (a fraction), cheapest first, after the planned one."""
    known = assumed or Assumptions()
    found = designs_that_detect(gap, planned.templates, known)
    rows = [_row("planned", planned, gap, known), *(_row("enough", design, gap, known) for design in found[:MOST_ROWS])]
    words = (
        f"To tell two agents {100 * gap:g} points apart with {100 * known.power:.0f} % power at the 5 % level, "
        "on tasks like these. "
        f"Assumed: success near {100 * known.rate:.0f} %, ICC {known.icc:g}, correlation of the agents' task "
        f"rates {known.correlation:g}, {100 * known.template_share:.0f} % of the variance between instances shared "
        "by a template."
    )
    if not found:
        floor = detectable_gap(Design(planned.templates, 10**6, 1), known)
        words += (
            f" No number of instances and trials is enough on {planned.templates} templates: "
            f"they cannot show less than {100 * floor:.1f} points. Only more tasks help."
        )
    header = ("design", "instances", "trials each", "trials per agent", "power", "detects", "on these tasks")
    return Section("What can be told apart", f"{words} {_beside(gap, planned, known)}", header, rows)


def _rates(gap: float, assumed: Assumptions) -> tuple[float, float]:
    """Return two rates that far apart, around the assumed one as far as there is room."""
    low = min(max(assumed.rate - gap / 2, 0.0), 1 - gap)
    return low + gap, low


def _beside(gap: float, planned: Design, assumed: Assumptions) -> str:
    """Say what the same difference would take on other tasks, on these alone, and if trials were independent."""
    rates = _rates(gap, assumed)
    tasks = templates_needed(*rates, planned.trials, assumed)
    fixed = trials_needed(planned.templates, *rates, assumed, these_tasks=True)
    return (
        f"For comparison: {tasks} independent tasks, each run {planned.trials} times, would do; for these tasks alone "
        f"{fixed} trials each; and {math.ceil(independent_trials(*rates, assumed))} trials per agent if no two had "
        "anything in common."
    )


def _row(name: str, design: Design, gap: float, assumed: Assumptions) -> tuple[Cell, ...]:
    rates = _rates(gap, assumed)
    power = f"{100 * power_of(design, *rates, assumed):.0f} %"
    gaps = (detectable_gap(design, assumed), detectable_gap(design, assumed, these_tasks=True))
    return name, design.instances, design.trials, design.total, power, *(f"{100 * gap:.1f} points" for gap in gaps)
