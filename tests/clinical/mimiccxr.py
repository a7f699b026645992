"""A miniature of MIMIC-CXR and MIMIC-CXR-JPG in the real format; numbers, reports and pictures are made for these tests."""

import gzip
import io
from functools import cache

import numpy as np
from PIL import Image

from categories.catalog import load_catalog
from categories.xray_report_correction.clinical import METADATA

CASES = {
    name: (str(spec.clinical["subject"]), str(spec.clinical["study"]))
    for category in load_catalog()
    if category.id == "xray_report_correction"
    for name, spec in category.cases.items()
}
FINDINGS = """The patient is rotated.  There is a small right pleural
 effusion.  There is no pneumothorax.  Mild cardiomegaly is unchanged.  A left
 chest tube is present.  There are two nodules in the left upper lobe.  There is
 mild pulmonary edema.  No focal consolidation.  Atelectasis in the left lower
 lobe has increased.  Opacity at the right base may be infection or effusion.
 The hila are unremarkable."""
TARGET = f"""                                 FINAL REPORT
 EXAMINATION:  CHEST (PA AND LAT)

 INDICATION:  ___ year old with cough.

 COMPARISON:  ___

 FINDINGS:

 {FINDINGS}

 IMPRESSION:

 Small right pleural effusion, the answer in short.
"""
EARLIER = """                                 FINAL REPORT
 INDICATION:  ___ year old with fever.

 FINDINGS:  There is a small right pleural effusion in study {number}.

 IMPRESSION:  As above.
"""


def numbers() -> dict[str, str]:
    """Return hash -> number: subjects begin with 1, studies with 5."""
    subjects = list(dict.fromkeys(subject for subject, _ in CASES.values()))
    found = {name: f"1{place:02d}00042" for place, name in enumerate(subjects)}
    return found | {study: f"5{place:02d}00077" for place, (_, study) in enumerate(CASES.values())}


def table() -> str:
    """Return the table of hashes, as the published benchmark makes it."""
    rows = [f"{'subject' if real[0] == '1' else 'study'},{real},{name}\n" for name, real in numbers().items()]
    return "kind,real,hash\n" + "".join(rows)


@cache
def film(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (75, 60)).astype(np.uint8)
    out = io.BytesIO()
    picture = Image.fromarray(pixels).resize((1200, 1500))
    picture.save(out, "JPEG", quality=60, comment=b"MIMIC-CXR p10000032 2180-05-06")
    return out.getvalue()


@cache
def files() -> dict[str, dict[str, bytes]]:
    """Return the files of both projects, by source."""
    known, reports, images = numbers(), {}, {}
    rows = ["dicom_id,subject_id,study_id,ViewPosition,Rows,Columns,StudyDate,StudyTime"]
    for place, (subject, study) in enumerate(CASES.values()):
        who = known[subject]
        folder = f"files/p{who[:2]}/p{who}"
        earlier = [f"59{place:02d}{number}088" for number in range(4)]
        for number, one in enumerate([*earlier, known[study]]):
            target = one == known[study]
            reports[f"{folder}/s{one}.txt"] = (TARGET if target else EARLIER.format(number=number)).encode()
            for view in ("PA", "LATERAL") if target else ("AP",):
                dicom = f"{one}-{view.lower()}"
                images[f"{folder}/s{one}/{dicom}.jpg"] = film(number + (view == "LATERAL"))
                rows.append(
                    f"{dicom},{who},{one},{view},1500,1200,{21800101 + place * 100 + number},{93000 + number}.5"
                )
    images[METADATA] = gzip.compress("\n".join(rows).encode(), mtime=0)
    reports["cxr-study-list.csv.gz"] = b"probe"
    return {"mimic_cxr": reports, "mimic_cxr_jpg": images}
