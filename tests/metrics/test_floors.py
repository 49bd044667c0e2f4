"""Each floor equals the metric of the answer that it stands for."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.metrics import calibration, classification, floors

LABELS = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=30)


@given(LABELS)
def test_floors_are_what_blind_answers_reach(labels):
    y = np.array(labels)
    p = np.full(y.size, y.mean())
    if 0 < y.sum() < y.size:
        assert floors.prevalence(y).value == pytest.approx(classification.average_precision(y, p).value)
    if y.sum():
        assert floors.f1_all_positive(y).value == pytest.approx(classification.f1(y, np.ones(y.size)).value)
    assert floors.accuracy_all_negative(y).value == pytest.approx(classification.accuracy(y, np.zeros(y.size)).value)
    assert floors.brier_base_rate(y).value == pytest.approx(calibration.brier(y, p).value)
    assert floors.log_loss_base_rate(y).value == pytest.approx(calibration.log_loss(y, p).value, abs=1e-9)


def test_floors_without_annotation_or_positives_are_undefined():
    for floor in (
        floors.prevalence,
        floors.f1_all_positive,
        floors.accuracy_all_negative,
        floors.brier_base_rate,
        floors.log_loss_base_rate,
    ):
        assert floor([np.nan, np.nan]).reason == "no annotated case"
    assert floors.f1_all_positive([0, 0]).reason == "no positives"


def test_a_constant_score_on_a_class_without_negatives_is_no_hundred():
    for metric in (classification.average_precision, classification.auprc_trapezoid, classification.auc):
        assert metric([1, 1, 1], [0.5, 0.5, 0.5]).reason == "no negatives"


def test_a_constant_score_shows_what_the_trapezoid_adds():
    y, s = [1] + [0] * 9, [0.5] * 10
    assert classification.average_precision(y, s).value == pytest.approx(0.1)
    assert classification.auprc_trapezoid(y, s).value == pytest.approx(0.55)
