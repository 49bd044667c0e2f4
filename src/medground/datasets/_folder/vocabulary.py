"""The classes of a dataset, under every spelling that its files use."""

from __future__ import annotations

from collections.abc import Sequence

from medground.datasets.base import DatasetInfo
from medground.errors import DatasetError, did_you_mean


class Vocabulary:
    """Finds a class by name or alias; case, underscores and surplus blanks do not matter.

    >>> info = DatasetInfo("t", ("Infiltration",), "", False, "", "", aliases={"Infiltrate": "Infiltration"})
    >>> Vocabulary(info).get(" infiltrate")
    'Infiltration'
    """

    def __init__(self, info: DatasetInfo) -> None:
        self.names = (*info.findings, *info.further)
        self._title, self._spellings = info.title, (*self.names, *info.aliases)
        self._known = {_fold(name): name for name in self.names}
        self._known |= {_fold(alias): name for alias, name in info.aliases.items()}

    def get(self, spelling: str) -> str | None:
        """Return the class that a spelling stands for, or None."""
        return self._known.get(_fold(spelling))

    def pick(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Return the classes a user asked for, in the user's order.

        Raises:
            DatasetError: a class is unknown or asked for twice.
        """
        picked = tuple(self._asked(spelling) for spelling in wanted)
        if len(set(picked)) < len(picked):
            raise DatasetError("a finding is asked for twice", where="findings", got=list(wanted), expected="each once")
        return picked

    def _asked(self, spelling: str) -> str:
        name = self.get(spelling)
        if name is None:
            raise DatasetError(
                f"{self._title} has no finding {spelling!r}",
                where="findings",
                expected=", ".join(self.names),
                fix=did_you_mean(spelling, self._spellings),
            )
        return name


def _fold(spelling: str) -> str:
    return " ".join(spelling.replace("_", " ").split()).casefold()
