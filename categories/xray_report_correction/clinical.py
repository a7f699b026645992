"""The clinical edition: a patient of MIMIC-CXR, earlier reports as filed, the target's FINDINGS with seeded errors."""

import gzip
import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from categories.catalog import load_category
from categories.draw import Draw
from categories.sources.errors import SourceError
from categories.sources.shelf import Shelf
from categories.sources.spec import not_as_published
from categories.xray_report_correction.dictated import Said, read_findings
from categories.xray_report_correction.film import DEPTH
from categories.xray_report_correction.misdictation import Edit, draw_edits
from categories.xray_report_correction.radiograph import View
from categories.xray_report_correction.writing import write_view

REPORTS, IMAGES = "mimic_cxr", "mimic_cxr_jpg"
METADATA = "mimic-cxr-2.0.0-metadata.csv.gz"
SALT = "medcli-xray-report-correction-v1"
"""Of the published case list, which names subjects and studies by salted hashes only."""
VIEWS: dict[str, Literal["PA", "AP", "LATERAL"]] = {"PA": "PA", "AP": "AP", "LATERAL": "LATERAL", "LL": "LATERAL"}
NOMINAL_MM = 0.139
"""Pixel size at the detector: the JPEG files do not hold it; of most detectors of this source."""
SMALL_PX = 900
HEADS = ("EXAMINATION", "INDICATION", "HISTORY", "TECHNIQUE", "COMPARISON")
SECTION = re.compile(r"^[ \t]*([A-Z][A-Z /]{3,40}):", re.MULTILINE)


@dataclass(frozen=True)
class Study:
    """One examination, by the source's numbers."""

    subject: str
    study: str
    views: tuple[tuple[str, str], ...]
    """(dicom_id, ViewPosition), in order."""

    @property
    def folder(self) -> str:
        return f"files/p{self.subject[:2]}/p{self.subject}"


def prepare(draw: Draw, *, public: Path, gold: Path, workspace: Path, sources: Shelf) -> str | None:  # noqa: ARG001
    """Write the same files as the synthetic edition.

    Raises:
        SourceError: a file cannot be had, the case is not in the data set, or its report holds nothing to edit.
    """
    studies = find_studies(sources.file(IMAGES, METADATA), draw, known_hashes(sources.own_table(IMAGES)))
    names = [f"{study.folder}/s{study.study}.txt" for study in studies]
    reports = [path.read_text(encoding="utf-8", errors="replace") for path in sources.files(REPORTS, names)]
    parts = sections(reports[-1])
    sentences = read_findings(parts.get("FINDINGS", ""))
    edits = draw_edits(sentences, draw.rng("errors"), priors=len(studies) > 1)
    if not edits:
        what = f"holds no sentence that can be given an error of the seven kinds ({draw.case})"
        raise not_as_published(REPORTS, "the target's report", what)
    drafted = [edits[n].text if n in edits else said.text for n, said in enumerate(sentences)]
    heads = "".join(f"{name}: {parts[name]}\n\n" for name in HEADS if parts.get(name))
    shown = [whole(report) for report in reports[:-1]] + [f"{heads}FINDINGS: {' '.join(drafted)}\n"]
    for number, (study, report) in enumerate(zip(studies, shown, strict=True), start=1):
        _write_study(draw, public / f"study_{number:02d}", number, study, report, sources)
    shutil.copyfile(Path(__file__).parent / "wording.md", public / "wording.md")
    _write_json(gold / "findings.json", gold_of(sentences, edits))
    _write_json(gold / "studies.json", {"studies": [], "visibility": {}})
    return None


def hashed(number: str) -> str:
    """Return the name of a subject or study in the published case list."""
    return hashlib.sha256(f"{SALT}|{number}".encode()).hexdigest()[:16]


def known_hashes(table: Path | None) -> dict[str, str]:
    """Return number -> hash of a table of one's own (kind, real, hash), as the published benchmark makes one.

    Raises:
        SourceError: it has other columns.
    """
    if table is None:
        return {}
    try:
        return dict(pl.read_csv(table, infer_schema=False).select("real", "hash").rows())
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(
            f"{table}: must hold the columns kind, real and hash ({type(error).__name__}): mend it, or take `table` "
            f"out of sources.toml and the hashes are computed"
        ) from None


