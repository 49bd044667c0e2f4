"""A task: what it asks of a model, what it refuses, and that its fingerprint holds what changes an answer."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.requests import Transcript, answer_all
from medground.benchmarks.xbench import XBench
from medground.benchmarks.xbench.rows import SCHEMA
from medground.benchmarks.xbench.tasks import GroundingTask, check_prediction
from medground.datasets.manifest import Manifest
from medground.errors import ConfigError, DataError, DatasetError, ModelError, RunError
from medground.imaging.geometry import Geometry
from medground.models.base import ModelInfo, Prediction, seen_patients_of


class Fake:
    """Points at the centre, and counts what it was asked."""

    name: ClassVar[str] = "fake"
    info: ClassVar[ModelInfo] = ModelInfo("Fake")

    def __init__(self, mark: str = "a", patients: frozenset[str] = frozenset()) -> None:
        self.mark, self.patients = mark, patients
        self.calls: list[tuple[list[str], list[str]]] = []

    def predict(self, images: Sequence[Any], findings: Sequence[str]) -> Prediction:
        self.calls.append(([i.case_id for i in images], list(findings)))
        shape = (len(images), len(findings))
        maps = np.zeros((*shape, 3, 3), dtype=np.float32)
        maps[..., 1, 1] = 1
        return Prediction(np.zeros(shape), np.full(shape, 0.5), maps, [Geometry.identity(i.size) for i in images])

    def fingerprint(self) -> str:
        return self.mark

    def seen_patients(self, dataset: str) -> frozenset[str]:
        return self.patients


def bench(root: Path, *, seed: int = 0, model: dict[str, Any] | None = None, **options: Any) -> XBench:
    benchmark = XBench(**options)
    models = [Entry("m", "fake", Fake, model or {})]
    benchmark.bind(Setting(models, [Entry("d", "manifest", Manifest, {"root": root})], seed, batch_size=5))
    return benchmark


def rows_of(task: GroundingTask, model: Fake) -> list[dict[str, Any]]:
    return [dict(row) for m in evaluate(task, {"model": model}) for row in m.rows]


def test_the_model_is_asked_in_batches_with_the_ordered_findings(tiny_manifest: Path) -> None:
    model = Fake()
    (task,) = bench(tiny_manifest).tasks()
    stages = task.open({"model": model})
    asks = [next(stages.converse(item, stages.load(item)))[0].arguments for item in task.items()]
    stages.answer("model", "ground", asks[:5])
    assert [len(images) for images, _ in model.calls] == [5]
    rows = rows_of(task, model)
    assert {tuple(findings) for _, findings in model.calls} == {("Mass", "Nodule")}
    assert len(rows) == 24
    assert {tuple(row) for row in rows} == {tuple(SCHEMA.names())}
    assert sum(row["localised"] for row in rows) == 12


def test_the_fingerprint_holds_what_changes_an_answer_and_the_reading_what_changes_rows(tiny_manifest: Path) -> None:
    same = bench(tiny_manifest).tasks()[0]
    answers = [
        bench(tiny_manifest, model={"mark": "b"}),
        bench(tiny_manifest, model={"patients": frozenset({"p1"})}),
        bench(tiny_manifest, keep_maps="all"),
    ]
    readings = [bench(tiny_manifest, protocol="medklip"), bench(tiny_manifest, seed=1)]
    assert len({b.tasks()[0].fingerprint() for b in answers} | {same.fingerprint()}) == len(answers) + 1
    assert {b.tasks()[0].fingerprint() for b in readings} == {same.fingerprint()}
    assert len({b.tasks()[0].reading() for b in readings} | {same.reading()}) == len(readings) + 1
    again = bench(tiny_manifest).tasks()[0]
    assert (again.fingerprint(), again.reading()) == (same.fingerprint(), same.reading())


def test_a_task_is_plain_values(tiny_manifest: Path) -> None:
    task = bench(tiny_manifest, model={"mark": "b"}).tasks()[0]
    again = pickle.loads(pickle.dumps(task))
    assert again == task
    assert (again.fingerprint(), again.path) == (task.fingerprint(), ("m", "d"))


@pytest.mark.parametrize(("keep", "expected"), [("regions", 12), ("all", 24), ("none", 0)])
def test_maps_are_kept_as_asked(tiny_manifest: Path, keep: str, expected: int) -> None:
    (task,) = bench(tiny_manifest, keep_maps=keep).tasks()
    stages, maps = task.open({"model": Fake()}), []
    for item in task.items():
        _, (exchange,) = answer_all(stages.converse(item, stages.load(item)), stages.answer)
        maps += [a for name, a in exchange.answer.arrays.items() if name.startswith("map/")]
    assert len(maps) == expected
    assert {a.shape for a in maps} <= {(3, 3)}


def test_maps_that_were_not_kept_are_not_taken_for_absent(tiny_manifest: Path) -> None:
    (task,) = bench(tiny_manifest, keep_maps="none").tasks()
    stages, item = task.open({"model": Fake()}), task.items()[0]
    notes, (exchange,) = answer_all(stages.converse(item, stages.load(item)), stages.answer)
    task.measurer().measure(item, Transcript(item.item_id, (exchange,), notes))
    kept = replace(exchange, answer=replace(exchange.answer, passing={}))
    with pytest.raises(RunError, match="were not kept"):
        task.measurer().measure(item, Transcript(item.item_id, (kept,), notes))


def test_training_patients_are_marked(tiny_manifest: Path) -> None:
    (task,) = bench(tiny_manifest).tasks()
    rows = rows_of(task, Fake(patients=frozenset({"p0", "p4"})))
    assert {row["patient_id"] for row in rows if row["seen"]} == {"p0", "p4"}
    assert seen_patients_of(object(), "d") == frozenset()


def test_an_unreadable_case_fails_with_rows_that_invent_nothing(tiny_manifest: Path) -> None:
    (task,) = bench(tiny_manifest).tasks()
    stages, item = task.open({"model": Fake()}), task.items()[0]
    broken = replace(item, payload=replace(item.payload, image=tiny_manifest / "gone.png"))
    with pytest.raises(DataError):
        stages.load(broken)
    rows = task.measurer().failed(broken, "it is gone").rows
    assert {(row["state"], row["reason"], row["score"], row["ties"]) for row in rows} == {
        ("failed", "it is gone", None, None)
    }


def prediction(**changes: Any) -> Prediction:
    maps = np.zeros((2, 3, 4, 4), dtype=np.float32)
    good = Prediction(np.zeros((2, 3)), np.zeros((2, 3)), maps, [Geometry.identity((4, 4))] * 2)
    return replace(good, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": np.zeros((3, 2))}, "scores have a wrong shape"),
        ({"probabilities": np.zeros(6)}, "probabilities have a wrong shape"),
        ({"probabilities": np.full((2, 3), 1.2)}, "leave"),
        ({"probabilities": np.full((2, 3), -0.1)}, "leave"),
        ({"geometry": []}, "one an image"),
        ({"geometry": None}, "one an image"),
        ({"geometry": [Geometry.identity((4, 4)), Geometry.identity((5, 4))]}, "the image's own size"),
        ({"saliency": [[np.zeros((4, 4))] * 3, [np.zeros((4, 4))] * 2]}, "saliency has a wrong shape"),
        ({"saliency": [[np.zeros((4, 4))] * 3]}, "saliency has a wrong shape"),
        ({"saliency": [[np.zeros(4)] * 3] * 2}, "saliency has a wrong shape"),
        ({"saliency": np.zeros((2, 4, 4), np.float32)}, "saliency has a wrong shape"),
        ({"saliency": np.zeros((2, 2, 4, 4), np.float32)}, "saliency has a wrong shape"),
    ],
)
def test_a_prediction_of_another_shape_is_refused(changes: dict[str, Any], message: str) -> None:
    sizes = [(4, 4)] * 2
    check_prediction(prediction(), sizes, 3, "fake")
    check_prediction(prediction(saliency=[[np.zeros((2, i)) for i in (1, 2, 3)]] * 2), sizes, 3, "fake")
    check_prediction(prediction(saliency=None), sizes, 3, "fake")
    with pytest.raises(ModelError, match=message):
        check_prediction(prediction(**changes), sizes, 3, "fake")


def test_what_is_no_prediction_is_refused() -> None:
    with pytest.raises(ModelError, match="returns no Prediction"):
        check_prediction(None, [(4, 4)], 3, "fake")  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("edges", [(0.0, 0.1), (0.1, 1.0), (0.1, 0.1), (float("nan"),)])
def test_edges_of_sizes_part_the_picture(edges: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="different shares"):
        XBench(size_edges=edges)


def test_a_dataset_without_findings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.jsonl").write_text('{"case_id": "a"}\n')
    with pytest.raises(DatasetError, match="names no finding"):
        bench(tmp_path).tasks()


def test_a_prompt_that_no_finding_takes_is_told(tiny_manifest: Path) -> None:
    benchmark = XBench()
    dataset = Entry("d", "manifest", Manifest, {"root": tiny_manifest})
    benchmark.bind(Setting([], [dataset], prompts={"mass": "a mass", "Nodul": "a nodule"}))
    assert benchmark.notes() == ["no finding takes the prompt for 'Nodul', did you mean 'Nodule'?"]


def test_what_cannot_point_is_refused(tiny_manifest: Path) -> None:
    benchmark = XBench()
    models = [Entry("m", "object", object)]
    benchmark.bind(Setting(models, [Entry("d", "manifest", Manifest, {"root": tiny_manifest})]))
    with pytest.raises(ModelError, match="say where they are"):
        benchmark.tasks()[0].open({"model": object()})
