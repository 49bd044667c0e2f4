"""The one join: what a table or folder from elsewhere has for the cases at hand, and what it has not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from medground.errors import DataError, MedgroundError
from medground.tables.ids import forms, plain_id

Key = tuple[str, ...]
EXAMPLES = 3


@dataclass(frozen=True)
class Join:
    """What fits what.

    Attributes:
        what: the table or folder that was joined, as a report names it.
        unit: what one key stands for, in the plural: ``cases``, ``cases and findings``, ``patients``.
        matched: wanted key -> key of the table.
        missing: wanted keys that the table lacks.
        extra: keys of the table that nothing wants.
        rewritten: how many fitted only after both were written one way (see :func:`plain_id`).
    """

    what: str
    unit: str
    matched: dict[Key, Key]
    missing: tuple[Key, ...]
    extra: tuple[Key, ...]
    rewritten: int = 0

    def line(self, *, extra: bool = True) -> str:
        """Return one sentence: matched, missing, and extra unless a larger table is meant to have more; with examples.

        Example:
            >>> join([("a",), ("b",)], [("a",), ("z",)], what="scores.csv", unit="cases").line()
            'scores.csv: 1 of 2 cases found; 1 missing (b); 1 of its entries fits none (z)'
        """
        parts = [f"{self.what}: {len(self.matched):,} of {len(self.matched) + len(self.missing):,} {self.unit} found"]
        if self.rewritten:
            parts.append(f"{self.rewritten:,} of them once ids were written one way")
        if self.missing:
            parts.append(f"{len(self.missing):,} missing ({shown(self.missing)})")
        if self.extra and extra:
            fit = "fits" if len(self.extra) == 1 else "fit"
            parts.append(f"{len(self.extra):,} of its entries {fit} none ({shown(self.extra)})")
        return "; ".join(parts)

    def require_some(self, error: type[MedgroundError] = DataError) -> Join:
        """Return the join.

        Raises:
            MedgroundError: of the given class, where the table has entries and none of them fits.
        """
        if self.matched or not self.extra or not self.missing:
            return self
        swapped = {key[::-1] for key in self.missing} & set(self.extra) if len(self.missing[0]) > 1 else set()
        raise error(
            f"nothing in {self.what} fits the {self.unit} of this run",
            expected=f"such as {shown(self.missing)}",
            got=f"{len(self.extra):,} entries, such as {shown(self.extra)}",
            fix=_advice(self, swapped),
        )


def _advice(joined: Join, swapped: Iterable[Key]) -> str:
    if some := sorted(swapped):
        return f"the order is turned round: write {shown([some[0][::-1]])}, not {shown(some[:1])}"
    wanted, given = forms(k[0] for k in joined.missing), forms(k[0] for k in joined.extra)
    if wanted != given:
        return f"ids look otherwise (9: digits, a: letters): {wanted} here, {given} there; write them alike"
    return "is this the table of other data? ids must be those of the dataset"


def join(wanted: Iterable[Key], given: Iterable[Key], *, what: str, unit: str) -> Join:
    """Find for every wanted key that of a table.

    Keys are compared as they are first; what is left is compared with ids written one way, where that is unambiguous.

    Args:
        wanted: keys of the data at hand, unique.
        given: keys of the table, unique.
        what: see :class:`Join`.
        unit: see :class:`Join`.

    Raises:
        DataError: two left keys of one side become one when ids are written one way, and the other side wants it.
    """
    wants, has = list(dict.fromkeys(wanted)), list(dict.fromkeys(given))
    present = set(has)
    matched = {key: key for key in wants if key in present}
    left = [key for key in wants if key not in matched]
    free = [key for key in has if key not in matched]
    loose = _by_plain(free)
    asked = _by_plain(left)
    further = {ones[0]: loose[plain][0] for plain, ones in asked.items() if plain in loose}
    for plain in asked.keys() & loose.keys():
        for side, keys in (("the data", asked[plain]), (what, loose[plain])):
            if len(keys) > 1:
                raise DataError(
                    "two ids become one when they are written one way",
                    where=side,
                    got=shown(keys),
                    fix="write ids as the dataset does",
                )
    taken = set(further.values())
    return Join(
        what,
        unit,
        matched | further,
        tuple(key for key in left if key not in further),
        tuple(key for key in free if key not in taken),
        len(further),
    )


def _by_plain(keys: Sequence[Key]) -> dict[Any, list[Key]]:
    plain: dict[Any, list[Key]] = {}
    for key in keys:
        plain.setdefault(tuple(plain_id(part) for part in key), []).append(key)
    return plain


def shown(keys: Iterable[Key], most: int = EXAMPLES) -> str:
    """Return the first keys in words, bounded."""
    listed = list(keys)
    words = [", ".join(part[:60] for part in key) for key in listed[:most]]
    return "; ".join(words) + ("; ..." if len(listed) > most else "")
