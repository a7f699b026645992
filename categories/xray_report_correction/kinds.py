"""The kinds of finding and device: which values each may take, and how often (``kinds.toml``)."""

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, cast

from categories.xray_report_correction.state import Severity, Side

Setting = Literal["pa", "ap"]
"""``pa``: upright PA and lateral views; ``ap``: one portable AP view."""


@dataclass(frozen=True)
class Value:
    """What is true of a kind at one study; every slot the kind has is filled."""

    side: Side | None = None
    location: str | None = None
    severity: Severity | None = None
    count: int | None = None
    tip: str | None = None


SLOTS = ("side", "location", "severity", "count", "tip")


@dataclass(frozen=True)
class Kind:
    """One table of ``kinds.toml``."""

    name: str
    pa: float
    ap: float
    device: bool = False
    stay: float = 0.85
    sides: Mapping[str, float] = field(default_factory=dict)
    severities: Mapping[str, float] = field(default_factory=dict)
    lobes: Mapping[str, float] = field(default_factory=dict)
    zones: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    tips: Mapping[str, float] = field(default_factory=dict)
    bands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    step: float = 0.0
    negative: float = 0.0
    flip: bool = False

    def weight(self, setting: Setting) -> float:
        return self.pa if setting == "pa" else self.ap

    def degrees(self) -> tuple[str, ...]:
        """Return the severities from least to most."""
        return tuple(self.severities)


@cache
def load_kinds() -> dict[str, Kind]:
    """Return all kinds by name, in the order of the file."""
    text = (Path(__file__).parent / "kinds.toml").read_text(encoding="utf-8")
    return {name: Kind(name=name, **table) for name, table in tomllib.loads(text).items()}


@cache
def values_of(name: str, setting: Setting) -> dict[Value, float]:
    """Return every value a kind may take in a setting, with its weight; there is no middle lobe on the left."""
    kind = load_kinds()[name]
    places = kind.lobes if setting == "pa" else kind.zones
    axes = [list(axis.items()) or [("", 1.0)] for axis in (kind.sides, places, kind.severities, kind.counts, kind.tips)]
    found = {}
    for (side, a), (place, b), (severity, c), (count, d), (tip, e) in itertools.product(*axes):
        if (side, place) == ("left", "middle lobe"):
            continue
        value = Value(
            side=cast(Side, side) if side else None,
            location=place or None,
            severity=cast(Severity, severity) if severity else None,
            count=int(count) if count else None,
            tip=tip or None,
        )
        found[value] = a * b * c * d * e
    return found
