"""Where a chat model looks, or says that something is: what its adapter hands to whoever makes a grounder of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from medground.imaging.geometry import Geometry
from medground.models.base import Message

How = Literal["attention", "gradient"]


@dataclass(frozen=True)
class Look:
    """A map on the grid of a picture's tokens.

    Attributes:
        map: ``(rows, columns)``, not normalised.
        geometry: how the grid's frame lies on the picture's pixels.
    """

    map: NDArray[np.float32]
    geometry: Geometry


class Looking(Protocol):
    """A model in this process whose attention can be reached: the capability ``look``."""

    def look(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[tuple[str, str]], how: How
    ) -> Sequence[Look]:
        """Return where the model looks at the place of its answer, one map a conversation with one picture.

        Args:
            conversations: each with one picture.
            choices: two answers a conversation; ``gradient`` says what speaks for the first against the second.
            how: ``attention``: weights on the picture's tokens, a mean over layers and heads; ``gradient``: relevance
                carried through the layers by positive gradient-weighted attention (Chefer et al. 2021).

        Raises:
            ModelError: the model has no such map.
        """


class Locating(Protocol):
    """A model that answers with a mask, ``<SEG>``: the capability ``masks``."""

    def located(self, conversations: Sequence[Sequence[Message]]) -> Sequence[NDArray[np.bool_] | None]:
        """Return where it says that the answer lies, ``(height, width)`` of the picture; None: it names no place."""
