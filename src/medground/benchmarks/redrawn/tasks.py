"""The work: one model, about every finding of every phantom. Its answers without each finding, and its explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.base import Entry, Item, Measured, TaskDefaults
from medground.benchmarks.redrawn.asking import FindingAnswerer, question_of
from medground.benchmarks.redrawn.rows import OWN, SCHEMA, blank, row_of
from medground.benchmarks.redrawn.scenes import Redrawn, findings_of, redrawn
from medground.benchmarks.requests import Answer, Ask, Conversation, Transcript
from medground.errors import ModelError
from medground.explainers.base import Asker, Attribution, Example, Pool
from medground.explainers.retest import EVERY, IMAGE, agreement, explained
from medground.identity import fingerprint_of
from medground.imaging.geometry import resample_map
from medground.imaging.reading import Radiograph
from medground.models.base import capabilities_of

EXPLAINER = "explainer:"


@dataclass(frozen=True)
class Asked:
    """What an item is about: a case, its number among the items, and the finding that is asked for."""

    case: int
    number: int
    finding: str


class RedrawnStages:
    """An opened task."""

    def __init__(self, players: Mapping[str, Any], task: RedrawnTask) -> None:
        self._players, self._task = players, task
        self._model = players["model"]

    def load(self, item: Item) -> Redrawn:
        """Draw the case, and again without each of its findings."""
        return redrawn(self._task.seed, item.payload.case, self._task.size)

    def converse(self, item: Item, loaded: Redrawn) -> Conversation[Mapping[str, Any]]:
        """Ask about the picture with and without each finding, and for every explanation, in one round."""
        arguments = {"asked": item.payload, "shown": loaded}
        explanations = [
            Ask(EXPLAINER + e.label, "explain", arguments, {"method": e.label}) for e in self._task.explainers
        ]
        if "ground" in capabilities_of(self._model):
            explanations.append(Ask("model", "map", arguments, {"method": OWN}))
        yield [Ask("model", "odds", arguments), *explanations]
        return {}

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Answer for the model or an explainer; an explainer that fails is a state of its item."""
        work = {"odds": self._odds, "map": self._map}.get(capability)
        if work is not None:
            return [work(a["asked"], a["shown"]) for a in arguments]
        return [self._explained(self._players[role], a["asked"], a["shown"]) for a in arguments]

    def _odds(self, asked: Asked, shown: Redrawn) -> Answer:
        """Log-odds of the picture and, in the order of its findings, without each."""
        images = np.stack([shown.whole, *shown.without.values()])
        logits = self._answerer(asked).logits(images, [question_of(self._called(asked))] * len(images))
        regions = {f"region/{finding}": mask for finding, mask in shown.regions.items()}
        return Answer({"findings": list(shown.without)}, {"odds": logits[:, 0] - logits[:, 1], **regions})

    def _map(self, asked: Asked, shown: Redrawn) -> Answer:
        """Return the model's own map on the picture, with its agreement with a second one where its turn comes."""
        maps = [self._predicted(asked, shown) for _ in range(1 if asked.number % EVERY else 2)]
        if maps[0] is None:
            return _kept(None, "the model gives no map of this finding")
        return _kept(maps[0], "", agreement(*maps) if len(maps) == 2 else None)

    def _predicted(self, asked: Asked, shown: Redrawn) -> Any:
        image = Radiograph(np.ascontiguousarray(shown.whole[..., 0]), case_id=f"case {asked.case}")
        prediction = self._model.predict([image], [self._called(asked)])
        if prediction.saliency is None or (0, 0) in prediction.absent:
            return None
        laid = resample_map(prediction.saliency[0][0], prediction.geometry[0])
        return np.maximum(np.nan_to_num(laid), 0) if np.isfinite(laid).any() else None

    def _explained(self, explainer: Any, asked: Asked, shown: Redrawn) -> Answer:
        example = Example(f"{asked.case}/{asked.finding}", shown.whole, question_of(self._called(asked)))
        pool = Pool([example], Asker(self._answerer(asked), self._task.batch_size), self._task.grid)
        try:
            # Whether a second explanation is made depends on the item's number, as elsewhere.
            told: Attribution = (
                explained(explainer, pool, 0) if asked.number % EVERY == 0 else explainer.explain(pool, 0)
            )
        except ModelError as error:
            return _kept(None, error.what)
        except Exception as error:
            return _kept(None, f"the explainer raised {type(error).__name__}")
        return _kept(told.image, told.reason or "", told.extras.get(IMAGE))

    def _answerer(self, asked: Asked) -> FindingAnswerer:
        return FindingAnswerer(self._model, self._called(asked))

    def _called(self, asked: Asked) -> str:
        return self._task.model.declared.findings.get(asked.finding, asked.finding.lower())


