"""Three answers a model and dataset: does it recognise, does its map point, does its map cover the finding?

Recognition is held against guessing, pointing against the class prior (where a finding usually lies), overlap against
a map that marks everything. The last two are measured on the same pictures, so their paired differences decide. A
threshold searched on the scored cases flatters; the companion of overlap is the same figure at the fixed threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from medground.benchmarks.claims import LEAST, MARGINS, beyond
from medground.benchmarks.results import Answer, Cell, Cells, Verdict
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.specs import fixed, specs

NAMED = 3
"""Findings that a sentence names; where there are more, it counts them."""

Find = Callable[..., Cell | None]


def verdicts(cells: Cells, tasks: Sequence[Mapping[str, Any]], protocol: Protocol) -> list[Verdict]:
    """Return the answers on every model and dataset, in the order of the tasks.

    Args:
        cells: of the summary.
        tasks: what was asked: model, dataset, findings, patients, what the model has seen of it.
        protocol: says which mean is printed, and whether its threshold was searched on the scored cases.
    """
    return [verdict for task in tasks for verdict in _Task(cells, task, protocol).verdicts()]


@dataclass(frozen=True)
class _Task:
    cells: Cells
    task: Mapping[str, Any]
    protocol: Protocol

    def verdicts(self) -> Iterator[Verdict]:
        for question in (self._recognises, self._points, self._overlaps):
            verdict = question()
            if verdict is not None:
                yield verdict

    def _find(self, metric: str, scope: str = "", group: str = "") -> Cell | None:
        return self.cells.one(
            model=self.task["model"],
            dataset=self.task["dataset"],
            subset="main",
            scope=scope or self.protocol.averaging,
            group=group,
            metric=metric,
        )

    def _recognises(self) -> Verdict | None:
        auc = self._find("auc", "macro")
        if auc is None:
            return None
        answer = self._answer("auc", auc, 0.5)
        because = {
            "yes": "It ranks cases with a finding above cases without.",
            "no": "It ranks cases with a finding no higher than cases without.",
        }.get(answer, self._untold("auc", auc))
        left = self._left(answer, "auc", partial(self._find, "auc"), 0.5)
        return self._verdict("recognises", answer, because + left, "auc", {"headline": auc})

    def _points(self) -> Verdict | None:
        own, prior, gain = (self._find(name) for name in ("pointing", "pointing_prior", "pointing_gain"))
        if own is None:
            return None
        answer = self._answer("pointing", gain, 0.0)
        because = {
            "yes": "Its maps peak on the finding more often than those of the class prior.",
            "no": "Its maps peak on the finding no more often than those of the class prior, which sees no picture.",
        }.get(answer, self._untold("pointing", gain if own.value is not None else own))
        left = self._left(answer, "pointing", partial(self._find, "pointing_gain"), 0.0)
        roles = {"headline": own, "floor": prior, "difference": gain}
        return self._verdict("points", answer, because + left, "pointing", roles)

    def _overlaps(self) -> Verdict | None:
        at_fixed = fixed("dice", self.protocol.fixed[0])
        best, floor, gain, plain = (self._find(name) for name in ("dice@best", "dice_floor", "dice_gain", at_fixed))
        if best is None:
            return None
        answer = self._answer("overlap", gain, 0.0)
        because = {
            "yes": "Its maps cover the finding better than marking everything does.",
            "no": "Its maps cover the finding no better than marking everything does.",
        }.get(answer, self._untold("overlap", gain if best.value is not None else best))
        if answer == "yes" and not self._holds_unsearched(plain, floor):
            answer = "in part"
            because = (
                f"{because[:-1]} only at a threshold searched for it; at {self.protocol.fixed[0]:g} it is not shown."
            )
        roles = {"headline": best, "floor": floor, "difference": gain, "companion": plain}
        return self._verdict("overlaps", answer, because, "overlap", roles)

    def _holds_unsearched(self, plain: Cell | None, floor: Cell | None) -> bool:
        if plain is None or floor is None or floor.value is None:
            return False
        return beyond(plain.low, plain.high, floor.value + MARGINS["overlap"]) == "yes"

    def _answer(self, family: str, cell: Cell | None, floor: float) -> Answer:
        if cell is None or cell.value is None or self.task["patients_scored"] < LEAST[family]:
            return "cannot be told"
        return beyond(cell.low, cell.high, floor + MARGINS[family])

    def _untold(self, family: str, cell: Cell | None) -> str:
        """Say why nothing is claimed."""
        if cell is None or cell.value is None:
            return f"It could not be measured: {cell.reason if cell else 'nothing to hold it against'}."
        if self.task["patients_scored"] < LEAST[family]:
            return f"Fewer than {LEAST[family]} patients were scored, which is too few to claim anything."
        if cell.low is None:
            return "There is no interval, and without one nothing is claimed."
        return "Its interval reaches over the edge of what can be had without looking."

    def _left(self, answer: Answer, family: str, find: Find, floor: float) -> str:
        """Name the findings for which a yes is not shown."""
        if answer != "yes":
            return ""
        by_class = {finding: find("class", finding) for finding in self.task["findings"]}
        known = {finding: cell for finding, cell in by_class.items() if cell is not None and cell.value is not None}
        left = [f for f, c in known.items() if beyond(c.low, c.high, floor + MARGINS[family]) != "yes"]
        if not left or len(known) < 2:
            return ""
        names = ", ".join(left) if len(left) <= NAMED else f"{len(left)} of {len(known)} findings"
        return f" Not shown for {names}."

    def _verdict(
        self, question: str, answer: Answer, because: str, family: str, roles: Mapping[str, Cell | None]
    ) -> Verdict:
        searched = {spec.name for spec in specs(self.protocol) if spec.searched}
        headline = roles["headline"]
        notes = {
            "seen": bool(self.task["seen"] or self.task["cases_seen"]),
            "searched": headline is not None and headline.metric in searched,
            "few": self.task["patients_scored"] < LEAST[family],
        }
        return Verdict(
            benchmark="xbench",
            reading=self.protocol.name,
            question=question,
            model=self.task["model"],
            dataset=self.task["dataset"],
            answer=answer,
            because=because,
            margin=MARGINS[family],
            roles={role: cell for role, cell in roles.items() if cell is not None},
            notes=tuple(code for code, holds in notes.items() if holds),
        )
