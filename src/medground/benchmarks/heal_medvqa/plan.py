"""From a gallery to everything that will be asked: natural questions with their variants, and swapped quartets.

The two parts have other priors and are never merged into one figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from medground.benchmarks.heal_medvqa.baselines import Floor, floors, known
from medground.benchmarks.heal_medvqa.donors import DonorRule
from medground.benchmarks.heal_medvqa.draw import Draw, Shortfall, draw
from medground.benchmarks.heal_medvqa.gallery import Gallery, Survey, surroundings, table_of
from medground.benchmarks.heal_medvqa.quartets import Quartet
from medground.benchmarks.heal_medvqa.questions import Question, negative_kind
from medground.benchmarks.heal_medvqa.samplers import SAMPLERS
from medground.benchmarks.heal_medvqa.streams import between
from medground.benchmarks.heal_medvqa.table import RelationTable
from medground.benchmarks.heal_medvqa.variants import Planned, Planner

Part = Literal["natural", "quartets"]


@dataclass(frozen=True)
class Asked:
    """One question with its variants and what scores need to know about it.

    Attributes:
        planned: question and variants.
        part: of the build.
        cluster: patient, or quartet: what intervals count as one.
        source: the dataset.
        view: of the picture.
        share: largest share of one lesion of the finding on the anatomy.
        anywhere: whether the finding is anywhere in the picture.
        abnormal: whether anything lies on the anatomy.
    """

    planned: Planned
    part: Part
    cluster: str
    source: str
    view: str | None
    share: float
    anywhere: bool
    abnormal: bool

    @property
    def question(self) -> Question:
        """The base question."""
        return self.planned.question


@dataclass(frozen=True)
class Build:
    """Everything that will be asked, and what was counted on the way.

    Attributes:
        asked: in order.
        table: of the natural part.
        floors: what each baseline gets on the natural part.
        by_sampler: sampler -> the same, had it drawn every negative.
        counts: of surveys, draw and variants, JSON-like.
        statement: where the anatomies come from.
    """

    asked: tuple[Asked, ...]
    table: RelationTable
    floors: tuple[Floor, ...]
    by_sampler: Mapping[str, tuple[Floor, ...]]
    counts: Mapping[str, Any]
    statement: str


def build(gallery: Gallery, choices: Draw, *, donor: DonorRule = "prefers_normal", compared: bool = True) -> Build:
    """Return all questions of a gallery with their variants.

    Args:
        gallery: of pictures.
        choices: of the draw.
        donor: whose pixels are pasted.
        compared: work out what baselines get from every sampler, too.
    """
    surveys = gallery.surveys()
    table, by_id = table_of(gallery, surveys), {one.facts.image_id: one for one in surveys}
    own = getattr(gallery, "questions", None)  # a release asks its own
    questions, shortfall = draw(table, choices) if own is None else (own(), Shortfall(images=len(surveys)))
    others = draw(table, choices, ["train"])[0]
    planner = Planner(table, surroundings(gallery, surveys), seed=choices.seed, donor=donor)
    asked = [_asked(planner.plan(q), "natural", by_id[q.image_id], table) for q in questions]
    pairs: Sequence[Quartet] = getattr(gallery, "pairs", ())
    for quartet in pairs:
        asked += _of_quartet(quartet, by_id, table, choices.seed)
    samplers = SAMPLERS if compared and own is None else ()
    by_sampler: dict[str, tuple[Floor, ...]] = {
        name: tuple(_floors_of(table, replace(choices, samplers=(name,)))) for name in samplers
    }
    return Build(
        tuple(asked),
        table,
        tuple(floors(known(questions, table), known(others, table))),
        by_sampler,
        _counts(surveys, shortfall, asked, len(pairs)),
        gallery.statement,
    )


def _floors_of(table: RelationTable, choices: Draw) -> list[Floor]:
    asked, others = (known(draw(table, choices, [split])[0], table) for split in ("test", "train"))
    return floors(asked, others)


def _asked(planned: Planned, part: Part, survey: Survey, table: RelationTable, cluster: str = "") -> Asked:
    question, facts = planned.question, table[planned.question.image_id]
    return Asked(
        planned,
        part,
        cluster or facts.patient_id or facts.image_id,
        facts.source,
        facts.view,
        survey.shares.get(question.pair, 0.0),
        question.finding in survey.facts.findings | survey.facts.present_without_region,
        bool(survey.facts.on(question.anatomy)),
    )


def _of_quartet(quartet: Quartet, by_id: Mapping[str, Survey], table: RelationTable, seed: int) -> list[Asked]:
    """Return the eight questions of a quartet; the two of one pair have the same words."""
    asked = []
    for member, (image_id, _) in enumerate(quartet.members):
        facts = by_id[image_id].facts
        for number, (anatomy, finding, holds) in enumerate(quartet.questions(member)):
            question = Question(
                f"{image_id}#{number}",
                image_id,
                "closed_yes" if holds else "closed_no",
                anatomy,
                finding,
                wording=between(0, 5, seed, "wording", quartet.case, anatomy, finding),
                negative="" if holds else negative_kind(facts, (anatomy, finding)),
            )
            cluster = f"quartet-{quartet.case:06d}"
            asked.append(_asked(Planned(question), "quartets", by_id[image_id], table, cluster))
    return asked


def _counts(surveys: Sequence[Survey], shortfall: Shortfall, asked: Sequence[Asked], quartets: int) -> dict[str, Any]:
    relation: Counter[str] = Counter()
    for survey in surveys:
        relation.update(survey.counts)
    natural = [one for one in asked if one.part == "natural"]
    variants = Counter(variant.name for one in natural for variant in one.planned.variants)
    missing: dict[str, Counter[str]] = {}
    for one in natural:
        for name, reason in one.planned.not_made.items():
            missing.setdefault(name, Counter())[reason] += 1
    return {
        "images": len(surveys),
        "relation": dict(relation),
        "shortfall": {**asdict(shortfall), "dropped": dict(shortfall.dropped)},
        "questions": dict(Counter(one.question.kind for one in natural)),
        "quartets": quartets,
        "variants": dict(variants),
        "not_made": {name: dict(reasons) for name, reasons in missing.items()},
    }
