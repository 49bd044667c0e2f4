"""The manifest: two forms of one table, strict about every key, name and number."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from medground.datasets.manifest import Manifest
from medground.errors import DatasetError, RegionError
from medground.imaging import rle

MASK = np.zeros((20, 30), bool)
MASK[4:9, 10:25] = True


@pytest.fixture
def own(folder):
    folder.picture("images/a.png", "images/b.png", "images/c.png", size=(30, 20))
    folder.mask("masks/a.png", MASK)
    return folder


def one_case(**more):
    return {"image": "images/a.png", "frame": [30, 20], **more}


def problem_of(dataset, words):
    """The message that cases() raises; check() must tell the same."""
    with pytest.raises(DatasetError, match=words) as caught:
        dataset.cases()
    assert any(words in str(problem) for problem in dataset.check())
    return str(caught.value)


def test_json_lines_and_csv_say_the_same(own):
    own.json_lines(
        "manifest.jsonl",
        [
            one_case(
                case_id="A",
                patient_id=7,
                view="PA",
                labels={"Edema": False, "Mass": True},
                boxes={"Mass": [[1, 2, 3, 4], [10, 10, 30, 20]]},
                polygons={"Effusion": [[[0, 0], [8.5, 0], [8, 8]]]},
            ),
            {"image": "images/b.png", "labels": {"Edema": True, "Mass": None, "Effusion": 0}},
        ],
    )
    own.table(
        "manifest.csv",
        "image, case_id,patient_id,view,finding,label,x0,y0,x1,y1,frame_width,frame_height,polygon",
        "images/a.png,A,7,PA,Edema,0,,,,,,,",
        "images/b.png,,,,Edema,1,,,,,,,",
        "images/a.png,A,7,PA,Mass,1,1,2,3,4,30,20,",
        "images/a.png,A,7,PA,Mass,,10,10,30,20,30,20,",
        'images/a.png,A,7,PA,Effusion,,,,,,30,20,"0,0 8.5,0 8,8"',
        "images/b.png,,,,Mass,,,,,,,,",
        "images/b.png,,,,Effusion,0,,,,,,,",
    )
    lines, table = (Manifest(own.root, table=f"manifest.{kind}") for kind in ("jsonl", "csv"))
    assert lines.findings == table.findings == ("Edema", "Mass", "Effusion")
    assert lines.cases() == table.cases()
    first, second = lines.cases()
    assert (first.case_id, first.patient_id, first.view) == ("A", "7", "PA")
    assert first.labels == {"Edema": False, "Mass": True, "Effusion": True}
    assert first.regions["Mass"].area == 4 + 200
    assert second.case_id == "b"
    assert second.labels == {"Edema": True, "Mass": None, "Effusion": False}
    assert not second.regions
    assert not lines.check()


def test_widths_and_heights_are_another_column_set(own):
    own.table(
        "manifest.csv",
        "image,finding,x,y,width,height,frame_width,frame_height",
        "images/a.png,Mass,1.5,2,10,4.25,30,20",
    )
    own.json_lines("manifest.jsonl", [one_case(boxes_xywh={"Mass": [[1.5, 2, 10, 4.25]]})])
    for kind in ("csv", "jsonl"):
        (case,) = Manifest(own.root, table=f"manifest.{kind}").cases()
        assert case.regions["Mass"].boxes[0].corners == (1.5, 2, 11.5, 6.25)


@pytest.mark.parametrize(
    "value",
    [
        "masks/a.png",
        ["masks/a.png"],
        {"size": [20, 30], "counts": rle.string_from_counts(rle.counts_from_mask(MASK))},
        {"size": [20, 30], "counts": rle.counts_from_mask(MASK).tolist()},
        {"counts": rle.counts_from_mask(MASK).tolist()},
        {"rows": MASK.astype(int).tolist()},
    ],
)
def test_masks_may_be_files_or_codes(own, value):
    own.json_lines("manifest.jsonl", [one_case(masks={"Mass": value})])
    dataset = Manifest(own.root)
    (case,) = dataset.cases()
    assert case.labels == {"Mass": True}
    assert np.array_equal(case.regions["Mass"].mask(), MASK)
    assert np.array_equal(pickle.loads(pickle.dumps(case)).regions["Mass"].mask(), MASK)
    assert not dataset.check()


def test_masks_in_csv(own):
    code = rle.string_from_counts(rle.counts_from_mask(MASK))
    own.table(
        "manifest.csv",
        "image,finding,mask,rle,frame_width,frame_height",
        "images/a.png,Mass,masks/a.png,,,",
        f"images/b.png,Mass,,{code},30,20",
    )
    for case in Manifest(own.root).cases():
        assert np.array_equal(case.regions["Mass"].mask(), MASK)


def test_boxes_and_masks_of_one_finding_are_united(own):
    own.json_lines("manifest.jsonl", [one_case(boxes={"Mass": [[0, 0, 2, 2]]}, masks={"Mass": "masks/a.png"})])
    (case,) = Manifest(own.root).cases()
    assert case.regions["Mass"].area == 4 + MASK.sum()


@pytest.mark.parametrize("mode", ["1", "I;16"])
def test_masks_of_other_depths(own, mode):
    values = MASK if mode == "1" else MASK.astype(np.uint16) * 256
    Image.fromarray(values).save(own.root / "masks/a.png")
    own.json_lines("manifest.jsonl", [one_case(masks={"Mass": "masks/a.png"})])
    assert Manifest(own.root).cases()[0].regions["Mass"].area == MASK.sum()


def _save_colour(path):
    Image.new("RGB", (30, 20)).save(path)


def _save_transparent(path):
    Image.new("LA", (30, 20)).save(path)


def _save_palette(path):
    Image.new("P", (30, 20)).save(path)


def _save_jpeg(path):
    Image.new("L", (30, 20)).save(path, format="JPEG")


def _save_other_size(path):
    Image.new("L", (20, 30)).save(path)


def _save_truncated(path):
    Image.effect_noise((30, 20), 50).save(path)
    path.write_bytes(path.read_bytes()[:200])


def _save_text(path):
    path.write_text("no picture")


@pytest.mark.parametrize(
    ("save", "words"),
    [
        (_save_colour, "one channel"),
        (_save_transparent, "one channel"),
        (_save_palette, "one channel"),
        (_save_jpeg, "one channel"),
        (_save_other_size, "not that of its frame"),
        (_save_truncated, "cannot be decoded"),
        (_save_text, "cannot be decoded"),
    ],
)
def test_a_bad_mask_file_is_named_with_its_row(own, save, words):
    save(own.root / "masks/a.png")
    own.json_lines("manifest.jsonl", [one_case(masks={"Mass": ["masks/a.png"]})])
    dataset = Manifest(own.root)
    (case,) = dataset.cases()  # opens no picture
    with pytest.raises(RegionError, match=words) as caught:
        case.regions["Mass"]
    assert "line 1, masks.Mass" in str(caught.value)
    (problem,) = dataset.check()
    assert words in str(problem)
    assert "line 1, masks.Mass" in str(problem)


@pytest.mark.parametrize(
    ("record", "words", "place"),
    [
        ({"boxs": {}}, "no key 'boxs', did you mean 'boxes'?", "line 1"),
        ({"boxes": {"Mass": [[1, 2, 31, 4]]}}, "beyond its frame", "boxes.Mass"),
        ({"boxes": {"Mass": [[31, 2, 33, 4]]}}, "outside its frame", "boxes.Mass"),
        ({"boxes": {"Mass": [[3, 2, 1, 4]]}}, "degenerate", "boxes.Mass"),
        ({"boxes": {"Mass": [[1, 2, 3]]}}, "not four numbers", "boxes.Mass"),
        ({"boxes": {"Mass": [1, 2, 3, 4]}}, "not four numbers", "boxes.Mass"),
        ({"boxes": {"Mass": "1 2 3 4"}}, "lists of lists", "boxes.Mass"),
        ({"boxes": {"Mass": [["a", 2, 3, 4]]}}, "not four numbers", "boxes.Mass"),
        ({"boxes_xywh": {"Mass": [["a", 2, 3, 4]]}}, "not four numbers", "boxes_xywh.Mass"),
        ({"boxes_xywh": {"Mass": [[1, 2, 0, 4]]}}, "degenerate", "boxes_xywh.Mass"),
        ({"boxes": [[1, 2, 3, 4]]}, "not an object", "boxes"),
        ({"boxes_xywh": {"Mass": [[1, 2, 3, None]]}}, "not four numbers", "boxes_xywh.Mass"),
        ({"boxes": {"Mass": [[1, 2, 3, 4]]}, "frame": None}, "no frame", "boxes.Mass"),
        ({"boxes": {"Mass": [[1, 2, 3, 4]]}, "frame": [30.5, 20]}, "two whole numbers", "boxes.Mass"),
        ({"boxes": {"Mass": [[1, 2, 3, 4]]}, "frame": [30]}, "two whole numbers", "boxes.Mass"),
        ({"polygons": {"Mass": [[[0, 0], [1, 1]]]}}, "polygon is degenerate", "polygons.Mass"),
        ({"polygons": {"Mass": [[[0, 0], [1, 1], [40, 2]]]}}, "beyond its frame", "polygons.Mass"),
        ({"masks": {"Mass": "masks/absent.png"}}, "missing", "masks.Mass"),
        ({"masks": {"Mass": 3}}, "neither a file nor a code", "masks.Mass"),
        ({"masks": {"Mass": {"rowz": [[0, 1]]}}}, "neither a file nor a code", "rowz"),
        ({"masks": {"Mass": {"rows": [[0]], "counts": [1]}}}, "neither a file nor a code", "rows, counts"),
        ({"masks": {"Mass": "../../etc/passwd"}}, "outside", "masks.Mass"),
        ({"labels": {"Mass": "yes"}}, "not true, false or null", "labels.Mass"),
        ({"labels": {"Mass": False}, "boxes": {"Mass": [[1, 2, 3, 4]]}}, "absent but has a region", "line 1"),
        ({"labels": {"Mass": True, "mass": True}}, "two spellings", "line 1"),
        ({"labels": {"Mass": True, " Mass ": False}}, "contradict each other", "labels.Mass"),
        ({"labels": {" ": True}}, "finding has no name", "labels"),
        ({"boxes": {"": [[1, 2, 3, 4]]}}, "finding has no name", "boxes"),
        ({"boxes": []}, "not an object", "boxes"),
        ({"image": None}, "no image", "image"),
        ({"image": "../../etc/passwd"}, "outside", "image"),
        ({"image": "/etc/passwd"}, "outside", "image"),
        ({"image": "images/.."}, "names no file", "image"),
        ({"image": "images/\0.png"}, "names no file", "image"),
        ({"image": "../../etc/passwd"}, "outside", "image: ../../etc/passwd"),
        ({"masks": {"Mass": f"{5000 * 'x'}.png"}}, "missing", "masks.Mass"),
    ],
)
def test_every_mistake_is_named_with_its_place(own, record, words, place):
    own.json_lines("manifest.jsonl", [{**one_case(), **record}])
    assert place in problem_of(Manifest(own.root), words)


@pytest.mark.parametrize(
    ("size", "counts", "words"),
    [
        ([20, 30], "PVWX6", "do not fill"),
        ([30, 20], [601], "do not fill"),
        ([20, 30], "~", "malformed"),
        ([20, 30], None, "whole numbers"),
        ([20], [600], "COCO size"),
        ([2, 3], [0, 6], "not that of its frame"),
    ],
)
def test_a_bad_code_is_named_with_its_row(own, size, counts, words):
    own.json_lines("manifest.jsonl", [one_case(masks={"Mass": {"size": size, "counts": counts}})])
    dataset = Manifest(own.root)
    with pytest.raises(RegionError, match=words) as caught:
        dataset.cases()[0].regions["Mass"]
    assert "line 1, masks.Mass" in str(caught.value)
    assert len(dataset.check()) == 1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"image": "images/a.png", "image": "images/b.png"}', "twice"),
        ('{"image": "images/a.png", "frame": [NaN, 2]}', "no number"),
        ('{"image": "images/a.png"', "not JSON"),
        ('["images/a.png"]', "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ('{"image": "images/a.png", "case_id": "\\ud800"}', "JSON"),
    ],
)
def test_a_bad_line_is_named(own, line, words):
    own.table("manifest.jsonl", '{"image": "images/b.png"}', "", line)
    assert "line 3" in str(
        problem_of(Manifest(own.root), words if words != "twice" and words != "no number" else "JSON")
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["image,findng", "images/a.png,Mass"], "did you mean 'finding'?"),
        (["picture,finding", "images/a.png,Mass"], "no key 'picture'"),
        (["finding", "Mass"], "no column 'image'"),
        (["image,finding", ",Mass"], "no image"),
        (["image,finding,label", "images/a.png,,1"], "no finding"),
        (["image,finding,label", "images/a.png,Mass,maybe"], "not 1 or 0"),
        (["image,finding,label", "images/a.png,Mass,1", "images/a.png,Mass,0"], "contradict"),
        (["image,finding,x0,y0,x1,y1,frame_width,frame_height", "images/a.png,Mass,1,2,,4,30,20"], "not four numbers"),
        (["image,finding,x0,y0,x1,y1,frame_width,frame_height", "images/a.png,Mass,1,2,x,4,30,20"], "not four numbers"),
        (["image,finding,x0,y0,x1,y1,frame_width", "images/a.png,Mass,1,2,3,4,30"], "two whole numbers"),
        (["image,finding,polygon,frame_width,frame_height", "images/a.png,Mass,1 2 3,30,20"], "polygon is degenerate"),
        (["image,case_id,view", "images/a.png,A,PA", "images/a.png,A,AP"], "differ in"),
        (["image,case_id", "images/a.png,A", "images/b.png,A"], "differ in"),
    ],
)
def test_every_mistake_in_csv_is_named(own, rows, words):
    own.table("manifest.csv", *rows)
    problem_of(Manifest(own.root), words)


def test_a_later_row_may_fill_in_a_label(own):
    own.table("manifest.csv", "image,finding,label", "images/a.png,Mass,", "images/a.png,Mass,0")
    assert Manifest(own.root).cases()[0].labels == {"Mass": False}


def test_unicode_does_not_break_lines(own):
    record = one_case(case_id="a\u2028b\x85c", labels={"\u2029Masse \U0001fac1": True})
    own.table("manifest.jsonl", json.dumps(record, ensure_ascii=False))
    (case,) = Manifest(own.root).cases()
    assert (case.case_id, case.labels) == ("a\u2028b\x85c", {"Masse \U0001fac1": True})


@pytest.mark.parametrize("name", ["manifest.csv", "manifest.jsonl"])
def test_another_encoding_is_refused_rather_than_guessed(own, name):
    own.table(name, "image,finding", "images/a.png,Pneumonie")
    (own.root / name).write_bytes((own.root / name).read_bytes().replace(b"Pneum", "Épan".encode("latin-1")))
    with pytest.raises(DatasetError, match="not UTF-8"):
        Manifest(own.root).cases()


def test_an_alias_may_not_contradict(own):
    own.json_lines("manifest.jsonl", [one_case(labels={"Mass": True, "Masse": False, "Tumor": None})])
    problem_of(Manifest(own.root, aliases={"Masse": "Mass"}), "contradict each other")
    assert Manifest(own.root, aliases={"Tumor": "Mass"}).cases()[0].labels == {"Mass": True, "Masse": False}


def test_a_finding_is_asked_for_once(own):
    with pytest.raises(DatasetError, match="asked for twice"):
        Manifest(own.root, findings=["Mass", "Edema", "Mass"])


def test_all_problems_are_counted_at_once(own):
    own.json_lines("manifest.jsonl", [one_case(boxes={"Mass": [[1, 2, 90, 4], [5, 5, 4, 4]]}), {"image": None}])
    dataset = Manifest(own.root)
    with pytest.raises(DatasetError, match="and 1 more"):
        dataset.cases()


def test_unlisted_findings_are_unknown_unless_the_user_says_absent(own):
    own.json_lines(
        "manifest.jsonl",
        [{"image": "images/a.png", "labels": {"Mass": True}}, {"image": "images/b.png", "labels": {"Edema": None}}],
    )
    assert [c.labels for c in Manifest(own.root).cases()] == [
        {"Mass": True, "Edema": None},
        {"Mass": None, "Edema": None},
    ]
    assert [c.labels for c in Manifest(own.root, unlisted="absent").cases()] == [
        {"Mass": True, "Edema": False},
        {"Mass": False, "Edema": None},
    ]


def test_findings_select_order_and_refuse_misspelt_names(own):
    own.json_lines(
        "manifest.jsonl", [{"image": "images/a.png", "labels": {"Mass": True, "Efusion": True, "Scar": False}}]
    )
    text = problem_of(Manifest(own.root, findings=["Effusion", "Mass"], ignore=["Scar"]), "is no finding")
    assert "did you mean 'Effusion'?" in text
    dataset = Manifest(own.root, findings=["Effusion", "Mass"], ignore=["Scar"], aliases={"Efusion": "Effusion"})
    assert dataset.cases()[0].labels == {"Effusion": True, "Mass": True}
    assert tuple(dataset.findings) == ("Effusion", "Mass")
    problem_of(Manifest(own.root, findings=["Mass", "Efusion", "Scar", "Hernia"]), "never mentions 'Hernia'")


def test_a_frame_for_the_whole_table(own):
    own.json_lines("manifest.jsonl", [{"image": "images/a.png", "boxes": {"Mass": [[1, 2, 3, 4]]}}])
    assert Manifest(own.root, frame=(30, 20)).cases()[0].regions["Mass"].frame == (30, 20)


def test_two_cases_need_two_names(own):
    own.picture("more/a.png")
    own.json_lines("manifest.jsonl", [{"image": "images/a.png"}, {"image": "more/a.png"}])
    assert "case_id" in problem_of(Manifest(own.root), "two cases are called 'a'")


def test_missing_pictures_stop_unless_told_otherwise(own):
    own.json_lines("manifest.jsonl", [{"image": "images/a.png"}, {"image": "images/x.png"}])
    with pytest.raises(DatasetError, match="1 of 2 pictures") as caught:
        Manifest(own.root).cases()
    assert "expected: the files that manifest.jsonl names" in str(caught.value)
    assert "Correct the table. Or take those that are there: missing: skip" in str(caught.value)
    dataset = Manifest(own.root, missing="skip")
    assert [c.case_id for c in dataset.cases()] == ["a"]
    assert dataset.report().missing == ("x",)


def test_where_nothing_is_left_the_table_is_to_blame_first(own):
    own.json_lines("manifest.jsonl", [{"image": "images/x.png", "labels": {"Mass": True}}])
    with pytest.raises(DatasetError, match="1 of 1 pictures") as caught:
        Manifest(own.root, missing="skip").cases()
    assert "missing: skip" not in str(caught.value)
    own.json_lines("manifest.jsonl", [{"image": "images/x.png", "labels": {"Mass": "yes"}}])
    with pytest.raises(DatasetError, match="not true, false or null"):
        Manifest(own.root, missing="skip").cases()


def test_a_name_too_long_for_any_file_is_one_that_is_missing(own):
    own.json_lines("manifest.jsonl", [{"image": "images/a.png"}, {"image": f"images/{5000 * 'x'}.png", "case_id": "x"}])
    with pytest.raises(DatasetError, match="1 of 2 pictures"):
        Manifest(own.root).cases()
    kept = Manifest(own.root, missing="keep")
    assert [problem.what for problem in kept.check()] == ["a picture is missing"]


def test_links_in_a_circle_are_no_file(own):
    (own.root / "images/loop.png").symlink_to("loop.png")
    own.json_lines("manifest.jsonl", [{"image": "images/a.png"}, {"image": "images/loop.png"}])
    with pytest.raises(DatasetError, match=r"names no file|1 of 2 pictures"):  # Python tells a circle until 3.12
        Manifest(own.root).cases()


def test_links_may_lead_out_only_where_allowed(own, another):
    another.picture("z.png")
    (own.root / "images/z.png").symlink_to(another.root / "z.png")
    (own.root / "linked").symlink_to(another.root)
    for image in ("images/z.png", "linked/z.png", str(another.root / "z.png")):
        own.json_lines("manifest.jsonl", [{"image": image}])
        problem_of(Manifest(own.root), "outside")
        (case,) = Manifest(own.root, allow_outside=[another.root]).cases()
        assert case.image.resolve() == another.root / "z.png"


def test_which_table(own):
    with pytest.raises(DatasetError) as caught:
        Manifest(own.root).cases()
    assert "manifest.jsonl or manifest.csv" in str(caught.value)
    own.table("manifest.csv", "image", "images/a.png")
    own.json_lines("other.jsonl", [{"image": "images/b.png"}])
    assert Manifest(own.root).cases()[0].case_id == "a"
    assert Manifest(own.root / "other.jsonl").cases()[0].case_id == "b"
    own.json_lines("manifest.jsonl", [{"image": "images/b.png"}])
    with pytest.raises(DatasetError, match="two manifests"):
        Manifest(own.root).cases()
    own.write("m.txt", "image")
    with pytest.raises(DatasetError, match="unknown kind"):
        Manifest(own.root, table="m.txt").cases()


@pytest.mark.parametrize("name", ["manifest.jsonl", "manifest.csv"])
def test_an_empty_table_is_an_error(own, name):
    own.write(name, "" if name.endswith("jsonl") else "image,finding\n")
    with pytest.raises(DatasetError, match="no cases"):
        Manifest(own.root).cases()
    own.write(name, "")
    with pytest.raises(DatasetError, match=r"no cases|empty"):
        Manifest(own.root).cases()


def test_the_fingerprint_follows_masks_boxes_and_labels(own, tmp_path):
    def fingerprint(**record):
        own.json_lines("manifest.jsonl", [one_case(**record)])
        return Manifest(own.root).fingerprint()

    seen = {
        fingerprint(),
        fingerprint(labels={"Mass": True}),
        fingerprint(labels={"Mass": False}),
        fingerprint(boxes={"Mass": [[1, 2, 3, 4]]}),
        fingerprint(boxes={"Mass": [[1, 2, 3, 5]]}),
        before := fingerprint(masks={"Mass": "masks/a.png"}),
    }
    assert len(seen) == 6
    assert Manifest(own.root).fingerprint() == before
    own.mask("masks/a.png", np.random.default_rng(0).random((20, 30)) > 0.5)
    assert Manifest(own.root).fingerprint() != before


def test_ten_thousand_rows_are_read(own):
    own.json_lines(
        "manifest.jsonl",
        [
            one_case(
                case_id=str(i), labels={"Mass": True}, boxes={"Effusion": [[1, 2, 3, 4]]}, masks={"Mass": "masks/a.png"}
            )
            for i in range(10_000)
        ],
    )
    assert len(Manifest(own.root).cases()) == 10_000


def test_the_examples_of_the_documentation_are_read(folder):
    text = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    blocks = dict(part.split("\n", 1) for part in text.split("```")[1::2])
    folder.mask("masks/b_nodule.png", np.eye(8))
    for kind, cases in (("csv", 2), ("jsonl", 4)):
        folder.write(f"manifest.{kind}", blocks[kind])
        dataset = Manifest(folder.root, table=f"manifest.{kind}", missing="keep", findings=["Effusion", "Nodule"])
        assert len(dataset.cases()) == cases
        assert {problem.what for problem in dataset.check()} == {"a picture is missing"}
        assert dataset.cases()[0].regions["Effusion"].area == 280 * 360
        assert dataset.cases()[1].regions["Nodule"].area == 8


def test_shapes_of_one_finding_need_one_frame(own):
    rows = ["image,finding,x0,y0,x1,y1,frame_width,frame_height", "images/a.png,Mass,1,2,3,4,30,20"]
    own.table("manifest.csv", *rows, "images/a.png,Mass,1,2,3,4,60,40")
    problem_of(Manifest(own.root), "different frames")


def test_a_linked_root_is_the_same_dataset(own, tmp_path, monkeypatch):
    own.json_lines("manifest.jsonl", [one_case(boxes={"Mass": [[1, 2, 3, 4]]})])
    (tmp_path / "link").symlink_to(own.root)
    monkeypatch.chdir(own.root.parent)
    fingerprints = {Manifest(root).fingerprint() for root in (own.root, tmp_path / "link", Path(own.root.name))}
    assert len(fingerprints) == 1


@pytest.mark.parametrize(
    ("rows", "words"),
    [([[0, 1], [1]], "differ in length"), ([0, 1], "wrong shape"), ([[0.5]], "wrong type"), (None, "wrong shape")],
)
def test_bad_rows_of_a_mask_are_named(own, rows, words):
    own.json_lines("manifest.jsonl", [{"image": "images/a.png", "masks": {"Mass": {"rows": rows}}}])
    (problem,) = Manifest(own.root).check()
    assert words in str(problem)
    assert "line 1, masks.Mass" in str(problem)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_case_without_an_image_is_one_whose_picture_is_missing(own, kind):
    own.table("manifest.csv", "case_id,finding,label", "a,Mass,1")
    own.json_lines("manifest.jsonl", [{"case_id": "a", "labels": {"Mass": True}}])
    (case,) = Manifest(own.root / f"manifest.{kind}", missing="keep").cases()
    assert (case.case_id, case.labels) == ("a", {"Mass": True})
    with pytest.raises(DatasetError, match="pictures"):
        Manifest(own.root / f"manifest.{kind}").cases()
