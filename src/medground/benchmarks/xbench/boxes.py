"""Models that answer in boxes: their boxes against the true ones, as columns of rows and as cells of a summary.

What is kept of a (case, finding): each predicted box's score, at how many of COCO's thresholds it is true, the best
overlap of any of them, and how many true boxes there are. Maps of such models are measured as all maps are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import ndimage

from medground.benchmarks.results import Cell
from medground.imaging.regions import Region
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.boxes import COCO_THRESHOLDS, ROUNDING, box_average_precision, froc, hits, iou_matrix
from medground.metrics.inference import Estimate, estimate, estimate_macro
from medground.metrics.influence import Influence, of_mean
from medground.metrics.spec import MetricSpec

BOX_COLUMNS: dict[str, Any] = {
    "boxes_true": pl.Int64(),
    "box_iou": pl.Float64(),
    "box_scores": pl.List(pl.Float64()),
    "box_hits": pl.List(pl.Int64()),
}
"""``box_hits``: for each predicted box a number whose bit k says whether the box is true at COCO's threshold k."""

HIT_AT = (0.3, 0.5, 0.7)
FALSE_BOXES = 1.0
"""False boxes a picture at which the sensitivity of FROC stands in tables."""
Floats = NDArray[np.float64]


def box_specs() -> tuple[MetricSpec, ...]:
    """Return the metrics of boxes; they stand in tables of models that answer in boxes alone."""
    found = [MetricSpec(f"box_hit@{t:g}", f"Box hit at IoU {t:g}", digits=2) for t in HIT_AT]
    return (
        *found,
        MetricSpec("box_map", "Mean average precision of boxes (IoU .5 to .95)", digits=2),
        MetricSpec("box_ap50", "Average precision of boxes at IoU 0.5", digits=2),
        MetricSpec("box_froc", f"Boxes met at {FALSE_BOXES:g} false box a picture", digits=2),
    )


def box_columns(predicted: Sequence[Sequence[float]] | None, region: Region | None) -> dict[str, Any]:
    """Return the columns of one (case, finding).

    Args:
        predicted: x0, y0, x1, y1 as shares of the picture's sides, and a score; None: the model gives no boxes here.
        region: the true one; None: the finding has no region in this case.
    """
    if predicted is None:
        return dict.fromkeys(BOX_COLUMNS)
    true = true_boxes(region)
    boxes = np.asarray([box[:4] for box in predicted], dtype=np.float64).reshape(-1, 4)
    scores = [float(box[4]) for box in predicted]
    overlaps = iou_matrix(boxes, true)
    flags = hits(overlaps, scores)
    return {
        "boxes_true": len(true),
        "box_iou": None if region is None else float(overlaps.max(initial=0.0)),
        "box_scores": scores,
        "box_hits": (flags * (1 << np.arange(len(COCO_THRESHOLDS)))[:, None]).sum(0).tolist(),
    }


def true_boxes(region: Region | None) -> Floats:
    """Return true boxes ``(T, 4)`` as shares of the sides.

    Boxes are as stated; a polygon gives its bounds, and masks the bounds of each connected part.
    """
    if region is None:
        return np.zeros((0, 4))
    corners = [tuple(box.corners) for box in region.boxes]
    for polygon in region.polygons:
        points = np.asarray(polygon, dtype=np.float64)
        corners.append((*points.min(0), *points.max(0)))
    if region.masks:
        labelled, _ = ndimage.label(Region(region.frame, masks=region.masks).mask(), np.ones((3, 3)))
        parts = ndimage.find_objects(labelled)
        corners += [(x.start, y.start, x.stop, y.stop) for y, x in parts]
    width, height = region.frame
    shares = np.asarray(corners, dtype=np.float64).reshape(-1, 4) / (width, height, width, height)
    return shares[(shares[:, 2:] > shares[:, :2]).all(1)]


