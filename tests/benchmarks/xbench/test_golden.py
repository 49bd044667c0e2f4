"""The golden metric cases through the code that a run uses: maps and regions in, numbers out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import PROTOCOLS, Protocol, resolve_protocol
from medground.benchmarks.xbench.rescore import ScoredMap, rows_from_maps
from medground.datasets.base import Case
from medground.imaging.regions import Box, Region

NO_IMAGE = Path("none.png")


def pairs_of(
    maps: Mapping[str, NDArray[Any]], regions: Mapping[str, Region], protocol: Protocol, finding: str = "x"
) -> Pairs:
    """Score one map a case."""
    cases = [Case(name, NO_IMAGE, regions={finding: regions[name]}) for name in maps]
    return Pairs.of(rows_from_maps(cases, [finding], lambda case, _: ScoredMap(maps[case]), protocol), protocol)


def at_own_size(name: str, size: tuple[int, int]) -> Protocol:
    """A named protocol on the map's own grid."""
    return resolve_protocol({"base": name, "grid": size})


class TestHeatmaps:
    @pytest.fixture
    def folder(self, golden: Path) -> Path:
        return golden / "metrics" / "heatmaps"

    @pytest.fixture
    def expected(self, folder: Path) -> dict[str, Any]:
        return json.loads((folder / "expected.json").read_text())

    def pairs(self, folder: Path, name: str, key: str = "maps") -> Pairs:
        arrays = np.load(folder / "inputs.npz")[key]
        items = json.loads((folder / "items.json").read_text())
        cases, maps = [], {}
        for i, (item, array) in enumerate(zip(items, arrays, strict=True)):
            boxes = [Box.from_xywh(*box) for box in item["boxes_xywh"]]
            region = Region.from_boxes((1024, 1024), boxes)
            cases.append(Case(f"{i:02d}", NO_IMAGE, regions={item["class"]: region}))
            maps[f"{i:02d}", item["class"]] = array
        findings = list(dict.fromkeys(item["class"] for item in items))
        # The golden thresholds maximise the mean over pairs; the default search maximises the printed macro mean.
        protocol = PROTOCOLS[name].model_copy(update={"search_mean": "pairs"})
        return Pairs.of(rows_from_maps(cases, findings, lambda c, f: ScoredMap(maps.get((c, f))), protocol), protocol)

    @pytest.mark.parametrize(
        ("name", "dice", "iou", "count"),
        [
            ("xbench", "dice", "iou", "foreground"),
            ("chexlocalize", "dice", "iou_true_positive_only", "foreground"),
            ("medklip", "dice_raw_map", "iou_raw_map", "foreground_raw_map"),
        ],
    )
    def test_every_threshold_of_every_item(
        self, folder: Path, expected: dict[str, Any], name: str, dice: str, iou: str, count: str
    ) -> None:
        pairs = self.pairs(folder, name)
        selected, _, area = pairs.counts
        for p, item in enumerate(expected["items"]):
            want = item[name]
            assert selected[p, :101].tolist() == want[count]
            assert area[p] == item["gt_area_1024" if name == "chexlocalize" else "gt_area_224"]
            np.testing.assert_allclose(pairs.curves["dice"][p, :101], want[dice], atol=1e-7)
            undefined = [np.nan if v is None else v for v in want[iou]]
            np.testing.assert_allclose(pairs.curves["iou"][p, :101], undefined, atol=1e-7)
            if "argmax_row_col" in want:
                row = pairs.frame.row(p, named=True)
                assert [row["peak_y"], row["peak_x"]] == want["argmax_row_col"]

    @pytest.mark.parametrize(
        ("name", "key"), [("xbench", "pointing"), ("chexlocalize", "pointing"), ("medklip", "pointing_any")]
    )
    def test_pointing(self, folder: Path, expected: dict[str, Any], name: str, key: str) -> None:
        pairs = self.pairs(folder, name)
        assert pairs.pointing().tolist() == [item[name][key] for item in expected["items"]]
        assert pairs.pointing().mean() == expected["aggregate"][name][key]

    @pytest.mark.parametrize("name", ["xbench", "chexlocalize", "medklip"])
    def test_the_searched_threshold(self, folder: Path, expected: dict[str, Any], name: str) -> None:
        pairs = self.pairs(folder, name)
        want = expected["aggregate"][name]
        assert set(pairs.searched) == {want["best_k_by_mean_dice"]}
        assert pairs.at_searched("dice").mean() == pytest.approx(want["dice_at_best"], abs=1e-7)
        assert np.nanmean(pairs.at_searched("iou")) == pytest.approx(want["iou_at_best"], abs=1e-7)

    def test_one_threshold_a_class_and_one_an_image(self, folder: Path, expected: dict[str, Any]) -> None:
        want = expected["aggregate"]["xbench"]
        base = self.pairs(folder, "xbench")
        by_class = Pairs(base.frame, resolve_protocol({"base": "xbench", "scope": "class"}))
        for finding, values in want["per_class_best_tau"].items():
            mask = by_class.finding == finding
            assert set(by_class.protocol.tau[by_class.searched[mask]]) == {values["best_tau"]}
            assert by_class.at_searched("dice")[mask].mean() == pytest.approx(values["dice"], abs=1e-7)
        by_image = Pairs(base.frame, resolve_protocol({"base": "xbench", "scope": "image"}))
        assert by_image.at_searched("dice").mean() == pytest.approx(want["per_image_best_tau_mean_dice"], abs=1e-7)

    def test_the_published_attention_threshold(self, folder: Path, expected: dict[str, Any]) -> None:
        pairs = self.pairs(folder, "medklip", "attention")
        k = pairs.protocol.index_of(0.008)
        for p, item in enumerate(expected["items"]):
            want = item["medklip"]
            assert pairs.counts[0][p, k] == want["foreground_attention_above_0.008"]
            assert pairs.curves["dice"][p, k] == pytest.approx(want["dice_attention_above_0.008"], abs=1e-7)
        mean = pairs.curves["iou"][:, k].mean()
        assert mean == pytest.approx(expected["aggregate"]["medklip"]["iou_attention_above_0.008"], abs=1e-7)

    def test_the_seven_published_thresholds(self, folder: Path, expected: dict[str, Any]) -> None:
        pairs = self.pairs(folder, "chexlocalize")
        for tau, want in expected["aggregate"]["chexlocalize"]["miou_at_the_seven_published_thresholds"].items():
            column = pairs.curves["iou"][:, pairs.protocol.index_of(float(tau))]
            assert np.nanmean(column) == pytest.approx(want, abs=1e-7)


