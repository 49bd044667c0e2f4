"""Properties of every decision, whatever the metric, and whatever was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from medground.metrics.decide import DEFAULTS, Rule, decide_difference, decide_level, enough, together
from medground.metrics.differences import Difference
from medground.metrics.inference import Estimate
from medground.metrics.spec import MetricSpec

FAMILIES = sorted(DEFAULTS)
every = pytest.mark.parametrize("family", FAMILIES)
SHARES = st.floats(-1, 1, allow_nan=False)


@st.composite
def differences(draw: st.DrawFn) -> Difference:
    low, inner_low, value, inner_high, high = sorted(draw(st.lists(SHARES, min_size=5, max_size=5)))
    evidence = tuple(draw(st.lists(st.integers(0, 80), min_size=1, max_size=4)))
    p = draw(st.floats(1e-4, 1))
    return Difference(
        value, low, high, inner_low, inner_high, 80, 0, evidence, p=p, p_family=draw(st.floats(p, 1)), family="f"
    )


def spec(family: str, direction: str = "higher") -> MetricSpec:
    return MetricSpec("m", "M", family=family, direction=direction)  # type: ignore[arg-type]  # as given


def rule(family: str) -> Rule:
    return replace(DEFAULTS[family], reliability=None)


@every
@given(differences())
def test_better_needs_interval_p_margin_and_evidence(family, d):
    said = decide_difference(d, spec(family), rule(family))
    margin = rule(family).margin or 0.0
    if said.word == "better":
        assert d.low > margin
        assert d.p_family <= 0.05
        assert enough(d.evidence, rule(family).least)
    if said.word == "worse":
        assert d.high < -margin
        assert d.p_family <= 0.05
    if said.direction:
        assert (d.low > 0) == (said.direction > 0)
        assert (d.high < 0) == (said.direction < 0)


@every
@given(differences())
def test_a_claim_is_made_where_everything_is_there(family, d):
    r = rule(family)
    if enough(d.evidence, r.least) and d.p_family <= 0.05 and d.low > (r.margin or 0.0):
        assert decide_difference(d, spec(family), r).word == "better"


@every
@given(differences())
def test_equality_needs_the_narrow_interval_inside_the_margin(family, d):
    r = rule(family)
    said = decide_difference(d, spec(family), r).word
    inside = r.margin is not None and -r.margin < d.inner_low and d.inner_high < r.margin
    assert said != "equivalent" or (inside and enough(d.evidence, r.least))


@every
@given(differences())
def test_where_lower_is_better_every_word_turns_round(family, d):
    up, down = (decide_difference(d, spec(family, way), rule(family)) for way in ("higher", "lower"))
    assert down.direction == -up.direction
    turned = {"better": "worse", "worse": "better"}
    assert down.word == turned.get(up.word, up.word)
    assert decide_difference(d, spec(family, "neither"), rule(family)).word == "cannot be told"


@every
@given(differences())
def test_a_wider_margin_never_makes_a_claim_of_difference(family, d):
    narrow = decide_difference(d, spec(family), replace(rule(family), margin=0.01)).word
    wide = decide_difference(d, spec(family), replace(rule(family), margin=0.2)).word
    if narrow not in {"better", "worse"}:
        assert wide not in {"better", "worse"}
    if narrow == "equivalent":
        assert wide == "equivalent"


@every
@given(differences(), st.floats(-1, 1))
def test_a_method_that_was_not_shown_to_repeat_itself_claims_nothing(family, d, reliability):
    strict = replace(rule(family), reliability=0.7)
    said = decide_difference(d, spec(family), strict, reliability)
    free = decide_difference(d, spec(family), rule(family))
    assert said.word == (free.word if reliability >= 0.7 else "cannot be told")
    assert decide_difference(d, spec(family), strict).word == "cannot be told"


@every
@given(differences(), SHARES)
def test_a_level_is_a_difference_from_its_floor(family, d, floor):
    e = Estimate(d.value, d.low, d.high, d.inner_low, d.inner_high, 80, 0, d.evidence)
    said = decide_level(e, floor, spec(family), rule(family))
    margin = rule(family).margin or 0.0
    if said.word == "better":
        assert e.low > floor + margin
    elif said.word == "worse":
        assert e.high < floor - margin
    elif said.word == "cannot be told" and enough(e.evidence, rule(family).least):
        assert not e.low > floor + margin
        assert not e.high < floor - margin
    assert (said.direction > 0) == (said.enough and e.low > floor)


@every
def test_undefined_stays_undefined(family):
    said = decide_difference(Difference(None, reason="no positives"), spec(family), rule(family))
    assert (said.answer, said.because, said.enough) == ("cannot be told", "no positives", False)
    assert decide_level(Estimate(0.7, evidence=(50,)), 0.5, spec(family), rule(family)).answer == "cannot be told"


@given(st.lists(st.sampled_from(["better", "worse", "equivalent", "cannot be told"]), min_size=1, max_size=5))
def test_yes_needs_every_part_and_no_needs_every_part(words):
    from medground.metrics.decide import Decision

    said = together([Decision(word, "") for word in words])
    assert (said == "yes") == (set(words) == {"better"})
    assert (said == "no") == (set(words) <= {"worse", "equivalent"})
    assert (said == "in part") == ("better" in words and len(set(words)) > 1)
