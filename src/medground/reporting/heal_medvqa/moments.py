"""The best and the worst moment when pixels change: a yes that turns with the picture, and one that stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from medground.reporting.moments import Moment, thumbnail


def moments(specimens: Iterable[Mapping[str, str]]) -> Iterator[Moment]:
    """Yield a moment that turned and one that did not, a model.

    Args:
        specimens: of pastes: ``before`` and ``after`` as data addresses, ``model``, ``base``, ``answer``, ``title``.
    """
    by_model: dict[str, list[Mapping[str, str]]] = {}
    for one in specimens:
        if one["base"] == "yes" and one["answer"] in {"yes", "no"}:
            by_model.setdefault(one["model"], []).append(one)
    for model, own in by_model.items():
        for answer in ("no", "yes"):
            chosen = next((one for one in own if one["answer"] == answer), None)
            if chosen is not None:
                said = "turns to no" if answer == "no" else "stays yes"
                picture = thumbnail(chosen["after"].partition(",")[2])
                words = f"finding painted out: its yes {said}"
                yield Moment("pixels", model, answer == "no", chosen["title"], words, picture)
