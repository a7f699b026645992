"""Claims: what a sentence of a report says of one kind, as the gold and the verifier know it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from categories.xray_report_correction.kinds import SLOTS, Value

Change = Literal["new", "increased", "decreased", "unchanged", "resolved"]


@dataclass(frozen=True)
class Claim:
    """One statement; what is not said is None."""

    finding: str
    status: Literal["present", "absent"] = "present"
    side: str | None = None
    location: str | None = None
    severity: str | None = None
    size_mm: int | None = None
    count: int | None = None
    change: Change | None = None
    tip: str | None = None

    @property
    def present(self) -> bool:
        return self.status == "present"

    def statement(self) -> dict[str, Any]:
        """Return the claim as the gold holds it."""
        return asdict(self)


def claim_of(name: str, value: Value, **more: Any) -> Claim:
    """Return the claim that says everything of a value."""
    slots: Mapping[str, Any] = {slot: getattr(value, slot) for slot in SLOTS}
    return Claim(finding=name, **{**slots, **more})
