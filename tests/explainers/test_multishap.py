import numpy as np
import pytest

from medground.errors import ConfigError
from medground.explainers.multishap import MultiShap, aggregated, crossed, garrote, masks, pairwise
from medground.metrics.interactions import shapley_interactions
from medground.metrics.relevance import relevance_mass


def game(values, cells):
    """A full table of values as the samplers ask for it."""

    def value(shown, spoken, pairs):
        on = np.concatenate([shown[pairs[:, 0]], spoken[pairs[:, 1]]], 1)
        return values[on @ (1 << np.arange(on.shape[1]))]

    return value


@pytest.fixture(scope="module")
def games(explainer_golden):
    _, arrays = explainer_golden("games")
    return {
        name: (arrays[f"value_{name}"], arrays[f"sii_{name}"][:6, 6:]) for name in ("additive", "interaction", "mixed")
    }


def error(found, truth):
    return np.sqrt(((found - truth) ** 2).mean())


def test_additive_games_have_no_interaction_under_any_budget(games):
    values, _ = games["additive"]
    for budget, nodes in ((64, 1), (200, 3), (1000, 5)):
        found, noise = crossed(game(values, 6), 6, 4, budget, nodes, np.random.default_rng(0))
        assert found == pytest.approx(np.zeros((6, 4)), abs=1e-9)
        assert noise == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", ["interaction", "mixed"])
def test_crossed_masks_come_close_with_few_calls_and_closer_with_more(games, name):
    values, truth = games[name]
    errors = []
    for budget in (300, 3000, 30_000):
        runs = [crossed(game(values, 6), 6, 4, budget, 5, np.random.default_rng(s))[0] for s in range(6)]
        errors.append(np.mean([error(run, truth) for run in runs]))
    assert errors[0] > errors[1] > errors[2]
    assert errors[1] < 0.25 * np.sqrt((truth**2).mean())
    assert errors[2] < 0.12 * np.sqrt((truth**2).mean())


def test_the_standard_error_is_the_error_that_chance_makes(games):
    values, _ = games["mixed"]
    runs = [crossed(game(values, 6), 6, 4, 2000, 3, np.random.default_rng(s)) for s in range(40)]
    spread = np.std([found for found, _ in runs], axis=0)
    assert np.mean([noise for _, noise in runs]) == pytest.approx(np.sqrt((spread**2).mean()), rel=0.35)


def test_the_garrote_takes_noise_for_zero_and_leaves_the_large():
    found = garrote(np.array([0.5, -1.0, 2.0, -10.0, 0.0]), 1.0)
    assert found == pytest.approx([0, 0, 1.5, -9.9, 0])
    assert garrote(np.array([0.3, 0.0]), 0.0) == pytest.approx([0.3, 0])


def test_the_garrote_finds_few_interactions_among_noise():
    truth = np.zeros((12, 6))
    truth[0, 0], truth[3, 2], truth[7, 5] = 3, -2, 2
    waves = np.random.default_rng(1).normal(size=(18, 40))

    def value(shown, spoken, pairs):
        z, w = shown[pairs[:, 0]].astype(float), spoken[pairs[:, 1]].astype(float)
        rough = np.sin(4 * np.concatenate([z, w], 1) @ waves).sum(1) / 40
        return np.einsum("ni,ij,nj->n", z, truth, w) + z.sum(1) - w.sum(1) + rough

    rough, kept = [], []
    for seed in range(6):
        found, noise = crossed(value, 12, 6, 600, 3, np.random.default_rng(seed))
        rough.append(relevance_mass(found, truth != 0))
        kept.append(relevance_mass(garrote(found, 2 * noise), truth != 0))
        assert error(garrote(found, 2 * noise), truth) < error(found, truth)
    assert np.mean(kept) > np.mean(rough) + 0.15


def test_the_pairwise_sampler_is_unbiased_and_its_published_slip_is_not(games):
    values, truth = games["mixed"]
    right = pairwise(game(values, 6), 6, 4, 1500, np.random.default_rng(0))
    wrong = pairwise(game(values, 6), 6, 4, 1500, np.random.default_rng(0), shared_ids=True)
    assert error(right, truth) < 0.03
    assert error(wrong, truth) > 0.15


def test_pairs_are_counted_as_the_paper_counts_them():
    method = MultiShap(sampler="pairs")
    assert method.calls(12, 25, 50) == 153_600
    assert MultiShap().calls(12, 25, 50) == 1275


@pytest.mark.parametrize("t", [0.1, 0.5, 0.9])
def test_masks_are_binomial_and_balanced(t):
    rng = np.random.default_rng(0)
    on = masks(25, 400, t, rng)
    assert on.mean() == pytest.approx(t, abs=0.01)
    assert np.ptp(on.sum(0)) <= 1
    assert on.sum(1).var() == pytest.approx(25 * t * (1 - t), rel=0.15)


def test_explanations_find_the_product_spend_the_budget_and_repeat(make_pool):
    pool = make_pool(lambda image, text: [20 + 5 * image[2] * text[1] + image[0] + text[0], 0, 0])
    method = MultiShap(budget=240)
    found = method.explain(pool, 0)
    assert found.calls <= 240
    assert np.abs(found.image).ravel().argmax() == 2
    assert pool.examples[0].words[int(found.text.argmax())] == "beta"
    assert np.array_equal(found.image, method.explain(pool, 0).image)


def test_merged_players_are_exact(make_pool):
    pool = make_pool(lambda image, text: [20 + np.tanh(image @ [3, -1, 2, 1] * (text @ [1, 2, -1, 1])), 0, 0])
    words = pool.examples[0].words
    found = MultiShap().exact(pool, 0, [[0], [1, 2], [3]], [[0, 2], [1, 3]])
    assert found.shape == (3, 2)
    groups, values = [[0], [1, 2], [3]], []
    for at in range(32):
        image = pool.examples[0].image.reshape(2, 4, 2, 4, 3).copy()
        for g, group in enumerate(groups):
            for cell in group if not at >> g & 1 else []:
                image[cell // 2, :, cell % 2] = 0.5
        kept = [w for i, w in enumerate(words) if at >> (3 + i % 2) & 1]
        values.append(pool.asker.model.logits(image.reshape(1, 8, 8, 3), [" ".join(kept)])[0, 0])
    assert found == pytest.approx(shapley_interactions(np.array(values))[:3, 3:], abs=1e-6)


def test_aggregations_equal_the_golden_maps(explainer_golden, games):
    expected, _ = explainer_golden("games")
    for name in ("interaction", "mixed"):
        _, truth = games[name]
        for how in ("sum_abs", "mean_abs", "mean", "sum"):
            assert aggregated(truth, 1, how) == pytest.approx(expected["expected"][name]["cell_map"][how], abs=1e-9)
            assert aggregated(truth, 0, how) == pytest.approx(expected["expected"][name]["word_map"][how], abs=1e-9)


def test_the_published_mean_lets_opposite_signs_cancel(make_pool):
    pool = make_pool(lambda image, text: [20 + 5 * image[2] * (text[0] - text[1]), 0, 0])
    kept = MultiShap(budget=600).explain(pool, 0)
    lost = MultiShap(budget=600, aggregate="mean").explain(pool, 0)
    assert np.abs(lost.image).ravel()[2] < 0.2 * np.abs(kept.image).ravel()[2] / len(pool.examples[0].words)


def test_numbers_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="16 calls a node"):
        MultiShap(budget=30)
