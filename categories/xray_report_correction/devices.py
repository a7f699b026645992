"""What is drawn for each kind of device."""

from collections.abc import Callable, Mapping

from categories.xray_report_correction import devices_heart, devices_tubes
from categories.xray_report_correction.render_scene import Scene
from categories.xray_report_correction.state import Device

DEVICES: Mapping[str, Callable[[Scene, Device], None]] = {
    "endotracheal_tube": devices_tubes.endotracheal_tube,
    "enteric_tube": devices_tubes.enteric_tube,
    "central_line": devices_tubes.central_line,
    "chest_tube": devices_tubes.chest_tube,
    "pacemaker": devices_heart.pacemaker,
    "sternal_wires": devices_heart.sternal_wires,
}
