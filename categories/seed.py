"""Seeds: a string makes an edition; only its fingerprint is ever shown."""

import hashlib
import hmac
import secrets

DEFAULT_SEED = "0"
"""The public seed: convenient, and known to everybody. Private seeds come from ``new_seed``."""


def new_seed() -> str:
    """Return a private seed of 160 random bits."""
    return secrets.token_hex(20)


def fingerprint(seed: str) -> str:
    """Return twelve hexadecimal digits that name the seed without giving it away."""
    return hashlib.sha256(b"seed fingerprint\x1f" + seed.encode()).hexdigest()[:12]


def case_key(seed: str, category: str, case: str, instance: int) -> bytes:
    """Return the 32-byte key of one draw: HMAC-SHA256(seed, category/case/instance)."""
    return hmac.new(seed.encode(), f"{category}/{case}/{instance}".encode(), hashlib.sha256).digest()
