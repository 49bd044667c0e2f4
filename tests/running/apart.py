"""A benchmark of independent items, in a module that other processes can import."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from medground.benchmarks.base import Item, Measured, TaskDefaults
from medground.benchmarks.requests import Answer, Ask
from medground.benchmarks.results import Summary

SCHEMA = pl.Schema({"item": pl.String, "square": pl.Int64, "state": pl.String})


class Stages:
    def __init__(self, task):
        self.task = task

    def load(self, item):
        return item.payload

    def converse(self, item, loaded):
        (answer,) = yield [Ask("model", "square", {"x": loaded})]
        yield [Ask("model", "square", {"x": -answer.values["square"]})]
        return {}

    def answer(self, role, capability, arguments):
        (asked,) = arguments
        if asked["x"] in self.task.hangs:
            time.sleep(3600)
        if asked["x"] in self.task.dies:
            os._exit(9)
        if asked["x"] in self.task.fails:
            # The later ones fail first.
            time.sleep(0.2 / asked["x"])
            raise ValueError(f"{asked['x']} is not liked")
        return [Answer({"square": asked["x"] ** 2})]


class Measurer:
    def measure(self, item, transcript):
        first, second = transcript.answers()
        assert second.values["square"] == first.values["square"] ** 2
        return Measured([{"item": item.item_id, "square": first.values["square"], "state": "ok"}])

    def failed(self, item, reason):
        return Measured([{"item": item.item_id, "square": None, "state": reason}])


@dataclass(frozen=True)
class Task(TaskDefaults):
    name: str
    n: int = 10
    fails: tuple[int, ...] = ()
    hangs: tuple[int, ...] = ()
    dies: tuple[int, ...] = ()

    batch_size = 1
    cohort = 1
    expensive = True
    processes = True
    schema = SCHEMA
    roles: ClassVar = {}

    @property
    def path(self):
        return (self.name,)

    def items(self):
        return [Item(f"n{i:02d}", i) for i in range(self.n)]

    def fingerprint(self):
        return self.name

    def reading(self):
        return "as it is"

    def open(self, players):
        return Stages(self)

    def measurer(self):
        return Measurer()


class Squares:
    name = "squares"
    reading = ("plain", {})

    def __init__(self, *tasks):
        self._tasks = tasks

    def tasks(self):
        return self._tasks

    def summarise(self, rows):
        return Summary(data={path[0]: frame["square"].sum() for path, frame in rows.items()})

    def manifest(self):
        return {}
