"""Regions that are made when they are looked at."""

from __future__ import annotations

import pickle
from functools import partial

from medground.datasets.lazy import LazyRegions, Maker, as_regions
from medground.imaging.regions import Region


def square(side):
    return Region.from_boxes((8, 8), [(0, 0, side, side)])


def test_lazy_regions_are_made_at_each_look():
    calls = []
    regions = LazyRegions({"Mass": Maker(lambda: calls.append(1) or square(2), "two")})
    assert list(regions) == ["Mass"]
    assert len(regions) == 1
    assert "Mass" in regions
    assert "Edema" not in regions
    assert not calls
    assert regions["Mass"].area == 4
    assert regions.get("Edema") is None
    assert len(calls) == 1


def test_regions_that_are_made_stay_a_plain_mapping():
    assert as_regions({"Mass": square(2)}) == {"Mass": square(2)}
    mixed = as_regions({"Mass": square(2), "Edema": Maker(partial(square, 3), "three")})
    assert isinstance(mixed, LazyRegions)
    assert {f: r.area for f, r in pickle.loads(pickle.dumps(mixed)).items()} == {"Mass": 4, "Edema": 9}
