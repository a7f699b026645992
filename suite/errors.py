"""Errors that a user can mend: their words are all that is shown."""

import errno

from categories.assets import AssetError
from categories.catalog import CatalogError
from categories.sources.errors import SourceError
from categories.staging import StagingError
from containers.agents import AgentError
from containers.box import EngineError
from results.blocks import MixError
from results.compare import CompareError
from results.folder import RunFolderError
from results.pricing import PriceFileError
from results.redaction import RedactionError
from results.site.build import SiteError
from runners.harness import HarnessError
from runners.keys import KeyMissingError
from runners.verify import VerifierError
from suite.request import RequestError

EXPECTED = (
    AgentError,
    AssetError,
    CatalogError,
    CompareError,
    EngineError,
    HarnessError,
    KeyMissingError,
    MixError,
    PriceFileError,
    RedactionError,
    RequestError,
    RunFolderError,
    SiteError,
    SourceError,
    StagingError,
    VerifierError,
)

NO_PLACE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
BAD_PATH = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def words_of(error: Exception) -> str:
    """Return what a user is told of an error; empty for one that only a developer can mend."""
    if isinstance(error, EXPECTED):
        return str(error)
    if isinstance(error, BAD_PATH) or (isinstance(error, OSError) and error.errno in NO_PLACE):
        what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        return f"{what}; see that the path is right, that you may write there, and that the disk has room"
    return ""
