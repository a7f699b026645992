"""What is true of a patient at each study: findings and devices with the numbers a picture is drawn from.

A state is plain data. The renderer draws it, the reports put it into words, and the gold is made of it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Side = Literal["left", "right", "bilateral"]
Severity = Literal["small", "mild", "moderate", "large", "severe"]
ViewName = Literal["PA", "LATERAL", "AP"]
Position = Literal["upright", "semi-upright"]

LOBES = ("upper lobe", "middle lobe", "lower lobe")
"""Where two views are taken; the middle lobe is on the right only."""
ZONES = ("upper zone", "mid zone", "lower zone")
"""Thirds of the lung's height, where one frontal view is taken; nodules, granulomas and bands lie in zones always."""

LUNG_KINDS = ("consolidation", "atelectasis", "nodule", "granuloma")
PLEURA_KINDS = ("pleural_effusion", "pneumothorax")
DIFFUSE_KINDS = ("pulmonary_edema", "cardiomegaly", "hyperinflation", "hiatal_hernia")
BONE_KINDS = ("rib_fracture",)
FINDING_KINDS = (*LUNG_KINDS, *PLEURA_KINDS, *DIFFUSE_KINDS, *BONE_KINDS)

TIPS: Mapping[str, tuple[str, ...]] = {
    "endotracheal_tube": ("mid trachea", "right main bronchus"),
    "enteric_tube": ("stomach", "distal esophagus"),
    "central_line": ("superior vena cava", "right atrium", "brachiocephalic vein"),
    "chest_tube": ("apex", "base"),
}
"""Where the tip of a device may lie; a pacemaker and wires have none."""


class NoRoomError(ValueError):
    """A finding finds no place in this chest; drawn with another track, or another story, it may."""


@dataclass(frozen=True)
class Finding:
    """One finding of one study.

    ``extent`` is the number the picture is drawn from, by kind: pleural_effusion mL on each side named; pneumothorax
    widest pleural separation at the apex in mm; consolidation diameter in mm; atelectasis total thickness of the
    bands in mm; pulmonary_edema 0-1; nodule and granuloma diameter in mm (``size_mm`` is it rounded); cardiomegaly
    cardiothoracic ratio on the study's frontal view; hyperinflation 0-1; hiatal_hernia width in mm; rib_fracture
    displacement in mm.
    """

    kind: str
    extent: float
    track: int
    """Names the lesion over a patient's studies (63 bits): the same number has the same place and shape each time."""
    side: Side | None = None
    location: str | None = None
    severity: Severity | None = None
    size_mm: int | None = None
    count: int | None = None
    """Nodules or fractures on that side and at that place; each of about ``extent``."""


@dataclass(frozen=True)
class Device:
    """One device of one study."""

    kind: str
    track: int
    side: Side | None = None
    """Side of entry (line, chest tube) or of the generator (pacemaker)."""
    tip: str | None = None
    """One of ``TIPS``."""
    count: int | None = None
    """Leads of a pacemaker, chest tubes of that side."""
    extent: float = 0.0
    """endotracheal_tube: tip above the carina in mm (below it: negative); else unused."""


@dataclass(frozen=True)
class Study:
    """One examination as it really is, whatever its report says."""

    day: int
    """Days since the first study."""
    age: int
    views: tuple[ViewName, ...]
    """``("PA", "LATERAL")`` or ``("AP",)`` (portable)."""
    position: Position
    posterior_ribs: float
    """Depth of inspiration: posterior ribs above the right dome, 8-10.5."""
    heart_ratio: float
    """Cardiothoracic ratio of the frontal view; equals the extent of a cardiomegaly where there is one."""
    findings: tuple[Finding, ...] = ()
    devices: tuple[Device, ...] = ()

    @property
    def portable(self) -> bool:
        return "AP" in self.views

    def found(self, kind: str) -> tuple[Finding, ...]:
        """Return the findings of a kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def placed(self, kind: str) -> tuple[Device, ...]:
        """Return the devices of a kind."""
        return tuple(device for device in self.devices if device.kind == kind)


def to_json(study: Study) -> dict[str, Any]:
    """Return a study as plain JSON data."""
    return asdict(study)


def from_json(document: Mapping[str, Any]) -> Study:
    """Return the study that ``to_json`` wrote.

    Raises:
        TypeError: a field is unknown or missing.
    """
    fields = dict(document)
    fields["views"] = tuple(fields["views"])
    fields["findings"] = tuple(Finding(**finding) for finding in fields["findings"])
    fields["devices"] = tuple(Device(**device) for device in fields["devices"])
    return Study(**fields)