def find_studies(metadata: Path, draw: Draw, known: dict[str, str]) -> list[Study]:
    """Return the earlier studies that are shown, in order of time, and the target last.

    Studies that are the target of another case are never shown with their report.

    Raises:
        SourceError: the table has another format, or does not hold the case.
    """
    columns = ["subject_id", "study_id", "dicom_id", "ViewPosition", "StudyDate", "StudyTime"]
    try:
        table = pl.read_csv(gzip.decompress(metadata.read_bytes()), infer_schema=False).select(columns)
    except (pl.exceptions.PolarsError, OSError, EOFError) as error:
        what = f"does not hold the columns {', '.join(columns)} ({type(error).__name__})"
        raise not_as_published(IMAGES, metadata, what) from None

    def name_of(number: str) -> str:
        return known.get(number) or hashed(number)

    wanted, target = str(draw.spec.clinical["subject"]), str(draw.spec.clinical["study"])
    subject = next((one for one in table["subject_id"].unique().sort() if name_of(one) == wanted), None)
    if subject is None:
        raise not_as_published(IMAGES, metadata, f"does not hold the patient of {draw.case}")
    others = {str(case.clinical["study"]) for case in load_category(Path(__file__).parent).cases.values()} - {target}
    own = table.filter(pl.col("subject_id") == subject).with_columns(pl.col("StudyTime").cast(pl.Float64, strict=False))
    own = own.sort("StudyDate", "StudyTime", "dicom_id")
    order = own["study_id"].unique(maintain_order=True).to_list()
    place = next((n for n, one in enumerate(order) if name_of(one) == target), None)
    if place is None:
        raise not_as_published(IMAGES, metadata, f"does not hold the study of {draw.case}")
    earlier = [one for one in order[:place] if name_of(one) not in others]
    count = int(str(draw.spec.parameters["priors"]))
    chosen = [*(earlier[-count:] if count else []), order[place]]
    rows = own.select("study_id", "dicom_id", "ViewPosition").rows()
    return [Study(subject, one, tuple((d, v or "") for s, d, v in rows if s == one)) for one in chosen]


def sections(report: str) -> dict[str, str]:
    """Return the sections of a report by their heads, each on one line."""
    heads = list(SECTION.finditer(report))
    ends = [*(head.start() for head in heads[1:]), len(report)]
    return {head[1].strip(): " ".join(report[head.end() : end].split()) for head, end in zip(heads, ends, strict=True)}


def whole(report: str) -> str:
    """Return an earlier report as filed, without the margin and the line that only says that it is final."""
    lines = [line.strip() for line in report.splitlines()]
    text = "\n".join(line for line in lines if line.upper() != "FINAL REPORT")
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def gold_of(sentences: list[Said], edits: dict[int, Edit]) -> dict[str, Any]:
    """Return what the verifier reads: right and wrong statements of the edited sentences, and what else is plain."""
    right = [[claim.statement() for claim in said.claims] for said in sentences]
    errors = []
    for number, edit in edits.items():
        before, after = right[number][0][edit.slot], edit.claim.statement()[edit.slot]
        errors.append({"sentence": number, "kind": edit.kind, "slot": edit.slot, "truth": before, "draft": after})
    return {
        "draft": [edits[n].text if n in edits else said.text for n, said in enumerate(sentences)],
        "truth": [said.text for said in sentences],
        "statements": right,
        "draft_statements": [[edits[n].claim.statement()] if n in edits else right[n] for n in range(len(right))],
        "errors": errors,
        "other_truths": [statement for group in right for statement in group],
    }


def _write_study(draw: Draw, folder: Path, number: int, study: Study, report: str, sources: Shelf) -> None:
    folder.mkdir(parents=True)
    (folder / "report.txt").write_text(report, encoding="utf-8")
    names = [f"{study.folder}/s{study.study}/{dicom}.jpg" for dicom, _ in study.views]
    kind = str(draw.spec.parameters["format"])
    films = zip(study.views, sources.files(IMAGES, names), strict=True)
    for place, ((_, position), path) in enumerate(films, start=1):
        pixels, pixel_mm = read_film(path, draw.scale == "small")
        view = View(VIEWS.get(position, "AP"), pixels, pixel_mm, "L")
        own, shared = draw.digest("view uid", number, place), draw.digest("study uid", number)
        write_view(view, folder / f"view_{place:02d}.{kind}", kind, uid_bytes=own, study_bytes=shared)


def read_film(path: Path, small: bool) -> tuple[NDArray[np.uint16], float]:
    """Return the picture, 0 to ``DEPTH``, without anything else of its file, and its pixel size in mm.

    Raises:
        SourceError: the file is no picture.
    """
    try:
        with Image.open(path) as image:
            grey = image.convert("L")
            factor = max(1, -(-max(grey.size) // SMALL_PX)) if small else 1
            grey = grey.reduce(factor)
            pixels = np.asarray(grey, np.float64)
    except (UnidentifiedImageError, OSError) as error:
        raise not_as_published(IMAGES, path.name, f"is no picture that can be read ({type(error).__name__})") from None
    return np.asarray(np.rint(pixels * (DEPTH / 255.0)), np.uint16), NOMINAL_MM * factor


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
