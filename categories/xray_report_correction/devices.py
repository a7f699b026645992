"""What is drawn for each kind of device."""

from collections.abc import Callable, Mapping

from categories.xray_report_correction.render_scene import Scene
from categories.xray_report_correction.state import Device

DEVICES: Mapping[str, Callable[[Scene, Device], None]] = {}
