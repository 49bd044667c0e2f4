"""Masks that a model gives of regions, and answers with the true region given to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.heal_medvqa import HealMedVQA
from medground.benchmarks.heal_medvqa.localising import coded, dice, iou, overlaps
from medground.benchmarks.requests import Answer
from medground.datasets.phantom import Phantom
from medground.errors import ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import ModelInfo, Reply

GRIDS = arrays(np.bool_, (6, 9))


@given(said=GRIDS, true=GRIDS)
def test_overlaps_are_those_of_the_pixels(said: np.ndarray, true: np.ndarray) -> None:
    found = overlaps(coded(Answer({}, {"mask/heart": said})), {"heart": true, "aorta": true})
    if not true.any():
        assert found == {}
        return
    assert found == {"heart": ((said & true).sum(), said.sum(), true.sum())}
    assert dice(found["heart"]) == pytest.approx(2 * (said & true).sum() / (said.sum() + true.sum()))
    assert iou(found["heart"]) == pytest.approx((said & true).sum() / (said | true).sum())


def test_a_mask_of_another_size_is_not_scored() -> None:
    answer = coded(Answer({}, {"mask/heart": np.ones((4, 4), np.bool_)}))
    assert overlaps(answer, {"heart": np.ones((6, 6), np.bool_)}) == {}


class Halves:
    """Says that every region is the upper half of the picture; looks where it is told, and says yes there alone."""

    name: ClassVar[str] = "halves"
    info: ClassVar[ModelInfo] = ModelInfo("halves", kind="baseline")
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply", "pictures", "masks"})
    asked: ClassVar[list[str]] = []

    def reply(self, conversations: Sequence[Any], options: Any = None) -> list[Reply]:
        return [Reply("No.") for _ in conversations]

    def reply_highlighted(
        self, conversations: Sequence[Any], regions: Sequence[Any], options: Any = None
    ) -> list[Reply]:
        assert options is not None
        for turns, region in zip(conversations, regions, strict=True):
            assert region is None or region.shape == turns[0].images[0].pixels.shape
        return [Reply("No." if region is None else "Yes.") for region in regions]

    def masks(self, image: Radiograph) -> dict[str, np.ndarray]:
        self.asked.append(str(image.case_id))
        upper = np.zeros(image.pixels.shape, np.bool_)
        upper[: len(upper) // 2] = True
        return {"heart": upper, "right upper lung": upper, "spleen": upper}


class Plain(Halves):
    """Cannot be given a region."""

    name: ClassVar[str] = "plain"
    reply_highlighted = None  # type: ignore[assignment]


def bound(cls: type, **given: Any) -> HealMedVQA:
    benchmark = HealMedVQA(pictures=0, **given)
    phantoms = Entry("phantom", "phantom", Phantom, {"cases": 10, "size": 64})
    benchmark.bind(Setting(models=[Entry("m", cls.name, cls)], datasets=[phantoms]))
    return benchmark


def test_regions_are_asked_for_once_a_picture_and_scored_by_anatomy() -> None:
    benchmark = bound(Halves, quartets=2)
    (task,) = benchmark.tasks()
    Halves.asked.clear()
    measured = evaluate(task, {"model": Halves()})
    rows = pl.DataFrame([row for one in measured for row in one.rows], schema=task.schema)
    pictures = {item.payload.asked.question.image_id for item in task.items() if item.payload.asked.part == "natural"}
    assert len(Halves.asked) == len(pictures)
    masks = rows.filter(pl.col("part") == "masks")
    assert set(masks["asked_anatomy"]) == {"heart", "right upper lung"}
    assert masks.height == 2 * len(pictures)
    cells = {
        (c.metric, c.group): c for c in benchmark.summarise({task.path: rows}).cells if c.metric.startswith("mask")
    }
    assert len(cells) == 6
    expected = []
    for image in sorted(pictures):
        picture = task.gallery.picture(image)
        upper = np.zeros(picture.radiograph.pixels.shape, np.bool_)
        upper[: len(upper) // 2] = True
        heart = picture.masks["heart"]
        expected.append(2 * (upper & heart).sum() / (upper.sum() + heart.sum()))
    assert cells["mask_dice", "heart"].value == pytest.approx(np.mean(expected))
    assert cells["mask_dice", "heart"].n == len(pictures)


def test_answers_with_the_true_region_stand_beside_the_model_s_own() -> None:
    benchmark = bound(Halves, quartets=2, true_regions=True)
    (task,) = benchmark.tasks()
    measured = evaluate(task, {"model": Halves()})
    rows = pl.DataFrame([row for one in measured for row in one.rows], schema=task.schema)
    summary = benchmark.summarise({task.path: rows})
    cells = {(c.metric, c.subset): c.value for c in summary.cells if c.scope == "all" and not c.group}
    assert cells["recall", "main"] == 0
    assert cells["recall", "true_regions"] == 1
    assert cells["specificity", "main"] == 1
    assert cells["specificity", "true_regions"] == 0
    assert cells["balanced_accuracy", "true_quartets"] == 0.5
    assert cells["tpt", "main"] is None
    assert cells["tpt", "true_regions"] == 0
    assert summary.tables["true_regions"]["specificity"].to_list() == [0.0]
    assert summary.tables["heal_medvqa"]["specificity"].to_list() == [100.0]
    assert summary.tables["heal_medvqa"]["mask_dice"][0] > 0
    own = bound(Halves, quartets=2).tasks()[0]
    assert own.fingerprint() != task.fingerprint()


def test_a_model_that_cannot_be_given_a_region_is_refused() -> None:
    (task,) = bound(Plain, quartets=0, true_regions=True).tasks()
    with pytest.raises(ModelError, match="cannot be given a region"):
        task.open({"model": Plain()})
