"""All sources at once, on this machine, in miniature: what the clinical edition of every category is prepared from."""

import camelyon
import mimic
from hosts import BucketHost, Host, PhysioNetHost

from categories.sources.spec import find_source

CREDENTIALS = {
    "HF_TOKEN": "hf_clinic-token",
    "PN_USER": "ada",
    "PN_PASS": "clinic-password",
    "REDIVIS_API_TOKEN": "clinic-redivis-token",
}


def open_clinic() -> dict[str, Host]:
    """Return a host for every source that some category draws on."""
    return {
        "camelyon16": BucketHost(camelyon.files()),
        "mimic_iv_demo": PhysioNetHost(find_source("mimic_iv_demo").path, mimic.files()),
    }
