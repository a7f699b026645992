"""L1: ten minutes. Sentences and phrases as in seed 0's request, by pattern; the package's own entry point runs it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
SOURCE = Path(os.environ.get("HAB_SOURCE", "/workspace/MIMIC_IV_MEDS/src/MIMIC_IV_MEDS"))
PHRASES = {"ICU charting event": "icu/chartevents.event", "patient's marital status": "marital_status"}
PHRASES |= {"mortality level of the DRG": "drg_mortality", "patient's language": "language", "patient's race": "race"}
PHRASES |= {"lower end of the reference range": "ref_range_lower", "patient's insurance": "insurance"}


def configured(request: str, config: dict) -> dict:
    text, made = re.sub(r"\s+", " ", request), {}
    for phrase, name in PHRASES.items():
        text = re.sub(rf"(?i)\bthe {phrase}", f"`{name}`", text)
    text = re.sub(r"`((?:hosp|icu)/\w+)\.(\w+)`", r"<\1.\2>", text)
    for table in [key for key in config if "/" in key]:
        named = rf"(?i)(?:the event made from|both events of) `(?:{table}|{table.split('/')[1]})`"
        text = re.sub(named, f"<{table}.>", text)
    text = re.sub(r",? (?:not|no longer) `\w+`", "", text)
    for line in re.split(r"\. |: (?=[A-Z])| - |\d\. ", text):
        events = [one.split(".") for one in re.findall(r"<(\w+/\w+\.\w*)>", line)]
        prefixes, words = re.findall(r"`([A-Z_]{3,})", line), re.findall(r"`([a-z]\w+)`", line)
        pair = re.search(r"`(?!hadm)(\w+)`,? \(?(?:filled )?from `(\w+)`", line)
        other = re.search(r"`(\w+)`(?: to \S+)? ?,? ?(?:as|under the name) `(\w+)`", line)
        pair = dict([pair.groups() if pair else other.groups()[::-1]] if pair or other else [])
        when = [{}, *({"time": f"col({word})"} for word in words if word.endswith("time"))][-1]
        blocks = [[config[t][e]] if e else [*config[t].values()] for t, e in events if "turned down" not in line]
        if "every column" in line:
            moved = [key for key in blocks[0][0] if key not in {*words, "code", "time", "time_format", "hadm_id"}]
            made = {key: {"code": [key.upper(), f"col({key})"], "hadm_id": "hadm_id"} for key in moved}
            config[events[0][0]] |= {blocks[0][0].pop(key): made[key] for key in moved}
        for key, block in made.items() if not events else []:
            block["code"][0] = dict(zip(words, prefixes, strict=False)).get(key, block["code"][0])
            block.update(pair | when | {"time_format": "%Y-%m-%d %H:%M:%S"})
        for at, block in [(at, block) for at, some in enumerate(blocks) if "every" not in line for block in some]:
            parts = [block["code"]] if isinstance(block["code"], str) else block["code"][1:]
            block.update(pair | when | ({"code": [prefixes[at], *parts]} if prefixes else {}))
            block.pop(words[0] if "Forget" in line else "", None)
    return config


if __name__ == "__main__":
    default = yaml.safe_load((SOURCE / "configs/event_configs.yaml").read_text())
    config = configured((DATA / "change_request.md").read_text(), default)
    (SOURCE / "configs/custom_event_configs.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    wired = 'EVENT_CFG = EVENT_CFG.with_name("custom_event_configs.yaml")\n\n\n@hydra.main'
    (SOURCE / "__main__.py").write_text((SOURCE / "__main__.py").read_text().replace("@hydra.main", wired, 1))
    words = [f"root_output_dir={Path.home() / 'out'}", f"raw_input_dir={DATA / 'raw_input'}", "do_download=False"]
    subprocess.run([sys.executable, "-m", "MIMIC_IV_MEDS", *words], check=True)
    shutil.copytree(Path.home() / "out/MEDS_cohort", SUBMISSION / "MEDS_cohort")
    shutil.copytree(SOURCE, SUBMISSION / "MEDS_cohort/package/MIMIC_IV_MEDS", ignore=lambda *_: ["__pycache__"])
