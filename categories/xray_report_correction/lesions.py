"""What is drawn for each kind of finding."""

from collections.abc import Mapping

from categories.xray_report_correction.render_scene import Drawer, Scene
from categories.xray_report_correction.state import Finding


def in_posture(scene: Scene, finding: Finding) -> None:
    """The posture draws it: heart size and inflation are no lesions."""


LESIONS: Mapping[str, Drawer] = {"cardiomegaly": in_posture, "hyperinflation": in_posture}
