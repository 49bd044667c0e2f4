"""Benchmarks in one class: pictures of a dataset, a reader that asks nobody, clusters, failures, pickles."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.base import Entry, Item, Role, Setting, evaluate
from medground.benchmarks.comparable import Contender
from medground.benchmarks.doors import check_benchmark
from medground.benchmarks.requests import Ask
from medground.benchmarks.simple import Simple, compare
from medground.datasets.manifest import Manifest
from medground.metrics.bootstrap import clusters
from medground.metrics.inference import estimate_mean
from medground.metrics.spec import MetricSpec
from medground.models.base import Message, ModelInfo, Reply


class Brightness(Simple):
    """Asks whether a picture is bright.

    Args:
        reader: what counts as a yes.
    """

    name: ClassVar[str] = "brightness"
    metrics = (
        MetricSpec("right", "Right", floor="chance", floor_value=0.5),
        MetricSpec("short", "Short", direction="neither"),
    )
    roles: ClassVar = {"models": Role("model", ("reply",), least=1), "datasets": Role("dataset", least=1)}
    readings: ClassVar = {"reader": "reader"}

    def __init__(self, reader: str = "yes") -> None:
        self.reader = reader

    def items(self, dataset: Any) -> list[Item]:
        return [Item(case.case_id, case.patient_id, (case.image,)) for case in dataset.cases()]

    def cluster(self, item: Item) -> str | None:
        return str(item.payload)

    def converse(self, item: Item, loaded: Any) -> Any:
        yield [Ask("model", "reply", {"conversation": (Message("user", "Is it bright?", (loaded,)),)})]
        return {"bright": bool(loaded.pixels.mean() > 0.3)}

    def read(self, item: Item, said: Any) -> Any:
        (answer,) = said.answers("model")
        text = answer.values["text"]
        return {"right": (self.reader in text) == said.notes["bright"], "short": len(text) < 5 if text else None}


class Asks(Brightness):
    """Asks somebody whom no reading names."""

    name: ClassVar[str] = "asks"

    def read(self, item: Item, said: Any) -> Any:
        yield [Ask("judge", "reply", {})]
        return {}


class Says:
    """Says yes, but refuses pictures with an even sum."""

    name: ClassVar[str] = "says"
    info: ClassVar = ModelInfo("says", kind="baseline")
    capabilities: ClassVar = frozenset({"reply", "pictures"})

    def reply(self, conversations: Sequence[Any], options: Any = None) -> list[Reply]:
        sums = [int(c[0].images[0].pixels.sum() * 255) for c in conversations]
        return [Reply("", "refusal", "no") if total % 3 == 0 else Reply("yes") for total in sums]


def bound(manifest: Path, cls: type[Brightness] = Brightness, **given: Any) -> Brightness:
    check_benchmark(cls)
    made = cls(**given)
    dataset = Entry("tiny", "manifest", Manifest, {"root": manifest})
    made.bind(Setting([Entry("says", "says", Says)], [dataset]))
    return made


def rows(made: Brightness) -> dict[tuple[str, ...], pl.DataFrame]:
    (task,) = made.tasks()
    measured = evaluate(task, {"model": Says()})
    return {task.path: pl.DataFrame([row for m in measured for row in m.rows], schema=task.schema)}


def test_means_of_rows_with_their_patients_and_failures(tiny_manifest: Path) -> None:
    made = bound(tiny_manifest)
    ((path, table),) = rows(made).items()
    assert path == ("says", "tiny")
    lost = table.filter(pl.col("reason") == "model: refusal")
    assert 0 < len(lost) < len(table)
    assert lost["right"].null_count() == len(lost)
    summary = made.summarise({path: table})
    cell = next(c for c in summary.cells if c.metric == "right")
    values = table["right"].fill_null(float("nan")).to_numpy()
    expected = estimate_mean(values, clusters(table["cluster"].to_list(), table["item"].to_list()))
    assert (cell.value, cell.low, cell.high) == (expected.value, expected.low, expected.high)
    assert (cell.n, cell.undefined, cell.failed, cell.floor) == (len(table) - len(lost), 0, len(lost), 0.5)
    assert cell.value == pytest.approx(np.nanmean(values))
    assert summary.tables["means"]["Right"].to_list() == [summary.metrics[0].shown(cell.value)]


def test_a_reader_changes_rows_alone_and_everything_else_the_answers(tiny_manifest: Path) -> None:
    (task,), (other,) = (bound(tiny_manifest, reader=reader).tasks() for reader in ("yes", "no"))
    assert task.fingerprint() == other.fingerprint()
    assert task.reading() != other.reading()
    assert bound(tiny_manifest, reader="no").reading[0] == "no"
    assert pickle.loads(pickle.dumps(task)).fingerprint() == task.fingerprint()


def test_pictures_belong_to_their_dataset(tiny_manifest: Path) -> None:
    assert bound(tiny_manifest).withheld() == ["tiny"]


def test_one_who_is_asked_and_named_by_no_reading_is_told(tiny_manifest: Path) -> None:
    with pytest.raises(TypeError, match="asks judge, whom no reading names"):
        rows(bound(tiny_manifest, Asks))


def test_samples_of_a_comparison_are_the_columns(tiny_manifest: Path) -> None:
    made = bound(tiny_manifest)
    ((_, table),) = rows(made).items()
    side = Contender("says", "says", "", "tiny", table)
    pairs = list(compare(made).matched(side, side))
    assert [one.spec.name for one, _ in pairs] == ["right", "short"]
    assert pairs[0][0].table["value"].equals(table["right"])
    assert compare(made).settings != compare(bound(tiny_manifest, reader="no")).settings
