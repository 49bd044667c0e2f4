import json
import pickle

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.base import Entry, Item, Setting, evaluate
from medground.benchmarks.gridvqa_x import GridVQAX
from medground.benchmarks.gridvqa_x.rows import SCHEMA, local_row
from medground.benchmarks.gridvqa_x.tasks import PoolTask, spelt
from medground.errors import ConfigError, ModelError
from medground.explainers.base import Attribution
from medground.explainers.emap import Emap
from medground.explainers.intershap import InterShap
from medground.explainers.multiviz import MultiViz
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.worlds.gridvqa.build import Plan, build
from medground.worlds.gridvqa.sources import Drawn


class Reader:
    """A faithful local explainer: the drop in the answer's logit when a cell or a word is hidden."""

    name = "reader"

    def __init__(self, fill: str = "white") -> None:
        self.fill = fill

    def calls(self, words, cells, pool):
        return words + cells

    def explain(self, pool, index):
        from medground.explainers.base import hide_cells, hide_words

        example, target = pool.examples[index], pool.predicted(index)
        own = pool.own[index, target]
        cells, words = pool.grid**2, len(example.words)
        images = hide_cells(example.image, ~np.eye(cells, dtype=bool), self.fill)
        texts = hide_words(example.question, ~np.eye(words, dtype=bool))
        blind = pool.asker.all_pairs(images, [example.question])[:, 0, target]
        deaf = pool.asker.all_pairs(example.image[None], texts)[0, :, target]
        return Attribution((own - blind).reshape(pool.grid, -1), own - deaf, target, cells + words)


def entries(*classes):
    return [Entry(cls.name, cls.name, cls) for cls in classes]


def players(task):
    return {role: entry.build() for role, entry in task.roles.items()}


def rows_of(task):
    return [row for m in evaluate(task, players(task)) for row in m.rows]


@pytest.fixture(scope="module")
def bench():
    found = GridVQAX(per_bucket=3, replicates=60, pictures=1)
    found.bind(Setting(entries(RuleExecutor, WordCounter), explainers=entries(Emap, InterShap, Reader)))
    return found


@pytest.fixture(scope="module")
def rows(bench):
    return {task.path: pl.DataFrame(rows_of(task), schema=task.schema) for task in bench.tasks()}


@pytest.fixture(scope="module")
def summary(bench, rows):
    return bench.summarise(rows)


def test_every_regime_meets_every_bucket(bench, rows):
    assert len(rows) == 57
    assert list(bench.regimes.values()) == ["pure", "spurious", "cross"]
    assert {path[:2] for path in rows} == {
        ("gridvqa_rule", "pure"),
        ("gridvqa_counter", "spurious"),
        ("gridvqa_counter", "pure"),
    }
    assert all(len(part) == 3 * (1 + 3) for part in rows.values())
    assert len({task.fingerprint() for task in bench.tasks()}) == 57


def test_the_analytic_pair_answers_as_its_regimes_say(summary):
    accuracy = summary.tables["accuracy"]

    def of(regime, group):
        return accuracy.filter(pl.col("regime") == regime, pl.col("group") == group)["value"][0]

    assert of("pure", "") == of("spurious", "") == 1.0
    assert of("cross", "A") == 1.0
    for bucket in ("D2-SO-count-d07", "D3-M-count-d07"):
        assert of("cross", bucket) == 0.0
    for bucket in ("D2-CMP-compare-d07", "D3-CMP-compare-d07"):
        assert of("cross", bucket) < 1.0


def test_a_faithful_explainer_tells_the_models_apart(summary):
    verdicts = {v["modality"]: v for v in summary.data["local"]}
    assert set(verdicts) == {"image", "text"}
    for verdict in verdicts.values():
        assert verdict["verdict"] == "tells them apart"
        assert verdict["reasoning"] > verdict["shortcut"] == pytest.approx(0, abs=1e-6)
        assert verdict["low"] > 0
        assert verdict["right_order"] > 0.7
        assert verdict["reliability"] == pytest.approx(1)


