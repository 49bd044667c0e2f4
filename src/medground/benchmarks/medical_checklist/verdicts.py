"""One answer a model: does it prefer the true caption, by more than can be had without the picture?"""

from __future__ import annotations

from collections.abc import Mapping

from medground.benchmarks.medical_checklist.specs import SPECS
from medground.benchmarks.results import Answer, Cell, Cells, Verdict
from medground.metrics.decide import DEFAULTS, Decision, Rule, decide_beside, hardest, rule_of
from medground.metrics.differences import Difference

_SPEC = {s.name: s for s in SPECS}
RULE = Rule(0.02, 10, unit="clusters")


def verdict(
    cells: Cells, model: str, dataset: str, differences: Mapping[str, Difference], rules: Mapping[str, Rule] = DEFAULTS
) -> Verdict:
    """Return the answer for one model: *yes* above the best blind scorer and above its own blind twin.

    Args:
        cells: of the summary.
        model: label.
        dataset: label.
        differences: ``gain_blind`` and ``gain_blank``, paired, where they were measured.
        rules: margins.
    """
    headline = _one(cells, model, dataset, "accuracy")
    assert headline is not None
    rule = rule_of(_SPEC["gain_blind"], rules)
    said = {name: decide_beside(d, _SPEC[name], rule) for name, d in differences.items()}
    answer, because = _answer(headline, said)
    roles = {
        "headline": headline,
        "floor": _one(cells, model, dataset, "blind"),
        "twin": _one(cells, model, dataset, "accuracy_blank"),
        "difference": _one(cells, model, dataset, "gain_blind") or _one(cells, model, dataset, "gain_blank"),
    }
    coverage = _one(cells, model, dataset, "coverage")
    unparsed = coverage is not None and coverage.value is not None and coverage.value < 1
    return Verdict(
        benchmark="medical_checklist",
        question="captions",
        model=model,
        dataset=dataset,
        reading=headline.reading,
        answer=answer,
        because=because,
        margin=rule.margin,
        roles={name: cell for name, cell in roles.items() if cell is not None},
        notes=("unparsed",) if unparsed else (),
    )


def _answer(headline: Cell, said: Mapping[str, Decision]) -> tuple[Answer, str]:
    if headline.value is None:
        return "cannot be told", f"Its accuracy is undefined: {headline.reason}."
    if not said:
        return "cannot be told", "Nothing was measured that needs no picture, so accuracy alone tells nothing."
    names = {"gain_blind": "the best scorer that sees no picture", "gain_blank": "itself with a blank picture"}
    told = "; ".join(f"against {names.get(n, n)}: {d.because}" for n, d in said.items())
    answer = hardest(list(said.values())).answer
    return answer, f"{_SAYS[answer]} ({told})."


_SAYS: Mapping[Answer, str] = {
    "yes": "It prefers the true caption more often than what sees no picture does",
    "no": "What sees no picture does as well, or better",
    "cannot be told": "The items do not settle whether it is better than all that sees no picture",
}


def _one(cells: Cells, model: str, dataset: str, metric: str) -> Cell | None:
    return cells.one(model=model, dataset=dataset, metric=metric, scope="all", group="")
