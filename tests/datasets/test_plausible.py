"""What is well formed and makes no sense is said, and refused where it cannot be right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from medground.datasets._folder.masks import read_mask
from medground.datasets.base import Case
from medground.datasets.plausible import Doubt, doubts, spread
from medground.imaging.regions import Region


def picture(path: Path, size: tuple[int, int] = (64, 64), *, flat: bool = False) -> Path:
    if flat:
        Image.new("L", size, 7).save(path)
    else:
        levels = np.random.default_rng(0).integers(0, 256, size[::-1]).astype(np.uint8)
        Image.fromarray(levels).save(path)
    return path


@pytest.fixture
def case(tmp_path: Path) -> Callable[..., Case]:
    def make(name: str, region: Region | None = None, **options: Any) -> Case:
        path = picture(tmp_path / f"{name}.png", **options)
        return Case(name, path, labels={"Mass": True}, regions={} if region is None else {"Mass": region})

    return make


def only(found: list[Doubt]) -> Doubt:
    (doubt,) = found
    return doubt


def test_sound_data_raises_no_doubt(case: Callable[..., Case]) -> None:
    region = Region.from_boxes((128, 128), [(10, 10, 60, 50)])
    assert not doubts([case("a", region), case("b", region), case("c")])
    assert not doubts([])


def test_pictures_without_contrast(case: Callable[..., Case]) -> None:
    doubt = only(doubts([case("a", flat=True), case("b", flat=True)]))
    assert doubt.certain
    assert "2 of 2 pictures have no contrast, such as a: every pixel is 0.0275" in doubt.text
    assert not only(doubts([case("a", flat=True), case("b")])).certain


def test_a_window_outside_the_values_is_seen(tmp_path: Path) -> None:
    from medground.imaging.reading import Radiograph

    def read(path: Path, case_id: str) -> Radiograph:
        return Radiograph(np.zeros((4, 4), np.float32), case_id, steps=("window centre -600 width 100",))

    (tmp_path / "x.dcm").write_bytes(b"x")
    doubt = only(doubts([Case("x", tmp_path / "x.dcm")], read))
    assert doubt.certain
    assert "window centre -600" in doubt.text


def test_boxes_in_shares_of_the_picture(case: Callable[..., Case]) -> None:
    share = Region.from_boxes((64, 64), [(0.1, 0.2, 0.5, 0.6)])
    doubt = only(doubts([case("a", share)]))
    assert doubt.certain
    assert "0.1, 0.2, 0.5, 0.6 in a frame of 64 x 64" in doubt.text
    assert not only(doubts([case("a", share), case("b", Region.from_boxes((64, 64), [(1, 2, 30, 40)]))])).certain


def test_masks_that_are_inside_out(case: Callable[..., Case]) -> None:
    mask = np.ones((64, 64), bool)
    mask[20:30, 20:30] = False
    doubt = only(doubts([case("a", Region.from_mask(mask)), case("b", Region.from_mask(mask))]))
    assert doubt.certain
    assert "98%" in doubt.text
    several = [
        case("a", Region.from_mask(mask)),
        case("b", Region.from_mask(~mask)),
        case("c", Region.from_mask(~mask)),
    ]
    assert not only(doubts(several)).certain


@pytest.mark.parametrize(("how", "certain"), [("grey", True), ("interpolated", False)])
def test_masks_of_more_than_two_values(how: str, certain: bool, case: Callable[..., Case], tmp_path: Path) -> None:
    mask = np.zeros((64, 64), np.uint8)
    mask[20:40, 20:44] = 255
    if how == "grey":
        mask[20:40, 20:44] = np.arange(480).reshape(20, 24) % 200 + 1
    small = Image.fromarray(mask)
    (small if how == "grey" else small.resize((100, 100), Image.Resampling.BICUBIC)).save(tmp_path / "mask.png")
    region = read_mask(tmp_path / "mask.png")
    doubt = only(doubts([case("a", region)]))
    assert "grey levels inside" in doubt.text
    assert doubt.certain == certain


def test_labels_of_a_few_values_are_no_grey(case: Callable[..., Case], tmp_path: Path) -> None:
    mask = np.zeros((64, 64), np.uint8)
    mask[5:9, 5:9], mask[20:30, 20:30] = 1, 2
    Image.fromarray(mask).save(tmp_path / "mask.png")
    assert not doubts([case("a", read_mask(tmp_path / "mask.png"))])


def test_a_frame_that_the_picture_never_had(case: Callable[..., Case]) -> None:
    doubt = only(doubts([case("a", Region.from_boxes((640, 320), [(10, 10, 200, 100)]))]))
    assert doubt.certain
    assert "640 x 320 on 64 x 64" in doubt.text
    squashed = only(doubts([case("a", Region.from_boxes((2500, 2048), [(10, 10, 900, 900)]))]))
    assert not squashed.certain


def test_the_cases_that_are_looked_at_are_spread(tmp_path: Path) -> None:
    cases = [Case(str(i), tmp_path / "x") for i in range(100)]
    assert [c.case_id for c in spread(cases, 3)] == ["0", "50", "99"]
    assert spread(cases[:2], 3) == cases[:2]


@pytest.mark.parametrize("implausible", ["refuse", "accept"])
def test_run_refuses_what_validate_fails(implausible: str, tmp_path: Path) -> None:
    import json

    from medground.commands.validate import validate_file
    from medground.errors import DatasetError
    from medground.session import assemble, plausible, read_run_file

    (tmp_path / "images").mkdir()
    lines = []
    for i in range(3):
        picture(tmp_path / f"images/{i}.png")
        box = {"Mass": [[0.1, 0.2, 0.5, 0.6]]}
        lines.append({"image": f"images/{i}.png", "frame": [64, 64], "labels": {"Mass": True}, "boxes": box})
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "run.yaml").write_text(
        f"name: r\nimplausible: {implausible}\n"
        "benchmark: {name: xbench, datasets: [{name: manifest, root: cases.jsonl}]}\n"
        "models: [{name: baseline_centre}]\n"
    )
    failed = [check for check in validate_file(tmp_path / "run.yaml") if not check.ok]
    assert any("shares of the picture" in line for check in failed for line in check.details)
    session = assemble(read_run_file(tmp_path / "run.yaml"), tmp_path)
    if implausible == "refuse":
        with pytest.raises(DatasetError, match="cannot be right") as caught:
            plausible(session)
        assert "implausible: accept" in str(caught.value)
    else:
        assert any("shares of the picture" in line for line in plausible(session))
