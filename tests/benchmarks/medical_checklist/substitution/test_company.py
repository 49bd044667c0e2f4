"""A term is exchanged only where no neighbour makes it a part of a longer name, and only where the picture decides."""

from __future__ import annotations

import pytest

from medground.benchmarks.medical_checklist.mentions.dictionary import Dictionary
from medground.benchmarks.medical_checklist.substitution.company import neighbours, refuse_company, refuse_fit
from medground.benchmarks.medical_checklist.substitution.places import partners
from medground.benchmarks.medical_checklist.terminologies import embedded


def refusal(caption: str, term: str) -> str | None:
    mention = next(m for m in Dictionary(embedded.read()).find(caption) if m.text == term)
    return refuse_company(caption, mention, mention.tuis[0])


@pytest.mark.parametrize(
    ("caption", "term"),
    [
        ("A stone in the renal pelvis is seen.", "pelvis"),
        ("Cirrhosis and hepatitis C in the liver.", "hepatitis"),
        ("A tumour in the head/uncinate process.", "head"),
        ("The catheter ablation of the isthmus.", "catheter"),
        ("CT of normal pressure hydrocephalus.", "hydrocephalus"),
        ("A perfusion weighted image.", "perfusion"),
        ("The neck of the femur is short.", "femur"),
        ("Agenesis of the left third molar.", "molar"),
        ("The lateral incisor is fractured.", "incisor"),
        ("Right coronary angiogram shows a leak.", "coronary angiogram"),
        ("Left lateral radiograph of the knee.", "radiograph"),
        ("T2-weighted coronal MR image of the head.", "MR image"),
        ("A view of the “head” of the probe.", "head"),
    ],
)
def test_half_of_a_name_is_not_exchanged(caption: str, term: str) -> None:
    assert refusal(caption, term) == "compound"


@pytest.mark.parametrize(
    ("caption", "term", "reason"),
    [
        ("Axial CT. LV, left ventricle; S, spleen.", "left ventricle", "legend"),
        ("The arrow shows a mass. * = liver.", "liver", "legend"),
        ("LV, left ventricle; RA, right atrium; CT, chordae tendineae.", "CT", "legend"),
        ("Intact bundle. LFC Lateral femoral condyle, AMB anteromedial bundle.", "Lateral", "legend"),
        ("A woman with diabetes fell.", "diabetes", "background"),
        ("Intraperitoneal fluid is considered an indirect sign.", "Intraperitoneal", "background"),
        ("Access to the spleen from behind is dangerous.", "spleen", "background"),
        ("Fractures of the tibia are common in sports.", "tibia", "background"),
        ("Findings suggestive of infarction in the lobe.", "infarction", "background"),
        ("Courtesy of the Department of Bronchoscopy.", "Bronchoscopy", "background"),
        ("There is no bleeding, leakage and inflammation.", "leakage", "negated"),
        ("The aorta is not bulging.", "aorta", "negated"),
        ("The internal lines do not enhance.", "internal", "negated"),
        ("Normal sized liver (blue arrow) and spleen (red arrow).", "spleen", "negated"),
        ("A meal in the normal position of the stomach.", "stomach", "negated"),
        ("The left eye is normal.", "left", "background"),
        ("Right parasagittal scan. This right-sided scan is clear.", "Right", "said_again"),
        ("A coil was placed; the coiled part lies in the coil mass of the coil.", "coil", "said_again"),
        ("ETT showing dilatation of the heart.", "ETT", "stop_word"),
        ("The methods used in MS are listed.", "MS", "stop_word"),
    ],
)
def test_what_the_picture_does_not_decide_is_left_alone(caption: str, term: str, reason: str) -> None:
    assert refusal(caption, term) == reason


@pytest.mark.parametrize(
    ("caption", "term"),
    [
        ("An axial CT of the abdomen shows a large cyst in the liver.", "abdomen"),
        ("An axial CT of the abdomen shows a large cyst in the liver.", "cyst"),
        ("An axial CT of the abdomen shows a large cyst in the liver.", "liver"),
        ("Preoperative MRI of the knee.", "MRI"),
        ("Chest CT showing a stent in the left kidney.", "Chest"),
        ("Chest CT showing a stent in the left kidney.", "stent"),
        ("Chest CT showing a stent in the left kidney.", "left"),
    ],
)
def test_whole_names_are_exchanged(caption: str, term: str) -> None:
    assert refusal(caption, term) is None


@pytest.mark.parametrize(
    ("caption", "term", "expected"),
    [
        ("the left kidney", "left", {"right"}),
        ("the left main artery", "left", set()),
        ("from left to right", "left", set()),
        ("lateral view of the knee", "lateral", {"ap", "anteroposterior", "pa", "posteroanterior"}),
        ("right lateral view", "lateral", set()),
        ("the lateral meniscus", "lateral", {"medial"}),
        ("the lateral and third ventricles", "lateral", set()),
        ("axial T2-weighted image", "axial", {"coronal", "sagittal", "transverse", "transaxial"}),
        ("the axial skeleton", "axial", set()),
        ("lower values than before", "lower", set()),
        ("the lower lobe", "lower", {"upper"}),
        ("a lesion posterior to the heart", "posterior", {"anterior"}),
        ("the deep vein", "deep", set()),
        ("the apical part of the tooth", "apical", set()),
        ("the apical segment", "apical", {"basal", "basilar"}),
    ],
)
def test_places_have_opposites_in_their_own_sense(caption: str, term: str, expected: set[str]) -> None:
    start = caption.index(term)
    assert partners(caption, start, start + len(term)) == expected


@pytest.mark.parametrize(
    ("caption", "term", "form"),
    [
        ("Abdominal CT shows a mass.", "CT", "chest X-ray"),
        ("Axial CT shows a mass.", "CT", "radiograph"),
        ("A CT was made.", "CT", "magnetic resonance imaging"),
        ("A mass in the right kidney.", "kidney", "left lower lobe"),
        ("A mass in the kidney and a renal cyst of the gallbladders.", "kidney", "gallbladder"),
    ],
)
def test_forms_that_do_not_fit_are_refused(caption: str, term: str, form: str) -> None:
    mention = next(m for m in Dictionary(embedded.read()).find(caption) if m.text == term)
    assert refuse_fit(caption, mention, form, mention.tuis[0]) in ("shape", "already_in_caption")
    assert refuse_fit(caption, mention, "spleen" if mention.tuis[0] == "T023" else "MRI scan", mention.tuis[0]) is None


def test_neighbours_end_at_marks() -> None:
    caption = "Stone; a large renal pelvis, dilated"
    start = caption.index("pelvis")
    assert neighbours(caption, start, start + 6) == (("a", "large", "renal"), "")


@pytest.mark.parametrize("form", ["right kidney", "RCA", "LAD", "LV", "RLL"])
def test_a_name_with_a_side_never_stands_behind_another_side(form: str) -> None:
    caption = "A mass in the left breast."
    mention = next(m for m in Dictionary(embedded.read()).find(caption) if m.text == "breast")
    assert refuse_fit(caption, mention, form, "T023") == "shape"
    assert refuse_fit(caption, mention, "kidney", "T023") is None
