"""A finished run is not summarised again, unless something that its summary was made of has changed."""

from __future__ import annotations

import pytest

from medground.running.options import Options
from medground.running.run import execute

CONFIG = {"name": "r", "benchmark": {"name": "fake", "replicates": 10}, "engine": {"workers": 1}}


@pytest.fixture
def run(fake, tmp_path):
    """A function that runs the fake benchmark and returns its report and how often it summarised."""

    def go(config=CONFIG, **task):
        counted = []

        class Benchmark(fake.FakeBenchmark):
            def summarise(self, rows):
                counted.append(len(rows))
                return super().summarise(rows)

        benchmark = Benchmark(*fake.two_tasks(**task).tasks())
        options = Options(chunk=4, workers=0, on_error="skip", torch_threads=1)
        return execute(benchmark, tmp_path, config=config, options=options), len(counted)

    return go


def test_a_finished_run_is_read_and_not_summarised(run, tmp_path):
    first, times = run()
    assert times == 1
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("readings/**/*") if p.is_file()}
    again, times = run()
    assert times == 0
    assert again.summary.to_json() == first.summary.to_json()
    assert again.summary.tables["means"].rows() == first.summary.tables["means"].rows()
    assert {p: p.stat().st_mtime_ns for p in before} == before


@pytest.mark.parametrize("change", [{"seed": 1}, {"benchmark": {"name": "fake", "replicates": 11}}])
def test_another_setting_makes_another_summary(run, change):
    run()
    assert run(CONFIG | change)[1] == 1


def test_the_engine_makes_no_other_summary(run):
    run()
    assert run(CONFIG | {"engine": {"workers": 3}, "limits": [{"metric": "auc", "at_least": 0.5}]})[1] == 0


def test_other_rows_make_another_summary(run):
    run()
    assert run(thresholds=(0.1,))[1] == 1


@pytest.mark.parametrize("name", ["summary.json", "tables/means.csv", "tables/means.md", "sums.json", "made_of"])
@pytest.mark.parametrize("damage", ["changed", "removed"])
def test_a_summary_that_was_touched_is_made_anew(run, tmp_path, name, damage):
    run()
    (path,) = tmp_path.glob(f"readings/*/{name}")
    whole = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(whole[:-2] + b"x")
    assert run()[1] == 1
    assert path.read_bytes() == whole
