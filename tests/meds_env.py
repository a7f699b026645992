"""The pinned ETL in an environment of its own on the host, for tests that judge conversions outside a verifier box.

Made once from the image's own lock file and kept in the suite's cache.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from containers.locks import file_lock
from runners.cache import default_cache
from verifiers_hidden.ehr_format_conversion.pipeline import ENVIRONMENT

LOCK = Path(__file__).parent.parent / "containers" / "images" / "meds_etl" / "requirements.lock"


def ensure() -> Path:
    """Return the environment's folder, made now if need be, and let the verifier find it."""
    root = default_cache().root / "meds-env"
    root.mkdir(parents=True, exist_ok=True)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = root / hashlib.sha256(version.encode() + LOCK.read_bytes()).hexdigest()[:16]
    with file_lock(root / "lock"):
        if not (folder / "finished").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            words = ["install", "-q", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
            words += ["--no-binary", "antlr4-python3-runtime", "-r", str(LOCK)]
            subprocess.run([folder / "bin" / "python", "-m", "pip", *words], check=True)
            (folder / "finished").touch()
    os.environ[ENVIRONMENT] = str(folder)
    return folder
