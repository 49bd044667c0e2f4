from __future__ import annotations

import pytest

from medground.errors import RunError
from medground.running.estimate import estimate
from medground.running.options import Options
from medground.running.run import execute

OPTIONS = Options(chunk=4, workers=2, on_error="skip")


def test_a_new_run_is_counted_without_opening_anything(fake, tmp_path):
    probe = fake.Probe()
    first, second = estimate(fake.two_tasks(probe=probe), tmp_path / "new", options=OPTIONS)
    assert (first.path, first.items, first.items_left, first.chunks, first.chunks_left) == (("a", "data"), 23, 23, 6, 6)
    assert (second.items_left, second.chunks_left) == (10, 3)
    assert first.seconds is None
    assert first.bytes is None
    assert not probe.opened
    assert not (tmp_path / "new").exists()


def test_a_measured_batch_gives_time_and_disk(fake, tmp_path):
    task = fake.FakeTask(n=1000, batch_size=4, load_time=0.01, infer_time=0.02, bad=("s01",))
    (found,) = estimate(fake.FakeBenchmark(task), tmp_path, options=OPTIONS, measure=True)
    # Four items: 3 decoded in 30 ms by two workers, 20 ms in the model, which is the slower side.
    assert 1000 / 4 * 0.02 <= found.seconds < 1000 / 4 * 0.02 * 10
    assert 1000 * 6 * 6 * 4 * 3 / 4 < found.bytes < 1000 * 3000
    (inline,) = estimate(fake.FakeBenchmark(task), tmp_path, options=Options(chunk=4, workers=0), measure=True)
    assert inline.seconds >= 1000 / 4 * (0.02 + 0.03)


def test_a_batch_that_cannot_be_read_asks_no_model(fake, tmp_path):
    task = fake.FakeTask(n=8, batch_size=2, bad=("s00", "s01"))
    (found,) = estimate(fake.FakeBenchmark(task), tmp_path, options=OPTIONS, measure=True)
    assert task.probe.batches == []
    assert found.seconds >= 0


def test_finished_chunks_are_not_counted_again_and_tell_the_size(fake, tmp_path):
    execute(fake.two_tasks(), tmp_path, options=OPTIONS)
    stored = sum(p.stat().st_size for p in tmp_path.rglob("a/data/*.*"))
    next(tmp_path.glob("readings/*/rows/a/data/00002-*.json")).unlink()
    next(tmp_path.glob("readings/*/rows/a/data/00003-*.parquet")).write_bytes(b"")
    first, second = estimate(fake.two_tasks(), tmp_path, options=OPTIONS)
    assert (first.items_left, first.chunks_left) == (8, 2)
    assert first.bytes == pytest.approx(stored * 8 / 23, rel=0.3)
    assert (second.items_left, second.seconds, second.bytes) == (0, 0.0, 0)


def test_nothing_to_run_is_told(fake, tmp_path):
    with pytest.raises(RunError, match="nothing to run"):
        estimate(fake.FakeBenchmark(), tmp_path)
