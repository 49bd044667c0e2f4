"""Does an explainer tell reasoning from a shortcut? A check a method and modality, and the verdicts that follow.

Local methods are judged on the same scenes of D_pure under both models, relational questions only. The reasoning
model's answer comes from targets, anchors and directions, the shortcut model's from everything that fits the target's
words. So a faithful map puts more mass on anchors (image), on directions and anchors (text), under the first. By the
one decision rule (:mod:`medground.metrics.decide`) the difference must clear the margin of masses, on enough scenes,
and the method must give the same map again when only its seed changes. *Yes* asks for truth as well: under the
reasoning model the mass on the cause must be shown to exceed that of an even map by the same margin. Global methods
face the additive fallacy check (:mod:`medground.metrics.additive`); its rules by means alone stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.gridvqa_x.compare import reliability
from medground.benchmarks.gridvqa_x.specs import EVIDENCE, Modality
from medground.benchmarks.results import Answer, Cell, Cells, Question, Verdict
from medground.errors import MetricError
from medground.explainers.retest import IMAGE, TEXT
from medground.metrics import decide
from medground.metrics.additive import decide_additive
from medground.metrics.bootstrap import clusters
from medground.metrics.differences import Difference, compare_means, correct
from medground.metrics.fallacy import Fallacy, Series, additive_fallacy, series
from medground.metrics.spec import MetricSpec
from medground.metrics.values import none_if_nan
from medground.worlds.gridvqa.world import PAIRS

TELLS, ALIKE, CANNOT, WRONG = (
    "tells them apart",
    "treats them alike",
    "is not shown to tell them apart",
    "points the wrong way",
)
_WORDS: Mapping[decide.Word, str] = {"better": TELLS, "equivalent": ALIKE, "worse": WRONG, "cannot be told": CANNOT}
ADDITIVE = Question(
    key="additive",
    title="Explainer tells interaction from addition",
    asks="Does the explainer's synergy rise where the model reasons, and stay low where it only adds up words?",
)
RULE = decide.DEFAULTS["mass"]
_MASS = MetricSpec("mass", "Mass on the cause", family="mass")
_RELATIONAL = (pl.col("type") != "A") & ~((pl.col("type") == "CMP") & (pl.col("depth") == 1))


def local_checks(rows: pl.DataFrame, seed: int, level: float, rule: decide.Rule = RULE) -> list[dict[str, Any]]:
    """Return one check a local method and modality; empty without both models on D_pure.

    Args:
        rows: of all regimes.
        seed: of the flips, where there are too many to enumerate.
        level: coverage of the intervals.
        rule: margin, minimum and reliability of masses.
    """
    kept = rows.filter((pl.col("scope") == "local") & _RELATIONAL)
    checks = []
    for method in kept["method"].unique(maintain_order=True):
        pure, cross = (
            kept.filter((pl.col("method") == method) & (pl.col("regime") == regime)) for regime in ("pure", "cross")
        )
        pairs = pure.join(cross, on="scene_id", suffix="_cross", maintain_order="left")
        if len(pairs):
            checks += [_compared(pairs, method, modality, seed, level) for modality in EVIDENCE]
    told = correct([check["compared"] for check in checks], "explainers and modalities", seed)
    return [_decided(check, difference, rule) for check, difference in zip(checks, told, strict=True)]


def _compared(pairs: pl.DataFrame, method: str, modality: Modality, seed: int, level: float) -> dict[str, Any]:
    columns = EVIDENCE[modality]
    first, second = (
        pairs.select(pl.sum_horizontal([pl.col(f"{c}{end}") for c in columns], ignore_nulls=False))
        .to_series()
        .cast(pl.Float64)
        .fill_null(float("nan"))
        .to_numpy()
        for end in ("", "_cross")
    )
    both = ~np.isnan(first) & ~np.isnan(second)
    a, b = first[both], second[both]
    return {
        "method": method,
        "modality": modality,
        "statistic": " + ".join(columns),
        "compared": compare_means(first, second, clusters(pairs["scene_id"].to_list()), level=level, seed=seed),
        "reasoning": float(a.mean()) if a.size else None,
        "shortcut": float(b.mean()) if b.size else None,
        "n": int(both.sum()),
        "undefined": int((~both).sum()),
        "right_order": float(((a > b) + 0.5 * (a == b)).mean()) if a.size else None,
        "distance": _distance(pairs, modality),
        "reliability": _reliability(pairs, modality),
        "beside_even": _beside_even(pairs, modality, seed, level),
    }


def _beside_even(pairs: pl.DataFrame, modality: Modality, seed: int, level: float) -> Difference:
    """Compare the reasoning model's mass on the cause with that of an even map, which is the cause's area."""
    mass, area = (
        pairs[f"{modality}_{name}"].cast(pl.Float64).fill_null(float("nan")).to_numpy() for name in ("mass", "area")
    )
    return compare_means(mass, area, clusters(pairs["scene_id"].to_list()), level=level, seed=seed)


def _decided(check: Mapping[str, Any], difference: Difference, rule: decide.Rule) -> dict[str, Any]:
    """Return a check as JSON takes it, with what follows."""
    kept = {key: value for key, value in check.items() if key not in ("compared", "beside_even")}
    decision = decide.decide_difference(difference, _MASS, rule, reliability=check["reliability"])
    even: Difference = check["beside_even"]
    on_cause = decide.decide_beside(even, _MASS, rule, reliability=check["reliability"])
    return kept | {
        "on_cause": on_cause.answer,
        "on_cause_because": on_cause.because,
        "on_cause_gain": even.value,
        "on_cause_low": even.low,
        "on_cause_high": even.high,
        "verdict": _WORDS[decision.word] if difference.value is not None else "undefined",
        "answer": decision.answer,
        "because": decision.because,
        "margin": decision.margin,
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "p": difference.p,
        "p_family": difference.p_claim,
        "family": difference.family,
        "reason": difference.reason if difference.value is None else None,
    }


def _reliability(pairs: pl.DataFrame, modality: Modality) -> float | None:
    """Return the mean correlation of a scene's map with that of another seed, under both models; None: not measured."""
    texts = [text for column in ("extra", "extra_cross") for text in pairs[column].drop_nulls()]
    return reliability(texts, {"image": IMAGE, "text": TEXT}[modality])


