"""One draw of a task: its key comes from the seed and from nothing else."""

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from categories.spec import Case, Scale


@dataclass(frozen=True)
class Draw:
    """What ``prepare`` is given. Two draws with the same fields give the same bytes on any machine."""

    case: str
    spec: Case
    key: bytes
    """32 bytes, see ``categories.seed.case_key``."""
    scale: Scale
    assets: Path | None = None
    """Folder of what the category's ``shares`` stand on, see ``categories.assets``."""

    def rng(self, *label: str | int) -> np.random.Generator:
        """Return a generator of its own for each label, so that adding a step never moves another step's numbers."""
        return np.random.Generator(np.random.PCG64(int.from_bytes(self.digest(*label), "big")))

    def digest(self, *label: str | int) -> bytes:
        """Return 32 keyed bytes for a label: the source of opaque ids that cannot be recomputed without the key."""
        return hmac.new(self.key, "\x1f".join(map(str, label)).encode(), hashlib.sha256).digest()

    def opaque_id(self, *label: str | int, length: int = 12) -> str:
        """Return a lower-case hexadecimal id for a label; equal labels give equal ids."""
        return self.digest("id", *label).hex()[:length]
