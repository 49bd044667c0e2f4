"""The page on GridVQA-X and the example of an own explainer, used as a reader would use them."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from medground import registry
from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.gridvqa_x import GridVQAX, default_explainers
from medground.explainers.base import Asker, Example, Pool
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.session import run_file
from medground.worlds.gridvqa.build import PRESETS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "gridvqa_x.md").read_text()
EXAMPLE = ROOT / "examples" / "my_explainer.yaml"


@pytest.fixture
def occlusion(monkeypatch):
    spec = importlib.util.spec_from_file_location("my_explainer", ROOT / "examples" / "my_explainer.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "my_explainer", module)
    spec.loader.exec_module(module)
    return module.Occlusion


def test_the_page_shows_the_example_as_it_is():
    python = re.search(r"^```python\n# my_explainer\.py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    assert python == (ROOT / "examples" / "my_explainer.py").read_text()
    assert EXAMPLE.read_text() in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_explains_what_the_rule_executor_reads(occlusion):
    from medground.worlds.gridvqa.build import picture_of
    from medground.worlds.gridvqa.checker import check
    from medground.worlds.gridvqa.generate import scenes
    from medground.worlds.gridvqa.world import buckets

    (bucket,) = [b for b in buckets([0.7]) if b.key == "D2-M-count-d07"]
    made = scenes("pure", [bucket], 2)
    examples = [Example(s.scene_id, picture_of(s, 16).astype("float32") / 255, s.question.text) for s in made]
    pool = Pool(examples, Asker(RuleExecutor()), 5)
    found = occlusion().explain(pool, 0)
    touched = {(x, y) for y in range(5) for x in range(5) if abs(found.image[y, x]) > 1e-6}
    assert touched == check(made[0].things, made[0].question, 5).causal
    assert found.calls == occlusion().calls(len(examples[0].words), 25, 2)


def test_the_example_runs_and_says_whether_it_tells_the_models_apart(occlusion, tmp_path):
    if "explainers" not in Setting.__dataclass_fields__:
        pytest.skip("run files do not hand explainers over yet")
    report = run_file(
        EXAMPLE, ["benchmark.per_bucket=2", "benchmark.replicates=50", "engine.workers=1"], tmp_path / "runs"
    )
    assert report.items == 57 * 3
    summary = json.loads((report.reading / "summary.json").read_text())
    local = {v["method"] for v in summary["verdicts"] if v["question"] == "explains"}
    assert any("Occlusion" in method for method in local)


def test_the_page_names_what_exists():
    for option in ("multi", "features", "merge_words", "perturbations"):
        assert option in {p.name for p in registry.parameters(registry.load("explainer", "dime"))}
    for name in (
        "dime",
        "multishap",
        "multiviz",
        "emap",
        "intershap",
        "pid",
        "occlusion",
        "responsibility",
        "swap_interaction",
    ):
        assert f"`{name}`" in PAGE
        assert registry.load("explainer", name).name == name
    for name in ("gridvqa_pure", "gridvqa_spur", "gridvqa_rule", "gridvqa_counter", "gridvqa_mdetr"):
        assert f"`{name}`" in PAGE
        assert registry.load("model", name).name == name
    assert registry.load("benchmark", "gridvqa_x") is GridVQAX
    assert all(preset in PRESETS for preset in re.findall(r"--preset (\w+)", PAGE))
    bench = GridVQAX()
    bench.bind(Setting([Entry("m", "m", RuleExecutor)]))
    assert f"{bench.planned_calls:,} calls a scene" in PAGE
    names = [
        "emap",
        "intershap",
        "pid",
        "multiviz",
        "dime",
        "multishap",
        "occlusion",
        "responsibility",
        "swap_interaction",
    ]
    assert [m.label for m in default_explainers()] == names


def test_the_example_file_is_a_run_file(occlusion):
    spec = yaml.safe_load(EXAMPLE.read_text())["benchmark"]
    entries = [
        Entry(e["name"], e["name"], registry.load("explainer", e["name"]))
        for e in (dict(e) for e in spec["explainers"])
    ]
    setting = Setting([Entry("rule", "rule", RuleExecutor)])
    object.__setattr__(setting, "explainers", entries)
    bench = GridVQAX(per_bucket=2)
    bench.bind(setting)
    task = bench.tasks()[7]
    rows = [row for m in evaluate(task, {r: e.build() for r, e in task.roles.items()}) for row in m.rows]
    assert {row["method"] for row in rows} == {"model", "my_explainer:Occlusion", "emap"}