def _kept(values: Any, reason: str, alike: float | None = None) -> Answer:
    arrays = {} if values is None else {"map": np.asarray(values, np.float64)}
    return Answer({"reason": reason, "retest": alike}, arrays)


class RedrawnMeasurer:
    """Makes a row of every explanation of an item."""

    def __init__(self, task: RedrawnTask) -> None:
        self._task = task

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        """See :class:`medground.benchmarks.base.Measurer`."""
        asked: Asked = item.payload
        (odds,) = transcript.answers("model", "odds")
        told = [(e.key["method"], e.answer) for e in transcript.exchanges if "method" in e.key]
        return Measured([row_of(item.item_id, asked.case, asked.finding, odds, method, a) for method, a in told])

    def failed(self, item: Item, reason: str) -> Measured:
        """See :class:`medground.benchmarks.base.Measurer`."""
        return Measured([blank(item.item_id, item.payload.case, item.payload.finding, "") | {"reason": reason}])


@dataclass(frozen=True)
class RedrawnTask(TaskDefaults):
    """One model on the phantoms.

    Attributes:
        model: who is asked.
        explainers: the methods.
        cases: how many phantoms.
        seed: of them.
        size: pixels a side.
        grid: cells a side of what explainers hide.
        batch_size: pictures a call of the model.
    """

    model: Entry
    explainers: tuple[Entry, ...]
    cases: int
    seed: int
    size: int
    grid: int
    batch_size: int = 8

    cohort = 1
    expensive = True
    processes = True

    @property
    def path(self) -> tuple[str, ...]:
        """The model, and what it is asked about."""
        return (self.model.label, "phantom")

    @property
    def schema(self) -> pl.Schema:
        """Columns of a row."""
        return SCHEMA

    @property
    def roles(self) -> Mapping[str, Entry]:
        """The model, and an explainer a method."""
        return {"model": self.model} | {EXPLAINER + e.label: e for e in self.explainers}

    def items(self) -> Sequence[Item]:
        """Every finding of every case."""
        asked = [(case, finding) for case in range(self.cases) for finding in findings_of(self.seed, case)]
        return [Item(f"{case:05d}/{finding}", Asked(case, n, finding)) for n, (case, finding) in enumerate(asked)]

    def fingerprint(self) -> str:
        """A hash over model, scenes and explainers."""
        methods = [(e.label, e.identity()) for e in self.explainers]
        scenes = (self.cases, self.seed, self.size, self.grid)
        return fingerprint_of("redrawn", 1, self.model.identity(), methods, scenes, self.batch_size)

    def reading(self) -> str:
        """There is one."""
        return fingerprint_of("redrawn", 1)

    def open(self, players: Mapping[str, Any]) -> RedrawnStages:
        """See :class:`medground.benchmarks.base.Task`."""
        return RedrawnStages(players, self)

    def measurer(self) -> RedrawnMeasurer:
        """See :class:`medground.benchmarks.base.Task`."""
        return RedrawnMeasurer(self)
