"""The best and the worst moment of recognising, pointing and covering, from the cases that the report keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from medground.reporting.moments import Moment, coloured, thumbnail

Pair = Mapping[str, Any]
Answer = Mapping[str, Any]


def moments(viewer: Mapping[str, Any]) -> Iterator[Moment]:
    """Yield a best and a worst moment a model and question.

    The largest and the smallest figure; of equal ones the peak nearest to the region (for the worst: farthest), then
    the id. One moment alone (all figures alike) is shown as neither.

    Args:
        viewer: what :func:`medground.reporting.xbench.cases.viewer_data` keeps of cases.
    """
    for number, model in enumerate(viewer["models"]):
        if number in viewer["baselines"]:
            continue
        own = [(pair, pair["answers"][number]) for pair in viewer["pairs"] if number in pair["answers"]]
        for question, (key, words) in _QUESTIONS.items():
            known = [(pair, answer) for pair, answer in own if answer[key] is not None]
            if not known:
                continue
            worst, best = (min(known, key=_order(key, sign)) for sign in (1, -1))
            if best[1][key] == worst[1][key]:
                continue
            yield _moment(question, model, best, words, viewer, is_best=True)
            yield _moment(question, model, worst, words, viewer, is_best=False)


def _order(key: str, sign: int) -> Callable[[tuple[Pair, Answer]], tuple[Any, ...]]:
    def order(item: tuple[Pair, Answer]) -> tuple[Any, ...]:
        pair, answer = item
        distance = answer.get("distance")
        return (
            sign * answer[key],
            -sign * (distance if distance is not None else 0.0),
            pair["picture"] is None,
            pair["case"],
            pair["finding"],
        )

    return order


def _moment(
    question: str,
    model: str,
    item: tuple[Pair, Answer],
    words: Callable[[Pair, Answer], str],
    viewer: Mapping[str, Any],
    *,
    is_best: bool,
) -> Moment:
    pair, answer = item
    path, frame = pair["outline"] or ("", (1, 1))
    width, height = frame
    x, y, w, h = answer.get("at", (0, 0, 1, 1))
    picture = None if pair["picture"] is None else viewer["pictures"][pair["picture"]]
    peak = answer["peak"]
    return Moment(
        question,
        model,
        is_best,
        f"{pair['finding']}, {pair['case']}",
        words(pair, answer),
        "" if picture is None else thumbnail(picture),
        (width, height),
        path,
        None if peak is None else (peak[0] * width, peak[1] * height),
        coloured(answer["map"]) if answer.get("map") else "",
        (x * width, y * height, w * width, h * height),
    )


def _recognised(pair: Pair, answer: Answer) -> str:
    return f"says {100 * answer['probability']:.0f} % for {pair['finding']}, which is there"


def _pointed(_: Pair, answer: Answer) -> str:
    return "peak on the finding" if answer["pointing"] >= 0.5 else "peak beside it"


def _covered(_: Pair, answer: Answer) -> str:
    return f"Dice {100 * answer['dice']:.0f} at the searched threshold"


_QUESTIONS: Mapping[str, tuple[str, Callable[[Pair, Answer], str]]] = {
    "recognises": ("probability", _recognised),
    "points": ("pointing", _pointed),
    "overlaps": ("dice", _covered),
}
