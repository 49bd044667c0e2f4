"""Scores made elsewhere: their scale is declared, or decided for a whole column and said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from medground.errors import ModelError
from medground.tables.reader import Table, read_table

Scale = Literal["auto", "probability", "logit", "ranking"]
Key = tuple[str, str]


@dataclass(frozen=True)
class Scores:
    """Scores of a table.

    Attributes:
        values: (case, finding) -> score and probability, NaN where there is none.
        remarks: how the table is written, and what its scores were taken for.
    """

    values: dict[Key, tuple[float, float]]
    remarks: tuple[str, ...] = ()


def read_scores(path: Path, scale: Scale = "auto") -> Scores:
    """Read ``case_id, finding, score`` (and ``probability``), or ``case_id`` and one column a finding.

    Args:
        path: the table.
        scale: ``probability``, ``logit`` (a sigmoid gives the probability), ``ranking`` (larger is likelier, and
            nothing more), or ``auto``: a column whose values all lie in [0, 1] holds probabilities, any other a
            ranking. Of logits that happen to lie in [0, 1] none is a probability.

    Raises:
        ModelError: a column is missing, a value is no number or leaves its scale, or a key stands twice.
    """
    whole = read_table(path, ["case_id"], error=ModelError)
    names = {name.casefold() for name in whole.frame.columns}
    long = {"finding", "score"} <= names or bool({"finding", "score"} & names)
    parts = _long(path) if long else _wide(whole, path)
    remarks = [f"{path.name}: a table {remark}" for remark in whole.remarks]
    values: dict[Key, tuple[float, float]] = {}
    for what, keys, scores, given in parts:
        chosen = scale if given is None or scale != "auto" else "given"
        probabilities, said = _probabilities(scores, given, chosen, f"{path}: {what}")
        remarks.append(f"{path.name}: {what} {said}")
        values |= {key: (float(s), float(p)) for key, s, p in zip(keys, scores, probabilities, strict=True)}
    return Scores(values, tuple(remarks))


Column = tuple[str, list[Key], "np.ndarray[tuple[int], np.dtype[np.float64]]", "Numbers | None"]
Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


def _long(path: Path) -> Iterator[Column]:
    wanted = ["case_id", "finding", "score"]
    table = read_table(path, wanted, ["probability"], key=["case_id", "finding"], error=ModelError)
    keys = [(case or "", finding or "") for case, finding in table.frame.select("case_id", "finding").iter_rows()]
    given = _numbers(table, "probability")
    yield "scores", keys, _numbers(table, "score"), None if np.isnan(given).all() else given


def _wide(table: Table, path: Path) -> Iterator[Column]:
    frame = read_table(path, ["case_id"], key=["case_id"], error=ModelError).frame
    findings = [name for name in frame.columns if name != "case_id"]
    if not findings:
        raise ModelError("a table of scores has no score", where=path, expected="case_id, finding, score")
    for finding in findings:
        yield (
            f"scores of {finding}",
            [(case or "", finding) for case in frame["case_id"]],
            _numbers(table, finding),
            None,
        )


def _numbers(table: Table, column: str) -> Numbers:
    def number(text: str | None, row: int) -> float:
        try:
            return float(text) if text is not None else np.nan
        except ValueError as error:
            where = f"{table.where(row)}, column {column}"
            raise ModelError("a table of scores holds a value that is no number", where=where, got=text) from error

    name = next(n for n in table.frame.columns if n.casefold() == column.casefold())
    return np.array([number(text, row) for row, text in enumerate(table.frame[name])], dtype=np.float64)


def _probabilities(scores: Numbers, given: Numbers | None, scale: str, where: str) -> tuple[Numbers, str]:
    nothing = np.full(len(scores), np.nan)
    inside = bool(((scores >= 0) & (scores <= 1) | np.isnan(scores)).all())
    if scale == "given" and given is not None:
        return _checked(given, where), "stand beside probabilities"
    if scale == "logit":
        return 1 / (1 + np.exp(-np.clip(scores, -700, 700))), "are logits, as declared"
    if scale == "probability":
        return _checked(scores, where), "are probabilities, as declared"
    if scale == "ranking":
        return nothing, "rank, as declared; there are no probabilities"
    if inside:
        return scores, "are taken for probabilities: all lie in [0, 1] (scale: ranking or logit says otherwise)"
    return nothing, "are taken for a ranking: some leave [0, 1] (scale: logit makes probabilities)"


def _checked(values: Numbers, where: str) -> Numbers:
    outside = values[(values < 0) | (values > 1)]
    if outside.size:
        raise ModelError("a probability leaves [0, 1]", where=where, expected="0 to 1", got=float(outside[0]))
    return values
