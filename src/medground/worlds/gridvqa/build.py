"""Writes a data set: pictures, records in the published layout, records in the neutral layout.

Every scene comes from its own seed and is written by whichever worker takes it, so the files are the same for any
number of workers.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.errors import ConfigError
from medground.worlds.gridvqa.checker import check
from medground.worlds.gridvqa.drawing import CELL, EMPTY, class_of, paint
from medground.worlds.gridvqa.generate import Confusers, Edition, Variant, fillable, scene
from medground.worlds.gridvqa.masks import position_mask, text_mask, vision_mask
from medground.worlds.gridvqa.records import folder, neutral, released
from medground.worlds.gridvqa.shapley import Players
from medground.worlds.gridvqa.true_records import true_record
from medground.worlds.gridvqa.world import EVERYTHING, Bucket, Only, Scene, Thing, buckets

CHUNK = 64
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What to make.

    Attributes:
        variant: ``pure`` or ``spurious``.
        per_bucket: scenes a bucket.
        densities: shares of occupied cells; 19 buckets each.
        grid: cells a side.
        seed: of the whole data set.
        confusers: ``strict`` or ``released``, see :func:`~medground.worlds.gridvqa.generate.scene`.
        edition: ``second`` or ``first``, see the same.
        only: which of the buckets; those that D_pure cannot fill are left out.
        split: name of the split.
        images: whether to draw pictures.
        npz: whether to write the published ``.npz`` tree beside them.
        values: true explanations in ``true_values.jsonl``: over ``words``, ``phrases`` or ``objects``, see
            :func:`~medground.worlds.gridvqa.true_records.true_record`; None: none.
    """

    variant: Variant = "pure"
    per_bucket: int = 50
    densities: tuple[float, ...] = (0.7,)
    grid: int = 5
    seed: int = 0
    confusers: Confusers = "strict"
    edition: Edition = "second"
    only: Only = EVERYTHING
    split: str = "val"
    images: bool = True
    npz: bool = False
    values: Players | None = None

    def buckets(self) -> list[Bucket]:
        """Return its buckets in order."""
        return self._fillable[0]

    def left_out(self) -> list[str]:
        """Return one sentence for each bucket that cannot be filled."""
        return self._fillable[1]

    @cached_property
    def _fillable(self) -> tuple[list[Bucket], list[str]]:
        chosen = self.only.of(buckets(self.densities))
        return fillable(chosen, self.grid, confusers=self.confusers, edition=self.edition, named=self.only.keys)

    def scene(self, number: int) -> Scene:
        """Return the scene with this number, counted over all buckets."""
        bucket = self.buckets()[number // self.per_bucket]
        return scene(
            self.variant,
            bucket,
            number % self.per_bucket,
            seed=self.seed,
            grid=self.grid,
            confusers=self.confusers,
            edition=self.edition,
        )

    def __len__(self) -> int:
        return len(self.buckets()) * self.per_bucket


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"grid": 5, "densities": (0.7,), "per_bucket": 50, "split": "val"},
    "both-densities": {"grid": 5, "densities": (0.3, 0.7), "per_bucket": 50},
    "six": {"grid": 6, "densities": (0.3, 0.7), "per_bucket": 50},
    "eight": {"grid": 8, "densities": (0.3, 0.7), "per_bucket": 50},
}
"""Named plans. ``paper`` is the published validation set: 19 buckets at density 0.7, 50 scenes each."""


def build(out: str | Path, plan: Plan, *, workers: int = 1, progress: Progress | None = None) -> Path:
    """Write a data set and return its folder.

    The folder holds ``scenes.jsonl`` (neutral layout), ``grounding_<split>.jsonl`` and ``qa_<split>.jsonl``
    (published layout), ``images/<split>/...``, ``plan.json`` and, where wanted, ``true_values.jsonl``.

    Args:
        out: a folder that is new or empty.
        plan: what to make.
        workers: processes; 1 works in this one.
        progress: is told how many scenes of how many are done.

    Raises:
        ConfigError: the folder is not empty, or a number of the plan makes no sense.
    """
    target = Path(out)
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError("the folder is not empty", where=target, fix="name a new folder")
    if plan.per_bucket < 1 or plan.grid < 4 or workers < 1:
        raise ConfigError("scenes a bucket and workers must be at least 1, the grid at least 4", got=plan)
    for made in {folder(plan.scene(i), plan.split) for i in range(0, len(plan), plan.per_bucket)}:
        (target / "images" / made).mkdir(parents=True)
        if plan.npz:
            (target / made).mkdir(parents=True)
    chunks = [range(i, min(i + CHUNK, len(plan))) for i in range(0, len(plan), CHUNK)]
    with ExitStack() as stack:
        names = [f"grounding_{plan.split}.jsonl", f"qa_{plan.split}.jsonl", "scenes.jsonl"]
        names += ["true_values.jsonl"] if plan.values else []
        files = [stack.enter_context((target / name).open("w", encoding="utf-8", newline="\n")) for name in names]
        first = 1
        for done, made_records in _work(target, plan, chunks, workers):
            for grounding, *others in made_records:
                for file, record in zip(files, (_renumbered(grounding, first), *others), strict=True):
                    file.write(json.dumps(record) + "\n")
                first += len(grounding["annotations"])
            if progress:
                progress(done, len(plan))
    (target / "plan.json").write_text(json.dumps(asdict(plan) | {"left_out": plan.left_out()}, indent=1) + "\n")
    return target


