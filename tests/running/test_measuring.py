"""Measuring waits for a slow disk, and of several errors that of the first item is raised."""

from __future__ import annotations

import threading
import time

import pytest

from medground.running import measuring
from medground.running.local import run_local
from medground.running.options import Options
from medground.running.plan import make_plan
from medground.running.store import Store

CHUNK, ITEMS, WORKERS = 2, 60, 2


def test_complete_chunks_wait_for_the_disk_in_bounded_number(fake, tmp_path, monkeypatch):
    released, probe = threading.Event(), fake.Probe()
    write = Store.write_rows

    def slow(*args):
        released.wait(30)
        return write(*args)

    monkeypatch.setattr(Store, "write_rows", slow)
    task = fake.FakeTask(n=ITEMS, batch_size=CHUNK, probe=probe)
    plan, highest = make_plan([task], chunk_size=CHUNK), []

    def look() -> None:
        before = -1
        while before != len(probe.measured):
            before = len(probe.measured)
            time.sleep(0.5)
        highest.append(before)
        released.set()

    watcher = threading.Thread(target=look)
    with Store(tmp_path, {"benchmark": {"name": "fake"}}, reading="plain") as store:
        watcher.start()
        run_local([(p, list(p.chunks)) for p in plan.tasks], store, Options(chunk=CHUNK, workers=WORKERS), None)
        watcher.join()
    # One more chunk than may wait is held by each worker that waits to hand its own over.
    assert highest[0] <= (measuring._UNWRITTEN_CHUNKS + 2 * WORKERS) * CHUNK < ITEMS
    assert len(probe.measured) == ITEMS


def test_the_error_of_the_first_item_is_raised():
    held = measuring.Measuring.__new__(measuring.Measuring)
    held._errors = [(7, ValueError("of item 7")), (2, ValueError("of item 2")), (5, ValueError("of item 5"))]
    with pytest.raises(ValueError, match="of item 2"):
        held.raise_first()
