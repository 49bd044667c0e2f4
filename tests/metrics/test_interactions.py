import itertools
import json
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from medground.errors import MetricError
from medground.metrics.interactions import (
    additive_projection,
    merged,
    modality_interaction,
    projection_synergy,
    shapley_interactions,
    shapley_values,
    unimodal_part,
)

small = st.floats(-4, 4, allow_subnormal=False)


@pytest.fixture(scope="module")
def folder(golden):
    return golden / "gridvqa_x" / "explainers"


def load(folder, name):
    with np.load(folder / f"{name}.npz") as held:
        return json.loads((folder / f"{name}.json").read_text()), {key: held[key] for key in held.files}


@pytest.mark.parametrize("game", ["additive", "interaction", "mixed"])
def test_golden_games(folder, game):
    expected, arrays = load(folder, "games")
    values, truth = arrays[f"value_{game}"], expected["expected"][game]
    found = shapley_interactions(values)
    off = ~np.eye(10, dtype=bool)
    assert found[off] == pytest.approx(arrays[f"sii_{game}"][off], abs=1e-9)
    assert found[:6, 6:] == pytest.approx(np.array(truth["cross_interactions"]), abs=1e-9)
    assert shapley_values(values) == pytest.approx(truth["shapley_values"], abs=1e-9)
    groups = truth["grouped"]["groups"]
    together = shapley_interactions(merged(values, groups))
    assert together[:3, 3:] == pytest.approx(np.array(truth["grouped"]["cross_interactions"]), abs=1e-9)
    two = truth["two_modalities"]
    pair = merged(values, [range(6), range(6, 10)])
    assert pair == pytest.approx([two["empty"], two["image_only"], two["text_only"], two["full"]], abs=1e-9)
    assert shapley_interactions(pair)[0, 1] == pytest.approx(two["interaction"], abs=1e-9)


def brute_interactions(values, p):
    found = np.zeros((p, p))
    for i, j in itertools.permutations(range(p), 2):
        rest = [k for k in range(p) if k not in (i, j)]
        for size in range(p - 1):
            weight = factorial(size) * factorial(p - size - 2) / factorial(p - 1)
            for chosen in itertools.combinations(rest, size):
                s = sum(1 << k for k in chosen)
                a, b = 1 << i, 1 << j
                found[i, j] += weight * (values[s | a | b] - values[s | a] - values[s | b] + values[s])
    return found


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5).flatmap(lambda p: hnp.arrays(np.float64, 1 << p, elements=small)))
def test_indices_equal_their_definitions(values):
    p = len(values).bit_length() - 1
    assert shapley_interactions(values) == pytest.approx(brute_interactions(values, p), abs=1e-9)
    assert shapley_values(values).sum() == pytest.approx(values[-1] - values[0], abs=1e-9)


def test_fourteen_players_are_exact_and_fifteen_too_many():
    rng = np.random.default_rng(0)
    at = (np.arange(1 << 14)[:, None] >> np.arange(14)) & 1
    main, pairs = rng.normal(size=14), np.triu(rng.normal(size=(14, 14)), 1)
    triple = 3.0 * at[:, 0] * at[:, 5] * at[:, 9]
    values = at @ main + np.einsum("ni,ij,nj->n", at, pairs, at) + triple
    expected = pairs + pairs.T
    for i, j in itertools.permutations((0, 5, 9), 2):
        expected[i, j] += 1.5  # a product over three players gives half of itself to each pair
    assert shapley_interactions(values) == pytest.approx(expected, abs=1e-8)
    for wrong in (np.zeros(1 << 15), np.zeros(6), np.zeros((2, 2))):
        with pytest.raises(MetricError, match="every coalition"):
            shapley_interactions(wrong)


