"""Chest CT on CT-RATE: what the report decides becomes gold, what it leaves open is not scored, nothing of it is shown."""

import gzip
import json

import ctrate
import nibabel as nib
import numpy as np
import pydicom
import pytest

from categories.ct_abnormality.clinical import person_of, volume_path
from categories.ct_abnormality.labels import LABELS
from categories.ct_abnormality.nifti import read_volume
from categories.ct_abnormality.report_gold import load_rules, read_report
from categories.sources.errors import SourceError
from categories.sources.readiness import state_of
from categories.sources.settings import Settings
from categories.sources.shelf import Shelf
from categories.sources.spec import find_source

SENTENCES = [
    ("Pleural effusion was not observed.", "pleural_effusion", "absent"),
    ("No pleural effusion.", "pleural_effusion", "absent"),
    ("Pleural effusion-thickening was not detected in both hemithorax.", "pleural_effusion", "absent"),
    ("Pleural or pericardial effusion is not seen.", "pleural_effusion", "absent"),
    ("Pleural or pericardial effusion is not seen.", "pericardial_effusion", "absent"),
    ("Pericardial and pleural effusion were not detected.", "pleural_effusion", "absent"),
    ("Pericardial thickening and pleural effusion are observed.", "pericardial_effusion", "undecided"),
    ("There is bilateral pleural effusion, 3 cm on the right.", "pleural_effusion", "present"),
    ("Pleural effusion on the right. No pleural effusion on the left.", "pleural_effusion", "undecided"),
    ("Pericardial effusion was not observed.", "pleural_effusion", "undecided"),
    ("Pericardial fluid reaching 2 cm is observed.", "pericardial_effusion", "present"),
    ("Pericardial effusion was not detected.", "pericardial_effusion", "absent"),
    ("No mass, nodule or infiltration was detected in both lungs.", "nodule", "absent"),
    ("No mass, nodule or infiltration was detected in both lungs.", "opacity", "absent"),
    ("Mass, nodule-infiltration was not detected in both lung parenchyma.", "nodule", "absent"),
    ("A 9 mm nodule is seen in the left upper lobe.", "nodule", "present"),
    ("Nodules that were not present in the earlier examination are observed.", "nodule", "undecided"),
    ("A nodule is observed in the thyroid gland.", "nodule", "undecided"),
    ("There may be a nodule at the apex.", "nodule", "undecided"),
    ("Consolidation cannot be excluded.", "consolidation", "undecided"),
    ("Consolidation areas are observed; pleural effusion was not detected.", "consolidation", "present"),
    ("Consolidation areas are observed; pleural effusion was not detected.", "pleural_effusion", "absent"),
    ("Heart contour and size are normal.", "cardiomegaly", "absent"),
    ("Heart size has increased.", "cardiomegaly", "present"),
    ("The cardiothoracic index is increased in favour of the heart.", "cardiomegaly", "present"),
    ("Heart contour and size are not normal.", "cardiomegaly", "undecided"),
    ("Calcified plaques are seen in the coronary arteries.", "coronary_calcification", "present"),
    ("Calcified plaques are seen in the coronary arteries.", "arterial_calcification", "undecided"),
    ("Calcific atheroma plaques are observed in the aortic arch.", "arterial_calcification", "present"),
    ("No lymph node in pathological size was observed.", "lymphadenopathy", "absent"),
    ("Lymph nodes in pathological size and appearance were not detected.", "lymphadenopathy", "absent"),
    ("Enlarged lymph nodes are present in the mediastinum.", "lymphadenopathy", "present"),
    ("Hiatal hernia is observed.", "hiatal_hernia", "present"),
    ("Ground glass areas are observed without consolidation.", "consolidation", "absent"),
    ("Ground glass areas are observed without consolidation.", "opacity", "present"),
    ("Mosaic attenuation is present in both lungs.", "mosaic_attenuation", "present"),
    ("Both lung parenchyma are normal.", "emphysema", "absent"),
    ("Minimal bronchiectasis is observed.", "bronchiectasis", "undecided"),
    ("Peribronchial thickening is observed.", "peribronchial_thickening", "present"),
    ("A pacemaker is seen on the left.", "medical_material", "present"),
    ("Interlobular septal thickening was not observed.", "septal_thickening", "absent"),
    ("Linear atelectasis is seen in the lingula.", "atelectasis", "present"),
    ("Trachea and main bronchi are open.", "atelectasis", "undecided"),
    # negation within the mention
    ("The heart is not enlarged.", "cardiomegaly", "absent"),
    ("Bronchial walls are not thickened.", "peribronchial_thickening", "absent"),
    ("In the pericardial space no effusion was seen.", "pericardial_effusion", "absent"),
    ("Pleural thickening without effusion.", "pleural_effusion", "absent"),
    ("Lymph nodes that do not reach pathological size are present.", "lymphadenopathy", "absent"),
    ("Coronary arteries, no calcification.", "coronary_calcification", "absent"),
    ("Calcified plaques in the aorta, not in the coronary arteries.", "coronary_calcification", "absent"),
    ("Bronchial walls were clearly not thickened.", "peribronchial_thickening", "absent"),
    ("Pleural thickening is seen without effusion.", "pleural_effusion", "absent"),
    ("Calcified plaques are seen, no aneurysm in the thoracic aorta.", "arterial_calcification", "undecided"),
    # negation after, without a verb, or taken back later
    ("Pleural effusion: none.", "pleural_effusion", "absent"),
    ("Pleural effusion: not observed.", "pleural_effusion", "absent"),
    ("Pleura: no effusion.", "pleural_effusion", "absent"),
    ("Consolidation not detected.", "consolidation", "absent"),
    ("Hiatal hernia is absent.", "hiatal_hernia", "absent"),
    ("Pleural effusion is no longer seen.", "pleural_effusion", "absent"),
    ("Consolidation that is compatible with pneumonia was not seen.", "consolidation", "absent"),
    ("Emphysema has not been clearly observed.", "emphysema", "absent"),
    ("Pleural effusion is seen on the right and was not seen on the left.", "pleural_effusion", "undecided"),
    ("Consolidation is seen on the left, pleural effusion was not detected.", "consolidation", "present"),
    ("Consolidation is seen on the left, pleural effusion was not detected.", "pleural_effusion", "absent"),
    ("Pleural effusion was not detected, a consolidation is seen on the left.", "consolidation", "present"),
    # negation before, and how far it reaches
    ("The lungs do not show consolidation.", "consolidation", "absent"),
    ("Neither lung shows consolidation.", "consolidation", "absent"),
    ("No mass was observed, a consolidation is present.", "consolidation", "present"),
    ("No nodular or infiltrative lesion was detected in both lungs.", "nodule", "absent"),
    ("No nodular or infiltrative lesion was detected in both lungs.", "opacity", "absent"),
    ("No nodule other than a 9 mm nodule in the lingula.", "nodule", "undecided"),
    ("There is no evidence of bronchiectasis or emphysema.", "emphysema", "absent"),
    # normal in words of its own
    ("Heart contour and size are normal, no pericardial effusion.", "cardiomegaly", "absent"),
    ("The heart is normal in size.", "cardiomegaly", "absent"),
    ("Mediastinal main vascular structures, heart contour, size are normal.", "cardiomegaly", "absent"),
    ("Aeration of both lung parenchyma is normal.", "consolidation", "absent"),
    ("Both lungs are not normal.", "consolidation", "undecided"),
    # doubt of the finding, and of its cause only
    ("Consolidation is not excluded.", "consolidation", "undecided"),
    ("Mosaic attenuation is observed (small airway disease?).", "mosaic_attenuation", "present"),
    ("Mosaic attenuation? in both lungs.", "mosaic_attenuation", "undecided"),
    ("Heart size has slightly increased.", "cardiomegaly", "undecided"),
    # less than the agent's definitions count
    ("A few millimetric nodules are observed.", "nodule", "undecided"),
    ("Nodules are observed, the largest 4 mm.", "nodule", "undecided"),
    ("Nodules are observed, the largest 1.2 cm.", "nodule", "present"),
    ("An enlarged lymph node of 20x9 mm is seen.", "lymphadenopathy", "undecided"),
    ("Pleural effusion of 6 mm on the left.", "pleural_effusion", "undecided"),
    ("No nodule over 4 mm was detected.", "nodule", "absent"),
    # another organ, another calcium
    ("Fatty infiltration of the liver is observed.", "opacity", "undecided"),
    ("Collapse of a vertebra is seen.", "atelectasis", "undecided"),
    ("The aortic valve is calcified.", "arterial_calcification", "undecided"),
    ("Subcutaneous emphysema is seen.", "emphysema", "undecided"),
    # nothing is said of it
    ("Trachea and main bronchi are open.", "hiatal_hernia", "undecided"),
    ("Trachea and main bronchi are open.", "medical_material", "undecided"),
]


