"""Leases: where nobody can lock, one process works at a time, and a killed one is out of the way after its term."""

from __future__ import annotations

import json

import pytest

from medground.errors import RunError
from medground.running import holding
from medground.running.holding import Holding
from medground.running.lease import SKEW, TERM, Lease
from medground.running.lock import NoLocksError
from medground.running.shards import Shard
from medground.storage import FolderStorage, open_storage


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture(params=["folder", "address"])
def storage(request, tmp_path):
    if request.param == "folder":
        return FolderStorage(tmp_path)
    return open_storage(f"{request.getfixturevalue('bucket')}/run")


def test_a_second_holder_is_refused_until_the_first_lets_go(storage):
    first, second = Lease(storage, "run"), Lease(storage, "run")
    first.acquire()
    with pytest.raises(RunError, match="another process is working in this run"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
    assert list(storage.list()) == []


def test_a_killed_holder_is_replaced_after_its_term_and_never_before(storage):
    clock = Clock()
    killed, heir = Lease(storage, "run", clock=clock), Lease(storage, "run", clock=clock)
    killed.acquire()
    clock.now += TERM + SKEW - 1
    with pytest.raises(RunError, match="runs out in 1 s"):
        heir.acquire()
    clock.now += 2
    heir.acquire()
    killed.release()  # it comes back after all: the lease is not its own any more
    assert json.loads(storage.get("leases/run.json"))["until"] == clock.now + TERM
    heir.release()


def test_a_lease_is_renewed_and_its_loss_is_noticed(tmp_path):
    storage, clock = FolderStorage(tmp_path), Clock()
    lease = Lease(storage, "run", term=0.02, clock=clock)
    lease.acquire()
    clock.now += 5
    renewed = json.loads(storage.get("leases/run.json"))["until"]
    while renewed < clock.now:
        renewed = json.loads(storage.get("leases/run.json"))["until"]
    storage.put("leases/run.json", json.dumps({"token": "another", "until": 1e12}).encode())
    lease._renewing.join(30)
    assert lease.lost
    lease.release()
    assert storage.exists("leases/run.json")


def test_a_lease_that_was_cut_is_nobodys(storage):
    storage.put("leases/run.json", b"{")
    lease = Lease(storage, "run")
    lease.acquire()
    lease.release()


def test_shards_exclude_the_whole_run_and_their_own_twins(tmp_path, monkeypatch):
    def none(*_):
        raise NoLocksError("No locks available")

    monkeypatch.setattr(holding.FolderLock, "acquire", none)
    storage = FolderStorage(tmp_path)
    one, two, whole = Holding(storage, Shard(1, 2)), Holding(storage, Shard(2, 2)), Holding(storage)
    one.acquire()
    two.acquire()
    for refused in (Holding(storage, Shard(1, 2)), whole):
        with pytest.raises(RunError, match="another process"):
            refused.acquire()
    one.release()
    two.release()
    whole.acquire()
    with pytest.raises(RunError, match="another process"):
        one.acquire()
    whole.release()
    assert list(storage.list("leases/")) == []
