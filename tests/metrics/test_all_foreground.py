"""The floor of a threshold search over the published NIH boxes, for three ways to cut a box and two grids."""

import csv
import json
import math
from collections import defaultdict

import numpy as np
import pytest

from medground.metrics.sweep import all_foreground
from medground.metrics.values import mean_defined

RULES = {
    "corner_cut": lambda a, length: (int(a), int(a + length)),
    "size_cut": lambda a, length: (int(a), int(a) + int(length)),
    "rounded": lambda a, length: (math.floor(a + 0.5), math.floor(a + length + 0.5)),
}
ROWS_OF = {1024: np.arange(1024), 224: np.arange(224) * 1024 // 224}


@pytest.fixture(scope="module")
def boxes(data_root):
    table = data_root / "nih-chestxray14/BBox_List_2017.csv"
    found = defaultdict(list)
    with table.open(newline="") as lines:
        for image, finding, *box in list(csv.reader(lines))[1:]:
            found[image, finding].append([float(v) for v in box[:4]])
    return found


def area(pair, rule, grid):
    """Pixels of a union of boxes that survive on the grid."""
    inside = np.zeros((grid, grid), bool)
    for x, y, w, h in pair:
        (x0, x1), (y0, y1) = RULES[rule](x, w), RULES[rule](y, h)
        at = ROWS_OF[grid]
        inside |= np.outer((at >= y0) & (at < y1), (at >= x0) & (at < x1))
    return inside.sum()


@pytest.mark.data
@pytest.mark.parametrize("grid", [1024, 224])
@pytest.mark.parametrize("rule", RULES)
def test_nih(golden, boxes, rule, grid):
    expected = json.loads((golden / "metrics/all_foreground/expected.json").read_text())["nih"][rule]
    areas = {pair: area(given, rule, grid) for pair, given in boxes.items()}
    assert len(areas) == expected["n"]
    classes = defaultdict(list)
    for (_, finding), pixels in areas.items():
        classes[finding].append(pixels)
    for name in ("dice", "iou"):
        key = f"{name}_{grid}"
        means = {}
        for finding, pixels in classes.items():
            means[finding] = mean_defined(getattr(all_foreground(pixels, grid * grid), name))
            wanted = expected["per_class"][finding]
            assert means[finding].n == wanted["n"]
            assert 100 * means[finding].value == pytest.approx(wanted[key], abs=1e-6)
        macro = mean_defined([m.value for m in means.values()])
        assert 100 * macro.value == pytest.approx(expected["macro"][key], abs=1e-6)
        pooled = mean_defined(getattr(all_foreground(list(areas.values()), grid * grid), name))
        assert 100 * pooled.value == pytest.approx(expected["pooled"][key], abs=1e-6)
