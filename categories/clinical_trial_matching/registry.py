"""A real trial record under another number: what it asks of patients stays, what leads back to it goes."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

from categories.sources.spec import not_as_published

SNAPSHOT = "clinicaltrials_2021"
NCT = re.compile(r"NCT\d{8}", re.IGNORECASE)
LEADING_BACK = (
    *("secondary_id", "nct_alias", "org_study_id", "download_date", "link", "reference", "results_reference"),
    *("provided_document_section", "study_docs", "patient_data", "clinical_results", "firstreceived_results_date"),
)
"""Other registries' numbers, publications and results: what a search would start from."""
PEOPLE = (
    *("overall_contact", "overall_contact_backup", "contact", "contact_backup", "investigator", "overall_official"),
    *("responsible_party", "removed_countries"),
)
"""Names, telephone numbers and addresses."""


def rename(path: Path, new_id: Callable[[str], str]) -> bytes:
    """Return a record as UTF-8 XML in which every trial number is replaced and people and traces are left out.

    Raises:
        SourceError: the file is no trial record.
    """
    try:
        root = ET.parse(path).getroot()  # noqa: S314 (expat resolves no external entity and bounds expansion)
    except ET.ParseError as error:
        raise not_as_published(SNAPSHOT, path, f"is no XML ({error})") from None
    if root.tag != "clinical_study":
        raise not_as_published(SNAPSHOT, path, f"is no trial record (<{root.tag}>)")
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (*LEADING_BACK, *PEOPLE):
                parent.remove(child)
    root.attrib.clear()
    for element in root.iter():
        for name in ("text", "tail"):
            text = getattr(element, name)
            if text and NCT.search(text):
                setattr(element, name, NCT.sub(lambda match: new_id(match.group().upper()), text))
        for key, value in element.attrib.items():
            element.set(key, NCT.sub(lambda match: new_id(match.group().upper()), value))
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def limits_of(record: bytes) -> dict[str, str]:
    """Return the structured limits of age and sex, for people who read a verdict."""
    root = ET.fromstring(record)  # noqa: S314 (made above)
    found = {name: root.findtext(f"eligibility/{name}") or "" for name in ("gender", "minimum_age", "maximum_age")}
    return {name: " ".join(text.split()) for name, text in found.items()}