def test_masses_and_counts_are_those_of_the_rows(summary, rows):
    cells = summary.tables["cells"]
    for path, regime in ((("gridvqa_rule", "pure"), "pure"), (("gridvqa_counter", "pure"), "cross")):
        kept = pl.concat([part for p, part in rows.items() if p[:2] == path]).filter(pl.col("method") == "reader")
        for metric in ("image_mass", "text_iou", "image_mass_shortcut"):
            cell = cells.filter(
                pl.col("regime") == regime,
                pl.col("method") == "reader",
                pl.col("metric") == metric,
                pl.col("scope") == "all",
            ).row(0, named=True)
            assert cell["value"] == pytest.approx(kept[metric].mean())
            assert cell["sd"] == pytest.approx(kept[metric].std(ddof=0))
            assert cell["n"] == kept[metric].count()
            assert cell["n"] + cell["undefined"] == len(kept)
            assert cell["low"] <= cell["value"] <= cell["high"]
            unannotated = kept.filter(pl.col("type") == "A", pl.col("answer") == "no")
            assert cell["unannotated"] == len(unannotated)
            assert unannotated[metric].is_null().all()


def test_the_shortcut_model_is_faithful_to_the_shortcut_mask(summary):
    cells = summary.tables["cells"].filter(
        pl.col("scope") == "type", pl.col("group") == "M", pl.col("method") == "reader"
    )
    value = {(regime, metric): v for regime, metric, v in cells.select("regime", "metric", "value").iter_rows()}
    assert value["cross", "image_mass_shortcut"] > value["cross", "image_mass"]
    assert value["cross", "text_directions"] == pytest.approx(0, abs=1e-6)
    assert value["pure", "text_directions"] > 0.05
    assert value["pure", "image_mass"] > value["cross", "image_mass"]


def test_the_summary_is_json_without_nan_and_repeats(bench, rows, summary):
    text = json.dumps(summary.data, allow_nan=False)
    again = bench.summarise(dict(reversed(list(rows.items()))))
    assert json.loads(text)["scenes"] == {"pure": 57, "spurious": 57, "cross": 57}
    assert json.dumps(bench.summarise(rows).data) == text
    assert sorted(map(str, again.tables["local"].rows())) == sorted(map(str, summary.tables["local"].rows()))


def test_published_tables_stand_beside_ours(summary):
    table = summary.tables["published"]
    emap = table.filter(pl.col("table") == "emap", pl.col("regime") == "pure")
    assert emap["published"].to_list() == [78.6, 74.7, 64.1]
    assert emap["ours"].is_not_null().all()
    accuracy = table.filter(pl.col("table") == "accuracy", pl.col("regime") == "pure")
    assert accuracy["ours"].to_list() == [100.0, 100.0, 100.0]
    assert table.filter(pl.col("method") == "Qwen3-VL-30B")["ours"].is_null().all()


def test_the_glance_shows_accuracy_mass_synergy_and_verdicts(summary):
    table = summary.tables["glance"]
    assert table["dataset"].unique(maintain_order=True).to_list() == [
        "Accuracy",
        "Local explainers",
        "Global explainers",
    ]
    lines = {(line["method"], line["of"]): line for line in table.iter_rows(named=True)}
    assert lines["model", "type M, depth 3"]["pure"] == "100.0"
    assert lines["reader", "text"]["verdict"].startswith("tells them apart")
    assert len(lines["emap", "depth 1 2 3"]["spurious"].split()) == 3


def test_pictures_hold_scene_masks_and_maps_of_both_models(summary):
    pictures = summary.data["pictures"]
    assert len(pictures) == 38
    pure = next(p for p in pictures if p["scene"]["id"].startswith("pure-D3-M-count"))
    assert {m["regime"] for m in pure["maps"]} == {"pure", "cross"}
    assert len(pure["maps"][0]["image_map"]) == 25
    assert len(pure["maps"][0]["text_map"]) == len(pure["scene"]["words"])


def test_the_fallacy_check_reports_every_depth(summary, rows):
    check = next(c for c in summary.data["additive_fallacy"] if (c["method"], c["subset"]) == ("emap", "mixed"))
    own = pl.concat([part for path, part in rows.items() if path[:2] == ("gridvqa_rule", "pure")])
    scored = own.filter(pl.col("method") == "emap", pl.col("type") == "M", pl.col("score").is_not_null())
    assert check["pure"]["n"] == [scored.filter(pl.col("depth") == depth).height for depth in (1, 2, 3)]
    assert max(check["pure"]["n"]) == 6
    fewest = min(check["pure"]["n"])
    # Six scenes a depth, or fewer, are too few to claim anything, whatever the means say.
    assert check["verdict"].startswith(f"cannot be told: {fewest} scenes")
    assert check["by_means"].startswith(("passes", "fails"))
    assert any(line["pattern"].startswith("emap: synergy") for line in summary.data["findings"])


