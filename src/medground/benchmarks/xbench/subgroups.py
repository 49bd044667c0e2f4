"""For whom does it work less well? Recognition and pointing by sex, age, view and whatever the tables say of cases.

Each group is held against the rest of the same dataset. The intervals of the differences are widened to the number of
groups that are looked at, so that the chance of any false claim stays that of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Cell
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.recognition import LabelAnswers, answers
from medground.metrics import decide
from medground.metrics.bootstrap import Clusters
from medground.metrics.differences import apart
from medground.metrics.inference import MACRO_RANKING, Estimate, estimate, estimate_macro
from medground.metrics.influence import of_auc, of_mean

AGES = (40, 60, 80)
"""Edges of the bands of age, in years."""
MOST_GROUPS = 12
"""A trait with more values than this (an id, a date) parts nobody into groups; numbers are cut into thirds."""
UNKNOWN = "not known"
SCOPES = frozenset({"all", "macro", "pairs", "class", "size"})
"""What cells are grouped by already: a trait of that name is called one."""
METRICS = {"auc": "rate", "pointing": "rate"}
"""Metric -> family of its rule."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Subgroup:
    """Rows that share a trait.

    Attributes:
        trait: ``sex``, ``view``, ...
        name: its value.
        mask: ``(R,)`` rows in it.
        rest: ``(R,)`` rows with another known value.
    """

    trait: str
    name: str
    mask: Mask
    rest: Mask


def subgroups(rows: pl.DataFrame) -> list[Subgroup]:
    """Return the groups of every trait that has two or more; a case whose trait is not known is in none."""
    found: list[Subgroup] = []
    for trait, values in traits_of(rows).items():
        banded = banded_values(trait, values)
        names = [name for name in dict.fromkeys(sorted(banded, key=_order)) if name != UNKNOWN]
        if not 2 <= len(names) <= MOST_GROUPS:
            continue
        column = np.array(banded)
        known = column != UNKNOWN
        found += [Subgroup(trait, name, column == name, known & (column != name)) for name in names]
    return found


def traits_of(rows: pl.DataFrame) -> dict[str, list[str]]:
    """Return trait -> its value of every row; the view is one."""
    read: dict[str, Mapping[str, str]] = {}
    texts = rows["traits"].to_list() if "traits" in rows.columns else [None] * len(rows)
    own = [read.setdefault(text, json.loads(text)) if text else {} for text in texts]
    names = list(dict.fromkeys(name for traits in read.values() for name in traits))
    called = {name: f"trait {name}" if name in SCOPES else name for name in names}
    columns = {called[name]: [traits.get(name, UNKNOWN) for traits in own] for name in names}
    return columns | {"view": rows["view"].fill_null(UNKNOWN).to_list()}


def banded_values(trait: str, values: Sequence[str]) -> list[str]:
    """Return values as groups: ages in bands, other numbers of many values in thirds, texts as they are."""
    numbers = {value: _number(value) for value in dict.fromkeys(values) if value != UNKNOWN}
    known = sorted(n for n in numbers.values() if n is not None)
    if len(known) < len(numbers) or (trait != "age" and len(numbers) <= MOST_GROUPS):
        return list(values)
    edges = AGES if trait == "age" else [float(np.quantile(known, share)) for share in (1 / 3, 2 / 3)]
    return [value if (n := numbers.get(value)) is None else _band(n, edges) for value in values]


def _band(number: float, edges: Sequence[float]) -> str:
    place = int(np.searchsorted(edges, number, side="right"))
    if place == 0:
        return f"below {edges[0]:g}"
    return f"{edges[-1]:g} and above" if place == len(edges) else f"{edges[place - 1]:g} to below {edges[place]:g}"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _order(name: str) -> tuple[bool, bool, float, str]:
    """Order bands by their edge, the one below all first; texts by themselves."""
    head = name.partition(" ")[0]
    number = _number(head)
    return name == UNKNOWN, head != "below", number if number is not None else np.inf, name


