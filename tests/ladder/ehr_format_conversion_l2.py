"""L2: an afternoon. Reads the change request with a phrase book and a handful of rules, then runs the ETL.

In each sentence (row, block of `Key: value` lines) it marks events, columns and prefixes, by name or by EVENTS and
COLUMNS; cue words say what a column is there for. A sentence without an event is about the last one named; later ones
overwrite; refusals take back what they name, or the sentence before. Other wording goes unseen, without a warning.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import yaml

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
SOURCE = Path(os.environ.get("HAB_SOURCE", "/workspace/MIMIC_IV_MEDS/src/MIMIC_IV_MEDS"))
Event = tuple[str, str]
Place = tuple[Event, str, str]  # event, setting ("new ..." of the events split off from it), name
# Stems of a word, or of two near each other ("type of admission", "admission type"); @ is an identifier.
EVENTS = """admissions.ed_registration=regist|arriv ed|emergency;admissions.ed_out=out|exit|depart|leav|disch ed|
emergency;icustays.icu_admission=admi|arriv icu|intensive;icustays.icu_discharge=disch|depart|exit|leav icu|
intensive;admissions.admission=admi hospital|event;admissions.discharge=disch hospital|event;
chartevents.event=chart icu|bedside|event;procedureevents.start=start|begin procedure;procedureevents.end=end|finish|
stop procedure;labevents.lab=lab|laborator;procedureevents.start procedureevents.end=procedure icu;
procedures_icd.procedure=procedure icd|code|hospital|event;inputevents.input_start=start|begin infusion|input;
inputevents.input_end=end|finish|stop infusion|input;omr.omr=omr|outpatient;
inputevents.subject_weight=weight subject|event;outputevents.output=output fluid|event;drgcodes.drg=drg;
pharmacy.medication_start=start|begin pharmac|medication|prescri|dispens;transfers.transfer=transfer event;
pharmacy.medication_stop=end|finish|stop pharmac|medication|prescri|dispens;emar.medication=emar|administ;
hcpcsevents.hcpcs=hcpcs|cpt;diagnoses_icd.diagnosis=diagnos;patients.death=death"""
COLUMNS = """ref_range_lower=low|lower|minim refer|normal;ref_range_upper=upper|high|maxim|top refer|normal;
admission_type=kind|urgency admi;eventtype=type|kind event|transfer|move;order_provider_id=provider|who|
physician order;proc_type=type|kind order|pharmac;pharmacy_id=@|order pharmac;poe_id=@|entry|provider order|poe;
orderid=@ order;outtime=time|moment|when left|leav;emar_seq=sequen|running|number administ|emar;emar_id=@ administ|
emar;valueuom=unit measur|value|result;labevent_id=@ lab|row|result;first_careunit=first unit|ward;
last_careunit=last unit|ward;los=length|duration|long stay;hadm_id=@|stay hospital|admission|encounter;stay_id=@|
icu stay;ordercategorydescription=categor|descri order;seq_num=sequen|priorit|rank|position;careunit=unit|ward;
marital_status=marital|married;drg_mortality=mortal;drg_severity=sever;insurance=insur|payer;race=race|ethnic;
flag=flag|abnormal;priority=urgen;specimen_id=specimen|sample;patientweight=weight;caregiver_id=caregiver|nurse;
statusdescription=status|finish;storetime=stored|storing"""
NOT_PREFIX = ("UNK", "NULL", "ICU", "ED", "HCPCS", "MIMIC", "MEDS", "PREFIX", "VALUE", "CODE", "MIMIC_IV_MEDS")
GROUP = r"""\b(?:new|resulting|derived|split-?off|created|these|those|such) (?:events?|ones)\b|\bsplit-offs\b|
\bthey\b|\bevents? (?:(?:that (?:is|are) )?(?:so|thus|newly) \w+|split[- ]off|created|cut out)"""
CUES = {  # what a column is there for, by the cue last read before it (or the first after it)
    "split": r"own|(?:becom|turn|mak)\w*\b.{0,40}\bevents?|split\w*|leaves? it|(?:mov|pull|tak)\w*\b.{0,40}\bout",
    "prefix": r"prefix\w*|first (?:part|literal)",
    "carry": r"carr\w+|add(?:s|ed|ing|itional\w*)?|need(?:s|ed)?|includ\w+|(?:extra|more|new) columns?|attach\w*",
    "time": r"times?|dated?|happens?|occurs?|takes? place|timed|instead of|no longer|rather than|at(?= (?:the )?`)",
    "keep": r"stays?|remains?|keeps?(?! (?:its|their) name)|left alone|untouched|kept",
    "except": r"except\w*|besides|apart from|other than|save for|aside from|excluding|without|but(?: not)?(?= `)",
}
REFUSED = r"""\b(?:turned down|reject\w*|declin\w+|withdr\w+|forget|never ?mind|cancel\w*|scrap\w*|revert\w*|
not (?:agreed|accepted|approved|adopted|wanted|needed|this time|decided)|no such|refused|ignore|disregard|struck|
out of scope|postponed|deferred|decided against|(?:rather|better|let's) not|no longer (?:needed|wanted|required)|
leave (?:it|that) alone)\b|\bno(?= `)|(?:^|[:>\d)] )\W*no\b[,.:! ]|^(?!.*\b(?:else|other|rest|
columns)).*(?:(?:stays?|remains?|leave .{1,50}|left) as (?:it|they) (?:is|are|was|were)|unchanged|no change|
as in the default|keeps? (?:its|their|the) (?:\w+ )?(?:prefix|time|code))"""
REPLACED = r"""(?:\bnot|\bno|no longer|instead of|rather than|in place of|replac\w+|formerly|previously|\bwas|\bold|
\btoday|until now|current(?:ly)?|\bdefault'?s?)\W*(?:(?:the|column|prefix|code|time|as|by|at|for|from|to|of)\W+)*$"""
NAME_AFTER = r"(?<!well )\bas\b(?! well| it| they)|under (?:the )?name|\b(?:call|nam)ed\b|→|->|=>|\bname\b[^:|]*:"
SOURCE_AFTER = r"\bfrom\b|\bfill\w*|\bsource|\braw\b|←|<-|=|\bhold\w*|contain\w*|\btak\w+|values? of|[(:]\s*$"
WORD = r"`([A-Za-z]\w*)`(?! event)|(?<![\w./`])([A-Za-z]\w*_\w+|[A-Z]{5,}|[a-z]+time)(?![\w`/]|\.\w)"  # column, prefix
FORMATS = {19: "%Y-%m-%d %H:%M:%S", 10: "%Y-%m-%d", 4: "%Y"}  # by their length


class Mention(NamedTuple):
    span: tuple[int, int]
    kind: str  # event, column (of the raw table, or a new name), prefix
    value: Any
    role: str = ""  # what a column is there for; "old" if named as what is no longer to hold


def said(pattern: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(pattern.replace("\n", ""), text, re.IGNORECASE))


def mark(marks: list[Mention], span: tuple[int, int], kind: str, value: Any) -> None:
    if all(span[1] <= other.span[0] or span[0] >= other.span[1] for other in marks):
        marks.append(Mention(span, kind, value))


def phrases(words: str) -> list[tuple[str, str]]:
    found = []
    words = words.replace("\n", "").replace("@", "id|identif|number|key|link")
    for name, stems in (entry.split("=") for entry in words.split(";")):
        parts = [rf"\b(?:{group})s?\b" for group in re.sub("([a-z]{4,})", r"\1[a-z]*", stems).split(" ")]
        gap = r"(?:(?:'s)?[ -](?!and\b|or\b)[\w']+){0,%d}?(?:'s)?[ -]"
        found.append((name, "|".join([(gap % 4).join(parts), (gap % 1).join(parts[::-1])])))
    return found


@cache
def raw(table: str) -> pl.DataFrame:
    frame = pl.read_csv(DATA / "raw_input" / f"{table}.csv.gz", n_rows=20000, infer_schema=False)
    return frame.with_columns(hadm_discharge_time=pl.lit("2180-05-06 22:23:00"), year_of_birth=pl.lit("2180"))


def units(request: str) -> list[tuple[bool, str]]:
    found, keyed, head, fresh = [(True, "")], False, [], True
    for line in request.splitlines():
        text = re.sub(r"\.{3,}|…", ":", re.sub(r"^[\s>]+", "", line)).rstrip()
        title = re.match(r"#+\s+(.*)|\*\*([^*]+)\*\*:?$", text)
        key = bool(re.match(r"\W*[A-Za-z][\w /-]{1,30}\W{0,2}:\s.*[^.!?]$", text.replace("**", "")))
        if title or re.fullmatch(r"[-=|:+ *_]*", text):
            fresh, head = True, head if text else []
            found += [(True, title[1] or title[2])] if title else []
        elif text.startswith("|"):
            cells = [cell.strip() for cell in text.strip("|").split("|")]
            found.append((False, " | ".join(f"{name}: {cell}" for name, cell in zip(head, cells, strict=False))))
            head = head or cells
        else:
            form = key and keyed and not all(re.search("(?:hosp|icu)/", part) for part in (text, found[-1][1]))
            if not fresh and (form or not (key or re.match(r"[-*+•] |\(?\w{1,3}[.)]\s|\[[ x]\] ", text))):
                text = f"{found.pop()[1]}{' | ' if form else ' '}{text}"
            found.append((False, text))
            fresh, keyed = False, key
    return found


class Reader:
    def __init__(self, request: str, config: dict[str, Any]) -> None:
        self.config = {table: events for table, events in config.items() if isinstance(events, dict)}
        self.plan: dict[Place, str] = {}
        self.before, self.focus, self.grouped, self.role = {}, [], False, "carry"
        refused = skipped = False
        for heading, text in units(request):
            if heading:
                skipped, refused = (bool(said(words, text)) for words in ("ground rule|notation|convention", REFUSED))
                self.role = next((name for name, cue in CUES.items() if said(rf"\b(?:{cue})\b", text)), "carry")
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`(*\"])|;\s+", text.replace("**", "")):
                if not (skipped or (heading and refused)):
                    self.sentence(sentence, refused)

    def key(self, event: Event, column: str = "") -> Any:
        settings = self.config[event[0]][event[1]].items()
        carried = {key: name for key, name in settings if key not in ("code", "time", "time_format", "_metadata")}
        return next((key for key, name in carried.items() if column in (key, name)), "") if column else carried

    def events(self, text: str) -> list[Mention]:
        found: list[Mention] = []
        for table, events in self.config.items():
            base = table.split("/")[1]
            lead = rf"(?<![\w/.])(?:(?:hosp/|icu/|`)+{base}|{base}(?= table|\.[a-z]))(?!\w|/\w)`?"
            tables = said(rf"{lead}(?:\s?(?:\.|→|->|/|:|>)\s?`?({'|'.join(events)})\b(?![./]))?`?", text)
            for match in [match for match in tables if match[1]] or tables:
                hinted = [name for name in events if said(rf"\b{name}\b", text[: match.start()] + text[match.end() :])]
                names = [match[1]] if match[1] else hinted or events
                mark(found, match.span(), "event", [(table, name) for name in names])
        paths = {f"{table.split('/')[1]}.{name}": (table, name) for table in self.config for name in self.config[table]}
        for names, pattern in phrases(EVENTS):
            for match in said(rf"(?<![`/.])(?:{pattern})(?: events?)?(?![`/])", text):
                mark(found, match.span(), "event", [paths[name] for name in names.split() if name in paths])
        return found

    def mentions(self, text: str) -> list[Mention]:
        events = self.events(text)
        marks = [event for event in events if re.search(r"event|[`/.]", text[slice(*event.span)])]
        about = [event for m in marks or events for event in m.value] or [*self.focus, *(at[0] for at in self.plan)]
        names = {name for table, _ in about for name in raw(table).columns}
        for word, match in ((match[1] or match[2], match) for match in re.finditer(WORD, text)):
            if word not in NOT_PREFIX:
                mark(marks, match.span(), "prefix" if word.isupper() else "column", word)
        words = ";".join([COLUMNS, *(f"{name}={' '.join(name.split('_')[::-1])}" for name in sorted(names))])
        for name, pattern in phrases(words):
            for match in said(pattern, text) if name in names else []:
                mark(marks, match.span(), "column", name)
        for event in (event for event in events if event not in marks):
            marks = [m for m in marks if m.span[0] < event.span[0] or m.span[1] > event.span[1]]
            mark(marks, *event[:3])
        self.focus = [event for m in marks if m.kind == "event" for event in m.value] or self.focus
        return [m._replace(role="old" * bool(said(REPLACED, text[: m.span[0]][-40:]))) for m in sorted(marks)]

    def roles(self, text: str) -> tuple[list[Mention], set[str]]:
        marks, plain, found = self.mentions(text), text, []
        named = [m.span for m in marks if m.kind != "column" or m.value in text[slice(*m.span)]]
        for start, end in [*named, *(match.span() for match in said(GROUP, text))]:
            plain = plain[:start] + "`" * (end - start) + plain[end:]
        cues = sorted((match.start(), name) for name, cue in CUES.items() for match in said(rf"\b(?:{cue})\b", plain))
        cues = [cue for cue in cues if cue[1] != "except" or any(name == "split" for _, name in cues)]
        for m in marks:
            usable = [cue for cue in cues if cue[1] != "time" or re.search("time$|date$|^dod$|^year", str(m.value))]
            before = [name for at, name in usable if at < m.span[0]][-1:]
            role = (before or [cue[1] for cue in usable] or ["" if cues else self.role])[0]
            found.append(m if m.role or m.kind != "column" else m._replace(role=role))
        return found, {name for _, name in cues}

    def sentence(self, text: str, refused: bool) -> None:
        (before, self.before), (marks, cues) = (self.before, dict(self.plan)), self.roles(text)
        named, group = any(m.kind == "event" for m in marks), bool(said(GROUP, text))
        self.grouped = group or "split" in cues or (self.grouped and not named)
        if refused or said(REFUSED, text):
            self.plan = self.plan if marks or refused else before
            self.withdraw([event for m in marks if m.kind == "event" for event in m.value], marks, cues)
            return
        for event in self.focus if "split" in cues else []:
            keys = {(m.role, self.key(event, m.value)) for m in marks if m.kind == "column"}
            listed = [key for key in self.key(event) if {("split", key), ("prefix", key)} & keys]
            if "split" not in dict(keys) and said(r"\b(?:every|each|all|everything|whatever|any)\b", text):
                listed = [key for key in self.key(event) if not {("except", key), ("keep", key)} & keys]
            self.plan = {(event, "split", key): "" for key in listed} | self.plan
        split = [event for event, setting, _ in self.plan if setting == "split"]
        for e, m in ((e, m) for e in split for m in marks if m.role == "keep" and (e in self.focus or not named)):
            self.plan.pop((e, "split", "" if group else self.key(e, m.value)), None)
        self.name(marks, named)
        aim = [event for event in self.focus if event in split] or (split[-1:] if group else self.focus)
        aim, new = (aim, "new ") if self.grouped else (self.focus, "")
        for m in (m for m in marks[::-1] if m.role == "time" and re.search("time$|date$", m.value)):
            self.plan.update({(event, f"{new}time", ""): m.value for event in aim if m.value in raw(event[0]).columns})
        self.add(text, [m for m in marks if m.role in ("carry", "keep" if group else "carry")], aim, f"{new}carry")
        self.role = next((name for name in ("split", "carry", "time") if name in cues), self.role)

    def withdraw(self, events: list[Event], marks: list[Mention], cues: set[str]) -> None:
        words = {m.value for m in marks if m.kind != "event"}
        for (event, setting, name), value in list(self.plan.items()):
            known = {value, str(self.config[event[0]][event[1]]["time"])[4:-1] if "time" in setting else value}
            known |= {name, self.key(event).get(name)} if setting != "split" or cues & {"split", "keep"} else set()
            hit = known & words if words else setting.split()[-1] in cues
            if hit and (event in events or (words and not events)):
                del self.plan[event, setting, name]
                self.focus = [event]

    def name(self, marks: list[Mention], named: bool) -> None:
        words = [m for m in marks if m.kind == "prefix"]
        given = {place: word for place, word in self.plan.items() if place[1] in ("prefix", "split")}
        held = {*given.values(), *(part for table, name in self.focus for part in self.config[table][name]["code"])}
        old = {word.value for word in words if word.role or word.value in held}
        words = [word for word in words if word.value not in old] or words
        targets, about = [], self.focus if named else [*self.focus, *(place[0] for place in given)]
        for m in (m for m in marks if m.role in ("split", "prefix", "keep")):
            keys = [(event, "split", key) for event in about if (key := self.key(event, m.value))]
            keys = [key for key in keys if key in given] or (keys[:1] if self.grouped else [])
            targets += [(m.span, keys)] if keys else []
        places = [place for place, word in given.items() if word in old and place[0] in about]
        if not (targets or places):
            targets = [(m.span, [(event, "prefix", "") for event in m.value]) for m in marks if m.kind == "event"]
        if not targets:
            unnamed = [key for key, word in given.items() if self.grouped and key[0] in self.focus and not word]
            places = places or unnamed or [(event, "prefix", "") for event in self.focus]
            targets = [((0, 0), [place]) for place in places] if len(places) == len(words) else [((0, 0), places)]
        for index, (at, keys) in enumerate(targets if words else []):
            one = [w for w in words if w.span < at][-1:] if words[0] < targets[0] else [w for w in words if w.span > at]
            one = words[index : index + 1] if len(words) == len(targets) else one or words
            self.plan.update(dict.fromkeys(keys, one[0].value))

    def add(self, text: str, wanted: list[Mention], aim: list[Event], setting: str) -> None:
        while wanted:
            first, second = wanted.pop(0), wanted[0] if wanted else None
            name, source = "", first.value
            between = text[first.span[1] : second.span[0]] if second else ""
            if second and said(NAME_AFTER, between) and not said(r"its name|\band\b", between):
                name = wanted.pop(0).value
            elif second and (said(SOURCE_AFTER, between) or said(r"(?:\bas|called)\W*$", text[: first.span[0]])):
                name, source = source, wanted.pop(0).value
            for event in aim:
                column = source if source in raw(event[0]).columns else self.key(event).get(source)
                self.plan.update({(event, setting, name or source): column} if column else {})


def configured(request: str, config: dict[str, Any]) -> dict[str, Any]:
    plan = Reader(request, config).plan
    for setting in ("time", "split", "new time", "new carry", "prefix", "carry"):
        for (event, _, name), value in ((place, value) for place, value in plan.items() if place[1] == setting):
            events, old = config[event[0]], config[event[0]][event[1]]
            if setting == "split":
                times = {key: old[key] for key in ("time", "time_format") if key in old}
                events[f"{event[1]}_{name}"] = {"code": [value or name.upper(), f"col({old.pop(name)})"], **times}
            elif setting == "prefix":
                parts = [old["code"]] if isinstance(old["code"], str) else old["code"]
                at = next((at for at, part in enumerate(parts) if not part.startswith("col(")), -1)
                old["code"] = [*parts[: max(at, 0)], value, *parts[at + 1 :]]
            else:
                added = {name: value}
                if "time" in setting:
                    lengths = {*raw(event[0])[value].drop_nulls().str.len_chars(), *([19] if value == "dod" else [])}
                    forms = [form for length, form in FORMATS.items() if length in lengths] or [FORMATS[19]]
                    added = {"time": f"col({value})", "time_format": forms if len(forms) > 1 else forms[0]}
                made = [events[f"{event[1]}_{place[2]}"] for place in plan if place[:2] == (event, "split")]
                for target in made if "new" in setting else [old]:
                    target.update(added)
    return config


if __name__ == "__main__":
    default = yaml.safe_load((SOURCE / "configs/event_configs.yaml").read_text())
    custom = yaml.safe_dump(configured((DATA / "change_request.md").read_text(), default), sort_keys=False)
    (SOURCE / "configs/custom_event_configs.yaml").write_text(custom)
    entry, logger = SOURCE / "__main__.py", "logger = logging.getLogger(__name__)\n"
    wired = f'{logger}EVENT_CFG = EVENT_CFG.with_name("custom_event_configs.yaml")\n'
    entry.write_text(entry.read_text().replace(wired, logger).replace(logger, wired))
    root, cohort = Path.home() / f"meds_{os.getpid()}", SUBMISSION / "MEDS_cohort"
    options = [f"root_output_dir={root}", f"raw_input_dir={(DATA / 'raw_input').resolve()}", "do_download=False"]
    subprocess.run([sys.executable, "-m", "MIMIC_IV_MEDS", *options], check=True)
    shutil.copytree(root / "MEDS_cohort", cohort)
    shutil.copytree(SOURCE, cohort / "package/MIMIC_IV_MEDS", ignore=shutil.ignore_patterns("__pycache__"))