def verdicts(
    cells: Sequence[Cell],
    regimes: Mapping[str, tuple[str, str]],
    local: Sequence[Mapping[str, Any]],
    checks: Sequence[Mapping[str, Any]],
    rule: decide.Rule = RULE,
) -> list[Verdict]:
    """Return what the checks come to: one verdict a method, about the model that reasons.

    Args:
        cells: of the summary.
        regimes: regime -> (model, dataset).
        local: from :func:`local_checks`.
        checks: from :func:`global_checks`.
        rule: by which the local checks were decided.
    """
    if "cross" not in regimes:
        (model, dataset), *_ = regimes.values()
        because = "The run has no second model that takes the shortcut, so no explanation can be held against another."
        return [
            Verdict(
                benchmark="gridvqa_x",
                question="explains",
                model=model,
                dataset=dataset,
                answer="not asked",
                because=because,
            )
        ]
    by_method: dict[str, list[Mapping[str, Any]]] = {}
    for check in local:
        by_method.setdefault(check["method"], []).append(check)
    told = [_explains(regimes, method, {c["modality"]: c for c in of}, rule) for method, of in by_method.items()]
    held = Cells(cells)
    mixed = [check for check in checks if check["subset"] == "mixed"]
    return [*told, *(verdict for check in mixed if (verdict := _additive(held, regimes["pure"], check)))]


def _explains(
    regimes: Mapping[str, tuple[str, str]], method: str, checks: Mapping[str, Mapping[str, Any]], rule: decide.Rule
) -> Verdict:
    """The picture decides, the words are its companion; both by the paired difference between the two models."""
    (model, dataset), (other, _) = regimes["pure"], regimes["cross"]
    answers: dict[str, Answer] = {modality: check["answer"] for modality, check in checks.items()}
    answer = answers["image"]
    image = checks["image"]
    if answer == "yes" and (answers.get("text") != "yes" or image["on_cause"] != "yes"):
        answer = "in part"
    in_part = "It does so in the picture; in the words it is not shown."
    if image["on_cause"] != "yes":
        in_part = "It does so, but under that model its mass is not shown to lie on the cause more than an even map's."
    because = {
        "yes": "It puts more weight on what the answer depends on under the model that reasons, in picture and words.",
        "in part": in_part,
        "no": "It puts no more weight on what the answer depends on under the model that reasons.",
    }.get(answer, "")
    because = f"{because} {image['because'][:1].upper()}{image['because'][1:]}.".strip()
    roles = {
        "headline": _cell(model, dataset, method, "image_evidence", image, image["reasoning"]),
        "twin": _cell(other, dataset, method, "image_evidence", image, image["shortcut"]),
        "difference": _cell(model, dataset, method, "image_evidence_gain", image, image["difference"], spread=True),
    }
    if text := checks.get("text"):
        roles["companion"] = _cell(model, dataset, method, "text_evidence_gain", text, text["difference"], spread=True)
    return Verdict(
        benchmark="gridvqa_x",
        question="explains",
        model=model,
        dataset=dataset,
        method=method,
        answer=answer,
        because=because,
        margin=rule.margin,
        roles=roles,
        notes=("few",) if image["n"] < rule.least else (),
    )


