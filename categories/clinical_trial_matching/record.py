"""Write a protocol as a ClinicalTrials.gov ``clinical_study`` record, elements in the order of the public schema."""

import random
import tomllib
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from categories.clinical_trial_matching.eligibility import BODY
from categories.clinical_trial_matching.pool import Limits

FIRST_NUMBER, LAST_NUMBER = 1_000_000, 5_999_999
FIRST_DAY, LAST_DAY = date(2009, 1, 5), date(2023, 10, 27)
SNAPSHOT = date(2023, 11, 6)
_MASKED = {"None (Open Label)": "Open-Label"}


@dataclass(frozen=True)
class About:
    """What the prose around the criteria speaks of."""

    condition: str
    mesh: str
    background: tuple[str, ...]
    endpoints: tuple[str, ...]


@cache
def _boilerplate() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "packs" / "boilerplate.toml").read_text(encoding="utf-8"))


class RecordWriter:
    """Writes one record; everything but the eligibility module is drawn without regard to the patient."""

    def __init__(self, rng: random.Random, nct_id: str, about: About, eligibility: str, limits: Limits) -> None:
        self.rng, self.nct_id, self.about, self.criteria, self.limits = rng, nct_id, about, eligibility, limits
        self.words = _boilerplate()
        self.type = rng.choice(self.words["interventions"])
        phases = ("1/Phase 2", "2", "2", "2/Phase 3", "3", "3", "4")
        self.phase = rng.choice(phases) if self.type in ("Drug", "Biological") else "N/A"
        self.product = self._product()
        self.masking = rng.choice(self.words["maskings"])
        self.root = ET.Element("clinical_study")

    def write(self) -> bytes:
        """Return the record as UTF-8 XML."""
        self._head()
        self._story()
        self._design()
        self._eligibility()
        self._places()
        self._tail()
        ET.indent(self.root, "  ")
        text = ET.tostring(self.root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()

    def _add(self, path: str, text: str = "", parent: ET.Element | None = None) -> ET.Element:
        """Add an element, and the wrappers before it in a path like ``a/b``."""
        node = self.root if parent is None else parent
        for tag in path.split("/"):
            node = ET.SubElement(node, tag)
        node.text = text or None
        return node

    def _product(self) -> str:
        rng = self.rng
        if self.type == "Device":
            return str(rng.choice(self.words["device"]))
        if self.type == "Behavioral":
            return str(rng.choice(self.words["behavioral"]))
        stem = rng.choice(self.words["stems"]) + rng.choice(self.words["middles"]) + rng.choice(self.words["drug_ends"])
        return stem.capitalize() if rng.random() < 0.5 else f"{stem[:2].upper()}-{rng.randint(101, 4999)}"

    def _day(self) -> date:
        share = (int(self.nct_id[3:]) - FIRST_NUMBER) / (LAST_NUMBER - FIRST_NUMBER)
        return FIRST_DAY + timedelta(days=int(share * (LAST_DAY - FIRST_DAY).days))

    def _head(self) -> None:
        rng, words = self.rng, self.words
        header = self._add("required_header")
        self._add("download_date", f"ClinicalTrials.gov processed this data on {_long(SNAPSHOT)}", header)
        self._add("link_text", "Link to the current ClinicalTrials.gov record.", header)
        self._add("url", f"https://clinicaltrials.gov/show/{self.nct_id}", header)
        ids = self._add("id_info")
        self._add(
            "org_study_id",
            f"{rng.choice('ABCHKMRT')}{rng.choice('CDEGLPX')}{rng.randint(10, 99)}-{rng.randint(100, 999)}",
            ids,
        )
        self._add("nct_id", self.nct_id, ids)
        phase = "2" if self.phase == "N/A" else self.phase.replace("Phase ", "")
        fill = {"x": self.product, "c": self.about.condition, "p": phase}
        self._add("brief_title", rng.choice(words["titles"]).format(**fill))
        allocation = rng.choice(("Randomized", "Randomized", "Multicenter"))
        fill |= {"m": _MASKED.get(self.masking, self.masking.split(" ")[0] + "-Blind"), "a": allocation}
        self._add("official_title", rng.choice(words["official"]).format(**fill))
        agency = rng.choice(words["agencies"])
        kind = "Industry" if agency in words["industry"] else "Other"
        sponsors = self._add("sponsors")
        lead = self._add("lead_sponsor", parent=sponsors)
        self._add("agency", agency, lead)
        self._add("agency_class", kind, lead)
        if rng.random() < 0.4:
            other = self._add("collaborator", parent=sponsors)
            partner = rng.choice([a for a in words["agencies"] if a != agency])
            self._add("agency", partner, other)
            self._add("agency_class", "Industry" if partner in words["industry"] else "Other", other)
        self._add("source", agency)
        oversight = self._add("oversight_info")
        self._add("has_dmc", rng.choice(("Yes", "No")), oversight)
        self._add("is_fda_regulated_drug", "Yes" if self.type in ("Drug", "Biological") else "No", oversight)
        self._add("is_fda_regulated_device", "Yes" if self.type == "Device" else "No", oversight)

    def _story(self) -> None:
        rng, about = self.rng, self.about
        purpose = rng.choice(self.words["purposes"]).format(x=self.product, c=about.condition)
        summary = [*rng.sample(about.background, rng.randint(1, 3)), purpose]
        self._block("brief_summary/textblock", " ".join(summary))
        details = [*rng.sample(about.background, rng.randint(0, 3))]
        weeks = rng.choice((2, 3, 4, 6, 8))
        details += [t.format(n=weeks) for t in rng.sample(self.words["details"], rng.randint(3, 8))]
        self._block("detailed_description/textblock", " ".join(details))

    def _block(self, path: str, text: str) -> None:
        lines, line = [], ""
        for word in text.split():
            if len(line) + len(word) > 80:
                lines.append(line)
                line = ""
            line = f"{line} {word}".strip()
        self._add(path, "\n" + "\n".join(f"{BODY}{x}" for x in [*lines, line]) + "\n    ")

    def _design(self) -> None:
        rng, about = self.rng, self.about
        start = self._day() + timedelta(days=rng.randint(-60, 120))
        end = start + timedelta(days=rng.randint(300, 1900))
        status = rng.choice(self.words["statuses"])
        self._add("overall_status", status)
        self._add("start_date", _month(start))
        self._add("completion_date", _month(end)).set("type", "Actual" if end < SNAPSHOT else "Anticipated")
        early = end - timedelta(days=rng.randint(0, 200))
        self._add("primary_completion_date", _month(early)).set("type", "Actual" if early < SNAPSHOT else "Anticipated")
        self._add("phase", self.phase if self.phase == "N/A" else f"Phase {self.phase}")
        self._add("study_type", "Interventional")
        self._add("has_expanded_access", "No")
        info = self._add("study_design_info")
        self._add("allocation", "Randomized", info)
        self._add("intervention_model", rng.choice(("Parallel Assignment", "Crossover Assignment")), info)
        self._add("primary_purpose", rng.choice(("Treatment", "Treatment", "Prevention", "Supportive Care")), info)
        self._add("masking", self.masking, info)
        outcomes = rng.sample(about.endpoints, rng.randint(2, 5))
        for place, measure in enumerate(outcomes):
            outcome = self._add("primary_outcome" if place == 0 else "secondary_outcome")
            self._add("measure", measure, outcome)
            self._add("time_frame", f"{rng.choice((4, 8, 12, 24, 26, 52))} weeks", outcome)
        self._add("number_of_arms", "2")
        people = {"1/Phase 2": (18, 80), "2": (40, 240), "2/Phase 3": (150, 500), "3": (200, 1800)}.get(
            self.phase, (30, 400)
        )
        self._add("enrollment", str(rng.randint(*people))).set(
            "type", "Actual" if status == "Completed" else "Anticipated"
        )
        self._add("condition", about.condition)
        control = rng.choice(("Placebo", "Standard of Care")) if self.type in ("Drug", "Biological") else "Usual Care"
        for label, kind in (
            (self.product, "Experimental"),
            (control, "Placebo Comparator" if control == "Placebo" else "Active Comparator"),
        ):
            arm = self._add("arm_group")
            self._add("arm_group_label", label, arm)
            self._add("arm_group_type", kind, arm)
            self._add("description", f"{label} according to the treatment schedule", arm)
        treatment = self._add("intervention")
        self._add("intervention_type", self.type, treatment)
        self._add("intervention_name", self.product, treatment)
        self._add("arm_group_label", self.product, treatment)

    def _eligibility(self) -> None:
        low, high = self.limits.field_age
        eligibility = self._add("eligibility")
        self._add("criteria/textblock", f"\n{self.criteria}\n      ", eligibility)
        self._add("gender", {"F": "Female", "M": "Male", "": "All"}[self.limits.field_sex], eligibility)
        self._add("minimum_age", f"{low} Years" if low else "N/A", eligibility)
        self._add("maximum_age", f"{high} Years" if high else "N/A", eligibility)
        self._add("healthy_volunteers", "No", eligibility)

    def _places(self) -> None:
        rng, words = self.rng, self.words
        official = self._add("overall_official")
        self._add("last_name", rng.choice(words["officials"]), official)
        self._add("role", rng.choice(("Principal Investigator", "Study Director")), official)
        countries = []
        for city, state, country in rng.sample(words["cities"], rng.randint(1, 5)):
            facility = self._add("location/facility")
            self._add(
                "name", rng.choice(("Research Site", "University Hospital", "Clinical Investigation Center")), facility
            )
            address = self._add("address", parent=facility)
            self._add("city", city, address)
            if state:
                self._add("state", state, address)
            self._add("country", country, address)
            countries += [country] if country not in countries else []
        listed = self._add("location_countries")
        for country in countries:
            self._add("country", country, listed)

    def _tail(self) -> None:
        rng, first = self.rng, self._day()
        last = first + timedelta(days=rng.randint(0, max(1, (SNAPSHOT - first).days - 1)))
        self._add("verification_date", _month(last))
        for tag, day in (("study_first", first), ("last_update", last)):
            self._add(f"{tag}_submitted", _long(day))
            self._add(f"{tag}_submitted_qc", _long(day))
            self._add(f"{tag}_posted", _long(day + timedelta(days=3))).set("type", "Actual")
        self._add("responsible_party/responsible_party_type", "Sponsor")
        for word in sorted(rng.sample(self.words["keywords"], rng.randint(0, 4))):
            self._add("keyword", word)
        self._add("condition_browse/mesh_term", self.about.mesh)


def _month(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.year}"


def _long(day: date) -> str:
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