@pytest.mark.parametrize("name", ["additive", "generic", "product", "additive_in_probability"])
def test_golden_matrices(folder, name):
    expected, arrays = load(folder, "matrix")
    logits, truth = arrays[f"L_{name}"], expected["expected"][name]
    at = np.arange(12)
    projection = additive_projection(logits)
    assert projection == pytest.approx(arrays[f"additive_fit_{name}"], abs=1e-9)
    assert projection[at, at] == pytest.approx(arrays[f"projection_{name}"], abs=1e-9)
    for centred, key in ((False, "plain"), (True, "class_centred")):
        for norm in (1, 2):
            norms = truth["emap"][key][f"l{norm}"]
            found = projection_synergy(logits, centred=centred, norm=norm)
            assert found.residual == pytest.approx(norms["residual"], abs=1e-9)
            assert found.additive == pytest.approx(norms["additive"], abs=1e-9)
            both_zero = found.residual + found.additive < 1e-9
            percent = np.array(norms["percent"], float)
            assert found.percent[~both_zero] == pytest.approx(percent[~both_zero], abs=1e-7)
    odds = np.exp(logits - logits.max(2, keepdims=True))
    probabilities = odds / odds.sum(2, keepdims=True)
    for all_pairs, key in ((False, "diagonal"), (True, "all_pairs")):
        shares = truth[f"interaction_of_modalities_{key}"]
        found = modality_interaction(probabilities, all_pairs=all_pairs)
        assert found.predicted.tolist() == shares["predicted"]
        assert found.matrices == pytest.approx(np.array(shares["matrix"]), abs=1e-6)
        assert found.local == pytest.approx(shares["local"], abs=1e-6)
        assert found.overall == pytest.approx(shares["global_"], abs=1e-6)


def test_two_players_tie_projection_and_interaction_together():
    rng = np.random.default_rng(1)
    odds = np.exp(rng.normal(size=(7, 7, 3)))
    probabilities = odds / odds.sum(2, keepdims=True)
    found = modality_interaction(probabilities, all_pairs=True)
    at = np.arange(7)
    residual = (probabilities - additive_projection(probabilities))[at, at, found.predicted]
    assert found.matrices[:, 0, 1] == pytest.approx(residual / 2, abs=1e-12)
    assert found.matrices.sum((1, 2)) == pytest.approx(
        probabilities[at, at, found.predicted] - probabilities.mean((0, 1))[found.predicted], abs=1e-12
    )


@given(hnp.arrays(np.float64, (4, 4, 2), elements=small))
def test_the_projection_is_additive_and_idempotent(logits):
    once = additive_projection(logits)
    assert additive_projection(once) == pytest.approx(once, abs=1e-9)
    for i, j in itertools.product(range(3), repeat=2):
        assert once[i, j] - once[i + 1, j] == pytest.approx(once[i, j + 1] - once[i + 1, j + 1], abs=1e-9)


def test_golden_unimodal_split(folder):
    expected, arrays = load(folder, "split_and_surrogate")
    instance = expected["instance"]
    for axis, name in ((0, "image"), (1, "text")):
        rows = arrays[f"{name}_rows"]
        unimodal = unimodal_part(arrays["L"], instance, rows, axis=axis)
        assert unimodal == pytest.approx(np.array(expected[name]["unimodal"]), abs=1e-8)
        multimodal = rows[:, instance] - unimodal
        assert multimodal == pytest.approx(np.array(expected[name]["multimodal"]), abs=1e-8)


@given(hnp.arrays(np.float64, (3, 3, 2), elements=small), hnp.arrays(np.float64, (2, 3, 2), elements=small))
def test_the_unimodal_part_is_the_projection_of_the_replaced_matrix(logits, rows):
    for axis in (0, 1):
        found = unimodal_part(logits, 1, rows, axis=axis)
        for q, row in enumerate(rows):
            replaced = logits.copy()
            replaced[(1, slice(None)) if axis == 0 else (slice(None), 1)] = row
            assert found[q] == pytest.approx(additive_projection(replaced)[1, 1], abs=1e-9)


def test_matrices_must_be_square():
    with pytest.raises(MetricError, match="square"):
        projection_synergy(np.zeros((2, 3, 4)))
