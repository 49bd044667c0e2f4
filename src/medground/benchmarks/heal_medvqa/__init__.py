"""HEAL-MedVQA: does a "yes" hang on the region that was asked about?

Closed and open questions about findings in anatomical regions; then the words of the question (textual perturbation
test, TPT) or the pixels of the region (visual perturbation test, VPT) change, and "yes" should turn into "no". Controls
change something that should leave the answer alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from medground.benchmarks.base import Entry, Role, Setting, withheld
from medground.errors import ConfigError
from medground.metrics import decide

if TYPE_CHECKING:
    import polars as pl

    from medground.benchmarks.heal_medvqa.choices import Choices
    from medground.benchmarks.heal_medvqa.tasks import HealTask
    from medground.benchmarks.model_reading import ModelReading
    from medground.benchmarks.results import Summary


class HealMedVQA:
    """Region questions with textual and visual perturbations, and the controls that should change nothing.

    Args:
        samplers: of negatives, used in turn; see ``docs/heal_medvqa.md`` for what each leaves to a blind reader.
        questions: least and most questions an image.
        open_share: share of the questions that are open.
        valid_only: ask negatives only about pairs that hold in some counted image.
        quartets: swapped quartets, on phantoms.
        relation: options of the relation rule: ``threshold``, ``lesions``, ``denominator``, ``counting``, ``touch``.
        paste: options of a paste: ``blend``, ``feather``, ``sigma``, ``support``, ``matching``.
        donor: whose pixels are pasted: ``prefers_normal``, ``normal``, ``region_normal`` or ``lacks_finding``.
        masks: where anatomies are, for datasets other than phantoms: ``{source: folder, root: FOLDER}``, or ``thirds``
            or ``halves`` of the picture as a crude stand-in.
        longest: side that pictures are shrunk to before they are pasted and shown; 0: as they are.
        train_share: patients that counts are made over and that are never asked about.
        instruction: appended to every question, such as "Answer yes or no."
        max_new_tokens: of a reply.
        pictures: specimens of pastes that a report shows, of datasets that may be passed on.
        reader: ``rules``; a language model reads instead where ``roles: {readers: {name: llm, by: {...}}}`` names one.
        true_regions: ask everything once more with the true region given to the model, in place of the one that it
            locates itself; for models that can be highlighted (``loba``).
        rules: margins and minima of decisions, by family, where they differ from the usual.
    """

    name: ClassVar[str] = "heal_medvqa"
    roles: ClassVar[Mapping[str, Role]] = {
        "models": Role("model", ("reply",), least=1),
        "datasets": Role("dataset", least=1),
        "readers": Role("reader", most=1, sees=False),
    }
    readings: ClassVar[Mapping[str, str]] = {"reader": "reader"}
    doors: ClassVar[Mapping[str, str]] = {
        "build": "medground.benchmarks.heal_medvqa.folder:build_door",
        "compare": "medground.benchmarks.heal_medvqa.compare:compare",
    }

    def __init__(
        self,
        samplers: tuple[str, ...] = ("popular_by_frequency", "same_question_other_picture"),
        questions: tuple[int, int] = (2, 5),
        open_share: float = 0.3,
        valid_only: bool = False,
        quartets: int = 40,
        relation: dict[str, Any] | None = None,
        paste: dict[str, Any] | None = None,
        donor: Literal["prefers_normal", "normal", "region_normal", "lacks_finding"] = "prefers_normal",
        masks: dict[str, Any] | None = None,
        longest: int = 512,
        train_share: float = 0.3,
        instruction: str = "",
        max_new_tokens: int = 64,
        pictures: int = 8,
        reader: Literal["rules"] = "rules",
        true_regions: bool = False,
        rules: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self._given = {
            "samplers": samplers,
            "questions": questions,
            "open_share": open_share,
            "valid_only": valid_only,
            "quartets": quartets,
            "relation": relation or {},
            "paste": paste or {},
            "donor": donor,
            "masks": masks,
            "longest": longest,
            "train_share": train_share,
        }
        self.instruction, self.max_new_tokens, self.pictures = instruction, max_new_tokens, pictures
        self.reader, self.true_regions = reader, true_regions
        self.rules = decide.rules(rules)
        self._setting = Setting(models=())
        self.choices(0)  # a mistake in the options is told at once

    def choices(self, seed: int) -> Choices:
        """Return the checked choices of the build.

        Raises:
            ConfigError: an option is unknown or of a wrong type.
        """
        from medground.benchmarks.heal_medvqa.options import checked_choices

        return checked_choices(self._given, seed)

    def bind(self, setting: Setting) -> None:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        if not setting.datasets:
            raise ConfigError(
                "heal_medvqa needs at least one dataset", where="benchmark.datasets", fix="datasets: [{name: phantom}]"
            )
        self._setting = setting
        self._model_reading()  # a reader that cannot read is told at once

    def _model_reading(self) -> ModelReading | None:
        from medground.benchmarks.model_reading import ModelReading

        readers = self._setting.roles.get("readers", ())
        return ModelReading(readers[0], ("yes_no", "findings")) if readers else None

    @property
    def reading(self) -> tuple[str, Any]:
        """The readers of yes and no, and of findings: rules, or a language model."""
        if model := self._model_reading():
            return "llm", model.record()
        from medground.readers.findings import Findings
        from medground.readers.yes_no import YesNo

        readers = {reader.name: reader.version for reader in (YesNo, Findings)}
        return "rules", readers

    def withheld(self) -> Sequence[str]:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        return withheld(self._setting.datasets)

    def tasks(self) -> Sequence[HealTask]:
        """Every model on every dataset."""
        from medground.benchmarks.heal_medvqa.tasks import HealTask

        return [
            HealTask(
                model,
                dataset,
                self.choices(self._setting.seed),
                self.instruction,
                self.max_new_tokens,
                self.pictures if self._shown(dataset) else 0,
                self._setting.requests_a_call,
                self._model_reading(),
                self.true_regions,
            )
            for model in self._setting.models
            for dataset in self._setting.datasets
        ]

    @staticmethod
    def _shown(dataset: Entry) -> bool:
        return bool(getattr(dataset.card, "redistributable", False))

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """Summarise rows, by (model, dataset); see :func:`medground.benchmarks.heal_medvqa.summarise.summarise`."""
        from medground.benchmarks.heal_medvqa.compare import compare
        from medground.benchmarks.heal_medvqa.rows import read_twice
        from medground.benchmarks.heal_medvqa.summarise import summarise
        from medground.benchmarks.looking import with_looking
        from medground.benchmarks.model_reading import with_readers

        cards = {model.label: model.card for model in self._setting.models}
        summary = summarise(rows, rules=self.rules, reading=self.reading[0], about=self._about(), cards=cards)
        summary = with_readers(summary, [one for path, table in rows.items() for one in read_twice(path, table)])
        return with_looking(summary, compare(self), rows, self._setting.models)

    @property
    def seed(self) -> int:
        """Of questions, pastes and flips: that of the run."""
        return self._setting.seed

    def _about(self) -> dict[str, Any]:
        from medground.benchmarks.heal_medvqa.options import about
        from medground.benchmarks.heal_medvqa.tasks import opened

        choices = self.choices(self._setting.seed)
        return {d.label: about(opened(d, choices)[1], choices) for d in self._setting.datasets}

    def manifest(self) -> Mapping[str, Any]:
        """Every choice in words, and what the build counted."""
        return {"instruction": self.instruction, "build": self._about(), "notes": self.notes()}

    def notes(self) -> list[str]:
        """Return what must be known beforehand: where anatomies come from, and which margins decide."""
        notes = [f"{label}: {facts['statement']}" for label, facts in self._about().items()]
        return [*notes, f"decisions about rates: {self.rules['rate'].in_words()}"]
