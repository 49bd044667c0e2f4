"""Which pairs may be asked as negatives ("hallucinated" questions): one admissible set a sampler.

The paper does not say which negatives it used. Definitions, k = 3:

=============================  ====================================================================================
``random``                     every pair that certainly does not hold in the image
``popular``                    for each anatomy the k findings that lie on something in most train images
``popular_by_frequency``       as ``random``, but drawn by how often the pair holds in train images
``adversarial``                for each anatomy the k findings seen most often together with what this image has
``same_image_other_region``    findings of this image, asked of another anatomy
``same_region_other_finding``  anatomies of this image that have a finding, asked about another finding
``same_question_other_picture``  pairs that hold in another image and not in this one, drawn by how often they do
=============================  ====================================================================================

Ties at the k-th place all stay in. ``adversarial`` without any finding falls back to ``popular``. Each sampler opens a
shortcut and closes another: :mod:`~medground.benchmarks.heal_medvqa.baselines` measures which.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Literal, get_args

from medground.benchmarks.heal_medvqa.relation import Pair
from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable

Sampler = Literal[
    "random",
    "popular",
    "popular_by_frequency",
    "adversarial",
    "same_image_other_region",
    "same_region_other_finding",
    "same_question_other_picture",
]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
TOP = 3


def admissible(
    image: ImageFacts, table: RelationTable, sampler: Sampler, *, valid_only: bool = False, k: int = TOP
) -> dict[Pair, float]:
    """Return the negatives of an image that a sampler may draw, each with its weight (0 is never drawn).

    Args:
        image: of the table.
        table: whose train images are counted.
        sampler: see above.
        valid_only: keep only pairs that hold in some train image.
        k: for each anatomy, of the samplers that rank.
    """
    negatives = table.negatives(image)
    if valid_only:
        negatives &= table.valid_pairs()
    if sampler in ("popular", "adversarial"):
        chosen = _best(negatives, _scores(image, table, sampler), k)
    elif sampler == "same_image_other_region":
        chosen = {pair for pair in negatives if pair[1] in image.findings}
    elif sampler == "same_region_other_finding":
        abnormal = {anatomy for anatomy, _ in image.related}
        chosen = {pair for pair in negatives if pair[0] in abnormal}
    else:
        chosen = set(negatives)
    if sampler in ("popular_by_frequency", "same_question_other_picture"):
        return {pair: float(table.pair_frequency[pair]) for pair in chosen if table.pair_frequency[pair]}
    return dict.fromkeys(chosen, 1.0)


def falls_back(image: ImageFacts) -> bool:
    """Return whether ``adversarial`` has nothing to go by in an image and becomes ``popular``."""
    return not image.related


def cooccurrence(image: ImageFacts, table: RelationTable) -> dict[str, int]:
    """Return finding -> train images that hold it together with a finding of this image, summed over the latter."""
    return {
        finding: sum(table.together[finding, other] for other in image.findings if other != finding)
        for finding in table.findings
    }


def _scores(image: ImageFacts, table: RelationTable, sampler: Sampler) -> Mapping[str, int]:
    if sampler == "popular" or falls_back(image):
        return table.image_frequency
    return cooccurrence(image, table)


def _best(negatives: frozenset[Pair], scores: Mapping[str, int], k: int) -> set[Pair]:
    """Return for each anatomy the k pairs of the highest score, with all ties at the k-th place."""
    by_anatomy: dict[str, list[Pair]] = defaultdict(list)
    for pair in negatives:
        by_anatomy[pair[0]].append(pair)
    best: set[Pair] = set()
    for pairs in by_anatomy.values():
        ranked = sorted((scores.get(finding, 0) for _, finding in pairs), reverse=True)
        least = ranked[min(k, len(ranked)) - 1]
        best.update(pair for pair in pairs if scores.get(pair[1], 0) >= least)
    return best
