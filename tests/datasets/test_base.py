"""Fingerprints follow the truth of cases, and not their place."""

from __future__ import annotations

from medground.datasets.base import Case, fingerprint_cases
from medground.datasets.lazy import LazyRegions, Maker
from medground.errors import RegionError
from medground.identity import fingerprint_of
from medground.imaging.regions import Region


def square(side):
    return Region.from_boxes((8, 8), [(0, 0, side, side)])


def broken():
    raise RegionError("it is broken", where="row 7")


def test_fingerprints_of_lazy_regions_make_nothing(tmp_path):
    def case(key):
        return Case("a", tmp_path / "a.png", regions=LazyRegions({"Mass": Maker(broken, key)}))

    assert fingerprint_cases([case("x")], tmp_path) == fingerprint_cases([case("x")], tmp_path)
    assert fingerprint_cases([case("x")], tmp_path) != fingerprint_cases([case("y")], tmp_path)


def test_fingerprints_tell_cases_apart(tmp_path):
    image = tmp_path / "a.png"
    cases = [
        Case("a", image),
        Case("b", image),
        Case("a", image, patient_id="p"),
        Case("a", image, view="PA"),
        Case("a", image, labels={"Mass": True}),
        Case("a", image, labels={"Mass": None}),
        Case("a", image, regions={"Mass": square(2)}),
        Case("a", image, regions={"Mass": square(3)}),
        Case("a", tmp_path / "b.png"),
    ]
    assert len({fingerprint_cases([c], tmp_path) for c in cases}) == len(cases)
    assert fingerprint_cases([Case("a", image)], tmp_path) == fingerprint_cases([Case("a", image)], tmp_path / "other")
    assert fingerprint_of(1, "x") == fingerprint_of(1, "x") != fingerprint_of("x", 1)
