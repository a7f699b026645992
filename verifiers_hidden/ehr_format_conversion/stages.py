"""``python -I stages.py RAW WORK CONFIG``: the pinned ETL's own stages, one after the other, in one process.

Run by the interpreter that has the ETL. The package's command starts ten interpreters for the same work; this imports
the same code once. Nothing of a submission is imported: the configuration is read by the package as data.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any


def main(raw: Path, work: Path, config: Path) -> None:
    """Convert ``raw`` into ``work/MEDS_cohort`` by an event configuration; all else is as in the package."""
    package: Any = importlib.import_module("MIMIC_IV_MEDS")
    first: Any = importlib.import_module("MIMIC_IV_MEDS.pre_MEDS")
    omegaconf: Any = importlib.import_module("omegaconf")
    first.main(input_dir=raw, output_dir=work / "pre_MEDS")
    os.environ |= {
        "DATASET_NAME": package.dataset_info.dataset_name,
        "DATASET_VERSION": f"{package.dataset_info.raw_dataset_version}:{package.__version__}",
        "EVENT_CONVERSION_CONFIG_FP": str(config),
        "PRE_MEDS_DIR": str(work / "pre_MEDS"),
        "MEDS_COHORT_DIR": str(work / "MEDS_cohort"),
    }
    where = Path(str(package.ETL_CFG))
    words = [f"--config-dir={where.parent}", f"--config-name={where.stem}"]
    words.append("hydra.searchpath=[pkg://MEDS_transforms.configs]")
    for stage in omegaconf.OmegaConf.load(where).stages:
        sys.argv = [stage, *words, f"stage={stage}"]
        importlib.import_module(f"MEDS_transforms.extract.{stage}").main()


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:]))
