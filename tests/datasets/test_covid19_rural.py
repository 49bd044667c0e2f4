"""The COVID-19 Rural loader: lungs are no opacity, one label is misspelt, some masks are absent."""

from __future__ import annotations

import json

import numpy as np
import pytest

from medground.datasets.covid19_rural import Covid19Rural
from medground.errors import DatasetError, RegionError

SQUARE = [[2.0, 2.0], [10.0, 2.0], [10.0, 8.0], [2.0, 8.0]]
LUNG = [[0, 0], [30, 0], [30, 19], [0, 19]]
NAMES = [f"COVID-19-AR-{number}_01-{day}-2012-XR" for number, day in ((11, 10), (11, 12), (13, 14), (14, 15), (15, 16))]


def outlines(*shapes, **more):
    listed = [{"label": label, "points": points, "shape_type": "polygon"} for label, points in shapes]
    return {
        "version": "4.5.6",
        "shapes": listed,
        "imagePath": "..\\other.jpg",
        "imageData": None,
        "imageHeight": 20,
        "imageWidth": 31,
        **more,
    }


@pytest.fixture
def covid(folder):
    both = (("right_lung", LUNG), ("left_lung", LUNG))
    contents = [
        outlines(*both, ("groud_glass_opacity", SQUARE)),
        outlines(*both, ("Consolidation ", SQUARE), ("groud_glass_opacity", [[20, 10], [40, 10], [40, 30]])),
        outlines(*both),
        outlines(),
        outlines(*both, ("groud_glass_opacity", [[50, 50], [60, 50], [60, 60]]), ("groud_glass_opacity", SQUARE)),
    ]
    for name, content in zip(NAMES, contents, strict=True):
        folder.json(f"covid_rural_annot/jpgs/jsons/{name}.json", content)
        folder.picture(f"covid_rural_annot/jpgs/{name}.jpg", size=(62, 40))  # a copy of another size
    folder.mask(f"covid_rural_annot/pngs_masks/{NAMES[0]}.png", np.eye(20, 31))
    return folder


def test_only_opacities_count_under_any_label(covid):
    first, second, lungs, bare, _ = Covid19Rural(covid.root).cases()
    assert first.regions["COVID-19"].frame == (31, 20)
    assert first.regions["COVID-19"].bbox() == (2, 2, 11, 9)
    assert first.regions["COVID-19"].area == 9 * 7
    assert second.labels == {"COVID-19": True}
    assert second.regions["COVID-19"].bbox() == (2, 2, 31, 20)
    assert lungs.labels == {"COVID-19": False}
    assert bare.labels == {"COVID-19": None}
    assert not lungs.regions
    assert not bare.regions


def test_patients_have_several_images(covid):
    patients = [c.patient_id for c in Covid19Rural(covid.root).cases()]
    assert patients[:3] == ["COVID-19-AR-11", "COVID-19-AR-11", "COVID-19-AR-13"]


def test_what_was_mended_is_told(covid):
    text = "\n".join(Covid19Rural(covid.root).report().lines())
    for words in (
        "outlines labelled 'groud_glass_opacity' taken as opacity: 4",
        "outlines labelled 'Consolidation'",
        "outlines clipped at the edge of their picture: 1",
        "outlines dropped because they lie outside their picture: 1",
        "without an outlined opacity, taken as negative",
        "without any outline, taken as unknown",
    ):
        assert words in text


def test_every_patient_has_covid_so_unmarked_images_may_be_unknown(covid):
    assert Covid19Rural(covid.root, unmarked="unknown").cases()[2].labels == {"COVID-19": None}


def test_masks_from_png(covid):
    dataset = Covid19Rural(covid.root, masks="png")
    first, second, *_ = dataset.cases()
    assert first.regions["COVID-19"].area == 20
    assert second.labels == {"COVID-19": True}  # outlined, but its mask file is absent
    assert not second.regions
    assert any("positive without a region" in line for line in dataset.report().lines())
    covid.mask(f"covid_rural_annot/pngs_masks/{NAMES[0]}.png", np.eye(20, 31), scale=100)
    assert Covid19Rural(covid.root, masks="png", mask_above=100).cases()[0].regions["COVID-19"].is_empty
    covid.picture(f"covid_rural_annot/pngs_masks/{NAMES[0]}.png", mode="RGB")
    with pytest.raises(RegionError, match="one channel"):
        Covid19Rural(covid.root, masks="png").cases()[0].regions["COVID-19"]


