"""Whole maps under the three published protocols: the functions, put together as `docs/metrics.md` shows."""

import json

import numpy as np
import pytest

from medground.metrics.pointing import peak, pointing
from medground.metrics.saliency import minmax
from medground.metrics.sweep import all_foreground, best_threshold, overlap, sweep, threshold_grid
from medground.metrics.values import mean_curve

pytestmark = pytest.mark.usefixtures("compiled")

GRID = threshold_grid()
EXACT = 1e-7
TAU = np.float32(0.008)


def bilinear(saliency, size):
    """Enlarge a map with half-pixel centres, edges repeated: one weight matrix a side, written out."""
    weights = np.zeros((size, len(saliency)))
    for i in range(size):
        at = min(max((i + 0.5) * len(saliency) / size - 0.5, 0), len(saliency) - 1)
        low = min(int(at), len(saliency) - 2)
        weights[i, low], weights[i, low + 1] = 1 - (at - low), at - low
    return weights @ saliency.astype(np.float64) @ weights.T


def nearest(array, size):
    at = np.arange(size) * len(array) // size
    return array[np.ix_(at, at)]


def box_mask(boxes):
    mask = np.zeros((1024, 1024), bool)
    for x, y, w, h in boxes:
        mask[int(y) : int(y) + int(h), int(x) : int(x) + int(w)] = True
    return mask


@pytest.fixture(scope="module")
def folder(golden):
    return golden / "metrics/heatmaps"


@pytest.fixture(scope="module")
def expected(folder):
    return json.loads((folder / "expected.json").read_text())


@pytest.fixture(scope="module")
def inputs(folder):
    arrays = np.load(folder / "inputs.npz")
    boxes = [item["boxes_xywh"] for item in json.loads((folder / "items.json").read_text())]
    return list(zip(arrays["maps"], arrays["attention"], [box_mask(b) for b in boxes], strict=True))


def check_aggregate(curves, wanted):
    dice, iou = (mean_curve([getattr(c, name) for c in curves]) for name in ("dice", "iou"))
    np.testing.assert_allclose(dice.mean, wanted["mean_dice"], atol=EXACT)
    np.testing.assert_allclose(iou.mean, wanted["mean_iou"], atol=EXACT)
    assert iou.n.tolist() == wanted["n_iou_defined"]
    best = best_threshold(dice.mean)
    assert best == wanted["best_k_by_mean_dice"]
    assert GRID[best] == wanted["best_tau"]
    assert dice.mean[best] == pytest.approx(wanted["dice_at_best"], abs=EXACT)
    assert iou.mean[best] == pytest.approx(wanted["iou_at_best"], abs=EXACT)


def test_xbench(inputs, expected):
    curves, hits = [], []
    for (saliency, _, mask), item in zip(inputs, expected["items"], strict=True):
        wanted = item["xbench"]
        large, region = bilinear(saliency, 224), nearest(mask, 224)
        assert region.sum() == item["gt_area_224"]
        top = peak(large)
        assert [top.row, top.col] == wanted["argmax_row_col"]
        hits.append(pointing(large, region).hit)
        assert hits[-1] == wanted["pointing"]
        counts = sweep(minmax(large), region, GRID)
        assert counts.selected.tolist() == wanted["foreground"]
        assert counts.selected[50] == wanted["foreground_at_0.5"]
        curves.append(overlap(*counts, region.sum()))
        np.testing.assert_allclose(curves[-1].dice, wanted["dice"], atol=EXACT)
        np.testing.assert_allclose(curves[-1].iou, wanted["iou"], atol=EXACT)
        floor = all_foreground(region.sum(), region.size).dice
        assert float(floor) == pytest.approx(wanted["all_foreground_dice"], abs=EXACT)
        assert curves[-1].dice[0] == floor
    check_aggregate(curves, expected["aggregate"]["xbench"])
    assert np.mean(hits) == expected["aggregate"]["xbench"]["pointing"]


def test_medklip(inputs, expected):
    curves, fixed, hits = [], [], []
    for (saliency, attention, mask), item in zip(inputs, expected["items"], strict=True):
        wanted = item["medklip"]
        region = nearest(mask, 224)
        raw, attended = nearest(saliency, 224), nearest(attention, 224)
        outcome = pointing(raw, region, "any")
        assert outcome.ties == wanted["tie_count"]
        hits.append(outcome.hit)
        assert hits[-1] == wanted["pointing_any"]
        counts = sweep(attended, region, [TAU], ">")
        assert counts.selected[0] == wanted["foreground_attention_above_0.008"]
        fixed.append(overlap(*counts, region.sum()))
        assert fixed[-1].dice[0] == pytest.approx(wanted["dice_attention_above_0.008"], abs=EXACT)
        assert fixed[-1].iou[0] == pytest.approx(wanted["iou_attention_above_0.008"], abs=EXACT)
        counts = sweep(raw, region, GRID, ">")
        assert counts.selected.tolist() == wanted["foreground_raw_map"]
        curves.append(overlap(*counts, region.sum()))
        np.testing.assert_allclose(curves[-1].dice, wanted["dice_raw_map"], atol=EXACT)
        np.testing.assert_allclose(curves[-1].iou, wanted["iou_raw_map"], atol=EXACT)
    aggregate = expected["aggregate"]["medklip"]
    check_aggregate(curves, aggregate)
    assert np.mean(hits) == aggregate["pointing_any"]
    for name in ("dice", "iou"):
        mean = mean_curve([getattr(f, name) for f in fixed]).mean[0]
        assert mean == pytest.approx(aggregate[f"{name}_attention_above_0.008"], abs=EXACT)


def test_chexlocalize(inputs, expected):
    dice, iou, hits = [], [], []
    for (saliency, _, mask), item in zip(inputs, expected["items"], strict=True):
        wanted = item["chexlocalize"]
        large = bilinear(saliency, 1024)
        assert mask.sum() == item["gt_area_1024"]
        top = peak(large)
        assert [top.row, top.col] == wanted["argmax_row_col"]
        hits.append(pointing(large, mask).hit)
        assert hits[-1] == wanted["pointing"]
        counts = sweep(minmax(large), mask, GRID, ">")
        assert counts.selected.tolist() == wanted["foreground"]
        dice.append(overlap(*counts, mask.sum()).dice)
        np.testing.assert_allclose(dice[-1], wanted["dice"], atol=EXACT)
        iou.append(overlap(*counts, mask.sum(), "undefined").iou)
        published = [np.nan if x is None else x for x in wanted["iou_true_positive_only"]]
        np.testing.assert_allclose(iou[-1], published, atol=EXACT)
    aggregate = expected["aggregate"]["chexlocalize"]
    mean = mean_curve(dice).mean
    np.testing.assert_allclose(mean, aggregate["mean_dice"], atol=EXACT)
    assert best_threshold(mean) == aggregate["best_k_by_mean_dice"]
    assert mean_curve(iou).n.tolist() == aggregate["n_iou_defined"]
    at = {float(tau): value for tau, value in aggregate["miou_at_the_seven_published_thresholds"].items()}
    found = mean_curve(iou).mean[[round(100 * tau) for tau in at]]
    np.testing.assert_allclose(found, list(at.values()), atol=EXACT)
    assert np.mean(hits) == aggregate["pointing"]
