"""The honest solver: carries out the change request on a copy of the configuration and runs the package with it.

It reads statement by statement. Mentions of events and columns are first replaced by their names: a description is
looked up in ``MEANT``, the meanings of columns in the words that requests use. What a statement asks for then follows
from the kinds of names in it and from few words around them.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Config = dict[str, Any]
DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
SOURCE = Path(os.environ.get("HAB_SOURCE", "/workspace/MIMIC_IV_MEDS/src/MIMIC_IV_MEDS"))
MEANT = """\
hosp/admissions.admission = the hospital admission event; hosp/pharmacy.medication_start = the start of a pharmacy order
icu/inputevents.input_end = the end of an infusion; hosp/drgcodes.drg = the DRG event
hosp/labevents.lab = the hospital laboratory event; hosp/omr.omr = the outpatient measurement event
icu/chartevents.event = the ICU charting event; hosp/emar.medication = the medication administration event
icu/procedureevents.start+icu/procedureevents.end = the start and end events of ICU procedures
hosp/transfers.transfer = the ward transfer event; icu/outputevents.output = the ICU fluid output event
hosp/hcpcsevents.hcpcs = the HCPCS event; hosp/procedures_icd.procedure = the ICD procedure event
hosp/diagnoses_icd.diagnosis = the ICD diagnosis event; insurance = the patient's insurance | the kind of insurance
language = the patient's language | the language the patient speaks
marital_status = the patient's marital status | whether the patient is married
race = the patient's race | the race stated for the patient
admittime = the time of admission to the hospital | the moment the patient was admitted
dischtime = the time of discharge from the hospital | the moment the patient was discharged
admission_type = the type of the admission, which tells its urgency
admission_location = the place the patient came from; admit_provider_id = the provider who admitted the patient
route = the route of administration | the way by which the drug is to be given
frequency = how often a dose is due (`DAILY`, `BID` and the like); starttime = the time at which the order starts
entertime = the time at which the order was entered; verifiedtime = the time at which the order was verified
poe_id = the link to the provider order entry table
pharmacy_id = the identifier of the pharmacy order | the link to the pharmacy order
statusdescription = how the infusion ended (`FinishedRunning`, `Stopped` and the like)
ordercategorydescription = the way the item was given (`Continuous Med`, `Drug Push` and the like)
endtime = the time at which the infusion ended
storetime = the time at which staff entered or validated the infusion | the time at which the result became available
storetime = the moment the laboratory system had the result
storetime = the time at which staff entered or validated the observation
storetime = the time at which staff entered or validated the output
storetime = the time at which the administration was documented
stay_id = the identifier of the ICU stay; drg_severity = the severity level of the DRG
drg_mortality = the mortality level of the DRG
hadm_discharge_time = the discharge time that the package's first step adds to the table
drg_type = the kind of DRG (`HCFA` or `APR`); drg_code = the code of the DRG
priority = the priority of the test (`ROUTINE` or `STAT`)
charttime = the time at which the specimen was taken | the moment of drawing the specimen
charttime = the time at which the observation was made | the time at which the output was measured
charttime = the time at which the dose was given
specimen_id = the identifier of the specimen | the number shared by results of one specimen
itemid = the identifier of the test; flag = the mark of an abnormal result
ref_range_upper = the upper end of the reference range; ref_range_lower = the lower end of the reference range
warning = the warning documented for the observation
caregiver_id = the caregiver who documented the observation | the caregiver who documented the output
scheduletime = the time for which the dose was scheduled
seq_num = the number that tells apart results of the same day
seq_num = the rank of the diagnosis within the stay | the rank of the procedure within the stay
transfer_id = the identifier of the transfer
"""
PLAIN = {"code", "time", "time_format", "_metadata"}
SECONDS, DAY = "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"
EVENT, COLUMN, NAME = r"<E:([^>]+)>", r"<[CW]:(\w+)>", r"<W:(\w+)>"
DATED = re.compile(r"^Date: (\S+ \S+)\s*$", re.MULTILINE)
ITEM = re.compile(r"^\s*(?:[-*] (?:\[ \] )?|\d+\. |\||#+ )")
TAKEN_BACK = re.compile(
    r",? ?\bnot (?:at |by )?<\w:[^>]+>|\(today: <\w:[^>]+>\)|\b(?:instead of|no longer|replaces) <\w:[^>]+>"
    r"|\bfrom <\w:[^>]+>(?= to <)|<P:\w+>(?= becomes <)",
    re.IGNORECASE,
)
CARRIED_FROM = re.compile(rf"{NAME},? \(?(?:filled )?from {COLUMN}")
CARRIED_AS = re.compile(rf"{COLUMN}(?P<on> to {EVENT})?,? (?:as|under the name) {NAME}")
NEW = re.compile(r"\bnew events?\b|\bevents? so made\b|\bof (?:its|their) own\b")


@dataclass
class Split:
    """What is known so far of an event's columns that become events."""

    fields: list[str] = field(default_factory=list)
    when: str = ""
    forms: list[str] = field(default_factory=list)
    along: tuple[str, str] = ("", "")


