"""Three answers a model and dataset: does it recognise, does its map point, does its map cover the finding?

Recognition is held against guessing, pointing against the class prior (where a finding usually lies), overlap against
a map that marks everything and against the class prior's region. The last two are measured on the same pictures, so
their paired differences decide, by the one rule of :mod:`medground.metrics.decide`. A threshold searched on the scored
cases flatters: overlap is decided on the cross-fitted one, and its companion is the same figure at the fixed threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.results import Answer, Cell, Cells, Verdict
from medground.benchmarks.xbench.claims import ClaimResult
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.specs import fixed

NAMED = 5
"""Findings that a sentence names; where there are more, it counts the rest."""

_SAYS: Mapping[str, Mapping[Answer, str]] = {
    "recognises": {
        "yes": "It ranks cases with a finding above cases without.",
        "in part": "It ranks cases with a finding above cases without, over all findings.",
        "no": "It ranks cases with a finding no higher than cases without.",
    },
    "points": {
        "yes": "Its maps peak on the finding more often than those of the class prior.",
        "in part": "Over all findings its maps peak on the finding more often than those of the class prior.",
        "no": "Its maps peak on the finding no more often than those of the class prior, which sees no picture.",
    },
    "overlaps": {
        "yes": "Its maps cover the finding better than marking everything does, or where the finding usually lies.",
        "in part": "Over all findings its maps cover the finding better than marking everything does, or where the "
        "finding usually lies.",
        "no": "Its maps cover the finding no better than marking everything does, or where the finding usually lies.",
    },
}

Claims = Mapping[tuple[str, str], Mapping[str, ClaimResult]]


def verdicts(cells: Cells, tasks: Sequence[Mapping[str, Any]], protocol: Protocol, claims: Claims) -> list[Verdict]:
    """Return the answers on every model and dataset, in the order of the tasks.

    Args:
        cells: of the summary.
        tasks: what was asked: model, dataset, findings, what the model has seen of it.
        protocol: says which mean is printed, and whether its threshold was searched on the scored cases.
        claims: (model, dataset) -> question -> what may be claimed.
    """
    return [
        verdict
        for task in tasks
        for verdict in _Task(cells, task, protocol, claims.get((task["model"], task["dataset"]), {})).verdicts()
    ]


@dataclass(frozen=True)
class _Task:
    cells: Cells
    task: Mapping[str, Any]
    protocol: Protocol
    claims: Mapping[str, ClaimResult]

    def verdicts(self) -> Iterator[Verdict]:
        for question, claim in self.claims.items():
            if question != "recognises" and (why := self._unasked()):
                yield self._not_asked(question, why)
                continue
            roles = self._roles(question, claim)
            if roles.get("headline") is not None:
                yield self._verdict(question, claim, roles)

    def _unasked(self) -> str:
        """Return why nothing could be asked about maps: no region in the dataset, or no map of any; else nothing."""
        states = self.task["states"]
        if not sum(states.values()):
            return "The dataset has no regions."
        return "It gives no maps." if set(states) == {"absent"} else ""

    def _not_asked(self, question: str, why: str) -> Verdict:
        return Verdict(
            benchmark="xbench",
            reading=self.protocol.name,
            question=question,
            model=self.task["model"],
            dataset=self.task["dataset"],
            answer="not asked",
            because=why,
        )

    def _find(self, metric: str, scope: str = "") -> Cell | None:
        return self.cells.one(
            model=self.task["model"],
            dataset=self.task["dataset"],
            subset="main",
            scope=scope or self.protocol.averaging,
            group="",
            metric=metric,
        )

    def _roles(self, question: str, claim: ClaimResult) -> dict[str, Cell | None]:
        if question == "recognises":
            return {"headline": self._find(claim.metric, "macro")}
        if question == "points":
            names = {"headline": "pointing", "floor": "pointing_prior", "difference": "pointing_gain"}
        else:
            plain = fixed("dice", self.protocol.fixed[0])
            names = {"headline": claim.metric, "floor": self._higher("dice_floor", "dice_prior"), "companion": plain}
            names |= (
                {"difference": "dice_gain"} if (claim.metric, names["floor"]) == ("dice@best", "dice_floor") else {}
            )
        return {role: self._find(name) for role, name in names.items()}

    def _higher(self, *metrics: str) -> str:
        """Return which of several floors is the highest."""
        values = {metric: cell.value for metric in metrics if (cell := self._find(metric)) and cell.value is not None}
        return max(values, key=lambda metric: values[metric], default=metrics[0])

    def _verdict(self, question: str, claim: ClaimResult, roles: Mapping[str, Cell | None]) -> Verdict:
        headline = roles["headline"]
        notes = {
            "seen": bool(self.task["seen"] or self.task["cases_seen"]),
            "searched": question == "overlaps" and claim.metric == "dice@best" and self.protocol.optimistic,
            "few": not claim.whole.enough and headline is not None and headline.value is not None,
        }
        return Verdict(
            benchmark="xbench",
            reading=self.protocol.name,
            question=question,
            model=self.task["model"],
            dataset=self.task["dataset"],
            answer=claim.answer,
            because=self._because(question, claim),
            margin=claim.margin,
            roles={role: cell for role, cell in roles.items() if cell is not None},
            notes=tuple(code for code, holds in notes.items() if holds),
        )

    def _because(self, question: str, claim: ClaimResult) -> str:
        answer = claim.answer
        if answer == "cannot be told":
            return f"{claim.whole.because[:1].upper()}{claim.whole.because[1:]}."
        parts = [_SAYS[question][answer], f"{claim.whole.because[:1].upper()}{claim.whole.because[1:]}."]
        if answer != "no" and claim.unsearched is not None and claim.unsearched.answer != "yes":
            parts.append(f"At the fixed threshold {self.protocol.fixed[0]:g} this is not shown.")
        if answer != "no" and len(claim.by_class) > 1:
            parts += [f"Not so for {_named(claim.failing)}."] if claim.failing else []
            parts += [f"Cannot be told for {_named(claim.untold)}."] if claim.untold else []
        return " ".join(parts)


def _named(findings: Sequence[str]) -> str:
    shown = ", ".join(findings[:NAMED])
    return shown if len(findings) <= NAMED else f"{shown} and {len(findings) - NAMED} more"
