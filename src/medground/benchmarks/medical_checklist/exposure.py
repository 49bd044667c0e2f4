"""What a model saw in pretraining of the source of an item: a caption that it was trained on is no test of looking."""

from __future__ import annotations

from collections.abc import Mapping

FROM_PUBMED = frozenset({"roco", "rocov2", "medicat"})
"""Sources whose pictures are figures of PubMed Central."""
PUBMED = frozenset({"pmc_oa", "pmc_15m", "pmc"})
"""Names under which models' cards list training on figures of PubMed Central at large."""

SEEN, MAY_BE, NOT_SAID, UNKNOWN = "seen", "may be seen: figures of PubMed Central", "not listed as seen", "unknown"


def exposure(source: str, seen: Mapping[str, str], *, known: bool) -> str:
    """Return how an item's source stands to a model's training.

    Args:
        source: of the item.
        seen: data -> what of it the model saw, from its card or the run file.
        known: whether anybody said what the model was trained on.

    Example:
        >>> exposure("roco", {"roco": "images and captions"}, known=True)
        'seen: images and captions'
        >>> exposure("medicat", {"pmc_oa": "figures"}, known=True), exposure("roco", {}, known=False)
        ('may be seen: figures of PubMed Central', 'unknown')
    """
    if source in seen:
        return f"{SEEN}: {seen[source]}"
    if source in FROM_PUBMED and not PUBMED.isdisjoint(seen):
        return MAY_BE
    return NOT_SAID if known else UNKNOWN