@dataclass
class Statement:
    """What one statement names, each kind in order; what it takes back or says of today is left out."""

    text: str
    events: list[str]
    prefixes: list[str]
    columns: list[str]
    times: list[str]
    names: list[tuple[str, str]]
    """Names to carry columns by, and the columns; these do not stand among ``columns``."""


class Reader:
    """Reads statements in the order in which they were written; a later one overrules."""

    def __init__(self, default: Config) -> None:
        self.default = default
        self.splits: dict[str, Split] = {}
        self.host = ""
        self.kept: set[tuple[str, str]] = set()
        self.first: dict[str, str] = {}
        self.prefixes: dict[str, str] = {}
        self.carried: dict[tuple[str, str], str] = {}
        self.times: dict[str, str] = {}
        meant = [entry.partition(" = ") for entry in re.split("; |\n", MEANT.strip())]
        self.meant = {text.lower(): name for name, _, texts in meant for text in texts.split(" | ")}
        longest = sorted(self.meant, key=len, reverse=True)
        self.phrase = re.compile("|".join(map(re.escape, longest)), re.IGNORECASE)
        tables = [(table, named) for table, named in default.items() if table != "subject_id_col"]
        self.every = {f"{table}.{name}": event for table, named in tables for name, event in named.items()}

    def tagged(self, text: str) -> str:
        """Replace mentions by ``<E:event>``, ``<C:column>``, ``<W:word in back-ticks>`` and ``<P:PREFIX>``."""

        def described(hit: re.Match[str]) -> str:
            name = self.meant[hit[0].lower()]
            return f"<E:{name}>" if "/" in name else f"<C:{name}>"

        def of_table(hit: re.Match[str]) -> str:
            return f"<E:{'+'.join(name for name in self.every if name.partition('.')[0].endswith(hit[1]))}>"

        def coded(hit: re.Match[str]) -> str:
            parts = hit[1].split("//")
            (name,) = [name for name, event in self.every.items() if [*event["code"]][: len(parts)] == parts]
            return f"<E:{name}>"

        text = self.phrase.sub(described, text)
        text = re.sub(r"\b(?:both|the) events? (?:of|made from) `([\w/]+)`", of_table, text, flags=re.IGNORECASE)
        text = re.sub(r"\bthe event coded `([\w/]+)//\.\.\.` today", coded, text, flags=re.IGNORECASE)
        text = re.sub(r"`((?:hosp|icu)/\w+\.\w+)`", r"<E:\1>", text)
        text = re.sub(r"`([A-Z][A-Z_]+)(?://<value>)?`", r"<P:\1>", text)
        return re.sub(r"`([a-z]\w*)`", r"<W:\1>", text)

    def read(self, request: str) -> None:
        """Read all statements, messages by date."""
        messages = re.split(r"^---$", request, flags=re.MULTILINE)
        dates = [hit[1] if (hit := DATED.search(one)) else "" for one in messages]
        for _, message in sorted(zip(dates, messages, strict=True)):
            for text in units(message):
                for statement in re.split(r"(?<=\.)\s+(?=[A-Z<])", self.tagged(text)):
                    self.state(statement)

    def state(self, text: str) -> None:
        """Take in one statement."""
        said = understood(text)
        if "turned down" in text:
            return
        if re.search(r"\bForget\b|\bdo without\b", text):
            self.carried.pop((said.events[0], said.columns[0]), None)
        elif re.search(r"\bstays on\b|\b[Ll]eft on\b", text):
            self.kept |= {(said.events[0], column) for column in said.columns}
        elif NEW.search(text) or said.columns or "in capitals" in text:
            self.state_new(said)
        else:
            self.state_existing(said)

    def state_new(self, said: Statement) -> None:
        """Take in a statement on columns that become events."""
        if said.events:
            self.host = said.events[0]
        split = self.splits.setdefault(self.host, Split())
        self.first |= dict(zip(said.columns, said.prefixes, strict=False))
        if "very column" in said.text:
            but = {*PLAIN, "hadm_id", *said.columns}
            split.fields = [key for key in self.every[self.host] if key not in but]
        elif said.events:
            split.fields += [column for column in said.columns if column not in split.fields]
        if said.names:
            split.along = said.names[0]
        if said.times:
            split.when = said.times[0]
            both = re.search(r"`%Y-%m-%d`|\d{4}-\d\d-\d\d(?! \d)", said.text)
            own = self.every[self.host]["time_format"] if "uses today" in said.text else SECONDS
            split.forms = [SECONDS, DAY] if both else [own] if isinstance(own, str) else own

    def state_existing(self, said: Statement) -> None:
        """Take in a statement on events that stay; what it says of today is left out."""
        events = [name for one in said.events for name in one.split("+")]
        today = {event["code"][0] for event in map(self.every.__getitem__, events)}
        wanted = [prefix for prefix in said.prefixes if prefix not in today]
        for one, prefix in zip(said.events, wanted, strict=False):
            self.prefixes |= dict.fromkeys(one.split("+"), prefix)
        for one, (name, column) in zip(said.events, said.names, strict=False):
            self.carried[one, name] = column
        new = [when for when in said.times if self.every[events[0]]["time"] != f"col({when})"]
        self.times |= dict.fromkeys(events, *new) if new else {}

    def changed(self) -> Config:
        """Carry out what was read."""
        for name, split in self.splits.items():
            table, _, event = name.rpartition(".")
            for column in split.fields:
                if (name, column) not in self.kept:
                    del self.every[name][column]
                    self.default[table][f"{event}_{column}"] = {
                        "code": [self.first.get(column, column.upper()), f"col({column})"],
                        "time": f"col({split.when})",
                        "time_format": split.forms,
                        "hadm_id": "hadm_id",
                        split.along[0]: split.along[1],
                    }
        for name, prefix in self.prefixes.items():
            parts = self.every[name]["code"]
            self.every[name]["code"] = [prefix, parts] if isinstance(parts, str) else [prefix, *parts[1:]]
        for (name, key), column in self.carried.items():
            self.every[name][key] = column
        for name, when in self.times.items():
            self.every[name]["time"] = f"col({when})"
        return self.default