@dataclass(frozen=True)
class Boxes:
    """All boxes of one finding over N pictures of P patients.

    Attributes:
        by: patient of each picture.
        true: (N,) true boxes of a picture.
        picture: (B,) picture of each predicted box.
        scores: (B,).
        hits: (B,) as in the column.
    """

    by: Clusters
    true: NDArray[np.int64]
    picture: NDArray[np.intp]
    scores: Floats
    hits: NDArray[np.int64]

    @classmethod
    def of(cls, rows: pl.DataFrame, by: Clusters) -> Boxes:
        """Gather the rows of one finding; ``by`` are their patients, numbered over all findings."""
        counts = rows["box_scores"].list.len().to_numpy()
        flat = rows.filter(pl.col("box_scores").list.len() > 0)
        scores = flat["box_scores"].explode().cast(pl.Float64).to_numpy()
        bits = flat["box_hits"].explode().cast(pl.Int64).to_numpy()
        return cls(by, rows["boxes_true"].to_numpy(), np.repeat(np.arange(len(rows)), counts), scores, bits)

    def measure(self, what: str, kept: NDArray[np.bool_]) -> float | None:
        """Return a measure over the pictures that are kept."""
        mine = kept[self.picture]
        scores, bits, positives = self.scores[mine], self.hits[mine], int(self.true[kept].sum())
        if what == "box_froc":
            return froc(scores, bits & 1 > 0, positives, int(kept.sum()), (FALSE_BOXES,))[0]
        places = range(1 if what == "box_ap50" else len(COCO_THRESHOLDS))
        values = [box_average_precision(scores, bits >> k & 1 > 0, positives) for k in places]
        return None if values[0] is None else float(np.mean([v for v in values if v is not None]))

    def influence(self, what: str) -> Influence:
        """Return the measure with each patient's influence, by leaving each out in turn."""
        everything = np.ones(len(self.true), dtype=bool)
        value, count = self.measure(what, everything), self.by.count
        weight = np.bincount(self.by.codes, self.true, minlength=count)
        none = np.zeros(count)
        if value is None:
            return Influence(None, none, none, 0, 0.0, 0, len(self.true), "no picture has a true box")
        present = np.unique(self.by.codes)
        without = [self.measure(what, self.by.codes != patient) for patient in present]
        left = np.array([value if v is None else v for v in without])
        influence = none.copy()
        influence[present] = (left.mean() - left) * np.sqrt((len(present) - 1) / len(present))
        share = weight / weight.sum()
        return Influence(
            value, influence, share, int((weight > 0).sum()), float(1 / (share @ share)), int(self.true.sum())
        )


def box_cells(rows: pl.DataFrame, findings: Sequence[str], level: float, **who: str) -> Iterator[Cell]:
    """Yield the cells of one model on one dataset; none where it gives no boxes.

    Args:
        rows: of the task; those without boxes are failed cases, replies that cannot be read, or other models'.
        findings: classes in the dataset's order.
        level: of the intervals.
        who: ``benchmark``, ``reading``, ``model``, ``dataset`` and ``subset`` of the cells.
    """
    if "box_scores" not in rows.columns or rows["box_scores"].null_count() == len(rows):
        return
    parts: dict[str, list[Influence]] = {}
    by = clusters(rows["patient_id"].to_list(), rows["case_id"].to_list())
    told = rows["box_scores"].is_not_null()
    for finding in findings:
        own = rows["finding"] == finding
        mine = (own & told).to_numpy()
        unread = int((own & ~told & rows["localised"]).sum())
        for metric, part in _measures(rows.filter(mine), Clusters(by.codes[mine], by.count)).items():
            parts.setdefault(metric, []).append(part)
            yield _cell(estimate(part, level=level), "class", finding, metric, unread, who)
    for metric, of_classes in parts.items():
        yield _cell(estimate_macro(of_classes, level=level), "macro", "", metric, 0, who)


def _measures(rows: pl.DataFrame, by: Clusters) -> Mapping[str, Influence]:
    """Return each metric of one finding."""
    boxes = Boxes.of(rows, by)
    best = rows["box_iou"].cast(pl.Float64).to_numpy()  # NaN where the finding has no region
    values = {
        f"box_hit@{t:g}": of_mean(np.where(np.isnan(best), np.nan, best >= t - ROUNDING), boxes.by) for t in HIT_AT
    }
    return values | {what: boxes.influence(what) for what in ("box_map", "box_ap50", "box_froc")}


def _cell(estimated: Estimate, scope: str, group: str, metric: str, failed: int, who: Mapping[str, Any]) -> Cell:
    return Cell(
        **who,
        scope=scope,
        group=group,
        metric=metric,
        value=estimated.value,
        low=estimated.low,
        high=estimated.high,
        n=estimated.n,
        undefined=estimated.n_undefined,
        failed=failed,
        reason=estimated.reason if estimated.value is None else None,
        counts={"patients": min(estimated.evidence, default=0)},
    )