@pytest.mark.parametrize("form", ["{}", "{}.jpg", "covid_rural_annot/jpgs/{}.jpg"])
def test_splits_by_name(covid, another, form):
    covid.table("test.csv", "filepath", form.format(NAMES[2]), form.format(NAMES[0]), "COVID-19-AR-99_x")
    dataset = Covid19Rural(covid.root, split="test")
    assert [c.case_id for c in dataset.cases()] == [NAMES[2], NAMES[0]]
    assert any("no file of outlines" in line for line in dataset.report().lines())
    mine = another.table("mine.csv", "filepath", NAMES[4])
    assert [c.case_id for c in Covid19Rural(covid.root, split_file=mine).cases()] == [NAMES[4]]
    with pytest.raises(DatasetError) as caught:
        Covid19Rural(covid.root, split="val").cases()
    assert "val.csv" in str(caught.value)


def test_the_inner_folder_is_a_root_as_well(covid):
    inner = Covid19Rural(covid.root / "covid_rural_annot").cases()
    assert [c.regions for c in inner] == [c.regions for c in Covid19Rural(covid.root).cases()]


def test_an_image_without_outlines_is_unknown_and_one_without_picture_missing(covid):
    covid.picture("covid_rural_annot/jpgs/new.jpg")
    (covid.root / f"covid_rural_annot/jpgs/{NAMES[0]}.jpg").unlink()
    report = Covid19Rural(covid.root).report()
    assert report.missing == (NAMES[0],)
    assert any("unknown, not negatives: 1 (new)" in line for line in report.lines())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (outlines(imageWidth=None), "malformed"),
        ({"shapes": None, "imageWidth": 3, "imageHeight": 3}, "malformed"),
        (outlines(("opacity", [[1, 1], [2, 2]])), "polygon is degenerate"),
        (outlines(shapes=[{"label": "opacity", "points": [[1, 1], [2, 2]], "shape_type": "circle"}]), "unknown kind"),
        (outlines(shapes=[{"label": "opacity", "points": [[1, 1]], "shape_type": "rectangle"}]), "unknown kind"),
    ],
)
def test_a_bad_file_of_outlines_is_named(covid, content, words):
    covid.json(f"covid_rural_annot/jpgs/jsons/{NAMES[0]}.json", content)
    with pytest.raises(DatasetError, match=words) as caught:
        Covid19Rural(covid.root).cases()
    assert NAMES[0] in str(caught.value)


def test_rectangles_are_outlines_too(covid):
    shape = {"label": "opacity", "points": [[9, 8], [1, 2]], "shape_type": "rectangle"}
    covid.json(f"covid_rural_annot/jpgs/jsons/{NAMES[0]}.json", outlines(shapes=[shape]))
    assert Covid19Rural(covid.root).cases()[0].regions["COVID-19"].area == 8 * 6


def test_a_wrong_root_is_told(covid):
    with pytest.raises(DatasetError) as caught:
        Covid19Rural(covid.root.parent).cases()
    assert "haimingt" in str(caught.value)
    assert "jsons" in str(caught.value)


@pytest.mark.data
def test_the_sample_folder(data_root):
    root = data_root / "covid-rural"
    expected = json.loads((root / "expected.json").read_text())
    dataset = Covid19Rural(root)
    cases = {c.case_id: c for c in dataset.cases()}
    assert cases.keys() == expected["images"].keys()
    assert len({c.patient_id for c in cases.values()}) == expected["counts"]["patients"]
    assert dataset.report().counts == {"outlined images": 12, "PNG masks": expected["counts"]["png_masks"]}
    pngs = {c.case_id: c for c in Covid19Rural(root, masks="png").cases()}
    for name, image in expected["images"].items():
        assert cases[name].labels["COVID-19"] is image["has_opacity"] is pngs[name].labels["COVID-19"]
        assert ("COVID-19" in cases[name].regions) is image["has_opacity"]
        assert ("COVID-19" in pngs[name].regions) is image["png_mask"]
        for case in (cases[name], pngs[name]):
            if region := case.regions.get("COVID-19"):
                assert list(region.frame) == image["size_wh"]
                assert region.area == image["opacity_area_fill_and_outline"]
                assert list(region.bbox()) == image["opacity_bbox_x0y0x1y1"]
                assert int(region.mask_at((224, 224)).sum()) == image["opacity_area_after_nearest_224"]
    for split, count in expected["counts"]["splits"].items():
        assert len(Covid19Rural(root, split=split).cases()) == count
