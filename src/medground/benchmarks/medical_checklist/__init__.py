"""Medical-Checklist: which of two captions, alike but for one medical term, fits the image?"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from medground.benchmarks.base import Role, Setting
from medground.benchmarks.medical_checklist import items as item_files, phantom, published
from medground.benchmarks.medical_checklist.asking import TEMPLATES, Asked, Control, Order
from medground.benchmarks.medical_checklist.audit.run import AuditReport, audit
from medground.benchmarks.medical_checklist.exposure import exposure
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.rows import ChecklistMeasurer, Reader, read_twice
from medground.benchmarks.medical_checklist.scoring.parsing import Policy
from medground.benchmarks.medical_checklist.scoring.probabilities import Link
from medground.benchmarks.medical_checklist.sources.base import may_be_used
from medground.benchmarks.medical_checklist.specs import SPECS
from medground.benchmarks.medical_checklist.summarise import Floats, Scored, policy_credit
from medground.benchmarks.medical_checklist.tables import comparisons, main_table
from medground.benchmarks.medical_checklist.tasks import NAME, ChecklistTask
from medground.benchmarks.medical_checklist.verdicts import verdict
from medground.benchmarks.model_reading import ModelReading, with_readers
from medground.benchmarks.results import Cell, Cells, ModelFacts, Summary, with_floors
from medground.errors import ConfigError, did_you_mean
from medground.metrics import decide
from medground.readers.llm import LlmReader

PHANTOM_PAIRS, PHANTOM_SIZE = 400, 224


class MedicalChecklist:
    """Caption choice: matchers by their scores, chat models by the probability of A and B or by their text.

    Args:
        build: folder of a build (``medground build medical_checklist``); default: phantoms, drawn when first needed.
        images: folder of the pictures; default: the build itself.
        reader: how answers in prose are read: ``lenient`` or ``strict`` (the two literal answers alone); a language
            model reads instead where ``roles: {readers: {name: llm, by: {...}}}`` names one.
        policy: what becomes of unread answers in the headline: ``half``, ``wrong`` or ``excluded`` (the paper's); all
            three are printed.
        link: how a matching head becomes a probability.
        order: ``both`` orders of the captions, or ``single`` (the paper's).
        ask: how models are asked: ``match``, ``choose`` (probabilities of A and B), ``reply`` (prose); ``auto``:
            the first that a model can.
        controls: what stands in the picture's place: a blank one (the blind twin), another one.
        template: the prompt for chat models.
        audit: whether blind scorers are run over the captions, as the floor of every model.
        pairs: of phantoms, where no build is given.
        seed: of phantoms and of the audit's halves.
        rules: margins and minima of decisions by family of metrics, where they differ from the usual, such as
            ``{rate: {margin: 0.05, least: 20}}``.
    """

    name: ClassVar[str] = "medical_checklist"
    roles: ClassVar[Mapping[str, Role]] = {
        "models": Role("model", ("match", "choose", "reply"), least=1),
        "readers": Role("reader", most=1, sees=False),
    }
    readings: ClassVar[Mapping[str, str]] = {"reader": "reader"}
    doors: ClassVar[Mapping[str, str]] = {
        "audit": "medground.benchmarks.medical_checklist.auditing:audit_file",
        "build": "medground.benchmarks.medical_checklist.folder:build",
        "compare": "medground.benchmarks.medical_checklist.compare:compare",
        "export": "medground.benchmarks.medical_checklist.instruction:export",
    }

    def __init__(
        self,
        build: Path | None = None,
        images: Path | None = None,
        reader: Reader = "lenient",
        policy: Policy = "half",
        link: Link = "ratio",
        order: Order = "both",
        ask: Asked = "auto",
        controls: tuple[Control, ...] = ("blank", "shuffled"),
        template: str = "literal-1",
        audit: bool = True,
        pairs: int = PHANTOM_PAIRS,
        seed: int = 0,
        rules: dict[str, dict[str, float]] | None = None,
    ) -> None:
        if template not in TEMPLATES:
            raise ConfigError(
                "no such prompt",
                where="benchmark.template",
                expected=", ".join(TEMPLATES),
                got=template,
                fix=did_you_mean(template, TEMPLATES),
            )
        if pairs < 1:
            raise ConfigError("phantoms come in pairs", where="benchmark.pairs", expected="1 or more", got=pairs)
        self.build, self.images, self.pairs, self.seed = build, images, pairs, seed
        self.measurer, self.policy, self.order = ChecklistMeasurer(reader, link), policy, order
        self.controls, self.template, self.audited, self.ask = controls, template, audit, ask
        self.rules = decide.rules(rules)
        self._setting = Setting(models=())

    def bind(self, setting: Setting) -> None:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        self._setting = setting
        self._model_reading()  # a reader that cannot read is told at once

    def _model_reading(self) -> ModelReading | None:
        readers = self._setting.roles.get("readers", ())
        return ModelReading(readers[0], ("choice",)) if readers else None

    @property
    def _reader(self) -> str:
        return self.measurer.reader if self._model_reading() is None else LlmReader.name

    @property
    def reading(self) -> tuple[str, Any]:
        """Reader, link and policy."""
        held: dict[str, Any] = {"reader": self._reader, "link": self.measurer.link, "policy": self.policy}
        name = "-".join(held.values())
        if model := self._model_reading():
            held |= {"model": model.record(), "rules": self.measurer.reader}
        return name, held

    @cached_property
    def folder(self) -> Path:
        """The build; phantoms are drawn where none is given."""
        if self.build is not None:
            return self.build.expanduser()
        recipe = phantom.Recipe(self.pairs, PHANTOM_SIZE, self.seed)
        folder = _cache() / f"checklist-{recipe.version}-{recipe.pairs}-{recipe.size}-{recipe.seed}"
        if not (folder / "build.json").is_file():
            phantom.build_into(folder, recipe)
        return folder

    @cached_property
    def items(self) -> list[ChecklistItem]:
        """All items, sorted."""
        return item_files.read(self.folder / "items.jsonl")

    @property
    def dataset(self) -> str:
        """Label of the items: the build's folder, or ``phantom``."""
        return "phantom" if self.build is None else self.build.name

    @cached_property
    def audit_report(self) -> AuditReport | None:
        """What blind scorers make of the items."""
        return audit([i.as_pair for i in self.items], seed=self.seed) if self.audited else None

    def notes(self) -> Sequence[str]:
        """What a reader must know."""
        report = _json(self.folder / "build.json")
        missing = sorted(report.get("not_buildable", {}))
        notes = [f"{len(self.items)} items of {len({i.cluster for i in self.items})} clusters"]
        if missing:
            notes.append(f"types that phantoms cannot test: {', '.join(missing)}")
        absent = sum(i.image is None for i in self.items)
        notes += [f"{absent} items without their picture"] if absent else []
        return [*notes, *decide.changes(self.rules)]

    def withheld(self) -> Sequence[str]:
        """The pictures of a build whose captions are not all under an open licence; phantoms may be passed on."""
        if self.build is None:
            return ()
        return () if all(may_be_used(item.licence, "open") for item in self.items) else (self.dataset,)

    def tasks(self) -> Sequence[ChecklistTask]:
        """One task a model."""
        return [
            ChecklistTask(
                entry,
                self.dataset,
                self.folder / "items.jsonl",
                (self.images or self.folder).expanduser(),
                self.controls,
                self.order,
                self.template,
                self.measurer,
                self._setting.requests_a_call,
                self.ask,
                self._model_reading(),
            )
            for entry in self._setting.models
        ]

    def manifest(self) -> Mapping[str, Any]:
        """Build, prompt and reading."""
        return {
            "build": _json(self.folder / "build.json"),
            "template": TEMPLATES[self.template],
            "order": self.order,
            "ask": self.ask,
            "controls": list(self.controls),
            "reading": self.reading[1],
        }

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        from medground.benchmarks.looking import with_looking
        from medground.benchmarks.medical_checklist.compare import compare

        report = self.audit_report
        blind = (report.best.scorer, report.credits[report.best.scorer]) if report and report.best else None
        scored = [self.scored(path[0], path[1], frame, blind) for path, frame in rows.items()]
        cells = with_floors([cell for s in scored for cell in s.cells()], SPECS)
        held = Cells(cells)
        ours = _by_type(cells)
        tables = {
            "accuracy": main_table(held),
            "published": published.beside(ours),
            "published_tuned": published.beside(ours, "table4_llavamed_variants"),
        }
        if len(scored) > 1:
            tables["comparisons"] = comparisons(scored)
        if report is not None:
            tables["audit"] = pl.DataFrame([vars_of(r) for r in report.results])
        summary = Summary(
            cells=cells,
            verdicts=[verdict(held, s.model, s.dataset, _differences(s), self.rules) for s in scored],
            tables=tables,
            data={
                "audit": report.data() if report else None,
                "published_source": published.SOURCE,
                "similarity_by": sorted({i.similarity_by for i in self.items}),
            },
            benchmark=NAME,
            reading=self.reading[0],
            models=[_facts(e, {s.source for s in self.items}) for e in self._setting.models],
            metrics=SPECS,
            described=f"answers read by the {self._reader} reader, unread ones {self.policy}",
            shown=("accuracy",),
            notes=[
                report.sentence if report else "No blind scorer was run over the captions.",
                *decide.changes(self.rules),
            ],
        )
        if self._model_reading() is not None:
            twice = [read_twice(path[0], path[1], frame) for path, frame in rows.items()]
            summary = with_readers(summary, twice, second=self.measurer.reader)
        return with_looking(summary, compare(self), rows, self._setting.models)

    def scored(self, model: str, dataset: str, rows: pl.DataFrame, blind: tuple[str, Floats] | None = None) -> Scored:
        """Return the rows of one model in the order of the items; an item without a row is missing.

        Args:
            model: label.
            dataset: label.
            rows: of its task.
            blind: the best blind scorer and its credit for each item.
        """
        order = pl.DataFrame({"item_id": [i.item_id for i in self.items]})
        pictures = {
            str(name): order.join(rows.filter(pl.col("picture") == name), on="item_id", how="left").with_columns(
                pl.col("outcome").fill_null("missing")
            )
            for name in ("main", *self.controls)
        }
        main = pictures.pop("main")
        exposed = self._exposure(model)
        return Scored(model, dataset, self.reading[0], self.items, main, pictures, blind, self.policy, exposed)

    def _exposure(self, model: str) -> dict[str, str]:
        """Return how each source of the items stands to a model's training."""
        card = next((entry.card for entry in self._setting.models if entry.label == model), None)
        seen: Mapping[str, str] = getattr(card, "seen", {})
        known = bool(seen) or getattr(card, "kind", None) not in (None, "unknown")
        return {source: exposure(source, seen, known=known) for source in sorted({i.source for i in self.items})}


def _differences(scored: Scored) -> dict[str, Any]:
    found = {}
    if scored.blind is not None:
        found["gain_blind"] = scored.against(scored.blind[1])
    if "blank" in scored.controls:
        blank = policy_credit(scored.controls["blank"], scored.policy)
        if not np.isnan(blank).all():
            found["gain_blank"] = scored.against(blank)
    return found


def _by_type(cells: Sequence[Cell]) -> dict[tuple[str, str], float]:
    return {
        (c.model, c.group): c.value
        for c in cells
        if c.metric == "accuracy" and c.scope == "type" and c.value is not None
    }


def vars_of(result: Any) -> dict[str, Any]:
    """Return the fields of an audit's result."""
    return {name: getattr(result, name) for name in result.__slots__}


def _facts(entry: Any, sources: set[str]) -> ModelFacts:
    card = entry.card
    seen = {name: what for name, what in getattr(card, "seen", {}).items() if name in sources}
    return ModelFacts(
        label=entry.label,
        title=getattr(card, "title", ""),
        kind=getattr(card, "kind", None),
        seen=seen,
        unverified=getattr(card, "unverified", None),
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        held: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            "a folder holds no build",
            where=path.parent,
            got=str(error),
            fix="medground build medical_checklist FOLDER",
        ) from None
    return held


def _cache() -> Path:
    """Return the folder for what can be made again: ``MEDGROUND_CACHE``, or the platform's usual place."""
    if named := os.environ.get("MEDGROUND_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "medground"
