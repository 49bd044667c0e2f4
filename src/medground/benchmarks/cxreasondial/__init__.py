"""CXReasonDial: dialogues about a radiograph, held turn by turn against measured evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import polars as pl

from medground.benchmarks.base import Role, Setting
from medground.benchmarks.cards import facts_of
from medground.benchmarks.cxreasondial.histories import HISTORIES, History, Skipped
from medground.benchmarks.cxreasondial.stage_task import VERSION as STAGES_VERSION, StageTask, summarise_stages
from medground.benchmarks.cxreasondial.tasks import DialogueTask, JudgeName, Options, Source, judge_identity
from medground.benchmarks.results import Summary
from medground.errors import ConfigError
from medground.metrics import decide


class CXReasonDial:
    """Multi-turn questions about twelve diagnostic tasks, judged against what was measured.

    Args:
        dialogues: a JSONL file of dialogues, its pictures beside it; by default phantoms are measured and asked about.
        fields: our field -> theirs, where that file has another layout: ``{turn.query: user, turns: conversation}``.
        phantoms: how many phantoms, where no file is given.
        size: width of the phantoms' pictures.
        history: which replies stand in the history; several: each is a set of its own.
        skipped: what own history keeps of visual turns that a model is not asked.
        pictures: whether models are shown the picture; ``false`` makes every model its own blind twin.
        judge: ``evidence`` (rules), ``llm`` (a chat model, or a panel of several), or ``hybrid``.
        audit: share of turns that the hybrid judge has its model judge too.
        canaries: share of turns on which attacks on the judge are tried.
        allow_self_judge: whether a model may judge its own replies.
        max_new_tokens: of a reply.
        protocol: ``dialogue``, or ``cxreasonbench``: one question a case and task, reasoned through in stages.
        rules: margins and minima of decisions by family of metrics, where they differ from the usual, such as
            ``{rate: {margin: 0.05, least: 20}}``.
    """

    name: ClassVar[str] = "cxreasondial"
    roles: ClassVar[Mapping[str, Role]] = {
        "models": Role("model", ("reply",), least=1),
        "judges": Role("model", ("reply",), sees=False),
        "simulator": Role("model", ("reply",), most=1, sees=False),
    }
    readings: ClassVar[Mapping[str, str]] = {"judge": "judge"}
    doors: ClassVar[Mapping[str, str]] = {
        "build": "medground.benchmarks.cxreasondial.folder:build",
        "compare": "medground.benchmarks.cxreasondial.compare:compare",
        "protocols": "medground.benchmarks.cxreasondial.protocols:protocols",
    }

    def __init__(
        self,
        dialogues: Path | None = None,
        fields: dict[str, str] | None = None,
        phantoms: int = 40,
        size: int = 256,
        history: History | list[History] = "without_gt",
        skipped: Skipped = "drop",
        pictures: bool = True,
        judge: JudgeName = "evidence",
        audit: float = 0.1,
        canaries: float = 0.05,
        allow_self_judge: bool = False,
        max_new_tokens: int = 256,
        protocol: Literal["dialogue", "cxreasonbench"] = "dialogue",
        rules: dict[str, dict[str, float]] | None = None,
    ) -> None:
        self.histories: list[History] = [history] if isinstance(history, str) else list(history)
        if not self.histories or len(set(self.histories)) < len(self.histories):
            raise ConfigError(
                "history names modes, each once", where="benchmark.history", expected=", ".join(HISTORIES), got=history
            )
        if not 0 <= audit <= 1 or not 0 <= canaries <= 1:
            raise ConfigError(
                "audit and canaries are shares", where="benchmark", expected="0 to 1", got=(audit, canaries)
            )
        if phantoms < 1 or size < 64:
            raise ConfigError(
                "phantoms need a number and a size", where="benchmark", expected="1, 64 or more", got=(phantoms, size)
            )
        self.protocol = protocol
        if fields and dialogues is None:
            raise ConfigError(
                "fields belong to a file of dialogues", where="benchmark.fields", fix="dialogues: FILE, or no fields"
            )
        self.file, self.phantoms, self.size = dialogues, phantoms, size
        self.fields = tuple(sorted((fields or {}).items()))
        self.options = Options("without_gt", skipped, pictures, max_new_tokens, judge, audit, canaries)
        self.allow_self_judge, self.rules = allow_self_judge, decide.rules(rules)
        self._setting = Setting(models=())

    def bind(self, setting: Setting) -> None:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        judges = setting.roles.get("judges", ())
        if self.options.judge != "evidence" and not judges:
            raise ConfigError(
                f"the judge {self.options.judge!r} needs a chat model",
                where="roles.judges",
                fix="judge: evidence needs none",
            )
        own = {entry.identity() for entry in setting.models}
        if self.options.judge != "evidence" and not self.allow_self_judge:
            for entry in judges:
                if entry.identity() in own:
                    raise ConfigError(
                        "a model would judge its own replies",
                        where=f"roles.judges: {entry.label}",
                        fix="name another judge, or set allow_self_judge: true",
                    )
        if setting.roles.get("simulator") and "simulator" not in self.histories:
            raise ConfigError(
                "a simulator is named, and no history asks for one",
                where="roles.simulator",
                fix="history: simulator, or leave the role out",
            )
        self._setting = setting

    @property
    def reading(self) -> tuple[str, Any]:
        """The judge."""
        if self.protocol == "cxreasonbench":
            return self.protocol, {"stages": STAGES_VERSION}
        asked = () if self.options.judge == "evidence" else self._setting.roles.get("judges", ())
        judges = {entry.label: entry.identity() for entry in asked}
        name = "-".join((self.options.judge, *judges))
        return name, {"judge": judge_identity(self.options), "models": judges}

    @property
    def source(self) -> Source:
        """Where the dialogues come from."""
        return Source(self.file, self.phantoms, self._setting.seed, self.size, self.fields)

    def withheld(self) -> Sequence[str]:
        """The pictures of a file of dialogues, where they are shown; phantoms may be passed on."""
        return (self.source.label,) if self.file is not None and self.options.pictures else ()

    def tasks(self) -> Sequence[DialogueTask | StageTask]:
        """Every model in every history mode; under ``cxreasonbench`` every model once."""
        from dataclasses import replace

        if self.protocol == "cxreasonbench":
            options = replace(self.options, seed=self._setting.seed)
            size = self._setting.requests_a_call
            return [StageTask(model, self.source, options, size) for model in self._setting.models]
        judges = tuple(self._setting.roles.get("judges", ()))
        user = next(iter(self._setting.roles.get("simulator", ())), None)
        return [
            DialogueTask(
                model,
                self.source,
                replace(self.options, history=history, seed=self._setting.seed),
                judges,
                user if history == "simulator" else None,
                self._setting.requests_a_call,
            )
            for model in self._setting.models
            for history in self.histories
        ]

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """Summarise rows; see :func:`medground.benchmarks.cxreasondial.summarise.summarise`."""
        from medground.benchmarks.cxreasondial.compare import compare
        from medground.benchmarks.cxreasondial.floors import floors
        from medground.benchmarks.cxreasondial.summarise import summarise
        from medground.benchmarks.looking import with_looking

        facts = [facts_of(entry.label, entry.card) for entry in self._setting.models]
        if self.protocol == "cxreasonbench":
            summary = summarise_stages(rows, facts, self.notes())
        else:
            notes = [*self.notes(), *self._dropped()]
            summary = summarise(rows, self.reading, facts, floors(self.source.dialogues()), notes, self.rules)
        return with_looking(summary, compare(self), rows, self._setting.models)

    @property
    def seed(self) -> int:
        """Of phantoms, judges and flips: that of the run."""
        return self._setting.seed

    @property
    def judges(self) -> dict[str, Any]:
        """Who judges, with what its verdicts depend on."""
        by_rules = self.options.judge == "evidence"
        models = [] if by_rules else [entry.identity() for entry in self._setting.roles.get("judges", ())]
        return {"judge": judge_identity(self.options), "models": models}

    def _dropped(self) -> list[str]:
        if (dropped := self.source.dropped()) is None:
            return []
        count, of = dropped
        return [f"Quality control dropped {count} of {of} measurements ({100 * count / of:.1f} %)."]

    def notes(self) -> list[str]:
        """What a reader must know beforehand."""
        if self.protocol == "cxreasonbench":
            said = "Choices are read by rules; not comparable with figures of a judging model."
            return [said, *decide.changes(self.rules)]
        out = [f"Judged by {judge_identity(self.options)}: not comparable with figures of another judge."]
        out += [f"The user is played by {user.label}." for user in self._setting.roles.get("simulator", ())]
        if not self.options.pictures:
            out.append("The models were shown no picture.")
        return [*out, *decide.changes(self.rules)]

    def manifest(self) -> Mapping[str, Any]:
        """Judge, dialogues and what was asked for."""
        return {"judge": self.reading[1], "dialogues": self.source.identity(), "notes": self.notes()}