def subgroup_results(
    rows: pl.DataFrame,
    findings: Sequence[str],
    protocol: Protocol,
    rules: Mapping[str, decide.Rule],
    level: float,
    **who: str,
) -> tuple[list[Cell], list[dict[str, Any]]]:
    """Return the cells of every group, and what is said of each beside the rest.

    Args:
        rows: of one model on one dataset.
        findings: its classes.
        protocol: of the maps.
        rules: margins and minima.
        level: of the intervals of the figures.
        who: ``benchmark``, ``reading``, ``model``, ``dataset``, ``subset``.
    """
    groups = subgroups(rows)
    if not groups:
        return [], []
    given, place = answers(rows, findings, protocol.link), _places(rows)
    pairs = Pairs.of(rows, protocol)
    localised = rows["localised"].to_numpy()
    hits = pairs.pointing()
    cells: list[Cell] = []
    records: list[dict[str, Any]] = []
    for metric in METRICS:
        made = [(g, _values(metric, g, given, place, (pairs, localised, hits))) for g in groups]
        compared = sum(len(figures) == 2 and all(f(level).value is not None for f in figures) for _, figures in made)
        wide = 1 - (1 - level) / max(compared, 1)
        for group, figures in made:
            if not figures:
                continue
            own = figures[0](level)
            if metric != "pointing" or group.trait != "view":  # pointing by view stands among the cells of maps
                cells.append(_cell(own, group, metric, who))
            difference = apart(*(figure(wide) for figure in figures))
            records.append(_record(own, difference, group, metric, rules, who) | {"compared": compared})
    return cells, records


def _values(metric: str, group: Subgroup, given: LabelAnswers, place: NDArray[np.intp], maps: Any) -> list[Any]:
    """Return what gives the estimate of the group and of the rest at a level; nothing where nothing was measured."""
    if metric == "pointing":
        pairs, localised, hits = maps
        return [] if np.isnan(hits).all() else [_pointing(pairs, hits, m[localised]) for m in (group.mask, group.rest)]
    sides = [np.bincount(place[m], minlength=len(given.labels)) > 0 for m in (group.mask, group.rest)]
    labels = [np.where(side[:, None], given.labels, np.nan) for side in sides]
    # A mean over classes compares only over the same classes.
    shared = [
        k for k in range(len(given.findings)) if all(len(np.unique(y[:, k][~np.isnan(y[:, k])])) == 2 for y in labels)
    ]
    return [_auc(y, given, shared) for y in labels] if np.isfinite(given.labels).any() else []


def _auc(labels: Any, given: LabelAnswers, classes: Sequence[int]) -> Any:
    parts = [of_auc(labels[:, k], given.scores[:, k], given.by) for k in classes]
    if not parts:
        cases = int(np.isfinite(labels).any(axis=1).sum())
        return lambda level: Estimate(None, n=cases, level=level, reason="no finding is there and absent in both")
    return lambda level: estimate_macro(parts, MACRO_RANKING, level)


def _pointing(pairs: Pairs, hits: Any, mask: Mask) -> Any:
    part = of_mean(hits[mask], Clusters(pairs.by.codes[mask], pairs.by.count))
    return lambda level: estimate(part, level=level)


def _places(rows: pl.DataFrame) -> NDArray[np.intp]:
    """Return which case every row is about, in the order of :func:`answers`."""
    order = {case: i for i, case in enumerate(dict.fromkeys(rows["case_id"].to_list()))}
    return np.array([order[case] for case in rows["case_id"]], dtype=np.intp)


def _cell(own: Estimate, group: Subgroup, metric: str, who: Mapping[str, Any]) -> Cell:
    return Cell(
        **who,
        scope=group.trait,
        group=group.name,
        metric=metric,
        value=own.value,
        low=own.low,
        high=own.high,
        n=own.n,
        undefined=own.n_undefined,
        reason=own.reason if own.value is None else None,
        counts={"patients": min(own.evidence, default=0)},
    )


def _record(
    own: Estimate,
    difference: Estimate,
    group: Subgroup,
    metric: str,
    rules: Mapping[str, decide.Rule],
    who: Mapping[str, str],
) -> dict[str, Any]:
    rule = rules[METRICS[metric]]
    return {
        "model": who["model"],
        "dataset": who["dataset"],
        "trait": group.trait,
        "group": group.name,
        "metric": metric,
        "value": own.value,
        "low": own.low,
        "high": own.high,
        "n": own.n,
        "patients": min(own.evidence, default=0),
        "reason": own.reason if own.value is None else None,
        "difference": difference.value,
        "difference_low": difference.low,
        "difference_high": difference.high,
        "says": said(difference, rule),
        "margin": rule.margin,
    }


def said(difference: Estimate, rule: decide.Rule) -> str:
    """Say what may be claimed of a group beside the rest: ``lower``, ``higher``, ``few`` or ``not shown``."""
    if difference.value is None or difference.low is None or difference.high is None:
        return "few" if difference.value is not None else "undefined"
    if not decide.enough(difference.evidence, rule.least):
        return "few"
    margin = rule.margin or 0.0
    return "lower" if difference.high < -margin else "higher" if difference.low > margin else "not shown"
