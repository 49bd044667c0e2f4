"""The error of explanations against the truth, split into noise, off the manifold and method."""

import numpy as np
import pytest

from medground.benchmarks.gridvqa_x.true_error import true_error
from medground.explainers.base import Attribution
from medground.explainers.multishap import MultiShap
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.worlds.gridvqa.generate import scenes
from medground.worlds.gridvqa.shapley import true_values
from medground.worlds.gridvqa.world import buckets

(BUCKET,) = [b for b in buckets([0.3]) if b.key == "D2-M-count-d03"]
SCENES = scenes("pure", [BUCKET], 3, seed=2)


class Oracle:
    """Gives the true map, moved by its seed and by the model's logit of the answer."""

    name = "oracle"

    def __init__(self, seed: int = 0, noise: float = 0.0, model: float = 0.0, bias: float = 0.0) -> None:
        self.seed, self.noise, self.model, self.bias = seed, noise, model, bias

    def calls(self, words, cells, pool):
        return 1

    def explain(self, pool, index):
        made = SCENES[index]
        known = true_values(made.things, made.question.text, 5, players="phrases")
        image = np.abs(known.image)
        image = image / image.sum()
        image[0, 0] += self.noise * np.random.default_rng(self.seed).random()
        image[1, 1] += self.model * (pool.asker.model.name == "gridvqa_counter")
        image[2, 2] += self.bias
        return Attribution(image, known.text(len(made.question.text.split())), 0)


def parts(split):
    return {name: abs(getattr(split, name)) > 1e-9 for name in ("noise", "off_manifold", "method")}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, set()),
        ({"noise": 0.5}, {"noise", "method"}),
        ({"model": 0.5}, {"off_manifold"}),
        ({"bias": 0.5}, {"method"}),
    ],
)
def test_each_kind_of_error_lands_in_its_part(options, expected):
    for row in true_error(Oracle(**options), WordCounter(), SCENES, repeats=3):
        assert {name for name, there in parts(row.image).items() if there} == expected
        split = row.image
        assert split.noise + split.off_manifold + split.method == pytest.approx(split.total)
        assert row.text.total == pytest.approx(0, abs=1e-12)


def test_an_exact_model_has_no_error_off_the_manifold():
    (row,) = true_error(MultiShap(budget=200), RuleExecutor(), SCENES[:1], truth="interactions", repeats=2)
    assert row.scene_id == SCENES[0].scene_id
    assert row.image.off_manifold == 0
    assert row.image.noise > 0
    assert row.image.total == pytest.approx(row.image.noise + row.image.method)


def test_objects_alone_leave_words_out_and_empty_maps_have_no_error():
    class Nothing(Oracle):
        def explain(self, pool, index):
            return Attribution(np.zeros((5, 5)), None, 0)

    rows = true_error(Nothing(), RuleExecutor(), SCENES[:1], players="objects", repeats=1)
    assert (rows[0].image, rows[0].text) == (None, None)
