"""The paper's figures as printed, and what is known to be wrong with them."""

from __future__ import annotations

import csv
from importlib.resources import files

import pytest

from medground.reporting.xbench.published import DATASETS, FAULTS, GENERAL, faults, published_rows


@pytest.mark.parametrize("component", DATASETS)
def test_every_dataset_of_the_paper_has_seven_models(component: str) -> None:
    rows = published_rows(component)
    assert len(rows) == 7
    assert all({("pointing", ""), ("dice@best", ""), ("iou@best", "")} <= set(row.values) for row in rows)


def test_figures_are_those_of_the_files_digit_for_digit() -> None:
    folder = files("medground.reporting").joinpath("xbench", "published_tables")
    with folder.joinpath("table3_chestxray14_pointing.csv").open(encoding="utf-8") as file:
        told = {(r["model"], r["group"]): r["value"] for r in csv.DictReader(file) if r["group"] != "mean"}
    shown = {
        (row.model, group): text
        for row in published_rows("nih_chestxray14")
        for (m, group), (text, _) in row.values.items()
        if m == "pointing" and group
    }
    assert shown == told


def test_means_come_from_the_table_that_agrees_with_the_classes() -> None:
    clip = next(row for row in published_rows("chexlocalize") if row.model == "CLIP")
    classes = [float(text) for (metric, group), (text, _) in clip.values.items() if metric == "pointing" and group]
    assert float(clip.values["pointing", ""][0]) == pytest.approx(sum(classes) / len(classes), abs=0.01)


def test_faulty_cells_say_so_and_sound_ones_do_not() -> None:
    carzero = next(row for row in published_rows("vindr_cxr") if row.model == "CARZero")
    assert carzero.values["pointing", "Other lesion"][1] == "as printed; these three cells look rotated"
    assert carzero.values["pointing", "Cardiomegaly"][1] == ""
    assert "class values" in carzero.values["pointing", ""][1]
    biomed = next(row for row in published_rows("siim_pneumothorax") if row.model == "BiomedCLIP")
    assert biomed.values["pointing", ""][1] == "fits 6/594 while the other models fit k/647"


def test_known_faults_belong_to_datasets_of_the_paper() -> None:
    assert set(FAULTS) <= set(DATASETS.values())
    assert faults("nih_chestxray14") == GENERAL
    assert len(faults("vindr_cxr")) > len(GENERAL)


def test_other_datasets_have_no_printed_rows() -> None:
    assert published_rows("manifest") == []
    assert published_rows("") == []
