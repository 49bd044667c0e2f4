"""Predicted boxes: from a folder or a chat model to rows and cells, against plain loops over the same boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.xbench.answers import image_answer, inferred
from medground.benchmarks.xbench.boxes import box_cells, box_columns, true_boxes
from medground.benchmarks.xbench.protocol import PROTOCOLS
from medground.benchmarks.xbench.rows import SCHEMA, MapMeasurer
from medground.benchmarks.xbench.summarise import SummaryOptions, summarise
from medground.datasets.base import Case
from medground.imaging.reading import Radiograph
from medground.imaging.regions import Region
from medground.metrics.boxes import box_average_precision, froc, hits, iou_matrix
from medground.models.base import ModelInfo
from medground.models.precomputed import Precomputed

FINDINGS = ("Mass", "Nodule")
WHO = {"benchmark": "xbench", "reading": "r", "model": "m", "dataset": "d", "subset": "main"}
SIDE = 40


def random_box(rng: np.random.Generator) -> list[int]:
    x, y = rng.integers(0, 28, 2)
    return [int(x), int(y), int(x + rng.integers(4, 12)), int(y + rng.integers(4, 12))]


def world(seed: int, count: int = 14) -> tuple[list[dict[str, Any]], dict[tuple[str, str], list[list[float]]]]:
    """Cases with true boxes, two a patient; and predicted boxes in pixels with scores, none for some pairs."""
    rng = np.random.default_rng(seed)
    cases, predicted = [], {}
    for number in range(count):
        true = {f: [random_box(rng) for _ in range(rng.integers(1, 3))] for f in FINDINGS if rng.random() < 0.7}
        cases.append({"case_id": f"c{number}", "patient_id": f"p{number // 2}", "true": true})
        for finding in FINDINGS:
            if rng.random() < 0.15:
                continue
            near = [[*np.add(box, rng.integers(-2, 3, 4)).clip(0, SIDE).tolist(), rng.integers(1, 9) / 8]
                    for box in true.get(finding, []) if rng.random() < 0.8]  # fmt: skip
            near += [[*random_box(rng), rng.integers(1, 9) / 8] for _ in range(rng.integers(0, 2))]
            predicted[f"c{number}", finding] = [box for box in near if box[0] < box[2] and box[1] < box[3]]
    return cases, predicted


def rows_of(cases: list[dict[str, Any]], predicted: dict[tuple[str, str], list[list[float]]]) -> pl.DataFrame:
    rows = []
    for case in cases:
        for finding in FINDINGS:
            true = case["true"].get(finding)
            region = None if true is None else Region.from_boxes((SIDE, SIDE), true)
            boxes = predicted.get((case["case_id"], finding))
            shares = None if boxes is None else [[*(np.array(b[:4]) / SIDE), b[4]] for b in boxes]
            own = {"case_id": case["case_id"], "patient_id": case["patient_id"], "finding": finding}
            rows.append(own | {"localised": region is not None} | box_columns(shares, region))
    names = rows[0].keys()
    return pl.DataFrame(rows, schema={name: SCHEMA[name] for name in names})


@pytest.mark.parametrize("seed", range(4))
def test_cells_are_those_of_plain_loops(seed: int) -> None:
    cases, predicted = world(seed)
    cells = {(c.metric, c.group): c for c in box_cells(rows_of(cases, predicted), FINDINGS, 0.95, **WHO)}
    macro: dict[str, list[float]] = {}
    for finding in FINDINGS:
        pictures = [c for c in cases if (c["case_id"], finding) in predicted]
        given = [(predicted[c["case_id"], finding], c["true"].get(finding, [])) for c in pictures]
        scores = np.array([box[4] for boxes, _ in given for box in boxes])
        flags = np.hstack(
            [hits(iou_matrix([b[:4] for b in boxes], true), [b[4] for b in boxes]) for boxes, true in given]
        )
        positives = sum(len(true) for _, true in given)
        expected = {
            "box_map": np.mean([box_average_precision(scores, row, positives) or 0.0 for row in flags]),
            "box_ap50": box_average_precision(scores, flags[0], positives),
            "box_froc": froc(scores, flags[0], positives, len(given), (1.0,))[0],
        }
        for t in (0.3, 0.5, 0.7):
            best = [iou_matrix([b[:4] for b in boxes], true).max(initial=0.0) for boxes, true in given if true]
            expected[f"box_hit@{t:g}"] = np.mean([value >= t - 1e-9 for value in best])
        for metric, value in expected.items():
            cell = cells[metric, finding]
            assert cell.value == pytest.approx(value), metric
            assert cell.low is not None
            assert cell.low <= cell.value <= cell.high
            macro.setdefault(metric, []).append(float(value))
        lost = sum(1 for c in cases if finding in c["true"] and (c["case_id"], finding) not in predicted)
        assert cells["box_map", finding].failed == lost
    for metric, values in macro.items():
        assert cells[metric, ""].value == pytest.approx(np.mean(values))


def test_a_model_without_boxes_has_no_such_cells() -> None:
    cases, _ = world(0)
    assert list(box_cells(rows_of(cases, {}), FINDINGS, 0.95, **WHO)) == []
    older = rows_of(cases, {}).drop("boxes_true", "box_iou", "box_scores", "box_hits")
    assert list(box_cells(older, FINDINGS, 0.95, **WHO)) == []


def test_no_box_at_all_is_a_miss_and_not_nothing() -> None:
    cases, predicted = world(1)
    silent: dict[tuple[str, str], list[list[float]]] = {key: [] for key in predicted}
    cells = {(c.metric, c.group): c for c in box_cells(rows_of(cases, silent), FINDINGS, 0.95, **WHO)}
    assert cells["box_hit@0.5", "Mass"].value == 0.0
    assert cells["box_map", "Mass"].value == 0.0
    assert cells["box_froc", "Mass"].value == 0.0


def test_a_class_without_true_boxes_is_undefined() -> None:
    cases, predicted = world(2)
    for case in cases:
        case["true"].pop("Nodule", None)
    cells = {(c.metric, c.group): c for c in box_cells(rows_of(cases, predicted), FINDINGS, 0.95, **WHO)}
    assert cells["box_map", "Nodule"].value is None
    assert cells["box_map", "Nodule"].reason


def test_true_boxes_of_masks_and_polygons_are_their_bounds() -> None:
    mask = np.zeros((20, 40), bool)
    mask[2:6, 4:10] = True
    mask[10:12, 30:40] = True
    region = Region.from_mask(mask)
    assert sorted(map(tuple, true_boxes(region).round(6))) == [(0.1, 0.1, 0.25, 0.3), (0.75, 0.5, 1.0, 0.6)]
    polygon = Region.from_polygons((40, 20), [[(4, 2), (20, 2), (8, 10)]])
    assert true_boxes(polygon).tolist() == [[0.1, 0.1, 0.5, 0.5]]
    assert true_boxes(None).shape == (0, 4)


def test_a_folder_of_boxes_reaches_the_summary(tmp_path: Path) -> None:
    cases, predicted = world(3)
    lines = ["case_id,finding,x0,y0,x1,y1,width,height,score"]
    for (case_id, finding), boxes in predicted.items():
        lines += [f"{case_id},{finding},{b[0]},{b[1]},{b[2]},{b[3]},{SIDE},{SIDE},{b[4]}" for b in boxes]
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    model, protocol = Precomputed(tmp_path), PROTOCOLS["xbench"]
    measurer = MapMeasurer(FINDINGS, protocol, NoPrior())  # type: ignore[arg-type]
    rows: list[Any] = []
    for case in cases:
        regions = {f: Region.from_boxes((SIDE, SIDE), boxes) for f, boxes in case["true"].items()}
        picture = Radiograph(np.zeros((SIDE, SIDE), np.float32), case_id=case["case_id"])
        answer = image_answer(model.predict([picture], FINDINGS), 0, dict(enumerate(FINDINGS)), keep=True)
        told = inferred(answer, FINDINGS, FINDINGS, tmp_path)
        known = Case(case_id=case["case_id"], image=tmp_path, patient_id=case["patient_id"], regions=regions)
        rows += measurer.measure(known, regions, told).rows
    table = pl.DataFrame(rows, schema=SCHEMA)
    summary = summarise({("m", "d"): table}, {"m": ModelInfo("m")}, {"d": FINDINGS}, SummaryOptions(protocol))
    cells = {(c.metric, c.group): c for c in summary.cells if c.scope == "class" and c.subset == "main"}
    # Pairs without any line in the file are unknown there, and left out of the plain table too.
    told_pairs = {key: boxes for key, boxes in predicted.items() if boxes}
    for cell in box_cells(rows_of(cases, told_pairs), FINDINGS, 0.95, **WHO):
        if cell.scope == "class":
            assert cells[cell.metric, cell.group].value == pytest.approx(cell.value)
    assert summary.spec("box_map").title.startswith("Mean average precision")


class NoPrior:
    def counts(self, *_: Any) -> dict[str, Any]:
        return {}