@pytest.mark.parametrize(("sentence", "label", "state"), SENTENCES)
def test_a_negation_counts_before_and_after_the_finding(sentence: str, label: str, state: str) -> None:
    assert read_report(sentence)[label] == state


def test_every_label_has_a_rule_and_an_empty_report_decides_nothing() -> None:
    assert set(load_rules().labels) == set(LABELS)
    assert set(read_report("").values()) == {"undecided"}


@pytest.mark.parametrize("codes", ["RAS", "LPS", "LAS", "RPI", "ASL", "SPR"])
def test_volumes_of_any_axes_are_read_as_another_reader_reads_them(tmp_path, codes: str) -> None:
    rng = np.random.default_rng(1)
    voxels = rng.integers(-1000, 1000, (9, 8, 7)).astype(np.int16)
    affine = np.diag([0.7, 0.8, 2.5, 1.0])
    affine[:3, 3] = (-3, 5, 11)
    image = nib.Nifti1Image(voxels, affine)
    turn = nib.orientations.ornt_transform(nib.orientations.axcodes2ornt("RAS"), nib.orientations.axcodes2ornt(codes))
    nib.save(image.as_reoriented(turn), tmp_path / "a.nii.gz")
    hu, found = read_volume(tmp_path / "a.nii.gz")
    back = nib.orientations.ornt_transform(nib.orientations.axcodes2ornt("RAS"), nib.orientations.axcodes2ornt("LAS"))
    wanted = image.as_reoriented(back)
    assert (hu == np.asarray(wanted.dataobj)).all()
    assert np.allclose(found, wanted.affine, atol=1e-4)


