from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from medground.errors import ConfigError, RunError
from medground.running.plan import fitting_chunk, make_plan


@given(st.lists(st.integers(0, 40), max_size=4), st.integers(1, 9), st.integers(1, 20))
def test_every_item_comes_once_and_in_order(fake, sizes, batch_size, chunk_size):
    tasks = [fake.FakeTask((f"m{i}", "d"), n, batch_size) for i, n in enumerate(sizes)]
    plan = make_plan(tasks, chunk_size=chunk_size)
    assert plan.n_items == sum(sizes)
    for index, (task, planned) in enumerate(zip(tasks, plan.tasks, strict=True)):
        batches = [batch for chunk in planned.chunks for batch in chunk.cohorts()]
        assert [item for batch in batches for item in batch] == task.items()
        assert all(1 <= len(batch) <= batch_size for batch in batches)
        assert all(len(chunk.items) == chunk_size for chunk in planned.chunks[:-1])
        assert [chunk.index for chunk in planned.chunks] == list(range(len(planned.chunks)))
        assert {chunk.task_index for chunk in planned.chunks} <= {index}
    assert len(plan.chunks) == sum(len(planned.chunks) for planned in plan.tasks)


def names(fake, *, chunk_size=8, settings=None, version="1.0", **task):
    plan = make_plan([fake.FakeTask(**task)], chunk_size=chunk_size, settings=settings, version=version)
    return [chunk.name for chunk in plan.chunks]


def test_the_same_plan_has_the_same_names(fake):
    assert names(fake) == names(fake)
    assert [name[:6] for name in names(fake)] == ["00000-", "00001-", "00002-"]
    assert all(len(name) == 6 + 16 for name in names(fake))


@pytest.mark.parametrize(
    "change",
    [
        {"version": "1.1"},
        {"chunk_size": 9},
        {"batch_size": 4},
        {"settings": {"torch_threads": 3}},
    ],
)
def test_whatever_may_change_a_row_changes_every_name(fake, change):
    assert not set(names(fake)) & set(names(fake, **change))


def test_the_fingerprint_of_the_task_is_part_of_the_name(fake):
    one = make_plan([fake.FakeTask(version="1")]).chunks[0].name
    assert one != make_plan([fake.FakeTask(version="2")]).chunks[0].name


def test_a_longer_dataset_keeps_the_chunks_that_it_shares(fake):
    short, long = names(fake, n=20), names(fake, n=30)
    assert short[:2] == long[:2]
    assert short[2] != long[2]


@pytest.mark.parametrize("paths", [[("a", "d"), ("a", "d")], [("a", "d"), ("A", "d")], [()]])
def test_tasks_do_not_share_a_folder(fake, paths):
    with pytest.raises(RunError, match="a folder of its own"):
        make_plan([fake.FakeTask(path) for path in paths])


def test_an_id_that_stands_for_two_items_is_refused(fake):
    task = fake.FakeTask(n=5)
    items = task.items()
    task.items = lambda: [*items, items[2]]
    with pytest.raises(RunError, match="'s02'"):
        make_plan([task])


@pytest.mark.parametrize("items", [0, 1, 64, 51_200, 51_201, 377_110, 1_000_000])
def test_a_large_task_has_larger_chunks_and_few_of_them(items):
    size = fitting_chunk(items)
    assert size % 64 == 0
    assert -(-items // size) <= 800
    assert size == 64 or -(-items // (size - 64)) > 800  # and no larger than it must be


def test_items_side_by_side_do_not_grow_with_the_chunk(fake):
    task = fake.FakeTask(n=51_201)
    task.cohort = None
    chunk = make_plan([task]).chunks[0]
    assert (len(chunk.items), {len(cohort) for cohort in chunk.cohorts()}) == (128, {64})


def test_a_small_task_is_planned_as_it_always_was(fake):
    task = fake.FakeTask(n=200)
    given = [[chunk.name for chunk in make_plan([task], chunk_size=size).chunks] for size in (None, 64)]
    assert given[0] == given[1]


def test_sizes_are_positive(fake):
    with pytest.raises(ConfigError, match="chunk"):
        make_plan([], chunk_size=0)
    with pytest.raises(ConfigError, match="batch"):
        make_plan([fake.FakeTask(batch_size=0)])
