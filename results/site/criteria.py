"""Criteria trees of trials that were listed wrongly or missed: which criterion decided, from what the verdict keeps."""

from collections.abc import Mapping, Sequence
from typing import Any

from results.site.detail import Picture
from results.site.svg import drawing, line, text

MOST_TRIALS = 6
MOST_LETTERS = 110
ROW = 20
GREEN, RED, GREY = "#22662b", "#9b1c1c", "#6b6b6b"
SIDES = {"inc": "inclusion", "exc": "exclusion"}


def criteria_trees(details: Mapping[str, Any]) -> Sequence[Picture]:
    """Draw one tree a trial: the missed ones first."""
    groups = (("missed", details.get("missed_eligible", ())), ("wrongly listed", details.get("wrong_among_top", ())))
    chosen = [(word, trial) for word, trials in groups for trial in trials[: MOST_TRIALS // 2]]
    return [_tree(word, trial) for word, trial in chosen if _has_tree(trial)]


def _has_tree(trial: Any) -> bool:
    """Verdicts of older versions name the trials, or the criteria's words, alone."""
    criteria = trial.get("criteria") if isinstance(trial, dict) else None
    return isinstance(criteria, list) and bool(criteria) and all(isinstance(leaf, dict) for leaf in criteria)


def _tree(word: str, trial: Mapping[str, Any]) -> Picture:
    """Branches are inclusion and exclusion; a leaf says whether it lets the patient in, by mark, word and colour."""
    parts, y, spoken = [text(8, 18, f"{trial['trial']}: {word}")], 18, []
    for side, name in SIDES.items():
        leaves = [leaf for leaf in trial["criteria"] if leaf["side"] == side]
        if not leaves:
            continue
        y += ROW
        parts += [line([(14, 24), (14, y - 4), (26, y - 4)], colour=GREY, width=1), text(30, y, name)]
        trunk = y
        for leaf in leaves:
            y += ROW
            parts.append(line([(36, trunk + 6), (36, y - 4), (48, y - 4)], colour=GREY, width=1))
            mark, colour = ("+ lets in", GREEN) if leaf["passes"] else ("x keeps out", RED)
            words = leaf["text"] if len(leaf["text"]) <= MOST_LETTERS else leaf["text"][: MOST_LETTERS - 3] + "..."
            unsaid = "" if leaf["holds"] is not None else " (the note does not say)"
            parts += [text(52, y, mark, colour=colour), text(130, y, words + unsaid)]
            if not leaf["passes"]:
                spoken.append(f"{name}: {words}")
    said = "kept out by " + "; ".join(spoken) if spoken else "every criterion lets the patient in"
    title = f"Criteria of {trial['trial']}, {word}"
    return Picture(title, "image/svg+xml", drawing(860, y + 14, parts), f"{title}: {said}.")
