"""Errors that a user can mend: their message is all that is shown."""

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
