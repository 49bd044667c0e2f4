"""The one rule of decision, on the cases where a rule written by hand goes wrong."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.errors import ConfigError
from medground.metrics.bootstrap import clusters
from medground.metrics.decide import (
    DEFAULTS,
    Decision,
    Rule,
    decide_beside,
    decide_difference,
    decide_level,
    enough,
    hardest,
    rule_of,
    rules,
    side_of,
    together,
)
from medground.metrics.differences import Difference, compare_means
from medground.metrics.inference import Estimate, estimate_auc
from medground.metrics.spec import MetricSpec

POINTING = MetricSpec(name="pointing", title="Pointing game", family="rate")
DICE = MetricSpec(name="dice", title="Dice", family="overlap")
LOSS = MetricSpec(name="brier", title="Brier score", unit="none", direction="lower", family="loss", digits=3)


def difference(value, low, high, inner=None, p=0.001, evidence=(50,), **more):
    inner_low, inner_high = inner or (value - 0.8 * (value - low), value + 0.8 * (high - value))
    return Difference(value, low, high, inner_low, inner_high, 50, 0, evidence, p=p, **more)


@pytest.mark.parametrize(
    ("low", "high", "p", "word", "direction"),
    [
        (0.03, 0.09, 0.001, "better", 1),
        (-0.09, -0.03, 0.001, "worse", -1),
        (0.03, 0.09, 0.06, "cannot be told", 0),  # beyond the margin, without the p value
        (0.005, 0.09, 0.001, "cannot be told", 1),  # better, but not by the margin
        (-0.004, 0.004, 0.9, "equivalent", 0),
        (0.001, 0.005, 0.001, "equivalent", 1),  # better, but by less than the margin
        (-0.05, 0.05, 0.9, "cannot be told", 0),
        (-0.01, 0.09, 0.001, "cannot be told", 0),  # the value lies beyond the margin, its interval does not
        (-0.09, 0.01, 0.001, "cannot be told", 0),
    ],
)
def test_a_difference_needs_interval_margin_and_p(low, high, p, word, direction):
    found = decide_difference(difference((low + high) / 2, low, high, p=p), DICE, Rule(0.02, 10))
    assert (found.word, found.direction) == (word, direction)
    assert found.margin == 0.02


def test_a_gain_below_the_margin_is_no_gain():
    # 0.3 points [0.1, 0.5] where less than one point is none.
    found = decide_difference(difference(0.003, 0.001, 0.005), DICE, DEFAULTS["overlap"])
    assert (found.word, found.answer, found.direction) == ("equivalent", "no", 1)


def test_absence_of_evidence_is_no_equality():
    # +3.9 points [-8.3, +17.9].
    found = decide_difference(difference(0.039, -0.083, 0.179, p=0.5), POINTING, DEFAULTS["rate"])
    assert found.answer == "cannot be told"


def test_the_p_value_of_the_family_decides():
    alone = difference(0.05, 0.03, 0.07, p=0.01)
    assert decide_difference(alone, DICE, Rule(0.01, 10)).word == "better"
    family = difference(0.05, 0.03, 0.07, p=0.01, p_family=0.06, family="8 classes, Holm")
    found = decide_difference(family, DICE, Rule(0.01, 10))
    assert found.word == "cannot be told"
    assert "8 classes, Holm" in found.because


def test_where_lower_is_better_the_words_turn_round():
    less = difference(-0.05, -0.07, -0.03)
    assert decide_difference(less, LOSS, DEFAULTS["loss"]).word == "better"
    assert decide_difference(less, DICE, DEFAULTS["overlap"]).word == "worse"


@pytest.mark.parametrize(("evidence", "told"), [((9,), False), ((10,), True), ((2, 2, 10, 10), True)])
def test_nothing_is_claimed_below_the_minimum(evidence, told):
    found = decide_difference(difference(0.5, 0.3, 0.7, evidence=evidence), POINTING, DEFAULTS["rate"])
    assert (found.word == "better") == told
    assert found.enough == told


def test_five_right_answers_are_no_verdict():
    # 4 positives, 1 negative, all right.
    found = estimate_auc([1, 1, 1, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.1], clusters(list("abcde")))
    said = decide_level(
        found, 0.5, MetricSpec(name="auc", title="AUC", family="rate", statistic="ranking"), DEFAULTS["rate"]
    )
    assert said.answer == "cannot be told"
    assert not said.enough


def test_four_to_none_of_35_is_no_difference():
    first, second = np.zeros(35), np.zeros(35)
    first[:4] = 1
    found = compare_means(first, second, clusters([f"p{i}" for i in range(35)]))
    assert found.p == pytest.approx(0.125)
    assert decide_difference(found, POINTING, DEFAULTS["rate"]).word == "cannot be told"


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.53, 0.6, "better"),
        (0.4, 0.47, "worse"),
        (0.51, 0.6, "cannot be told"),
        (0.495, 0.505, "equivalent"),
        (0.505, 0.6, "cannot be told"),  # beyond the margin with its value, not with its interval
        (0.4, 0.495, "cannot be told"),
    ],
)
def test_a_value_beside_a_fixed_floor(low, high, word):
    middle = (low + high) / 2
    given = Estimate(middle, low, high, low, high, evidence=(30,))
    assert decide_level(given, 0.5, POINTING, DEFAULTS["rate"]).word == word


def test_a_method_that_does_not_repeat_itself_claims_nothing():
    shown = difference(0.14, 0.1, 0.18, evidence=(200,))
    mass = MetricSpec(name="mass", title="Mass on the cause", family="mass")
    assert decide_difference(shown, mass, DEFAULTS["mass"], reliability=0.9).word == "better"
    assert decide_difference(shown, mass, DEFAULTS["mass"], reliability=0.7).word == "better"
    low = decide_difference(shown, mass, DEFAULTS["mass"], reliability=0.26)
    assert low.word == "cannot be told"
    assert "0.26" in low.because
    assert decide_difference(shown, mass, DEFAULTS["mass"]).word == "cannot be told"


def test_without_a_margin_equality_cannot_be_told():
    score = MetricSpec(name="synergy", title="Synergy", unit="none", family="score")
    assert decide_difference(difference(0.0, -1e-6, 1e-6, p=1.0), score, DEFAULTS["score"]).word == "cannot be told"
    assert decide_difference(difference(0.1, 0.05, 0.15), score, DEFAULTS["score"]).word == "better"


def test_undefined_and_directionless_values_claim_nothing():
    undefined = Difference(None, reason="no positives", evidence=(0,))
    assert decide_difference(undefined, DICE, DEFAULTS["overlap"]).because == "no positives"
    tau = MetricSpec(name="tau", title="Threshold", direction="neither", family="rate")
    assert decide_difference(difference(0.5, 0.3, 0.7), tau, DEFAULTS["rate"]).word == "cannot be told"


def test_every_class_needs_patients_and_half_of_them_the_minimum():
    assert enough((2, 12), 10)
    assert not enough((1, 12, 12), 10)
    assert not enough((2, 2, 12), 10)
    assert not enough((), 10)


def test_answers_join():
    better, worse, alike, unknown = (Decision(w, "") for w in ("better", "worse", "equivalent", "cannot be told"))
    assert together([better, better]) == "yes"
    assert together([worse, alike]) == "no"
    assert together([better, worse]) == together([better, unknown]) == "in part"
    assert together([worse, unknown]) == together([unknown]) == "cannot be told"
    assert together([]) == "not asked"


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (-0.09, -0.01, "no"),  # nowhere near better, though not shown to be worse by the margin
        (-0.09, 0.02, "no"),  # up to the margin and no further
        (-0.09, 0.021, "cannot be told"),
        (0.005, 0.09, "cannot be told"),
        (0.021, 0.09, "yes"),
    ],
)
@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_an_interval_that_falls_short_of_the_margin_is_a_no(low, high, answer, direction):
    if direction == "lower":
        low, high = -high, -low
    spec = MetricSpec(name="x", title="X", family="rate", direction=direction)
    told = decide_difference(difference((low + high) / 2, low, high), spec, Rule(0.02, 10))
    assert told.answer == answer
    level = Estimate(0.5 + (low + high) / 2, 0.5 + low, 0.5 + high, 0.5 + low, 0.5 + high, evidence=(30,))
    assert decide_level(level, 0.5, spec, Rule(0.02, 10)).answer == answer
    assert decide_difference(difference((low + high) / 2, low, high, evidence=(9,)), spec, Rule(0.02, 10)).answer == (
        "cannot be told"
    )


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_a_model_that_never_does_better_than_a_floor_is_a_no(direction):
    spec = MetricSpec(name="x", title="X", family="rate", direction=direction)
    floor = np.tile([0.0, 1.0], 10)
    by = clusters([f"p{i}" for i in range(20)])
    same = compare_means(floor, floor, by)
    assert decide_difference(same, spec, DEFAULTS["rate"]).answer == "cannot be told"  # two models may still differ
    told = decide_beside(same, spec, DEFAULTS["rate"])
    assert (told.word, told.answer) == ("cannot be told", "no")
    assert "in none of 20 patients" in told.because
    once = floor.copy()
    once[0 if direction == "higher" else 1] = 0.5
    assert decide_beside(compare_means(once, floor, by), spec, DEFAULTS["rate"]).answer == "cannot be told"
    few = compare_means(floor[:9], floor[:9], clusters(list(range(9))))
    assert decide_beside(few, spec, DEFAULTS["rate"]).answer == "cannot be told"


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=12, max_size=12))
def test_beside_a_floor_nothing_but_never_better_changes_a_decision(values):
    floor = np.tile([0.0, 1.0, 0.5], 4)
    difference = compare_means(values, floor, clusters(list(range(12))))
    alone, beside = (f(difference, POINTING, DEFAULTS["rate"]) for f in (decide_difference, decide_beside))
    never = not (np.array(values) > floor).any()
    assert beside.answer == ("no" if never else alone.answer)
    assert beside.word == alone.word


def test_of_several_floors_the_hardest_decides():
    better, alike, open_ = (Decision(w, w) for w in ("better", "equivalent", "cannot be told"))
    short = Decision("cannot be told", "short", short=True)
    assert hardest([better, alike, better]) is alike
    assert hardest([better, open_]) is open_
    assert hardest([open_, short]) is short
    assert hardest([better, better]).answer == "yes"


def test_rules_are_changed_by_family():
    changed = rules({"overlap": {"margin": 0.02, "least": 20}})
    assert changed["overlap"].in_words() == "margin 2 points, least 20 patients"
    assert changed["rate"] == DEFAULTS["rate"]
    with pytest.raises(ConfigError, match="family") as caught:
        rules({"overlaps": {"margin": 0.02}})
    assert "overlap" in caught.value.fix
    for wrong in ({"margin": -1}, {"least": 1}, {"margins": 0.1}):
        with pytest.raises(ConfigError):
            rules({"rate": wrong})


def test_a_metric_that_only_describes_claims_nothing():
    plain = MetricSpec("share", "Share of something", direction="neither")
    assert rule_of(DICE, rules({"overlap": {"margin": 0.3}})).margin == 0.3
    assert decide_difference(difference(0.5, 0.3, 0.7), plain, rule_of(plain)).word == "cannot be told"


def test_equality_is_judged_by_the_narrower_interval():
    found = difference(0.0, -0.03, 0.03, inner=(-0.015, 0.015), p=0.9)
    assert decide_difference(found, POINTING, DEFAULTS["rate"]).word == "equivalent"
    found = difference(0.0, -0.03, 0.03, inner=(-0.025, 0.015), p=0.9)
    assert decide_difference(found, POINTING, DEFAULTS["rate"]).word == "cannot be told"


@given(*[st.floats(-1, 1)] * 3)
def test_an_interval_lies_above_an_edge_or_below_it_or_over_it(a, b, edge):
    low, high = sorted((a, b))
    word = side_of(low, high, edge)
    assert (word == "yes") == all(x > edge for x in (low, high))
    assert (word == "no") == all(x <= edge for x in (low, high))
    assert side_of(None, high, edge) == side_of(low, None, edge) == "cannot be told"