class TestStarred:
    @staticmethod
    def case(golden: Path, name: str) -> tuple[Any, dict[str, Any]]:
        folder = golden / "metrics" / "starred" / name
        return np.load(folder / "input.npz"), json.loads((folder / "expected.json").read_text())["expected"]

    @pytest.mark.parametrize("name", ["xbench", "chexlocalize", "medklip"])
    def test_t01_ties(self, golden: Path, name: str) -> None:
        arrays, expected = self.case(golden, "T01_ties")
        want = expected["constant"]["per_protocol"][name]
        for key in ("mask_first_cell", "mask_other_cell"):
            region = Region.from_mask(arrays[f"constant_{key.removesuffix('_cell')}"])
            pairs = pairs_of({"a": arrays["constant"]}, {"a": region}, at_own_size(name, (4, 4)))
            assert pairs.pointing().tolist() == [want[key]]
            assert pairs.frame["state"].to_list() == [want["state"]]
            assert pairs.frame["ties"].to_list() == [16]

    @pytest.mark.parametrize("name", ["xbench", "chexlocalize", "medklip"])
    def test_t02_box_axes(self, golden: Path, name: str) -> None:
        arrays, expected = self.case(golden, "T02_box_axes")
        (array,) = arrays.values()
        size = (array.shape[1], array.shape[0])
        for key in ("box_one_pixel", "box_larger"):
            region = Region.from_boxes(size, [expected[key]["x0y0x1y1"]])
            pairs = pairs_of({"a": array}, {"a": region}, at_own_size(name, size))
            assert pairs.pointing().tolist() == [expected[key]["hit"]]
            assert pairs.counts[2].tolist() == [expected[key]["mask_area"]]

    @pytest.mark.parametrize("name", ["xbench", "chexlocalize", "medklip"])
    def test_t04_flat_and_nan(self, golden: Path, name: str) -> None:
        arrays, expected = self.case(golden, "T04_flat_and_nan")
        region = Region.from_mask(arrays["mask"])
        protocol = at_own_size(name, (14, 14))
        for key in ("zero", "equal", "nan", "negative"):
            pairs = pairs_of({"a": arrays[key]}, {"a": region}, protocol)
            assert pairs.frame["state"].to_list() == [expected[key]["state"]]
            selected = pairs.counts[0][0]
            if key == "nan":
                assert np.isnan(pairs.pointing()).all()
                assert np.isnan(pairs.curves["dice"]).all()
            elif key == "negative":
                row = pairs.frame.row(0, named=True)
                assert [row["peak_y"], row["peak_x"]] == expected[key]["argmax_row_col"]
                assert pairs.pointing().tolist() == [expected[key]["hit"]]
                if name != "medklip":
                    assert selected[50] == 100
                else:
                    assert selected[protocol.index_of(0.008)] == 0
            elif name == "xbench":
                assert selected.tolist() == [196] + [0] * 100
            elif name == "chexlocalize":
                assert not selected.any()
            else:
                assert selected[protocol.index_of(0.008)] == expected[key][name]["foreground_above_0.008"]
                assert pairs.pointing().tolist() == [1]


