"""What a model answers from, by a stated rule: from the region, from the words, or from the picture elsewhere.

Five figures decide, each held against 50 % by the one decision rule (interval, margin, least number of patients):
the anatomy swap A, the finding swap D, the picture changed V (drawn without the finding where that exists, else pasted
where the paste covers the lesion), the controls C (the lowest of those made), and the swapped quartets Q where there
are any.

=============================================  ============================================
figures                                        sentence
=============================================  ============================================
C at or below 50                               its yes is not stable: nothing can be told
V below 50: pixels do not matter               it answers from the words
A below 50 and V above 50                      it answers from the picture elsewhere
A, V (and Q) above 50                          it answers from the region
anything else                                  cannot be told
=============================================  ============================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medground.benchmarks.heal_medvqa.cells import BENCHMARK
from medground.benchmarks.heal_medvqa.specs import SPECS
from medground.benchmarks.heal_medvqa.variants import CONTROLS
from medground.benchmarks.results import Answer, Cell, Question, Verdict
from medground.metrics.decide import Decision, Rule, decide_level, rule_of
from medground.metrics.inference import Estimate
from medground.metrics.spec import spec_of

HALF = 0.5

REGION = Question(key="region", title="Answers from the region", asks="Does its answer hang on the region asked about?")


@dataclass(frozen=True)
class Tested:
    """A cell with the estimate that it was made from and what it says against 50 %."""

    cell: Cell
    decision: Decision

    @property
    def word(self) -> str:
        """``better`` (above 50), ``worse`` (below), ``equivalent`` (at it) or ``cannot be told``."""
        return self.decision.word


def figure(cell: Cell | None, estimate: Estimate | None, rules: Mapping[str, Rule]) -> Tested | None:
    """Return a cell held against 50 %, or None where it does not exist."""
    if cell is None or estimate is None or estimate.value is None:
        return None
    spec = spec_of(cell.metric, BENCHMARK, SPECS)
    return Tested(cell, decide_level(estimate, HALF, spec, rule_of(spec, rules)))


def answered_from(figures: Mapping[str, Tested]) -> tuple[Answer, str]:
    """Return the answer to "does it hang on the region?" and the sentence of the rule.

    Args:
        figures: any of ``A``, ``D``, ``V``, ``Q`` and the controls by name.
    """
    controls = [figures[name] for name in CONTROLS if name in figures]
    unstable = next((one for one in controls if one.word in ("worse", "equivalent")), None)
    if unstable is not None:
        return "cannot be told", f"its yes is not stable: {_title(unstable.cell)} keeps {_percent(unstable.cell)}"
    anatomy, pixels = figures.get("A"), figures.get("V")
    if anatomy is None or pixels is None:
        return "cannot be told", "it said yes too seldom for its yes to be tested"
    figures_said = f"anatomy swapped {_percent(anatomy.cell)}, finding gone from the picture {_percent(pixels.cell)}"
    turned = f"{figures_said} of its yes turn into no"
    if pixels.word == "worse":
        return "no", f"it answers from the words: {turned}"
    if anatomy.word == "worse" and pixels.word == "better":
        return "no", f"it answers from the picture elsewhere: {turned}"
    return _by_quartets(anatomy, pixels, figures.get("Q"), turned)


def _by_quartets(anatomy: Tested, pixels: Tested, quartets: Tested | None, turned: str) -> tuple[Answer, str]:
    """Return the answer where neither words nor the picture elsewhere explain it."""
    looks = anatomy.word == "better" and pixels.word == "better"
    if looks and (quartets is None or quartets.word == "better"):
        told = f"; swapped quartets {_percent(quartets.cell)}" if quartets else ""
        return "yes", f"it answers from the region: {turned}{told}"
    if looks and quartets is not None and quartets.word in ("worse", "equivalent"):
        return "no", f"it does not tell regions apart on swapped quartets ({_percent(quartets.cell)}); {turned}"
    return "cannot be told", f"{turned}: {_open(anatomy, pixels, quartets)}"


def region_verdict(model: str, dataset: str, reading: str, figures: Mapping[str, Tested], fallback: Cell) -> Verdict:
    """Return the headline verdict of a model; ``fallback`` is its headline cell where nothing could be tested."""
    answer, because = answered_from(figures)
    headline = next((figures[name].cell for name in ("Q", "A", "V") if name in figures), fallback)
    roles = {"headline": headline}
    if "V" in figures and headline is not figures["V"].cell:
        roles["companion"] = figures["V"].cell
    return Verdict(
        benchmark=BENCHMARK,
        question=REGION.key,
        model=model,
        answer=answer,
        because=because,
        reading=reading,
        dataset=dataset,
        margin=next((one.decision.margin for one in figures.values()), None),
        roles=roles,
    )


def half_verdict(
    question: str, model: str, dataset: str, reading: str, figures: Sequence[Tested | None], fallback: Cell
) -> Verdict:
    """Return the verdict on words or pixels: the first figure decides; *in part* where another is not above 50."""
    known = [one for one in figures if one is not None]
    answers = [one.decision.answer for one in known]
    answer: Answer = answers[0] if answers else "cannot be told"
    if answer == "yes" and set(answers) != {"yes"}:
        answer = "in part"
    because = "; ".join(f"{_title(one.cell)} {one.decision.because}" for one in known)
    roles = {"headline": known[0].cell if known else fallback}
    if len(known) > 1:
        roles["companion"] = known[1].cell
    return Verdict(
        benchmark=BENCHMARK,
        question=question,
        model=model,
        answer=answer,
        because=because or "it said yes too seldom for its yes to be tested",
        reading=reading,
        dataset=dataset,
        margin=known[0].decision.margin if known else None,
        roles=roles,
    )


def _open(*figures: Tested | None) -> str:
    return "; ".join(f"{_title(one.cell)} {one.decision.because}" for one in figures if one and one.word != "better")


def _title(cell: Cell) -> str:
    return spec_of(cell.metric, BENCHMARK, SPECS).title


def _percent(cell: Cell) -> str:
    return f"{spec_of(cell.metric, BENCHMARK, SPECS).shown(cell.value)} %"
