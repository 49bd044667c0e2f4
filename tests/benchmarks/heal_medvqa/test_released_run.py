"""A release in the circulating layout, made from phantoms, from its shards to a summary."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
import pytest
from PIL import Image

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.heal_medvqa import HealMedVQA
from medground.benchmarks.heal_medvqa.released_gallery import ReleasedDataset, ReleasedGallery
from medground.errors import DatasetError
from medground.imaging import rle
from medground.models.base import ModelInfo, Reply
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.facts import facts
from medground.worlds.phantom.scene import make_scene

SIZE = 96
WORDED = {"Mass": "Lung Mass", "Effusion": "Pleural Effusion", "Nodule": "Lung Nodule", "Pneumonia": "Pneumonia"}
ANATOMIES = (
    "right upper lung",
    "right mid lung",
    "right lower lung",
    "left upper lung",
    "left mid lung",
    "left lower lung",
)

Rows = list[dict[str, Any]]


def rows(case: int, order: Literal["row", "column"]) -> Rows:
    """The questions of one phantom: of every finding on some lung, of those that are not, and open ones."""
    scene = make_scene(61, case, sorted(WORDED)[case % 3 : case % 3 + 2])
    told, drawing = facts(scene, SIZE), draw(scene, SIZE)
    buffer = io.BytesIO()
    Image.fromarray(drawing.pixels).save(buffer, "PNG")
    made: Rows = []

    def ask(kind: int, anatomy: str, question: str, answer: str) -> None:
        coded = rle.pairs_from_counts(rle.counts_from_mask(told.anatomies[anatomy]), (SIZE, SIZE), order)
        made.append(
            {
                "image": {"bytes": buffer.getvalue(), "path": None},
                "image_id": f"picture-{case}",
                "question_id": f"{case}-{len(made)}",
                "question": question,
                "answer": answer,
                "anatomy": anatomy.title().replace("Mid", "Middle"),
                "question_type": kind,
                "mask_rle": coded,
                "mask_h": SIZE,
                "mask_w": SIZE,
            }
        )

    for finding in sorted(WORDED):
        for anatomy in ANATOMIES:
            there = told.in_region(finding, anatomy)
            if there is not None:
                question = f"Does {anatomy.title()} suffer from {WORDED[finding]}?"
                ask(int(there), anatomy, question, f"The answer is {'Yes' if there else 'No'}")
    for anatomy in ANATOMIES:
        here = [f for f in told.present if told.in_region(f, anatomy)]
        if here or all(told.in_region(f, anatomy) is False for f in told.present):
            named = ", ".join(WORDED[f] for f in here)
            answer = f"The {anatomy} shows {named}." if here else f"The {anatomy} is normal."
            ask(2 if here else 3, anatomy, f"List all abnormalities in the {anatomy}.", answer)
    ask(1, "left mid lung", "Is the picture fine?", "The answer is Yes")
    return made


def written(root: Path, order: Literal["row", "column"]) -> Path:
    root.mkdir()
    for split, cases in (("train", range(12)), ("test", range(12, 20))):
        table = pl.DataFrame([row for case in cases for row in rows(case, order)])
        table.write_parquet(root / f"{split}-00000-of-00001.parquet")
    return root


@pytest.fixture(scope="module", params=["row", "column"])
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return written(tmp_path_factory.mktemp("release") / "shards", request.param), request.param


class Knowing:
    """Answers rightly to the release's own words, and no to all others."""

    name: ClassVar[str] = "knowing"
    info: ClassVar[ModelInfo] = ModelInfo("knowing", kind="baseline")
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply", "pictures"})

    def __init__(self, answers: dict[tuple[str, str], str]) -> None:
        self.answers = answers

    def reply(self, conversations: Sequence[Any], options: Any = None) -> list[Reply]:
        assert all(turns[0].images[0].pixels.shape == (SIZE, SIZE) for turns in conversations)
        asked = [(turns[0].images[0].case_id, turns[0].text) for turns in conversations]
        return [Reply(self.answers.get(key, "No.")) for key in asked]


def test_its_own_questions_run_from_shards_to_a_summary(release: tuple[Path, str]) -> None:
    root, order = release
    dataset = Entry("release", ReleasedDataset.name, ReleasedDataset, {"root": root})
    benchmark = HealMedVQA(pictures=1)
    benchmark.bind(Setting(models=[Entry("m", "knowing", Knowing)], datasets=[dataset]))
    (task,) = benchmark.tasks()
    test = pl.read_parquet(root / "test-00000-of-00001.parquet")
    known = test.filter(pl.col("question") != "Is the picture fine?")
    items = task.items()
    assert [item.item_id for item in items] == known["question_id"].to_list()
    answers = {(r["image_id"], r["question"]): r["answer"] for r in known.iter_rows(named=True)}
    measured = evaluate(task, {"model": Knowing(answers)})
    table = pl.DataFrame([row for one in measured for row in one.rows], schema=task.schema)
    cells = {(c.metric, c.subset): c for c in benchmark.summarise({task.path: table}).cells if c.scope == "all"}
    assert cells["balanced_accuracy", "main"].value == 1
    assert cells["open_f1", "main"].value == 1
    assert cells["tpt_anatomy", "main"].value == cells["tpt_disease", "main"].value == 1
    assert cells["own_region_back", "main"].value == 1  # the same words about nearly the same picture
    assert cells["vpt", "main"].value == 0  # this model reads words alone
    assert any(
        f"along {order}s" in note and "20 closed questions of no known form" in note for note in benchmark.notes()
    )


def test_of_a_picture_is_known_what_its_questions_tell(release: tuple[Path, str]) -> None:
    root, order = release
    gallery = ReleasedGallery(ReleasedDataset(root=root))
    assert gallery.dataset.release.order == order
    assert set(gallery.anatomies) == set(ANATOMIES)
    for survey in gallery.surveys():
        case = int(survey.facts.image_id.removeprefix("picture-"))
        scene = make_scene(61, case, sorted(WORDED)[case % 3 : case % 3 + 2])
        told = facts(scene, SIZE)
        for anatomy in ANATOMIES:
            for finding, worded in WORDED.items():
                there, pair = told.in_region(finding, anatomy), (anatomy, worded)
                assert (pair in survey.facts.related) == (there is True)
                assert (pair in survey.facts.partial) == (there is None)
        picture = gallery.picture(survey.facts.image_id)
        assert picture.radiograph.pixels.shape == (SIZE, SIZE)
        for anatomy, mask in picture.masks.items():
            assert np.array_equal(mask, told.anatomies[anatomy])


def test_masks_that_tell_no_order_ask_for_it(tmp_path: Path) -> None:
    root = tmp_path / "one"
    root.mkdir()
    bare = [row | {"mask_rle": [], "mask_h": None, "mask_w": None} for row in rows(3, "row")]
    pl.DataFrame(bare, infer_schema_length=None).write_parquet(root / "test-0.parquet")
    with pytest.raises(DatasetError, match="how its pixels are ordered"):
        _ = ReleasedDataset(root=root).release
    assert ReleasedDataset(root=root, order="row").release.counts["empty masks"] == len(bare)
