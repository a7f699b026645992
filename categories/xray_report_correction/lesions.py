"""What is drawn for each kind of finding."""

from collections.abc import Mapping

from categories.xray_report_correction import lesions_diffuse, lesions_lung, lesions_pleura
from categories.xray_report_correction.render_scene import Drawer, Scene
from categories.xray_report_correction.state import Finding


def in_posture(scene: Scene, finding: Finding) -> None:
    """Draw nothing: heart size and inflation are drawn with the posture."""


LESIONS: Mapping[str, Drawer] = {
    "cardiomegaly": in_posture,
    "hyperinflation": in_posture,
    "pleural_effusion": lesions_pleura.pleural_effusion,
    "pneumothorax": lesions_pleura.pneumothorax,
    "consolidation": lesions_lung.consolidation,
    "atelectasis": lesions_lung.atelectasis,
    "nodule": lesions_lung.nodule,
    "granuloma": lesions_lung.granuloma,
    "pulmonary_edema": lesions_diffuse.pulmonary_edema,
    "hiatal_hernia": lesions_diffuse.hiatal_hernia,
}
