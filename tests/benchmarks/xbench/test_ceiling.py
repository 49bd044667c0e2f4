"""The truth used as a map: what nobody can exceed, printed beside the floor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from medground.benchmarks.xbench.ceiling import ceiling
from medground.benchmarks.xbench.measure import make_target
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import PROTOCOLS, resolve_protocol
from medground.benchmarks.xbench.rescore import ScoredMap, rows_from_maps
from medground.datasets.base import Case
from medground.imaging.regions import Region


def cases(n: int = 30, side: int = 1024) -> list[Case]:
    rng = np.random.default_rng(0)
    made = []
    for i in range(n):
        x, y = rng.integers(0, side - side // 4, size=2).tolist()
        w, h = rng.integers(20, side // 4, size=2).tolist()
        made.append(
            Case(
                f"c{i}", Path("x.png"), f"p{i}", regions={"a": Region.from_boxes((side, side), [(x, y, x + w, y + h)])}
            )
        )
    return made


def test_the_ceiling_is_what_the_truth_scores_as_a_map() -> None:
    protocol, data = PROTOCOLS["xbench"], cases(8)
    maps = {c.case_id: c.regions["a"].mask_at((1024, 1024)).astype(np.float32) for c in data}
    pairs = Pairs.of(rows_from_maps(data, ["a"], lambda c, _: ScoredMap(maps[c]), protocol), protocol)
    np.testing.assert_array_equal(pairs.pointing("ceiling_"), pairs.pointing())
    np.testing.assert_allclose(pairs.ceiling[0], pairs.curves["dice"].max(axis=1))


def test_floor_rule_and_bilinear_map_disagree_and_centres_agree() -> None:
    data = cases()
    floor, centre = (
        Pairs.of(rows_from_maps(data, ["a"], lambda *_: ScoredMap(np.ones((2, 2))), p), p)
        for p in (PROTOCOLS["xbench"], resolve_protocol({"base": "xbench", "mask_resize": "centre"}))
    )
    # The first maximum of the truth lies outside the truth in most of these cases, though Dice is nearly perfect.
    assert floor.pointing("ceiling_").mean() < 0.6
    assert floor.ceiling[0].mean() > 0.95
    assert centre.pointing("ceiling_").mean() == 1.0


def test_in_its_own_frame_nothing_is_lost() -> None:
    protocol = resolve_protocol({"base": "xbench", "grid": "original"})
    region = Region.from_boxes((40, 30), [(3, 4, 9, 12)])
    found = ceiling(region, make_target(region, protocol), protocol)
    assert found["ceiling_first_inside"]
    assert found["ceiling_selected"] == found["ceiling_inside"] == 48


def test_a_region_that_vanishes_has_no_ceiling() -> None:
    mask = np.zeros((448, 448), dtype=bool)
    mask[1, 1] = True
    region = Region.from_mask(mask)
    assert ceiling(region, make_target(region, PROTOCOLS["xbench"]), PROTOCOLS["xbench"]) == {}


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_every_protocol_has_a_ceiling_above_its_floor(name: str) -> None:
    protocol = PROTOCOLS[name]
    pairs = Pairs.of(rows_from_maps(cases(6, 256), ["a"], lambda *_: ScoredMap(np.ones((2, 2))), protocol), protocol)
    assert (pairs.ceiling[0] >= pairs.floor[0]).all()
