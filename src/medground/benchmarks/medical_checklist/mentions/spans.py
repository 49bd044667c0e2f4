"""Spans that somebody else found (spaCy noun chunks, scispaCy entities, your own), linked to a terminology.

The dictionary finds what is spelled as a terminology spells it. Spans bring other wordings, and need a link: equal
names first, then character 3-grams under a profile (``guarded``, or ``paper`` at 0.7 without guards).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from medground.benchmarks.medical_checklist.linking import GUARDED, NameIndex, Profile
from medground.benchmarks.medical_checklist.mentions.base import Mention
from medground.benchmarks.medical_checklist.mentions.boundaries import is_whole_word
from medground.benchmarks.medical_checklist.semantic_types import in_benchmark
from medground.benchmarks.medical_checklist.terminologies.base import Terminology
from medground.errors import ConfigError

Spans = Callable[[str], Iterable[tuple[int, int]]]
_ARTICLES = ("a ", "an ", "the ", "this ", "that ", "these ", "those ")


class LinkedSpans:
    """Finds mentions by linking spans.

    Args:
        spans: gives (start, end) of a caption, half open, in code points.
        terminology: names, types and relations.
        profile: how a span is linked.
        named: what stands for ``spans`` in fingerprints: model and version.
    """

    def __init__(self, spans: Spans, terminology: Terminology, profile: Profile = GUARDED, *, named: str) -> None:
        self.spans, self.terminology, self.profile, self.named = spans, terminology, profile, named
        self._ids: dict[str, tuple[str, ...]] = {}
        for concept in terminology.concepts.values():
            if in_benchmark(concept.tuis):
                for name in concept.names:
                    self._ids[name] = (*self._ids.get(name, ()), concept.concept_id)
        self._index = NameIndex(sorted(self._ids), profile)

    def find(self, caption: str) -> Sequence[Mention]:
        """Return linked mentions from left to right; of overlapping spans the first and longest stands."""
        wanted = sorted({_without_article(caption, *span) for span in self.spans(caption)}, key=lambda s: (s[0], -s[1]))
        wanted = [s for s in wanted if 0 <= s[0] < s[1] <= len(caption) and is_whole_word(caption, *s)]
        links = self._index.link_all([caption[a:b] for a, b in wanted])
        mentions: list[Mention] = []
        for (start, end), link in zip(wanted, links, strict=True):
            if link is None or (mentions and start < mentions[-1].end):
                continue
            ids = tuple(sorted({i for name in link.names for i in self._ids[name]}))
            tuis = tuple(sorted({t for i in ids for t in self.terminology.concepts[i].tuis}))
            mentions.append(Mention(start, end, caption[start:end], link.names[0], ids, tuis, link.score))
        return mentions

    def fingerprint(self) -> str:
        """Return a hash of whose spans, the profile and the terminology."""
        held = repr((self.named, self.profile, self.terminology.fingerprint))
        return hashlib.sha256(held.encode()).hexdigest()


def noun_chunks(model: str | Path = "en_core_web_sm") -> Spans:
    """Return the noun chunks of an installed spaCy pipeline as spans.

    Raises:
        ConfigError: spaCy or the pipeline is not installed.
    """
    pipeline = _pipeline(model)
    return lambda text: [(c.start_char, c.end_char) for c in pipeline(text).noun_chunks]


def entities(model: str | Path) -> Spans:
    """Return the entities of a spaCy or scispaCy pipeline as spans.

    Raises:
        ConfigError: spaCy or the pipeline is not installed.
    """
    pipeline = _pipeline(model)
    return lambda text: [(e.start_char, e.end_char) for e in pipeline(text).ents]


def _pipeline(model: str | Path) -> Any:
    try:
        from importlib import import_module

        return import_module("spacy").load(model)
    except (ImportError, OSError) as error:
        raise ConfigError(
            "a spaCy pipeline cannot be loaded", where=model, got=str(error).split("\n")[0], fix="pip install spacy"
        ) from None


def _without_article(text: str, start: int, end: int) -> tuple[int, int]:
    low = text[start:end].lower()
    lead = next((len(a) for a in _ARTICLES if low.startswith(a)), 0)
    return start + lead, end
