import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from medground.errors import ConfigError, DataError
from medground.worlds.gridvqa.build import PRESETS, Plan, build, picture_of
from medground.worlds.gridvqa.imports import _place, read_npz, read_released
from medground.worlds.gridvqa.records import from_neutral, released
from medground.worlds.gridvqa.shapley import true_values
from medground.worlds.gridvqa.sources import Read
from medground.worlds.gridvqa.world import Only, density_key

PLAN = Plan(per_bucket=4, seed=2, npz=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("built") / "set", PLAN)


def digest(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def test_two_workers_write_the_same_bytes_as_one(built, tmp_path):
    seen = []
    other = build(tmp_path / "set", PLAN, workers=2, progress=lambda done, total: seen.append((done, total)))
    assert digest(other) == digest(built)
    assert seen[-1] == (76, 76)


def test_a_built_set_is_read_back_with_its_distractors(built):
    records = [json.loads(line) for line in (built / "scenes.jsonl").read_text().splitlines()]
    assert len(records) == len(PLAN) == 76
    for record, back in zip(records, read_released(built), strict=True):
        made = from_neutral(record)
        assert sorted(map(str, made.things)) == sorted(map(str, back.things))
        assert (made.question, made.answer, made.density) == (back.question, back.answer, back.density)


def test_npz_files_are_read_back_and_stand_in_for_pictures(built, tmp_path):
    file = next(built.glob("val/depth3/M/form0/g5_d07/*.npz"))
    picture = built / "images" / file.relative_to(built).with_suffix(".png")
    with np.load(file) as held:
        assert np.array_equal(held["image"], np.asarray(Image.open(picture)))
        assert held["pixel_mask"].shape == (320, 320)
        assert held["cell_mask"].sum() == len(held["anchor_objects"]) + len(held["target_objects"])
    assert read_npz(file).question.depth == 3
    bare = tmp_path / "bare"
    shutil.copytree(built, bare, ignore=shutil.ignore_patterns("images"))
    assert len(read_released(bare, whole=True)[5].things) == 17
    nothing = tmp_path / "nothing"
    shutil.copytree(bare, nothing, ignore=shutil.ignore_patterns("*.npz"))
    with pytest.raises(DataError, match="distractors are unknown"):
        _ = Read(nothing, "val", "pure").buckets


@given(st.sets(st.integers(1, 9999), min_size=2, max_size=6))
def test_no_two_densities_share_a_key_and_each_is_read_back(tenthousandths):
    densities = [n / 10_000 for n in tenthousandths]
    keys = [density_key(d) for d in densities]
    assert len(set(keys)) == len(keys)
    assert [_place(f"g5_{key}") for key in keys] == [(5, d) for d in densities]
    assert (density_key(0.7), density_key(0.3), density_key(0.66)) == ("d07", "d03", "d066")


def test_pictures_equal_the_published_renders(golden_scenes, grid_golden):
    drawn = [(record["png"], made) for record, made in golden_scenes if "png" in record]
    assert len(drawn) == 8
    for name, made in drawn:
        expected = np.asarray(Image.open(grid_golden / "scenes" / name).convert("RGB")).astype(int)
        # Pillow releases differ in how they draw outlines, so pixels are compared on average.
        assert np.abs(expected - picture_of(made).astype(int)).mean() < 1.0


def published(grid_golden, tmp_path, variant):
    for kind in ("grounding", "qa"):
        source = grid_golden / "scenes" / "released_files" / f"{kind}_{variant}.jsonl"
        shutil.copy(source, tmp_path / f"{kind}_val.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "grounding_val.jsonl").read_text().splitlines()]
    return rows, read_released(tmp_path, variant=variant)


def by_box(row):
    """What a grounding record says, without its numbering."""
    box = {a["id"]: (tuple(a["bbox"]), a["category_id"], a["category_name"]) for a in row["annotations"]}
    spans = {tuple(s["span"]): sorted(box[i] for i in s["box_ids"]) for s in row["sentence"]["spans"]}
    return spans, row["sentence"]["words"], sorted(box.values())


@pytest.mark.parametrize("variant", ["pure", "spurious"])
def test_published_records_are_read_and_written_back(grid_golden, tmp_path, variant):
    rows, scenes = published(grid_golden, tmp_path, variant)
    assert len(scenes) == 38
    for row, made in zip(rows, scenes, strict=True):
        ours, _ = released(made, 1, 1, "x")
        spans, words, boxes = by_box(ours)
        their_spans, their_words, their_boxes = by_box(row)
        assert (words, boxes) == (their_words, their_boxes)
        assert set(spans) == set(their_spans)
        # The published records number the boxes of anchors in the order of placing, not of the words.
        assert sorted(map(str, spans.values())) == sorted(map(str, their_spans.values()))


def test_sub_token_spans_follow_a_tokenizer(golden_scenes):
    _, made = next(pair for pair in golden_scenes if pair[0]["id"].startswith("pure-D2-M-count-d07"))
    text = made.question.text
    letters = [(i, i + 1) for i in range(len(text))]
    row, _ = released(made, 1, 1, "x", offsets=lambda _: letters)
    words = row["sentence"]["words"]
    for span in row["sentence"]["spans"]:
        first, last = span["token_span"]
        a, b = span["span"]
        assert text[first : last + 1] == " ".join(words[a : b + 1]).rstrip(",")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda g, q: q.update(answer=99), "not that of its objects"),
        (lambda g, q: q.update(answer="perhaps"), "not an answer"),
        (lambda g, q: q.update(question="How many cats?"), "disagree"),
        (lambda g, q: g["annotations"][0].update(bbox=[1, 2, 64, 64]), "not a whole cell"),
        (lambda g, q: g["annotations"][0].update(category_id=17), "category"),
        (lambda g, q: g["image"].update(file_name="images/x.png"), "grid and density"),
        (lambda g, q: g["sentence"].update(text="How many cats?"), "grammar"),
        (lambda g, q: g.pop("sentence"), "lacks fields"),
    ],
)
def test_damaged_records_are_named(grid_golden, tmp_path, change, problem):
    source = grid_golden / "scenes" / "released_files"
    grounding = json.loads((source / "grounding_pure.jsonl").read_text().splitlines()[0])
    reply = json.loads((source / "qa_pure.jsonl").read_text().splitlines()[0])
    change(grounding, reply)
    (tmp_path / "grounding_val.jsonl").write_text(json.dumps(grounding))
    (tmp_path / "qa_val.jsonl").write_text(json.dumps(reply))
    with pytest.raises(DataError, match=problem):
        read_released(tmp_path)


