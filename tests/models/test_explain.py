"""A checkpoint that does not load is explained by its cause, with what helps; own training files load."""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from medground.errors import CheckpointError
from medground.models.checkpoints import Layout, load_weights, read_weights
from medground.models.common.archive import Archive, check_program
from medground.models.common.explain import likeness, shared_prefix
from medground.models.radiology.clip import Clip

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 605247071\n"


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))


@pytest.mark.parametrize(
    ("content", "cause", "helps"),
    [
        (POINTER, "pointer of Git LFS", "git lfs pull"),
        (b"<!DOCTYPE html><html><head>", "web page", "download the file itself"),
        (b"\n <HTML>", "web page", "download the file itself"),
        (b'{"error": "Access to model is restricted"}', "JSON, not weights", "server's answer"),
        (b"", "empty", "download it again"),
        (b"GGUF\x03\x00", "GGUF", "PyTorch"),
        (b"\x89HDF\r\n\x1a\n", "Keras", "PyTorch"),
        (b"\x1f\x8b\x08", "gzip archive", "unpack it first"),
        (b"\x89PNG\r\n", "a picture", "PyTorch"),
    ],
)
@pytest.mark.parametrize("name", ["w.bin", "w.safetensors", "w.pt"])
def test_a_file_that_is_no_checkpoint(content: bytes, cause: str, helps: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=cause) as caught:
        read_weights(tmp_path / name)
    assert helps in str(caught.value)


def test_a_name_of_the_hub_is_told_apart_from_a_wrong_path(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="Hugging Face hub") as caught:
        Clip(checkpoint=tmp_path / "openai/clip-vit-base-patch16", device="cpu")
    assert "hf download openai/clip-vit-base-patch16" in str(caught.value)
    (tmp_path / "other.pt").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="no such checkpoint") as caught:
        Clip(checkpoint=tmp_path / "clip.pt", device="cpu")
    assert "beside it: other.pt" in str(caught.value)


def test_the_cause_comes_before_the_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "ViT-B-16.pt").write_bytes(POINTER)
    with pytest.raises(CheckpointError, match="Git LFS"):
        Clip(checkpoint=tmp_path / "ViT-B-16.pt", device="cpu")


def test_a_parcel_of_files_is_no_checkpoint(tmp_path: Path) -> None:
    inner = io.BytesIO()
    torch.save(net().state_dict(), inner)
    with zipfile.ZipFile(tmp_path / "w.zip", "w") as archive:
        archive.writestr("out/pytorch_model.bin", inner.getvalue())
    with pytest.raises(CheckpointError, match="zip archive of files") as caught:
        read_weights(tmp_path / "w.zip")
    assert "unzip it, then give out/pytorch_model.bin" in str(caught.value)