def test_a_quaternion_is_enough_and_slopes_are_applied(tmp_path) -> None:
    image = nib.Nifti1Image(np.arange(60, dtype=np.int16).reshape(3, 4, 5), np.diag([-1.5, 2.0, 3.0, 1.0]))
    image.header.set_slope_inter(2, -100)
    image.set_sform(None, 0)
    image.set_qform(np.diag([-1.5, 2.0, 3.0, 1.0]), 1)
    nib.save(image, tmp_path / "a.nii.gz")
    hu, affine = read_volume(tmp_path / "a.nii.gz")
    assert (hu == np.asarray(nib.load(tmp_path / "a.nii.gz").dataobj)).all()
    assert np.allclose(affine, np.diag([-1.5, 2.0, 3.0, 1.0]))


@pytest.mark.parametrize("content", [b"", b"not a volume", gzip.compress(b"x" * 400, mtime=0)])
def test_what_is_no_volume_is_said_to_be_none(tmp_path, content: bytes) -> None:
    (tmp_path / "a.nii.gz").write_bytes(content)
    with pytest.raises(SourceError, match="is no volume"):
        read_volume(tmp_path / "a.nii.gz")


@pytest.fixture(scope="module")
def draws(stage):
    """Return a NIfTI case and a DICOM case."""
    return stage("ct_abnormality/scan_01"), stage("ct_abnormality/scan_03")