def test_missing_files_and_full_folders_are_named(tmp_path, built):
    with pytest.raises(DataError, match="missing"):
        read_released(tmp_path)
    with pytest.raises(ConfigError, match="not empty"):
        build(built, PLAN)
    with pytest.raises(ConfigError, match="at least 1"):
        build(tmp_path / "new", Plan(per_bucket=0))


def test_presets_make_plans():
    assert len(Plan(**PRESETS["paper"])) == 950
    assert Plan(**PRESETS["six"]).scene(0).grid == 6


def test_true_explanations_are_published_with_the_scenes(tmp_path):
    plan = Plan(per_bucket=1, values="words", images=False, only=Only(depths=(1, 3), forms=("exists", "compare")))
    out = build(tmp_path / "set", plan, workers=2)
    records = [json.loads(line) for line in (out / "scenes.jsonl").read_text().splitlines()]
    values = [json.loads(line) for line in (out / "true_values.jsonl").read_text().splitlines()]
    assert [v["id"] for v in values] == [r["id"] for r in records]
    for record, value in zip(records, values, strict=True):
        deep = (record["qtype"], record["depth"]) == ("CMP", 3)
        assert value["players"] == ("phrases" if deep else "words")
        assert value["executor"]["answer"] == record["answer"]
        assert value["counter"]["answer"] == record["bag_of_words"]["answer"]
        known = true_values(from_neutral(record).things, record["question"], 5, players=value["players"])
        assert [v for *_, v in value["executor"]["objects"]] == pytest.approx(known.objects)
        assert np.array(value["executor"]["across"]) == pytest.approx(known.across)
        assert len(value["words"]) == len(value["executor"]["spoken"]) == len(value["counter"]["spoken"])
    assert json.loads((out / "plan.json").read_text())["values"] == "words"


def test_chosen_buckets_are_built_alone(tmp_path):
    out = build(tmp_path / "set", Plan(per_bucket=2, images=False, only=Only(depths=(2,), types=("SO",))))
    assert len((out / "scenes.jsonl").read_text().splitlines()) == 4
    assert json.loads((out / "plan.json").read_text())["left_out"] == []
    plan = Plan(densities=(0.3,))
    assert len(plan.buckets()) == 17
    assert [sentence.split()[0] for sentence in plan.left_out()] == ["D3-M-count-d03", "D3-CMP-compare-d03"]