def test_a_packed_container_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    whole = io.BytesIO()
    torch.save({"a": torch.zeros(4 << 20)}, whole)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(tmp_path / "w.pt", "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.namelist():
            target.writestr(entry, source.read(entry))
    with pytest.raises(CheckpointError, match="decompression bomb"):
        read_weights(tmp_path / "w.pt")


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model", "net", "network", "weights"])
@pytest.mark.parametrize("prefix", ["", "module.", "model.", "net.backbone."])
def test_own_training_checkpoints_load(key: str, prefix: str, tmp_path: Path) -> None:
    saved, fresh = net(), net()
    with torch.no_grad():
        saved[0].weight.fill_(7)
    state = {prefix + name: value for name, value in saved.state_dict().items()}
    extra = {"epoch": 3, "best": np.float64(0.5), "args": Namespace(lr=1), "optimizer": {"lr": np.float32(1)}}
    torch.save({key: state} | extra, tmp_path / "w.pt")
    load_weights(fresh, read_weights(tmp_path / "w.pt", Layout(under="nothing like it")))
    assert torch.equal(fresh[0].weight, saved[0].weight)


def test_numbers_of_numpy_in_an_optimizer_do_not_stand_in_the_way(tmp_path: Path) -> None:
    optimizer = {"state": {0: {"step": np.int64(3), "lr": np.float32(0.1), "shape": np.zeros(3)}}}
    torch.save({"state_dict": net().state_dict(), "optimizer": optimizer, "epoch": 2}, tmp_path / "checkpoint.pt")
    layout = Layout(under="state_dict", unused=("optimizer",))
    assert set(read_weights(tmp_path / "checkpoint.pt", layout).tensors) == set(net().state_dict())


def test_weights_that_lie_deeper_are_pointed_at(tmp_path: Path) -> None:
    torch.save({"trainer": {"best": net().state_dict()}, "epoch": 1}, tmp_path / "w.pt")
    with pytest.raises(CheckpointError, match="no weights where they are looked for") as caught:
        read_weights(tmp_path / "w.pt")
    assert "the part trainer.best alone: it holds 4 tensors" in str(caught.value)


def test_a_file_of_another_model_is_recognised(tmp_path: Path) -> None:
    torch.save({"visual.trunk.blocks.0.attn.qkv.weight": torch.zeros(2)}, tmp_path / "w.pt")
    with pytest.raises(CheckpointError, match="look like an open_clip model with a timm tower") as caught:
        load_weights(net(), read_weights(tmp_path / "w.pt"))
    assert str(caught.value).index("BiomedCLIP") < str(caught.value).index("missing 0.weight")
    assert likeness(["x"]) is None


def test_a_prefix_is_removed_only_where_nothing_fits_with_it() -> None:
    assert shared_prefix({"a.b", "c"}, {"net.a.b", "net.c"}) == "net."
    assert shared_prefix({"a.b"}, {"a.b", "net.c"}) == ""
    assert shared_prefix({"a.b"}, {"net.x", "net.y"}) == ""
    assert shared_prefix({"a.b"}, {"x.a.b", "y.c"}) == ""


def container(path: Path, program: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", program)
        archive.writestr("x/version", "3")
    return path


SAMPLES = {
    "I": b"1\n", "L": b"1L\n", "F": b"1.5\n", "S": b"'a'\n", "V": b"a\n", "c": b"os\nsystem\n", "i": b"os\nsystem\n",
    "P": b"7\n", "p": b"1\n", "g": b"1\n", "J": b"\1\0\0\0", "K": b"\1", "M": b"\1\0", "G": b"\0" * 8,
    "T": b"\1\0\0\0a",
    "U": b"\1a", "X": b"\1\0\0\0a", "B": b"\1\0\0\0a", "C": b"\1a", "h": b"\0", "j": b"\0\0\0\0", "q": b"\0",
    "r": b"\0\0\0\0", "\x80": b"\2", "\x82": b"\1", "\x83": b"\1\0", "\x84": b"\1\0\0\0", "\x8a": b"\1\1",
    "\x8b": b"\1\0\0\0\1", "\x8c": b"\1a", "\x8d": b"\1" + b"\0" * 7 + b"a", "\x8e": b"\1" + b"\0" * 7 + b"a",
    "\x95": b"\1" + b"\0" * 7, "\x96": b"\1" + b"\0" * 7 + b"a",
}  # fmt: skip
OPERATIONS = [code.code for code in pickletools.opcodes]
STEPS = st.sampled_from([code.encode("latin-1") + SAMPLES.get(code, b"") for code in OPERATIONS])


def read_program(path: Path, program: bytes) -> Any:
    try:
        return Archive(container(path, program)).tree
    except (pickle.UnpicklingError, CheckpointError):
        return None


@settings(max_examples=400, deadline=None)
@given(st.lists(STEPS, max_size=30))
def test_any_sequence_of_operations_is_a_tree_or_a_sentence(steps: list[bytes]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        read_program(Path(folder) / "w.pt", b"".join(steps) + b".")


MADE = b"cos\nsystem\n"


@pytest.mark.parametrize(
    "program",
    [
        MADE + b"(S'touch x'\ntR.",
        b"(S'touch x'\nios\nsystem\n.",
        b"(" + MADE + b"S'touch x'\no.",
        MADE + b")\x81.",
        MADE + b")}\x92.",
        MADE + b"(tR}(S'a'\nK\1ub.",
        MADE + b"(tR(K\1K\2tb.",
        MADE + b"}b.",
        MADE + b"(tR(K\1e.",
        MADE + b"(tRK\1a.",
        MADE + b"(tRK\1K\2s.",
        MADE + b"(tR(K\1\x90.",
        MADE + b"(tR(tR.",
        b"\x8c\x02os\x8c\x06system\x93(S'touch x'\ntR.",
    ],
    ids=range(14),
)
def test_whatever_a_file_does_with_what_it_names_nothing_happens(
    program: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = Archive(container(tmp_path / "w.pt", program)).tree
    assert getattr(type(tree), "origin", None) == "os.system" or getattr(tree, "origin", None) == "os.system"
    assert not (tmp_path / "x").exists()


def test_a_place_beyond_the_program_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(pickle.UnpicklingError, match="LONG_BINPUT"):
        check_program(b"K\1r\xff\xff\xff\x7f.")