def test_calls_are_planned_noted_and_bounded():
    plain = GridVQAX()
    plain.bind(Setting(entries(RuleExecutor, WordCounter)))
    assert plain.planned_calls == 50 + 1275 + 2 * 64 * 8 + 3 + 50 + 570 + 17 * 3 * 5 <= 3500
    assert f"at most {plain.planned_calls} model calls" in plain.notes()[0]
    with pytest.raises(ConfigError, match="plan 3227 model calls"):
        GridVQAX(budget=2000).bind(Setting(entries(RuleExecutor)))


def test_explainers_of_the_run_replace_the_usual_ones():
    setting = Setting(entries(RuleExecutor))
    object.__setattr__(setting, "explainers", [Entry("mine", "mine", Reader)])
    found = GridVQAX(per_bucket=2)
    found.bind(setting)
    assert [e.label for e in found.explainers] == ["mine"]
    assert list(found.regimes.values()) == ["pure"]
    assert found.manifest()["explainers"]["mine"]["fill"] == "white"


def test_wrong_settings_are_named():
    with pytest.raises(ConfigError, match="one model, or a pair"):
        GridVQAX().bind(Setting([]))
    with pytest.raises(ConfigError, match="two scenes"):
        GridVQAX(per_bucket=1)
    found = GridVQAX(reasons="nobody")
    found.bind(Setting(entries(RuleExecutor)))
    with pytest.raises(ConfigError, match="label"):
        _ = found.regimes

    class Mute:
        name, info = "mute", RuleExecutor.info

    found = GridVQAX()
    found.bind(Setting(entries(Mute)))
    with pytest.raises(ModelError, match="answer from a fixed list"):
        found.tasks()[0].open({"model": Mute()})


def test_a_run_reads_folders_in_the_published_layout(tmp_path):
    plan = Plan(per_bucket=3, seed=5)
    build(tmp_path / "pure", plan)
    found = GridVQAX(per_bucket=3, pure=tmp_path / "pure", replicates=0)
    found.__dict__["explainers"] = ()
    found.bind(Setting(entries(RuleExecutor)))
    tasks = found.tasks()
    assert len(tasks) == 19
    rows = rows_of(tasks[7])
    assert len(rows) == 3
    assert all(row["right"] for row in rows)


def test_a_method_that_cannot_work_leaves_a_reason(bench):
    source = Drawn("pure", (0.7,), 2, 5, "strict", 0)
    (model,) = entries(RuleExecutor)
    task = PoolTask(model, "pure", source, source.buckets[4], tuple(entries(MultiViz)), cell=16, pictures=0)
    rows = rows_of(task)
    assert [row["reason"] for row in rows if row["method"] == "multiviz"] == ["the model gives no gradients"] * 2
    assert all(row["image_mass"] is None for row in rows)
    lost = task.measurer().failed(Item("x", source.buckets[4]), "no such file").rows[0]
    assert (lost["reason"], lost["right"]) == ("no such file", None)
    assert set(lost) == set(SCHEMA.names())


def test_pixel_maps_are_measured_at_their_own_size_and_kept_by_cell():
    scene = Drawn("pure", (0.7,), 1, 5, "strict", 0).scenes(Drawn("pure", (0.7,), 1, 5, "strict", 0).buckets[3])[0]
    values = np.random.default_rng(0).random((80, 80))
    row = local_row(scene, "m", Attribution(values, None, 0), {"said": "1", "right": True, "target": "1"})
    coarse = local_row(
        scene,
        "m",
        Attribution(values.reshape(5, 16, 5, 16).sum((1, 3)), None, 0),
        {"said": "1", "right": True, "target": "1"},
    )
    assert row["image_mass"] == pytest.approx(coarse["image_mass"])
    assert row["image_map"] == pytest.approx(coarse["image_map"])
    assert row["image_iou"] != coarse["image_iou"]
    assert row["text_mass"] is None


