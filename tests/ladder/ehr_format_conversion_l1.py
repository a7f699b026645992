"""L1: ten minutes. Field, prefix, column and time lines of the request by pattern; the package's own entry point runs it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
SUBMISSION = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
SOURCE = Path(os.environ.get("HAB_SOURCE", "/workspace/MIMIC_IV_MEDS/src/MIMIC_IV_MEDS"))


def configured(request: str, config: dict) -> dict:
    """Return the configuration with the request's lines carried out, in the words the request of seed 0 uses."""
    for section in request.split("## ")[1:]:
        host = re.search(r"event `([^`]+)\.(\w+)` no longer carries", section)
        if host:
            when = re.search(r"happens at `(\w+)` \(written as `([^`]+)`\)", section)
            carried = dict(re.findall(r"`(\w+)` \(from `(\w+)`\)", section))
            for field, prefix in re.findall(r"- `(\w+)`: code `(\w+)//", section):
                del config[host[1]][host[2]][field]
                new = {"code": [prefix, f"col({field})"], "time": f"col({when[1]})", "time_format": when[2]}
                config[host[1]][field] = new | carried
        for line in section.splitlines():
            prefix = re.search(r"first part `(\w+)`", line)
            column = re.search(r"also carries `(\w+)` \(.*`(\w+)`", line)
            moved = re.search(r"happens at `(\w+)` instead", line)
            for table, event in re.findall(r"`([a-z]+/\w+)\.(\w+)`", line) if line.startswith("- ") else []:
                block = config[table][event]
                parts = [block["code"]] if isinstance(block["code"], str) else block["code"][1:]
                block |= {"code": [prefix[1], *parts]} if prefix else {}
                block |= {column[1]: column[2]} if column else {}
                block |= {"time": f"col({moved[1]})"} if moved else {}
    return config


def main() -> None:
    default = yaml.safe_load((SOURCE / "configs/event_configs.yaml").read_text())
    config = configured((DATA / "change_request.md").read_text(), default)
    (SOURCE / "configs/custom_event_configs.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    entry, wired = SOURCE / "__main__.py", 'EVENT_CFG = EVENT_CFG.with_name("custom_event_configs.yaml")\n\n\n'
    entry.write_text(entry.read_text().replace("@hydra.main", f"{wired}@hydra.main", 1))
    with tempfile.TemporaryDirectory() as out:
        words = [f"root_output_dir={out}", f"raw_input_dir={DATA / 'raw_input'}", "do_download=False"]
        subprocess.run([sys.executable, "-m", "MIMIC_IV_MEDS", *words], check=True)
        for part in ("data", "metadata"):
            shutil.copytree(Path(out, "MEDS_cohort", part), SUBMISSION / "MEDS_cohort" / part)
    shutil.copytree(SOURCE, SUBMISSION / "MEDS_cohort/package/MIMIC_IV_MEDS", ignore=lambda *_: ["__pycache__"])


if __name__ == "__main__":
    main()