def _cell(
    model: str,
    dataset: str,
    method: str,
    metric: str,
    check: Mapping[str, Any],
    value: float | None,
    *,
    spread: bool = False,
) -> Cell:
    return Cell(
        benchmark="gridvqa_x",
        model=model,
        dataset=dataset,
        method=method,
        scope="relational",
        metric=metric,
        value=value,
        low=check["low"] if spread else None,
        high=check["high"] if spread else None,
        n=check["n"],
        undefined=check["undefined"],
        reason=None if value is not None else check["reason"] or "undefined for every scene",
    )


def _additive(cells: Cells, place: tuple[str, str], check: Mapping[str, Any]) -> Verdict | None:
    model, dataset = place
    score = cells.one(model=model, dataset=dataset, method=check["method"], scope="all", metric="score")
    if score is None:
        return None
    answer: Answer = check["answer"]
    because = check["because"] if "rule_a" in check else f"undefined: {check['reason']}"
    return Verdict(
        benchmark="gridvqa_x",
        question=ADDITIVE.key,
        model=model,
        dataset=dataset,
        method=check["method"],
        answer=answer,
        because=f"{because[:1].upper()}{because[1:]}.",
        roles={"headline": score},
    )


def _distance(pairs: pl.DataFrame, modality: str) -> float | None:
    """Return the mean total variation between the two models' maps of a scene, each scaled to mass one."""
    distances = []
    for mine, theirs in pairs.select(f"{modality}_map", f"{modality}_map_cross").iter_rows():
        if mine is not None and theirs is not None:
            p, q = np.abs(np.array(mine)), np.abs(np.array(theirs))
            if p.sum() > 0 and q.sum() > 0:
                distances.append(0.5 * float(np.abs(p / p.sum() - q / q.sum()).sum()))
    return math.fsum(distances) / len(distances) if distances else None


def global_checks(rows: pl.DataFrame, replicates: int, seed: int, rule: decide.Rule = RULE) -> list[dict[str, Any]]:
    """Return the additive fallacy check of every global method, on type M and on all types with relations.

    Args:
        rows: of all regimes.
        replicates: bootstrap replicates.
        seed: of the bootstrap.
        rule: whose minimum of scenes holds for a depth.
    """
    kept = rows.filter(pl.col("scope") == "global")
    checks = []
    for method in kept["method"].unique(maintain_order=True):
        for subset, chosen in (("mixed", pl.col("type") == "M"), ("relational", _RELATIONAL)):
            part = kept.filter((pl.col("method") == method) & chosen)
            checks.append({"method": method, "subset": subset} | _checked(part, replicates, seed, rule.least))
    return checks


def _checked(rows: pl.DataFrame, replicates: int, seed: int, least: int) -> dict[str, Any]:
    by_regime = {regime: _by_depth(rows.filter(pl.col("regime") == regime)) for regime in ("pure", "spurious", "cross")}
    by_series: dict[str, Any] = {}
    for regime, depths in by_regime.items():
        try:
            by_series[regime] = shown(series(depths, resamples=replicates, seed=seed))
        except MetricError as error:
            by_series[regime] = {"reason": error.what}
    try:
        check = additive_fallacy(by_regime["pure"], by_regime["spurious"], resamples=replicates, seed=seed)
    except MetricError as error:
        return by_series | {"verdict": "undefined", "answer": "cannot be told", "reason": error.what}
    told = decide_additive(by_regime["pure"], by_regime["spurious"], least=least)
    parts = {"rises": told.rises, "flat": told.flat, "low": told.low}
    rules = {"rule_a": check.passes_mean_rule, "rule_b": check.passes_confident_rule, "by_means": _in_words(check)}
    word = {"yes": "passes", "no": "fails"}.get(told.answer, told.answer)
    return (
        by_series
        | rules
        | parts
        | {"verdict": f"{word}: {told.because}", "answer": told.answer, "because": told.because}
    )


def _by_depth(rows: pl.DataFrame) -> list[NDArray[np.float64]]:
    depths = sorted({depth for depth, _ in PAIRS} & set(rows["depth"].to_list()))
    return [
        rows.filter(pl.col("depth") == d)["score"].cast(pl.Float64).fill_null(float("nan")).to_numpy() for d in depths
    ]


def _in_words(check: Fallacy) -> str:
    if check.passes_confident_rule:
        return "passes: rises at every step, flat and low for the shortcut"
    if check.passes_mean_rule:
        return "passes by means alone"
    faults = [
        "does not rise with depth for the reasoning model" if not check.pure.increasing else "",
        "is not flat for the shortcut model" if not check.flat else "",
        "is not low for the shortcut model" if not check.low else "",
    ]
    return "fails: " + ", ".join(fault for fault in faults if fault)


def shown(means: Series) -> Mapping[str, Any]:
    """Return a series as JSON takes it."""
    return {key: _plain(value) for key, value in asdict(means).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return none_if_nan(value)
    return [_plain(v) for v in value] if isinstance(value, Sequence) and not isinstance(value, str) else value
