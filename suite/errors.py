"""Errors that a user can mend: their message is all that is shown."""

from results.report import MixError

from categories.catalog import CatalogError
from categories.staging import StagingError
from containers.box import EngineError
from results.folder import RunFolderError
from runners.harness import HarnessError
from runners.verify import VerifierError
from suite.request import RequestError

EXPECTED = (
    CatalogError,
    EngineError,
    HarnessError,
    MixError,
    RequestError,
    RunFolderError,
    StagingError,
    VerifierError,
)
