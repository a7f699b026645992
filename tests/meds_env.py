"""The pinned ETL in the suite's own environment on the host, for tests that judge conversions outside a verifier box."""

import os
from pathlib import Path

from runners.cache import default_cache
from suite.etl_environment import ensure_environment
from verifiers_hidden.ehr_format_conversion.pipeline import ENVIRONMENT


def ensure() -> Path:
    """Return the environment's folder, made now if need be, and let verifier and preparations find it."""
    os.environ[ENVIRONMENT] = str(ensure_environment(default_cache()))
    return Path(os.environ[ENVIRONMENT])
