"""What two models of GridVQA-X, or two explainers of one model, are compared on: the same scenes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import polars as pl

from medground.benchmarks.comparable import Comparable, Contender, Matched, Sample, side_by_side
from medground.benchmarks.gridvqa_x.specs import FIGURES, MapFigure, specs
from medground.explainers.retest import IMAGE, TEXT

if TYPE_CHECKING:
    from medground.benchmarks.gridvqa_x import GridVQAX

_SPECS = {spec.name: spec for spec in specs()}
_RETEST: Mapping[str, str] = {"image": IMAGE, "text": TEXT}


def compare(benchmark: GridVQAX) -> Comparable:
    """Return how a run is compared: answers model against model, explanations also explainer against explainer.

    Explainers of different models are not held against each other. What a whole pool is scored by (synergy) has no
    bounded scale and is left out.
    """
    of_sides = side_by_side(samples)

    def matched(one: Contender, two: Contender) -> Matched:
        same_kind = bool(one.part) == bool(two.part)
        return of_sides(one, two) if same_kind and (one.part == two.part or one.model == two.model) else ()

    def parts_of(model: str, place: str, rows: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        # As in the summary, the shortcut model's explanations of D_pure are never filtered.
        filtered = benchmark.only_right and benchmark.regimes.get((model, place)) != "cross"
        return parts(rows, only_right=filtered)

    kept = "right answers alone" if benchmark.only_right else "all answers"
    return Comparable(
        settings={"answers": kept, "protocol": benchmark.protocol.in_words()}
        | {f"scenes of {data}": of for data, of in benchmark.scenes.items()},
        matched=matched,
        notes=(f"explanations of {kept}; a claim about them needs the method's own test-retest correlation",),
        rules=benchmark.rules,
        seed=benchmark.seed,
        level=benchmark.level,
        place=lambda path: path[1],
        parts=parts_of,
    )


def parts(rows: pl.DataFrame, *, only_right: bool) -> dict[str, pl.DataFrame]:
    """Return a model's answers (under an empty name) and the local explanations of each method."""
    local = rows.filter((pl.col("scope") == "local") & (pl.col("right") | pl.lit(not only_right)))
    answers = {"": rows.filter((pl.col("scope") == "model") & pl.col("reason").is_null())}
    return answers | {str(method): part for (method,), part in local.group_by(["method"], maintain_order=True)}


def samples(side: Contender) -> Iterator[Sample]:
    """Yield what a side did: right answers, or where the maps of one explainer lie."""
    rows = side.rows
    about = pl.concat_str("question", "answer", pl.col("depth").cast(pl.String), "type", "form", separator="\n")
    table = rows.select(item="scene_id", patient=pl.lit(None, pl.String), group=pl.lit(""), about=about)
    if not side.part:
        yield Sample(_SPECS["accuracy"], table.with_columns(value=rows["right"].cast(pl.Float64)))
        return
    for figure in _compared():
        values = rows[figure.column].cast(pl.Float64)
        if values.null_count() < len(values):
            retest = reliability(rows["extra"].drop_nulls(), _RETEST[figure.modality])
            yield Sample(_SPECS[figure.column], table.with_columns(value=values.fill_nan(None)), reliability=retest)


def _compared() -> Iterable[MapFigure]:
    """Return the figures that say how good an explanation is; what only describes the scene is the same for all."""
    return (figure for figure in FIGURES if _SPECS[figure.column].direction != "neither")


def reliability(extras: Iterable[str], name: str) -> float | None:
    """Return the mean correlation of a scene's map with that of another seed; None where it was not measured.

    Args:
        extras: JSON objects of figures, one a scene.
        name: which of the figures.
    """
    values = [extra[name] for text in extras if name in (extra := json.loads(text))]
    return math.fsum(values) / len(values) if values else None