def test_gold_is_what_the_report_decides_and_the_list_shows_all_labels(draws) -> None:
    for draw in draws:
        gold = json.loads((draw.gold / "labels.json").read_text())
        assert {e["label"]: e["answer"] for e in gold["labels"] if e["scored"]} == ctrate.WANTED
        assert (draw.public / "labels.txt").read_text().splitlines() == list(LABELS.values())
        assert (gold["sex"], gold["age"]) == ("M", 67)


def test_no_word_of_the_report_and_nothing_of_the_source_is_staged(draws) -> None:
    for draw in draws:
        for path in (p for p in draw.folder.rglob("*") if p.is_file()):
            content = path.read_bytes()
            content = gzip.decompress(content) if path.name.endswith(".gz") else content
            for word in (b"CT-RATE", b"Ankara", b"valid_", b"Real Person", b"hemithorax", b"left lower lobe"):
                assert word not in content, (path.name, word)


def test_the_scan_is_the_sources_voxels(draws) -> None:
    nifti, dicom = draws
    image = nib.load(nifti.public / "scan.nii.gz")
    assert nib.aff2axcodes(image.affine) == ("L", "A", "S")
    shown = np.asarray(image.dataobj)
    assert places(shown[:, :, 0], 0), "a part of the source's slice"
    assert not np.allclose(image.affine[:3, 3], (90, -87.5, -200), atol=3)
    files = [pydicom.dcmread(path) for path in (dicom.public / "series").iterdir()]
    first = min(files, key=lambda file: float(file.ImagePositionPatient[2]))
    assert places(first.pixel_array.astype(int).T[:, ::-1] + int(first.RescaleIntercept), 0)
    assert {file.PatientSex for file in files} == {"M"}


def places(shown: np.ndarray, slice_number: int) -> list[tuple[int, int]]:
    """Return the offsets at which a thinned slice is found in the source, itself thinned from there."""
    source = np.clip(ctrate.hu()[::-1, :, slice_number], -1024, 3071)
    found = []
    for i in range(6):
        for j in range(6):
            part = source[i::4, j::4][: shown.shape[0], : shown.shape[1]]
            if part.shape == shown.shape and (part == np.clip(shown, -1024, 3071)).all():
                found.append((i, j))
    return found


def test_paths_and_ages_follow_the_data_set(tmp_path) -> None:
    assert volume_path("valid_481_a_2") == "dataset/valid_fixed/valid_481/valid_481_a/valid_481_a_2.nii.gz"
    for age, shown in (("093Y", 89), ("045Y", 45), ("", 0)):
        (tmp_path / "p.csv").write_bytes(
            ctrate.table(["VolumeName", "PatientSex", "PatientAge"], [["a.nii.gz", "F", age]])
        )
        assert person_of(tmp_path / "p.csv", "a") == ("F", shown)
    with pytest.raises(SourceError, match="holds no line"):
        person_of(tmp_path / "p.csv", "b")


def test_the_gate_is_noticed_before_a_volume_is_asked_for(clinic, tmp_path, monkeypatch) -> None:
    host = clinic["ct_rate"]
    monkeypatch.setattr(host, "accepted", False)
    state = state_of(find_source("ct_rate"), Settings.load(), tmp_path, ask=True)
    assert state.word == "not ready"
    assert "has not accepted" in state.detail
    monkeypatch.setattr(host, "accepted", True)
    assert state_of(find_source("ct_rate"), Settings.load(), tmp_path, ask=True).word == "ready"
    assert Shelf(tmp_path, Settings.load()).listing("ct_rate", "dataset/valid_fixed/valid_670")
