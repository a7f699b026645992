"""All sources at once, on this machine, in miniature: what the clinical edition of every category is prepared from."""

import camelyon
import ehrshot
import mimic
import trec
from hosts import BucketHost, Host, PhysioNetHost, RedivisHost, WebHost

from categories.sources.spec import find_source

CREDENTIALS = {
    "HF_TOKEN": "hf_clinic-token",
    "PN_USER": "ada",
    "PN_PASS": "clinic-password",
    "REDIVIS_API_TOKEN": "clinic-redivis-token",
}


def settings() -> str:
    """Return what the settings file holds beside the manners: the miniature's own pins."""
    pins = "".join(f'"{name}" = "{digest}"\n' for name, digest in trec.pins().items())
    return f"[audited_trials.files]\n{pins}"


def open_clinic() -> dict[str, Host]:
    """Return a host for every source that some category draws on."""
    return {
        "camelyon16": BucketHost(camelyon.files()),
        "trec_ct_2021": WebHost(trec.track()),
        "clinicaltrials_2021": WebHost(trec.snapshot()),
        "audited_trials": WebHost(trec.audit()),
        "ehrshot": RedivisHost(
            find_source("ehrshot").path, {ehrshot.ARCHIVE: ehrshot.archive()}, token=CREDENTIALS["REDIVIS_API_TOKEN"]
        ),
        "mimic_iv_demo": PhysioNetHost(find_source("mimic_iv_demo").path, mimic.files()),
    }
