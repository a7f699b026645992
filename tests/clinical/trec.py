"""A miniature of TREC Clinical Trials 2021 in the real formats: topics, judgements, snapshot zips, the audited list."""

import hashlib
import io
import random
import zipfile
from functools import cache

from categories.catalog import load_catalog
from categories.sources.spec import find_source

TOPICS = sorted(
    int(spec.clinical["trec_topic"])
    for category in load_catalog()
    if category.id == "clinical_trial_matching"
    for spec in category.cases.values()
)
PARTS = [f"ClinicalTrials.2021-04-27.part{number}.zip" for number in range(1, 6)]
RECORD = """<clinical_study rank="12345">
  <!-- This xml conforms to an XML Schema at: https://clinicaltrials.gov/ct2/html/images/info/public.xsd -->
  <required_header>
    <download_date>ClinicalTrials.gov processed this data on April 27, 2021</download_date>
    <link_text>Link to the current ClinicalTrials.gov record.</link_text>
    <url>https://clinicaltrials.gov/show/{nct}</url>
  </required_header>
  <id_info>
    <org_study_id>SITE-{number}</org_study_id>
    <secondary_id>EUDRACT-{number}</secondary_id>
    <nct_id>{nct}</nct_id>
    <nct_alias>NCT00000001</nct_alias>
  </id_info>
  <brief_title>Drug {number} for a disease &amp; its mimics</brief_title>
  <sponsors><lead_sponsor><agency>University {number}</agency><agency_class>Other</agency_class></lead_sponsor></sponsors>
  <brief_summary>
    <textblock>
      An extension of {other}, see also {nct}.
    </textblock>
  </brief_summary>
  <overall_status>Completed</overall_status>
  <phase>Phase 2</phase>
  <study_type>Interventional</study_type>
  <condition>Disease</condition>
  <eligibility>
    <criteria>
      <textblock>
        Inclusion Criteria:

          -  Age of {low} years or more

        Exclusion Criteria:

          -  Pregnancy
      </textblock>
    </criteria>
    <gender>All</gender>
    <minimum_age>{low} Years</minimum_age>
    <maximum_age>N/A</maximum_age>
    <healthy_volunteers>No</healthy_volunteers>
  </eligibility>
  <overall_official><last_name>Dr Real Person, MD</last_name><role>Principal Investigator</role></overall_official>
  <overall_contact><last_name>Real Nurse</last_name><phone>555-0100</phone><email>nurse@example.org</email></overall_contact>
  <reference><citation>Real Person. A paper.</citation><PMID>123456</PMID></reference>
  <location><facility><name>Clinic {number}</name></facility><contact><last_name>Real Clerk</last_name></contact></location>
  <condition_browse><mesh_term>Disease</mesh_term></condition_browse>
</clinical_study>
"""


@cache
def judged() -> dict[int, dict[str, int]]:
    """Return topic -> trial -> grade: 20 eligible, 60 excluded, 130 not relevant."""
    rng = random.Random("judged")
    found = {}
    for place, topic in enumerate(TOPICS):
        numbers = rng.sample(range(place * 100_000 + 1_000, (place + 1) * 100_000), 210)
        grades = [2] * 20 + [1] * 60 + [0] * 130
        found[topic] = {f"NCT{number:08d}": grade for number, grade in zip(numbers, grades, strict=True)}
    return found


def audited(topic: int) -> list[str]:
    """Return the eligible trials of a topic that the audit left."""
    return sorted(trial for trial, grade in judged()[topic].items() if grade == 2)[: 4 + topic % 3]


def track() -> dict[str, bytes]:
    notes = "".join(
        f'<topic number="{n}">\nA {n}-year-old patient\n\n  has a disease; no   other complaint.\n</topic>\n'
        for n in TOPICS
    )
    rows = "".join(f"{topic} 0 {trial} {grade}\n" for topic, pool in judged().items() for trial, grade in pool.items())
    return {
        "topics2021.xml": f'<topics task="2021 TREC Clinical Trials">\n{notes}</topics>\n'.encode(),
        "qrels2021.txt": rows.encode(),
    }


@cache
def snapshot() -> dict[str, bytes]:
    """Return the five zips: every judged trial once, among others that nobody judged."""
    trials = sorted(trial for pool in judged().values() for trial in pool) + [f"NCT09{n:06}" for n in range(100)]
    parts = {}
    for place, name in enumerate(PARTS):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for trial in trials[place::5]:
                number = int(trial[3:])
                text = RECORD.format(nct=trial, number=number, other=trials[number % len(trials)], low=18 + number % 40)
                archive.writestr(
                    zipfile.ZipInfo(f"{name[:-4]}/{trial[:7]}xxxx/{trial}.xml"), text, zipfile.ZIP_DEFLATED
                )
        parts[name] = out.getvalue()
    return parts


def audit() -> dict[str, bytes]:
    path = find_source("audited_trials").path
    return {
        f"{path}/clinical_trial_matching_task_{n}/tests/gold.txt": "".join(f"{t}\n" for t in audited(n)).encode()
        for n in TOPICS
    }


def pins() -> dict[str, str]:
    """Return the digests of the miniature audit, which stand in for the pinned ones of the real."""
    prefix = find_source("audited_trials").path
    return {name.removeprefix(f"{prefix}/"): hashlib.sha256(body).hexdigest() for name, body in audit().items()}
