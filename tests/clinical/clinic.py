"""All sources at once, on this machine, in miniature: what the clinical edition of every category is prepared from."""

import os
from collections.abc import Callable
from pathlib import Path

import camelyon
import ctrate
import ehrshot
import mimic
import mimiccxr
import trec
from hosts import BucketHost, Host, HubHost, PhysioNetHost, RedivisHost, WebHost

from categories.sources.spec import find_source
from categories.spec import Task

CREDENTIALS = {
    "HF_TOKEN": "hf_clinic-token",
    "PN_USER": "ada",
    "PN_PASS": "clinic-password",
    "REDIVIS_API_TOKEN": "clinic-redivis-token",
}


def settings(folder: Path) -> str:
    """Return what the settings file holds beside the manners: the miniature's own pins and table of hashes."""
    pins = "".join(f'"{name}" = "{digest}"\n' for name, digest in trec.pins().items())
    (folder / "hashes.csv").write_text(mimiccxr.table(), encoding="utf-8")
    return f'[audited_trials.files]\n{pins}\n[mimic_cxr_jpg]\ntable = "{folder / "hashes.csv"}"\n'


def _cxr(source: str) -> Host:
    users = {CREDENTIALS["PN_USER"]: CREDENTIALS["PN_PASS"]}
    return PhysioNetHost(find_source(source).path, mimiccxr.files()[source], users=users)


def _code() -> Host:
    prefix = find_source("mimic_code").path
    return WebHost({f"{prefix}/{name}": body for name, body in mimic.maps().items()})


def _ehrshot() -> Host:
    files = {ehrshot.ARCHIVE: ehrshot.archive()}
    return RedivisHost(find_source("ehrshot").path, files, token=CREDENTIALS["REDIVIS_API_TOKEN"])


HOSTS: dict[str, Callable[[], Host]] = {
    "ct_rate": lambda: HubHost(find_source("ct_rate").path, ctrate.files(), token=CREDENTIALS["HF_TOKEN"]),
    "camelyon16": lambda: BucketHost(camelyon.files()),
    "trec_ct_2021": lambda: WebHost(trec.track()),
    "clinicaltrials_2021": lambda: WebHost(trec.snapshot()),
    "audited_trials": lambda: WebHost(trec.audit()),
    "mimic_iv_demo": lambda: PhysioNetHost(find_source("mimic_iv_demo").path, mimic.files()),
    "mimic_code": _code,
    "mimic_cxr": lambda: _cxr("mimic_cxr"),
    "mimic_cxr_jpg": lambda: _cxr("mimic_cxr_jpg"),
    "ehrshot": _ehrshot,
}
"""How each source's host is made: when a category first asks for it."""


class Clinic:
    """The hosts that are open, by source."""

    def __init__(self) -> None:
        self._open: dict[str, Host] = {}

    def __getitem__(self, source: str) -> Host:
        if source not in self._open:
            self._open[source] = HOSTS[source]()
            os.environ[find_source(source).url_variable] = self._open[source].url
        return self._open[source]

    def open_for(self, task: Task) -> None:
        """Open all hosts that a task draws on."""
        for source in task.category.clinical_sources:
            self[source]

    def close(self) -> None:
        for host in self._open.values():
            host.close()
