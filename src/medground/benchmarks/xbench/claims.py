"""What may be claimed of one model on one dataset, by the one decision rule: recognition, pointing, overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from medground.benchmarks.results import Answer
from medground.benchmarks.xbench.grounding import How, grounding_values
from medground.benchmarks.xbench.pairs import Floats, Pairs
from medground.benchmarks.xbench.recognition import LabelAnswers
from medground.benchmarks.xbench.specs import fixed
from medground.metrics import decide
from medground.metrics.bootstrap import Clusters
from medground.metrics.decide import Decision, Rule
from medground.metrics.differences import Difference, compare_macros, compare_means, correct
from medground.metrics.floors import CHANCE_AUC
from medground.metrics.inference import AUC, MACRO_RANKING, estimate, estimate_macro
from medground.metrics.influence import of_auc, of_mean
from medground.metrics.permutation import DRAWS
from medground.metrics.spec import MetricSpec

Rules = Mapping[str, Rule]


@dataclass(frozen=True)
class ClaimResult:
    """One question about one model on one dataset.

    Attributes:
        whole: what is decided of the printed figure.
        by_class: of every finding that has a value, corrected over the findings.
        metric: the figure that was decided on.
        margin: that was used.
        unsearched: of overlap: the same at the fixed threshold.
    """

    whole: Decision
    by_class: Mapping[str, Decision] = field(default_factory=dict)
    metric: str = ""
    margin: float | None = None
    unsearched: Decision | None = None

    @property
    def failing(self) -> list[str]:
        """Findings that are shown not to be better than what can be had without looking."""
        return [finding for finding, decision in self.by_class.items() if decision.answer == "no"]

    @property
    def untold(self) -> list[str]:
        """Findings of which nothing can be told."""
        return [finding for finding, decision in self.by_class.items() if decision.answer == "cannot be told"]

    @property
    def answer(self) -> Answer:
        """*in part* where the whole is better and a finding, or the fixed threshold, is shown not to be."""
        answer = self.whole.answer
        unsearched = self.unsearched is not None and self.unsearched.answer != "yes"
        return "in part" if answer == "yes" and (self.failing or unsearched) else answer


def recognition_claim(answers: LabelAnswers, rules: Rules, how: How, spec: MetricSpec) -> ClaimResult:
    """Hold the AUC against guessing: over classes, and class by class."""
    parts = [of_auc(answers.labels[:, k], answers.scores[:, k], answers.by) for k in range(len(answers.findings))]
    rule = decide.rule_of(spec, rules)

    def decided(level: Callable[[], object]) -> Decision:
        return decide.decide_level(level(), CHANCE_AUC, spec, rule)  # type: ignore[arg-type]  # always an Estimate

    whole = decided(lambda: estimate_macro(parts, MACRO_RANKING, how.level))
    known = zip(answers.findings, parts, strict=True)
    each = {f: decided(lambda p=p: estimate(p, AUC, how.level)) for f, p in known if p.value is not None}  # type: ignore[misc]  # a default argument
    return ClaimResult(whole, each, spec.name, rule.margin)


def grounding_claims(
    pairs: Pairs, findings: Sequence[str], rules: Rules, how: How, specs: Mapping[str, MetricSpec]
) -> dict[str, ClaimResult]:
    """Hold pointing against the class prior, and Dice against marking everything and the class prior's region.

    To cover a finding better than marking everything shows no look at the picture: a map that always marks where the
    finding usually lies does that too. So Dice must be better than both, on the same regions. It is that of the
    cross-fitted threshold where the protocol allows one: a threshold searched on the scored cases would decide in its
    own favour.

    Returns:
        ``points`` and ``overlaps``.
    """
    values = grounding_values(pairs)
    overlap = "dice@crossfit" if "dice@crossfit" in values else "dice@best"

    def against(own: str, *floors: str) -> ClaimResult:
        given = [_claim(own, f, values, pairs, findings, rules, how, specs) for f in floors if _known(values, f)]
        return weakest(given)

    blind = ("dice_floor", "dice_prior")
    covered = against(overlap, *blind)
    plain = against(fixed("dice", pairs.protocol.fixed[0]), *blind)
    return {"points": against("pointing", "pointing_prior"), "overlaps": replace(covered, unsearched=plain.whole)}


def _known(values: Mapping[str, Floats], floor: str) -> bool:
    """Whether a floor was measured; the class prior has no region where one patient alone has the finding."""
    return floor in {"dice_floor", "pointing_prior"} or bool(np.isfinite(values.get(floor, np.nan)).any())


def weakest(claims: Sequence[ClaimResult]) -> ClaimResult:
    """Join claims about one figure beside several floors: it is better where it is better than every floor."""
    findings = dict.fromkeys(finding for claim in claims for finding in claim.by_class)
    by_class = {f: decide.hardest([c.by_class[f] for c in claims if f in c.by_class]) for f in findings}
    return replace(claims[0], whole=decide.hardest([claim.whole for claim in claims]), by_class=by_class)


def _claim(
    own: str,
    floor: str,
    values: Mapping[str, Floats],
    pairs: Pairs,
    findings: Sequence[str],
    rules: Rules,
    how: How,
    specs: Mapping[str, MetricSpec],
) -> ClaimResult:
    spec = specs[own]
    rule = decide.rule_of(spec, rules)
    first, second = values[own], values[floor]
    both = ~np.isnan(first - second)
    masks = {finding: both & (pairs.finding == finding) for finding in findings}
    each = {finding: _compared(first, second, pairs, mask, how) for finding, mask in masks.items() if mask.any()}
    whole: Difference
    if pairs.protocol.averaging == "macro":
        parts = []
        for mask in masks.values():
            by = Clusters(pairs.by.codes[mask], pairs.by.count)
            parts.append((of_mean(first[mask], by), of_mean(second[mask], by)))
        whole = compare_macros(parts, level=how.level, seed=how.seed, draws=DRAWS)
    else:
        whole = _compared(first, second, pairs, both, how)
    corrected = zip(each, correct(list(each.values()), "findings", how.seed), strict=True)
    decisions = {finding: decide.decide_beside(d, spec, rule) for finding, d in corrected}
    return ClaimResult(decide.decide_beside(whole, spec, rule), decisions, own, rule.margin)


def _compared(first: Floats, second: Floats, pairs: Pairs, mask: np.ndarray, how: How) -> Difference:
    by = Clusters(pairs.by.codes[mask], pairs.by.count)
    return compare_means(first[mask], second[mask], by, level=how.level, seed=how.seed)
