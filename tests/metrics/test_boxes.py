"""Box measures against pycocotools, against slow loops, and on cases that are known."""

from __future__ import annotations

import contextlib
import io
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import MetricError
from medground.metrics.boxes import COCO_THRESHOLDS, box_average_precision, froc, hits, iou_matrix

Box = tuple[int, int, int, int]


def boxes(rng: np.random.Generator, count: int) -> np.ndarray:
    low = rng.integers(0, 24, (count, 2))
    return np.hstack([low, low + rng.integers(1, 12, (count, 2))]).astype(float)


def painted(first: np.ndarray, second: np.ndarray) -> float:
    """Intersection over union by counting squares."""
    grid = [np.zeros((40, 40), bool) for _ in range(2)]
    for plane, (x0, y0, x1, y1) in zip(grid, (first, second), strict=True):
        plane[int(y0) : int(y1), int(x0) : int(x1)] = True
    return float((grid[0] & grid[1]).sum() / (grid[0] | grid[1]).sum())


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_overlaps_are_counted_squares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    predicted, true = boxes(rng, 3), boxes(rng, 2)
    expected = [[painted(p, t) for t in true] for p in predicted]
    assert np.allclose(iou_matrix(predicted, true), expected, atol=1e-12)


def pictures_of(seed: int, count: int = 12) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(predicted, scores, true) a picture; predictions are often near a true box, and scores are often equal."""
    rng = np.random.default_rng(seed)
    pictures = []
    for _ in range(count):
        true = boxes(rng, int(rng.integers(0, 4)))
        near = true[rng.random(len(true)) < 0.8]
        moved = np.clip(near + rng.integers(-2, 3, near.shape), 0, 60)
        moved = moved[(moved[:, 2:] > moved[:, :2]).all(1)]
        predicted = np.vstack([moved, boxes(rng, int(rng.integers(0, 3)))])
        pictures.append((predicted, rng.integers(1, 9, len(predicted)) / 8, true))
    return pictures


def gathered(pictures: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, int]:
    flags = [hits(iou_matrix(p, t), s) if len(p) else np.zeros((10, 0), bool) for p, s, t in pictures]
    return np.concatenate([s for _, s, _ in pictures]), np.hstack(flags), sum(len(t) for *_, t in pictures)


@pytest.mark.parametrize("seed", range(6))
def test_average_precision_is_that_of_pycocotools(seed: int) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    cocoeval = pytest.importorskip("pycocotools.cocoeval")
    pictures = pictures_of(seed)

    def wide(box: np.ndarray) -> list[float]:
        return [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])]

    number = itertools.count(1)
    annotations: list[dict[str, Any]] = [
        {"id": next(number), "image_id": i + 1, "category_id": 1, "iscrowd": 0, "bbox": wide(box), "area": 100.0}
        for i, (*_, true) in enumerate(pictures)
        for box in true
    ]
    results = [
        {"image_id": i + 1, "category_id": 1, "bbox": wide(box), "score": float(score)}
        for i, (predicted, scores, _) in enumerate(pictures)
        for box, score in zip(predicted, scores, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO()
        truth.dataset = {
            "info": {},
            "images": [{"id": i + 1} for i in range(len(pictures))],
            "categories": [{"id": 1}],
            "annotations": annotations,
        }
        truth.createIndex()
        evaluation = cocoeval.COCOeval(truth, truth.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
    expected = evaluation.eval["precision"][:, :, 0, 0, -1].mean(1)
    scores, flags, positives = gathered(pictures)
    own = [box_average_precision(scores, row, positives) for row in flags]
    assert np.allclose(own, expected, atol=1e-9)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_froc_is_the_best_of_all_cuts(seed: int) -> None:
    pictures = pictures_of(seed)
    scores, flags, positives = gathered(pictures)
    rates = (0.0, 0.25, 1.0, 8.0)
    best = []
    for rate in rates:
        reached = [0.0]
        for cut in set(scores.tolist()):
            raised = scores >= cut
            if (raised & ~flags[0]).sum() / len(pictures) <= rate and positives:
                reached.append(float((raised & flags[0]).sum() / positives))
        best.append(max(reached) if positives else None)
    own = froc(scores, flags[0], positives, len(pictures), rates)
    assert own == pytest.approx(best) if positives else own == best
    if positives:
        assert own == sorted(own)  # type: ignore[type-var]


def test_each_true_box_is_met_once() -> None:
    true = [[0, 0, 10, 10]]
    iou = iou_matrix([[0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 10, 5]], true)
    assert hits(iou, [0.2, 0.9, 0.5], (0.5,)).tolist() == [[False, True, False]]
    assert hits(iou[:, :0], [0.2, 0.9, 0.5], (0.5,)).tolist() == [[False, False, False]]


def test_perfect_boxes_reach_all_and_none_reach_nothing() -> None:
    assert box_average_precision([0.5, 0.4], [True, True], 2) == 1.0
    assert box_average_precision([], [], 2) == 0.0
    assert box_average_precision([0.5], [False], 0) is None
    assert froc([], [], 2, 3, (1.0,)) == [0.0]
    assert froc([0.5], [False], 0, 3, (1.0,)) == [None]
    assert len(COCO_THRESHOLDS) == 10


@pytest.mark.parametrize("box", [[0, 0, 0, 5], [3, 3, 1, 5], [0, 0, float("nan"), 1], [0, 0, float("inf"), 1]])
def test_a_box_without_area_is_refused(box: list[float]) -> None:
    with pytest.raises(MetricError, match="area"):
        iou_matrix([box], [[0, 0, 1, 1]])
