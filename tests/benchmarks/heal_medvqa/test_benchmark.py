"""The benchmark as the engine sees it: options, tasks, a scripted model on phantoms and on real boxes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.heal_medvqa import HealMedVQA
from medground.datasets.nih_chestxray14 import NihChestXray14
from medground.datasets.phantom import Phantom
from medground.errors import ConfigError, ModelError
from medground.models.base import ModelInfo, Reply


class AlwaysYes:
    """Says yes to whatever is asked, if it is shown a picture."""

    name: ClassVar[str] = "always_yes"
    info: ClassVar[ModelInfo] = ModelInfo("always yes", kind="baseline")
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply", "pictures"})

    def reply(self, conversations: Sequence[Any], options: Any = None) -> list[Reply]:
        assert options is not None
        assert all(turns[0].images for turns in conversations)
        return [Reply("Yes.") for _ in conversations]


class Mute:
    name: ClassVar[str] = "mute"
    info: ClassVar[ModelInfo] = ModelInfo("mute", kind="baseline")


def bound(dataset: Entry, **given: Any) -> HealMedVQA:
    benchmark = HealMedVQA(**given)
    benchmark.bind(Setting(models=[Entry("yes", "always_yes", AlwaysYes)], datasets=[dataset]))
    return benchmark


@pytest.fixture(scope="module")
def phantoms() -> Entry:
    return Entry("phantom", "phantom", Phantom, {"cases": 12, "size": 64})


def test_a_run_on_phantoms_from_tasks_to_summary(phantoms: Entry) -> None:
    benchmark = bound(phantoms, quartets=2, pictures=1)
    (task,) = benchmark.tasks()
    assert pickle.loads(pickle.dumps(task)) == task
    items = task.items()
    assert len({item.item_id for item in items}) == len(items)
    measured = evaluate(task, {"model": AlwaysYes()})
    rows = pl.DataFrame([row for one in measured for row in one.rows], schema=task.schema)
    summary = benchmark.summarise({task.path: rows})
    cells = {(c.metric, c.subset): c.value for c in summary.cells if c.scope == "all"}
    assert cells["balanced_accuracy", "quartets"] == 0.5
    assert cells["tpt", "main"] == cells["vpt_redrawn", "main"] == 0
    assert cells["own_region_back", "main"] == 1
    assert summary.tables["blind_and_region_blind"].height == 8
    assert summary.models[0].kind == "baseline"
    assert any("drawn with" in note for note in benchmark.notes())
    assert rows.filter(pl.col("residue_hard").is_not_null()).height


def test_what_changes_the_answers_changes_the_identity(phantoms: Entry) -> None:
    def identity(**given: Any) -> str:
        return bound(phantoms, quartets=0, **given).tasks()[0].fingerprint()

    plain = identity()
    assert identity() == plain
    assert identity(paste={"matching": "none"}) != plain
    assert identity(instruction="Answer yes or no.") != plain
    assert identity(samplers=("random",)) != plain


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"samplers": ("randon",)}, "samplers"),
        ({"paste": {"sigmma": 1}}, "did you mean 'sigma'"),
        ({"relation": {"lesions": "some"}}, "relation"),
        ({"questions": (5, 2)}, "questions"),
        ({"masks": {"source": "network"}}, "masks"),
        ({"open_share": 1.5}, "open_share"),
    ],
)
def test_mistakes_in_options_are_told_at_once(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HealMedVQA(**given)
    assert words in str(caught.value)


def test_a_model_that_cannot_look_is_refused(phantoms: Entry) -> None:
    (task,) = bound(phantoms, quartets=0).tasks()
    with pytest.raises(ModelError):
        task.open({"model": Mute()})


def test_a_dataset_without_masks_asks_for_them(tmp_path: Path) -> None:
    (tmp_path / "BBox_List_2017.csv").write_text("Image Index,Finding Label,x,y,w,h\na.png,Mass,1,1,9,9\n")
    entry = Entry("nih", "nih_chestxray14", NihChestXray14, {"root": tmp_path, "missing": "keep"})
    with pytest.raises(ConfigError, match="where anatomies are is not known"):
        bound(entry).tasks()[0].items()


@pytest.mark.data
def test_real_boxes_with_a_crude_stand_in_run_end_to_end(data_root: Path) -> None:
    root = data_root / "nih-chestxray14"
    given = {"root": root, "image_dir": "images", "findings": ["Mass", "Nodule", "Effusion"]}
    benchmark = bound(Entry("nih", "nih_chestxray14", NihChestXray14, given), masks={"source": "thirds"}, longest=224)
    (task,) = benchmark.tasks()
    items = task.items()
    measured = evaluate(task, {"model": AlwaysYes()}, items[:60])
    rows = pl.DataFrame([row for one in measured for row in one.rows], schema=task.schema)
    assert all(item.files for item in items)
    summary = benchmark.summarise({task.path: rows})
    cells = {c.metric: c.value for c in summary.cells if c.scope == "all" and c.subset == "main"}
    assert cells["recall"] == 1
    assert cells["specificity"] == cells["vpt"] == cells["tpt_anatomy"] == 0
    assert "vpt_redrawn" not in cells
    assert any("crude stand-in" in note for note in benchmark.notes())
