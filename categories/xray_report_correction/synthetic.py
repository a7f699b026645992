"""The synthetic edition: one patient's radiographs, the earlier reports, the target's draft, and the true findings."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from categories.chest.patient import Patient, Sex, draw_patient
from categories.draw import Draw
from categories.xray_report_correction.body import embody
from categories.xray_report_correction.casefile import CaseFile, gold_of, labelled, write_case
from categories.xray_report_correction.kinds import Setting
from categories.xray_report_correction.radiograph import View, render_study
from categories.xray_report_correction.render_visibility import GATE
from categories.xray_report_correction.state import NoRoomError, Study, to_json
from categories.xray_report_correction.story import LEAST_ERRORS, Story, draw_story
from categories.xray_report_correction.writing import write_view

BODIES = 4
"""So often the lesions are placed anew before those that stay invisible are left out of draft and truth."""


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path) -> None:  # noqa: ARG001 (nothing is copied in)
    """Write the studies for the agent, the findings for the verifier.

    Raises:
        TemplateError: ``draw.assets`` holds no template.
    """
    parameters = draw.spec.parameters
    setting = cast(Setting, parameters["views"])
    rng_of = labelled(draw)
    attempt, priors = 0, int(str(parameters["priors"]))
    while True:
        story = draw_story(labelled(draw, "case", attempt), setting, priors)
        found = _pictured(draw, story)
        if found is not None:
            break
        attempt += 1
    studies, views, hidden = found
    case = write_case(rng_of, without(story, hidden), studies)
    _write_public(draw, public, case, views)
    _write_json(gold / "findings.json", gold_of(case, hidden))
    _write_json(
        gold / "studies.json", {"studies": [to_json(study) for study in studies], "visibility": seen(views[-1])}
    )


def _pictured(draw: Draw, story: Story) -> tuple[list[Study], list[list[View]], set[str]] | None:
    """Return the studies, their views and the kinds too faint to be stated; None if too few errors can be seen."""
    patient = _patient(draw, embody(labelled(draw), story)[0])
    best: tuple[list[Study], list[View], set[str]] | None = None
    for attempt in range(BODIES):
        studies = embody(labelled(draw), story, attempt)
        try:
            last = _render(draw, patient, studies, len(studies) - 1)
        except NoRoomError:
            continue
        hidden = faint(studies[-1], last)
        if best is None or len(hidden) < len(best[2]):
            best = studies, last, hidden
        if not hidden:
            break
    if best is None:
        return None
    studies, last, hidden = best
    if sum(line.kind is not None and line.name not in hidden for line in story.lines) < LEAST_ERRORS:
        return None
    try:
        earlier = [_render(draw, patient, studies, number) for number in range(len(studies) - 1)]
    except NoRoomError:
        return None
    return studies, [*earlier, last], hidden


def _patient(draw: Draw, study: Study) -> Patient:
    sex: Sex = "F" if draw.rng("sex").random() < 0.5 else "M"
    return draw_patient(draw, draw.scale, sex=sex, age=study.age)


def _render(draw: Draw, patient: Patient, studies: Sequence[Study], number: int) -> list[View]:
    return render_study(patient, studies[number], draw.rng("film", number), draw.scale)


def seen(views: Sequence[View]) -> dict[str, float]:
    """Return the best contrast-to-noise over a study's views, by track."""
    best: dict[str, float] = {}
    for view in views:
        for track, value in view.visibility.items():
            best[str(track)] = max(best.get(str(track), 0.0), round(float(value), 2))
    return best


def faint(study: Study, views: Sequence[View]) -> set[str]:
    """Return the kinds of a study's findings that its views do not show."""
    best = seen(views)
    return {finding.kind for finding in study.findings if best.get(str(finding.track), GATE) < GATE}


def without(story: Story, hidden: set[str]) -> Story:
    """Return a story that says nothing of some kinds at the target."""
    return replace(story, lines=[line for line in story.lines if line.name not in hidden])


def _write_public(draw: Draw, public: Path, case: CaseFile, views: Sequence[Sequence[View]]) -> None:
    kind = str(draw.spec.parameters["format"])
    reports = [*case.prior_reports, f"{case.heads}FINDINGS: {case.draft}\n"]
    for number, (report, films) in enumerate(zip(reports, views, strict=True), start=1):
        folder = public / f"study_{number:02d}"
        folder.mkdir(parents=True)
        (folder / "report.txt").write_text(report, encoding="utf-8")
        for place, view in enumerate(films, start=1):
            path = folder / f"view_{place:02d}.{kind}"
            own, shared = draw.digest("view uid", number, place), draw.digest("study uid", number)
            write_view(view, path, kind, uid_bytes=own, study_bytes=shared)
    shutil.copyfile(Path(__file__).parent / "wording.md", public / "wording.md")


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
