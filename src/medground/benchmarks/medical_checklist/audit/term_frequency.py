"""How often each term occurs in captions of other papers: the commoner one is taken for the true one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from medground.benchmarks.medical_checklist.audit.base import Floats, Pair
from medground.benchmarks.medical_checklist.mentions.boundaries import fold


class TermFrequency:
    """Counts of terms as whole words, ignoring case.

    Args:
        reference: captions of papers that share none with the items.
    """

    name: str = "term_frequency"

    def __init__(self, reference: Iterable[str]) -> None:
        self._reference = [fold(text) for text in reference]

    def scores(self, pairs: Sequence[Pair]) -> Floats:
        """Return the counts of the true and of the false term, (N, 2)."""
        counts = self.counts({t for p in pairs for t in (p.term_positive, p.term_negative)})
        return np.array([[counts[p.term_positive], counts[p.term_negative]] for p in pairs], dtype=float).reshape(-1, 2)

    def counts(self, terms: Iterable[str]) -> dict[str, int]:
        """Return how often each term occurs in the reference."""
        import ahocorasick

        wanted = {term: fold(term) for term in terms if term}
        automaton = ahocorasick.Automaton()
        for folded in set(wanted.values()):
            automaton.add_word(folded, folded)
        if not wanted:
            return {}
        automaton.make_automaton()
        held: Counter[str] = Counter()
        for text in self._reference:
            for last, folded in automaton.iter(text):
                start = last + 1 - len(folded)
                before, after = text[start - 1 : start] if start else "", text[last + 1 : last + 2]
                if not (before.isalnum() or after.isalnum()):
                    held[folded] += 1
        return {term: held[folded] for term, folded in wanted.items()}