def test_large_counts_are_spelt_as_the_model_spells_them():
    scene = Drawn("pure", (0.7,), 1, 8, "strict", 0).scenes(Drawn("pure", (0.7,), 1, 8, "strict", 0).buckets[0])[0]
    big = type(scene)("x", 8, scene.things, scene.question, 23, "pure", 0.7)
    assert spelt(big, RuleExecutor.answers) == "17+"
    assert spelt(big, ["1", "2"]) == "23"


class Broken(Reader):
    name = "broken"

    def explain(self, pool, index):
        if index == 0:
            raise RuntimeError("/home/somebody/secret: no")
        example = pool.examples[index]
        text = np.full(len(example.words), np.nan if index == 1 else 1.0)
        return Attribution(np.ones((pool.grid, pool.grid)) * (1 + 1j), text, pool.predicted(index))


def test_an_explainer_that_fails_costs_its_own_rows_and_gives_a_reason_without_a_path():
    source = Drawn("pure", (0.7,), 3, 5, "strict", 0)
    (model,) = entries(RuleExecutor)
    task = PoolTask(model, "pure", source, source.buckets[4], tuple(entries(Broken, Reader)), cell=16, pictures=0)
    rows = rows_of(task)
    reasons = [row["reason"] for row in rows if row["method"] == "broken"]
    assert reasons[0] == "the explainer raised RuntimeError"
    assert reasons[1] == "the text map holds NaN or infinite values"
    assert reasons[2] == "the image map holds complex128 values"
    assert all(row["image_mass"] is None for row in rows if row["method"] == "broken")
    assert all(row["image_mass"] is not None for row in rows if row["method"] == "reader")


def test_a_task_survives_pickling_and_says_the_same(bench):
    task = bench.tasks()[3]
    again = pickle.loads(pickle.dumps(task))
    assert again.fingerprint() == task.fingerprint()
    assert [item.item_id for item in again.items()] == [item.item_id for item in task.items()]
    assert rows_of(again) == rows_of(task)


@pytest.mark.parametrize(
    ("model", "parameters", "grid", "right"),
    [
        ("gridvqa_pure", {}, 5, True),
        ("gridvqa_pure", {}, 6, False),
        ("gridvqa_spur", {}, 4, False),
        ("gridvqa_rule", {"grid": 6}, 6, True),
        ("gridvqa_rule", {}, 6, False),
        ("gridvqa_counter", {"grid": 6}, 5, False),
        ("gridvqa_mdetr", {}, 7, False),
    ],
)
def test_a_model_made_for_another_grid_is_refused(
    model: str, parameters: dict[str, int], grid: int, right: bool
) -> None:
    from medground import registry
    from medground.benchmarks.base import Entry, Setting
    from medground.benchmarks.gridvqa_x import GridVQAX
    from medground.errors import ConfigError

    bench = GridVQAX(per_bucket=4, grid=grid, budget=10**6)
    setting = Setting([Entry("m", model, registry.load("model", model), parameters)])
    if right:
        bench.bind(setting)
        return
    with pytest.raises(ConfigError, match="made for scenes of") as caught:
        bench.bind(setting)
    assert f"benchmark.grid: {grid}" in str(caught.value)


def test_the_trained_pair_states_its_grid_and_chosen_buckets_are_kept():
    from medground.models.answerers.gridvqa_pure import PureNet

    def bound(parameters, **options):
        bench = GridVQAX(per_bucket=2, **options)
        bench.bind(Setting([Entry("p", "p", PureNet, parameters)]))
        return bench

    with pytest.raises(ConfigError, match="made for scenes of 5 x 5"):
        bound({}, grid=6)
    six = bound({"grid": 6}, grid=6, depths=(2, 3), types=("M",), forms=("count",))
    assert [task.bucket.key for task in six.tasks()] == ["D2-M-count-d07", "D3-M-count-d07"]
    sparse = bound({}, densities=(0.3,))
    assert len(sparse.tasks()) == 17
    assert sum("cannot be filled on a 5 by 5 grid" in note for note in sparse.notes()) == 2
    with pytest.raises(ConfigError, match="D3-CMP-compare-d03 cannot be filled"):
        bound({}, densities=(0.3,), buckets=("D3-CMP-compare-d03",))
    first = bound({}, densities=(0.3,), edition="first")
    assert len(first.tasks()) == 19
    assert any("first edition" in note for note in first.notes())
    assert first.scenes != bound({}, densities=(0.3,)).scenes
