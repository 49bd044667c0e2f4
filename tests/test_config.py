from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from medground.config import dump_run_file, parse_components, parse_run_file, read_run_file, read_yaml
from medground.errors import ConfigError

GOOD = {
    "name": "try",
    "benchmark": {"name": "xbench", "datasets": [{"name": "manifest", "root": "d"}]},
    "models": [{"name": "baseline_centre", "sigma": 0.2}],
}


def written(tmp_path: Path, data: object) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
    return path


def test_a_run_file_is_read_with_defaults(tmp_path: Path) -> None:
    run = read_run_file(written(tmp_path, GOOD))
    assert run.engine.chunk == "auto"
    assert run.models[0].parameters == {"sigma": 0.2}


def test_the_resolved_file_reads_back_as_itself(tmp_path: Path) -> None:
    run = parse_run_file(GOOD)
    assert parse_run_file(yaml.safe_load(dump_run_file(run))) == run


def test_overrides_walk_into_mappings_and_lists(tmp_path: Path) -> None:
    run = read_run_file(written(tmp_path, GOOD), ["engine.chunk=4", "models.0.sigma=0.5", "prompts.Mass=a mass"])
    assert (run.engine.chunk, run.models[0].parameters["sigma"], run.prompts) == (4, 0.5, {"Mass": "a mass"})


@pytest.mark.parametrize(
    "override",
    [
        *("engine.chunk", "=3", "models.7.sigma=1", "models.x.sigma=1", "models.²=1", "name.a=1", "name.a.b=1"),
        *("engine.chunk=[", "name=2020-99-99"),
    ],
)
def test_a_wrong_override_is_explained(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError):
        read_run_file(written(tmp_path, GOOD), [override])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engin": {}}, "did you mean 'engine'"),
        ({"engine": {"batchsize": 3}}, "did you mean 'batch_size'"),
        ({"engine": {"batch_size": 0}}, "engine.batch_size"),
        ({"name": "../up"}, "letters, digits"),
        ({"models": []}, "models"),
        ({"models": [{"sigma": 1}]}, "models.0.name"),
    ],
)
def test_a_wrong_key_or_value_says_where(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_run_file(GOOD | change)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "- 1", "3", ""])
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        read_run_file(written(tmp_path, text))


@pytest.mark.parametrize("value", ["2020-99-99", "9" * 5000, "[" * 3000, "!!python/object/apply:os.getcwd []"])
def test_what_yaml_cannot_hold_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match="is not YAML"):
        read_run_file(written(tmp_path, f"{yaml.safe_dump(GOOD)}seed: {value}\n"))


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'chunk' stands twice"):
        read_run_file(written(tmp_path, f"{yaml.safe_dump(GOOD)}engine: {{chunk: 2, workers: 1, chunk: 4}}\n"))


def test_anchors_and_merges_are_no_doubles(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 1}\nb: {<<: *a, x: 2}\n"
    assert read_yaml(text, "it", where=tmp_path)["b"] == {"x": 2, "y": 1}


def test_a_component_with_a_wrong_label_says_where() -> None:
    with pytest.raises(ConfigError, match=r"benchmark.datasets: label"):
        parse_components([{"name": "manifest", "label": 3}], where="benchmark.datasets")


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_run_file(tmp_path / "no.yaml")


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, levels))]
    return "\n".join(lines)


@pytest.mark.parametrize("place", ["engine: {workers: *a39}", "limits: *a39", "prompts: {x: *a39}", "name: *a39"])
def test_anchors_in_anchors_are_refused_before_they_are_written_out(place: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(f"{bomb(40)}\n{place}\n")
    with pytest.raises(ConfigError, match="not YAML") as caught:
        read_run_file(path)
    assert "anchors are written out" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "words"),
    [("a: &a [*a]", "holds itself"), ("a: &a {b: *a}", "holds itself"), ("x" * (1 << 21), "too long")],
    ids=["list", "mapping", "long"],
)
def test_endless_run_files_are_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_run_file(path)
    assert words in str(caught.value)


def test_anchors_are_read_where_they_stand_for_little() -> None:
    from medground.config import read_yaml

    assert read_yaml("a: &a {x: 1}\nb: [*a, *a]", "x", where="x") == {"a": {"x": 1}, "b": [{"x": 1}] * 2}
    assert read_yaml("", "x", where="x") is None