def understood(tagged: str) -> Statement:
    """Sort out what a statement names."""
    text = TAKEN_BACK.sub("", tagged)
    pairs = [(hit.start(), hit[1], hit[2]) for hit in CARRIED_FROM.finditer(text)]
    pairs += [(hit.start(), hit[4], hit[1]) for hit in CARRIED_AS.finditer(text)]
    rest = CARRIED_AS.sub(lambda hit: hit["on"] or "", CARRIED_FROM.sub("", text))
    columns = [column for column in re.findall(COLUMN, rest) if column != "hadm_id"]
    return Statement(
        text,
        re.findall(EVENT, rest),
        re.findall(r"<P:(\w+)>", rest),
        [column for column in columns if not column.endswith("time")],
        [column for column in columns if column.endswith("time")],
        [(name, column) for _, name, column in sorted(pairs) if name != "hadm_id"],
    )


def units(text: str) -> list[str]:
    """Return paragraphs and the entries of lists and tables, each on one line."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        for number, line in enumerate(block.splitlines()):
            if number == 0 or ITEM.match(line):
                found.append("")
            found[-1] += " " + ITEM.sub("", line).strip()
    return [re.sub(r"\s+", " ", one).strip() for one in found]


def changed(config: Config, request: str) -> Config:
    """Return the configuration that a request asks for."""
    reader = Reader(config)
    reader.read(request)
    return reader.changed()


def convert(config: Path, raw: Path, out: Path) -> None:
    """Run the package's pipeline with a configuration; the code is the package's, only the path is another."""
    code = (
        "import sys; from pathlib import Path; import MIMIC_IV_MEDS.__main__ as package; "
        "package.EVENT_CFG = Path(sys.argv.pop(1)); package.main()"
    )
    words = [f"root_output_dir={out}", f"raw_input_dir={raw}", "do_download=False"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, "-c", code, str(config), *words],
        check=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(SOURCE.parent)},
        stdout=sys.stderr,
    )


def submit(cohort: Path, package: Path) -> None:
    """Copy what is asked for."""
    target = SUBMISSION / "MEDS_cohort"
    shutil.copytree(cohort / "data", target / "data", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(cohort / "metadata", target / "metadata", ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(package, target / "package" / "MIMIC_IV_MEDS", ignore=shutil.ignore_patterns("__pycache__"))


def main() -> None:
    """Solve the task."""
    default = yaml.safe_load((SOURCE / "configs" / "event_configs.yaml").read_text())
    request = (DATA / "change_request.md").read_text()
    custom = SOURCE / "configs" / "custom_event_configs.yaml"
    custom.write_text(yaml.safe_dump(changed(default, request), sort_keys=False))
    with tempfile.TemporaryDirectory() as scratch:
        convert(custom, DATA / "raw_input", Path(scratch))
        submit(Path(scratch) / "MEDS_cohort", SOURCE)


if __name__ == "__main__":
    main()