class TestAllForeground:
    @pytest.mark.data
    @pytest.mark.parametrize(
        ("rule", "grid"), [("size_cut", "224"), ("corner_cut", "224"), ("rounded", "224"), ("size_cut", "1024")]
    )
    def test_nih(self, data_root: Path, golden: Path, rule: str, grid: str) -> None:
        from medground.datasets.nih_chestxray14 import NihChestXray14

        expected = json.loads((golden / "metrics" / "all_foreground" / "expected.json").read_text())["nih"][rule]
        dataset = NihChestXray14(root=data_root / "nih-chestxray14", image_dir="images")
        size = (224, 224) if grid == "224" else "original"
        protocol = resolve_protocol({"base": "xbench", "box_rule": rule, "grid": size})
        everything = np.ones((1, 1))
        rows = rows_from_maps(dataset.cases(), dataset.findings, lambda *_: ScoredMap(everything), protocol)
        pairs = Pairs.of(rows, protocol)
        assert len(pairs) == expected["n"] == 984
        dice, iou = pairs.floor
        means = {}
        for name, want in expected["per_class"].items():
            mask = pairs.finding == name.replace("Infiltrate", "Infiltration")
            assert mask.sum() == want["n"]
            means[name] = 100 * dice[mask].mean(), 100 * iou[mask].mean()
            assert means[name] == pytest.approx((want[f"dice_{grid}"], want[f"iou_{grid}"]), abs=2e-6)
        macro = np.mean(list(means.values()), axis=0)
        assert macro == pytest.approx((expected["macro"][f"dice_{grid}"], expected["macro"][f"iou_{grid}"]), abs=2e-6)
        np.testing.assert_array_equal(pairs.at_searched("dice"), dice)
        assert not pairs.curves["dice"][:, 1:].any()

    @pytest.mark.data
    @pytest.mark.parametrize(("key", "folder"), [("rsna", "rsna"), ("chestx_det_test", "chestx-det")])
    def test_whole_number_boxes(self, data_root: Path, golden: Path, key: str, folder: str) -> None:
        from medground.datasets.chestx_det import ChestXDet
        from medground.datasets.rsna_pneumonia import RsnaPneumonia

        expected = json.loads((golden / "metrics" / "all_foreground" / "expected.json").read_text())[key]
        root = data_root / folder
        # The floor needs boxes, not pictures; most pictures of these samples are absent.
        dataset = (
            RsnaPneumonia(root, missing="keep")
            if key == "rsna"
            else ChestXDet(root, split="test", variant="chestx_det", shapes="boxes", missing="keep")
        )
        findings = list(expected["per_class"])
        rows = rows_from_maps(dataset.cases(), findings, lambda *_: ScoredMap(np.ones((1, 1))), PROTOCOLS["xbench"])
        pairs = Pairs.of(rows, PROTOCOLS["xbench"])
        assert len(pairs) == expected["n"]
        dice, iou = pairs.floor
        for name, want in expected["per_class"].items():
            mask = pairs.finding == name
            got = 100 * dice[mask].mean(), 100 * iou[mask].mean()
            assert mask.sum() == want["n"]
            assert got == pytest.approx((want["dice_224"], want["iou_224"]), abs=2e-6)
        assert 100 * dice.mean() == pytest.approx(expected["pooled"]["dice_224"], abs=2e-6)