Record = list[dict[str, Any]]
"""Grounding, question, everything that is derived, and true values where the plan wants them."""


def _work(out: Path, plan: Plan, chunks: Sequence[range], workers: int) -> Iterator[tuple[int, list[Record]]]:
    """Yield the number of scenes done and the records of each chunk, in order."""
    done = 0
    if workers == 1:
        for chunk in chunks:
            done += len(chunk)
            yield done, _chunk(out, plan, chunk)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = iter(chunks)
        # A few chunks a worker are under way at once, so that memory stays small however long the plan is.
        running = [pool.submit(_chunk, out, plan, chunk) for chunk in islice(waiting, 4 * workers)]
        while running:
            records = running.pop(0).result()
            running += [pool.submit(_chunk, out, plan, chunk) for chunk in islice(waiting, 1)]
            done += len(records)
            yield done, records


def _chunk(out: Path, plan: Plan, numbers: Iterable[int]) -> list[Record]:
    records = []
    for number in numbers:
        made = plan.scene(number)
        place, index = folder(made, plan.split), number % plan.per_bucket
        name = f"images/{place}/{index:06d}.png"
        if plan.images:
            picture = picture_of(made)
            Image.fromarray(picture).save(out / name, compress_level=4)
            if plan.npz:
                np.savez_compressed(out / place / f"{index:06d}.npz", **npz_fields(made, picture))
        grounding, question = released(made, number + 1, 1, name)
        values = [true_record(made, plan.values)] if plan.values else []
        records.append([grounding, question, neutral(made), *values])
    return records


def _renumbered(grounding: dict[str, Any], first: int) -> dict[str, Any]:
    """Shift annotation numbers, which a worker counts from 1, to those of the whole data set."""
    for annotation in grounding["annotations"]:
        annotation["id"] += first - 1
    for span in grounding["sentence"]["spans"]:
        span["box_ids"] = [number + first - 1 for number in span["box_ids"]]
    return grounding


def board_of(things: Iterable[Thing], grid: int) -> NDArray[np.int64]:
    """Return the class of every cell, ``(grid, grid)`` by row and column."""
    classes = np.full((grid, grid), EMPTY, np.int64)
    for thing in things:
        classes[thing.y, thing.x] = class_of(thing.colour, thing.shape)
    return classes


def picture_of(scene: Scene, cell: int = CELL) -> NDArray[Any]:
    """Return the picture of a scene, ``(grid * cell, grid * cell, 3)`` in 0..255; see ``drawing.sprites``."""
    return paint(board_of(scene.things, scene.grid), cell)


def npz_fields(scene: Scene, picture: NDArray[Any]) -> dict[str, Any]:
    """Return the fields of the published ``.npz`` files.

    Objects are rows of column, row and class; ``pixel_mask`` has the picture's size (the published one is upsampled
    by five instead of 64), ``text_mask`` follows the published convention.
    """
    truth = check(scene.things, scene.question, scene.grid)
    rows = {t.cell: (t.x, t.y, class_of(t.colour, t.shape)) for t in scene.things}
    anchors = {a for c in truth.clauses for a in c.anchors}
    targets = frozenset[tuple[int, int]]().union(*(c.targets for c in truth.clauses))
    text = scene.question.text
    return {
        "id": scene.scene_id,
        "image": picture,
        "question": text,
        "answer": str(scene.answer),
        "objects": np.array(list(rows.values()), np.int16),
        "anchor_objects": np.array([rows[c] for c in sorted(anchors)], np.int16).reshape(-1, 3),
        "target_objects": np.array([rows[c] for c in sorted(targets)], np.int16).reshape(-1, 3),
        "cell_mask": vision_mask(truth.causal, scene.grid),
        "pixel_mask": vision_mask(truth.causal, scene.grid, CELL),
        "text_mask": text_mask(text, "released"),
        "pos_mask": vision_mask(position_mask(scene.things, scene.question, truth), scene.grid),
    }
