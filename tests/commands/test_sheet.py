"""The contact sheet: what it shows of which case, and what happens where something cannot be shown."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from medground.commands.validate import validate_file
from medground.imaging.geometry import Geometry
from medground.reporting.sheet import overlay

TILE = re.compile(r'<li class="tile">(.*?)\n    </li>', re.DOTALL)


def sheet_of(run_file: Path, tmp_path: Path, *overrides: str) -> tuple[str, tuple[str, ...]]:
    target = tmp_path / "sheets" / "cases.html"
    check = validate_file(run_file, overrides, target)[-1]
    assert check.ok
    return target.read_text(), check.details


def test_regions_lie_on_their_pictures(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    page, problems = sheet_of(run_file, tmp_path)
    assert problems == ()
    records = {r["case_id"]: r for r in map(json.loads, (tiny_manifest / "manifest.jsonl").read_text().splitlines())}
    shown = [tile for tile in TILE.findall(page) if "PNG grey, 8 bit" in tile]
    assert len(shown) == 9
    for tile in shown:
        record = records[re.search(r"<h3>(\w+)</h3>", tile)[1]]  # type: ignore[index]  # every tile has a head
        ((finding, (box,)),) = record["boxes"].items()
        x0, y0, x1, y1 = box
        assert f"M{x0} {y0}L{x1} {y0}L{x1} {y1}L{x0} {y1}Z" in tile
        assert finding in tile
        width, height = record["frame"]
        assert f'viewBox="0 0 {width} {height}"' in tile
        data = re.search(r"data:image/webp;base64,([^\"]+)", tile)[1]  # type: ignore[index]  # or no picture is shown
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("L"), dtype=float)
        inside = drawn[y0 + 2 : y1 - 2, x0 + 2 : x1 - 2]
        assert inside.mean() > 235 > drawn.mean() + 60  # the box is the brightest thing in the drawn pictures


def test_maps_of_every_model_are_shown(run_file: Path, tmp_path: Path) -> None:
    page, _ = sheet_of(run_file, tmp_path)
    maps = re.findall(r"<h3>(baseline_\w+): (\w+) in (case\d\d)</h3>", page)
    assert {label for label, _, _ in maps} == {"baseline_centre", "baseline_random"}
    assert len(maps) == 6


def test_a_map_is_drawn_in_the_place_that_the_model_saw() -> None:
    saliency = np.zeros((7, 7), dtype=np.float32)
    saliency[1, 5] = 2.0
    # A picture of 300 x 200, shortest side to 224, centre crop: the crop leaves out (300 - 200) / 2 columns a side.
    geometry = Geometry((300, 200), (224, 224), (1.12, 1.12), (-56.0, 0.0))
    drawn = overlay("model", "Mass", saliency, geometry)
    assert drawn.place == pytest.approx((50.0, 0.0, 200.0, 200.0))
    alpha = np.asarray(Image.open(io.BytesIO(base64.b64decode(drawn.png))))[..., 3]
    assert np.unravel_index(alpha.argmax(), alpha.shape) == (1, 5)
    assert np.count_nonzero(alpha) == 1
    assert drawn.note == "7 x 7 cells, 0 to 2, peak at cell x 5, y 1"


def test_what_cannot_be_shown_is_said(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    data = shutil.copytree(tiny_manifest, tmp_path / "data")
    (data / "case00.png").write_bytes(b"nothing")
    page, problems = sheet_of(run_file, tmp_path, f"benchmark.datasets.0.root={data}")
    assert any(line.startswith("case00: ") for line in problems)
    assert '<p class="problem">' in page
    page, problems = sheet_of(run_file, tmp_path, f"benchmark.datasets.0.root={tmp_path / 'nowhere'}")
    assert "cannot be shown" in problems[0]


def test_text_from_data_is_text(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    data = shutil.copytree(tiny_manifest, tmp_path / "data")
    table = data / "manifest.jsonl"
    table.write_text(table.read_text().replace("Mass", "<script>alert(1)</script>"))
    page, _ = sheet_of(run_file, tmp_path, f"benchmark.datasets.0.root={data}")
    assert "<script" not in page
    assert str(tmp_path) not in page
    assert "may not be passed on" in page
