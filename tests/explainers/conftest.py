import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from medground.explainers.base import Asker, Example, Pool


class Toy:
    """A question answerer made of any function of one image and one text."""

    name = "toy"

    def __init__(self, function, answers: int = 3) -> None:
        self.function, self.answers = function, [str(i) for i in range(answers)]
        self.asked: list[int] = []

    def logits(self, images, questions: Sequence[str]):
        self.asked.append(len(questions))
        return np.array([self.function(i, q) for i, q in zip(images, questions, strict=True)], float)

    def fingerprint(self) -> str:
        return "toy"


def see(image) -> np.ndarray:
    """Mean brightness of the cells of a 2 by 2 board."""
    return image.reshape(2, 4, 2, 4, 3).mean((1, 3, 4)).ravel()


def hear(text: str) -> np.ndarray:
    """Which of four words are there."""
    return np.array([float(word in text.split()) for word in ("alpha", "beta", "gamma", "delta")])


@pytest.fixture
def make_pool():
    """Returns a maker of pools of random 2 by 2 boards and texts of four words for a function(see, hear)."""

    def make(function, n: int = 6, seed: int = 0, **options) -> Pool:
        rng = np.random.default_rng(seed)
        words = ["alpha", "beta", "gamma", "delta"]
        examples = [
            Example(
                f"e{i}",
                np.repeat(np.repeat(rng.random((2, 2, 3)), 4, 0), 4, 1).astype(np.float32),
                " ".join(rng.permutation(words)[: rng.integers(1, 5)]) if i else "alpha beta gamma delta",
            )
            for i in range(n)
        ]
        model = Toy(lambda image, text: function(see(image), hear(text)))
        return Pool(examples, Asker(model, **options), grid=2)

    return make


@pytest.fixture(scope="session")
def explainer_golden(golden: Path):
    """Returns a reader of (expected numbers, arrays) by name."""

    def read(name: str):
        folder = golden / "gridvqa_x" / "explainers"
        with np.load(folder / f"{name}.npz") as held:
            return json.loads((folder / f"{name}.json").read_text()), {key: held[key] for key in held.files}

    return read
