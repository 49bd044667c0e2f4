from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from medground.benchmarks.xbench.protocol import PROTOCOLS, resolve_protocol
from medground.errors import ConfigError


def test_the_grid_is_made_from_integers() -> None:
    tau = PROTOCOLS["xbench"].tau
    assert tau.tolist() == [k / 100 for k in range(101)]
    assert PROTOCOLS["xbench"].index_of(0.5) == 50


def test_fixed_thresholds_outside_the_grid_follow_it() -> None:
    medklip = PROTOCOLS["medklip"]
    assert medklip.thresholds[medklip.index_of(0.008)] == 0.008
    assert len(medklip.thresholds) == 102
    assert not len(PROTOCOLS["xbench"].extra)


def test_the_named_protocols_say_what_their_sheet_says(golden: Path) -> None:
    sheet = json.loads((golden / "metrics" / "protocols.json").read_text())
    assert set(PROTOCOLS) == set(sheet) - {"common"}
    for name, protocol in PROTOCOLS.items():
        words = sheet[name]
        assert ("original" in words["grid"]) == (protocol.grid == "original")
        assert ("nearest" in words["map"]) == (protocol.resample == "nearest")
        assert ("min-max" in words["map"]) == (protocol.normalise == "minmax")
        assert (">=" in words["threshold"]) == (protocol.comparison == ">=")
        assert ("any pixel" in words["pointing"]) == (protocol.ties == "any")
        assert protocol.scope == "dataset"
        assert protocol.optimistic


def test_a_protocol_may_be_spelt_out() -> None:
    mine = resolve_protocol({"base": "xbench", "scope": "class", "split": "crossfit", "name": "mine"})
    assert (mine.name, mine.scope, mine.optimistic) == ("mine", "class", False)
    assert mine.grid == (224, 224)
    whole = PROTOCOLS["chexlocalize"].model_dump()
    assert resolve_protocol(whole) == PROTOCOLS["chexlocalize"]


def test_a_changed_protocol_does_not_keep_the_published_name() -> None:
    assert resolve_protocol({"base": "xbench", "margin": 15}).name == "xbench (changed)"
    assert resolve_protocol({"base": "xbench"}).name == "xbench"


def test_the_published_tuning_grid_can_be_asked_for() -> None:
    tuned = resolve_protocol({"base": "chexlocalize", "search": [0.8, 0.2, 0.3], "search_by": "iou", "scope": "class"})
    np.testing.assert_array_equal(tuned.tau[tuned.searched], [0.2, 0.3, 0.8])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("xbnech", "did you mean 'xbench'"),
        ({"base": "xbench", "tie": "first"}, "did you mean 'ties'"),
        ({"base": "xbench", "ties": "last"}, "protocol.ties"),
        ({"base": "xbench", "search": [0.123]}, "is not one of"),
        ({"base": "xbench", "search": [2.0]}, "is not one of"),
        ({"base": "xbench", "search": [float("nan")]}, "is not one of"),
        ({"base": "xbench", "search": []}, "no threshold is left"),
        ({"base": "xbench", "grid": [0, 14]}, "no width and height"),
        ({"base": "xbench", "fixed": [0.5, float("nan")]}, "not finite"),
        ({"base": "xbench", "fixed": [0.5, 0.50000001]}, "not different"),
        ({"base": ""}, "no protocol named"),
        ({"base": "xbench", "name": "xbench", "ties": "any"}, "a name of its own"),
        ({"base": "chexlocalize", "name": "xbench"}, "a name of its own"),
        ({"base": ["xbench"]}, "base is a name"),
        ({"base": {"base": "xbench"}}, "base is a name"),
        ({"base": "xbench", "scope": "image", "split": "crossfit"}, "other patients"),
        ({"base": "nobody"}, "no protocol named"),
        ({"name": "x"}, "protocol.grid"),
        ({"base": "xbench", "fixed": []}, "protocol.fixed"),
    ],
)
def test_mistakes_are_explained(given: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_protocol(given)  # type: ignore[arg-type]  # wrong on purpose
    assert message in str(caught.value)


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_a_protocol_can_be_read_in_one_sentence(name: str) -> None:
    words = PROTOCOLS[name].in_words()
    assert words.startswith(f"{name}: ")
    assert "optimistic" in words
    assert PROTOCOLS[name].comparison in words
