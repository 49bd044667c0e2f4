from __future__ import annotations

from hypothesis import given, strategies as st

from medground.metrics.folds import patient_folds

ids = st.lists(st.text(max_size=3), min_size=1, max_size=30)


@given(ids, st.integers(2, 5), st.integers(0, 3))
def test_patients_stay_together_and_folds_are_even(patients: list[str], folds: int, seed: int) -> None:
    found = patient_folds(patients, folds, seed)
    by_patient = dict(zip(patients, found, strict=True))
    assert all(by_patient[p] == f for p, f in zip(patients, found, strict=True))
    sizes = [list(by_patient.values()).count(f) for f in range(folds)]
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == len(by_patient)


@given(ids, st.integers(0, 3))
def test_the_order_and_number_of_entries_do_not_matter(patients: list[str], seed: int) -> None:
    by_patient = dict(zip(patients, patient_folds(patients, 2, seed), strict=True))
    again = [*reversed(patients), *patients]
    assert dict(zip(again, patient_folds(again, 2, seed), strict=True)) == by_patient


def test_another_seed_is_another_split() -> None:
    patients = [f"p{i}" for i in range(40)]
    assert patient_folds(patients, 2, 0).tolist() != patient_folds(patients, 2, 1).tolist()
