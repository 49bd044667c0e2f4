"""Datasets on the same pictures are told apart from independent ones."""

from __future__ import annotations

from medground.datasets.chestx_det import ChestXDet
from medground.datasets.nih_chestxray14 import NihChestXray14
from medground.datasets.overlap import shared_sources
from medground.datasets.rsna_pneumonia import RsnaPneumonia
from medground.datasets.siim_pneumothorax import SiimPneumothorax
from medground.datasets.vindr_cxr import VindrCxr


def test_datasets_of_one_source_are_named_together(folder, another):
    folder.table("BBox_List_2017.csv", "h,h,x,y,w,h", "00000123_001.png,Mass,1,2,3,4", "00000124_000.png,Mass,1,2,3,4")
    folder.table("stage_2_train_labels.csv", "patientId,x,y,width,height,Target", "a,1,2,3,4,1", "b,,,,,0")
    crossref = another.table("x.csv", "patientId,nih_image", "a,00000123_004.png", "b,00000999_000.png")
    nih = NihChestXray14(folder.root, missing="keep")
    rsna = RsnaPneumonia(folder.root, missing="keep", crossref=crossref)
    (shared,) = shared_sources([nih, rsna, VindrCxr(folder.root)])
    assert (shared.source, shared.datasets) == ("nih_chestxray14", ("nih_chestxray14", "rsna_pneumonia"))
    assert shared.patients == 1
    assert "at least 1 patients occur more than once" in str(shared)
    (unknown,) = shared_sources([nih, RsnaPneumonia(folder.root, missing="keep")])
    assert unknown.patients == 0
    assert "may occur" in str(unknown)


def test_independent_datasets_give_no_warning(folder):
    assert shared_sources([VindrCxr(folder.root)]) == []
    assert shared_sources([]) == []


def test_the_four_datasets_on_nih_pictures_say_so():
    for dataset in (RsnaPneumonia, SiimPneumothorax, ChestXDet):
        assert dataset.info.pixels_from == NihChestXray14.name
