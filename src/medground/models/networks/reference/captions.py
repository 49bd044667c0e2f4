"""How well a caption about a phantom fits what the reference model sees: no training, presence and maps alone.

A caption is read by the grammar that phantoms' captions are written in (``worlds.phantom.statements``); a sentence that
the grammar does not know, or that the model has nothing to say about (views, devices), adds nothing, so that two
captions that differ in nothing else come out equal: a tie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from medground.worlds.phantom.statements import Statement, said

Maps = Mapping[str, NDArray[np.floating]]

THIRDS = {"upper": (0.0, 0.325), "mid": (0.325, 0.54), "lower": (0.54, 1.0)}
"""Rows of the picture (shares of its height) of each third of a lung, on average over phantoms."""

_LEAST = 1e-4
_SMALL = 0.02
"""Share of the map over half of its maximum at which a finding is neither small nor large."""


def findings_of(captions: Sequence[str]) -> list[str]:
    """Return the findings that captions speak of, sorted."""
    return sorted({s.finding for c in captions for s in said(c) if s.finding})


def fit(caption: str, logits: Mapping[str, float], maps: Maps) -> float:
    """Return the sum over a caption's sentences of the log-probability that each is true.

    Args:
        caption: the text.
        logits: presence of each finding.
        maps: finding -> (h, w) map in [0, 1] over the whole picture, the patient's right on the left.
    """
    return sum(_log_probability(s, logits, maps) for s in said(caption))


def _log_probability(s: Statement, logits: Mapping[str, float], maps: Maps) -> float:
    if s.finding not in logits:
        return 0.0
    present = -float(np.logaddexp(0, -logits[s.finding]))
    if s.kind == "absent":
        return -float(np.logaddexp(0, logits[s.finding]))
    where = {"side": _side, "third": _third, "size": _size}.get(s.kind)
    return present + (float(np.log(max(where(s, maps[s.finding]), _LEAST))) if where else 0.0)


def _side(s: Statement, held: NDArray[np.floating]) -> float:
    """Return the share of the peak that lies on a side: the maximum of each half against both."""
    middle = held.shape[1] // 2
    right, left = float(held[:, :middle].max()), float(held[:, middle:].max())
    return (right if s.value == "right" else left) / max(right + left, _LEAST)


def _third(s: Statement, held: NDArray[np.floating]) -> float:
    """Return the share of the peak on a third of the named side, against the other thirds of that side."""
    middle = held.shape[1] // 2
    half = held[:, :middle] if s.value == "right" else held[:, middle:]
    rows = (np.arange(half.shape[0]) + 0.5) / half.shape[0]
    peaks = {t: float(half[(rows >= a) & (rows < b)].max()) for t, (a, b) in THIRDS.items()}
    return _side(s, held) * peaks[s.third] / max(sum(peaks.values()), _LEAST)


def _size(s: Statement, held: NDArray[np.floating]) -> float:
    """Return how much of the map is near its maximum, as large against small."""
    share = float((held > held.max() / 2).mean())
    large = share / (share + _SMALL)
    return large if s.value == "large" else 1 - large
