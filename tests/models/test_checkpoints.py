"""Weights load completely or not at all, and nothing in a file is run."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from medground.errors import CheckpointError
from medground.models.checkpoints import Layout, Source, Weights, closest, compare, load_weights, read_weights


class Net(nn.Module):
    def __init__(self, head: int = 2) -> None:
        super().__init__()
        self.encoder = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, head)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.encoder(x)))


def filled(seed: int = 1) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.rand(t.shape, generator=generator) if t.is_floating_point() else t.clone()
        for name, t in Net().state_dict().items()
    }


def snapshot(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: t.clone() for name, t in net.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.flag}",)


class Config:
    """A configuration object, as training frameworks put beside weights."""

    def __init__(self) -> None:
        self.learning_rate = 0.1


def test_published_example_of_keys_that_do_not_fit(golden: Path) -> None:
    case = json.loads((golden / "metrics/starred/T11_checkpoint_keys/expected.json").read_text())
    needed, found, expected = (
        case["input"]["model_state"],
        case["input"]["checkpoint_state"],
        case["expected"],
    )
    difference = compare(needed, found)
    assert list(difference.missing) == expected["missing"]
    assert list(difference.unexpected) == expected["unexpected"]
    shapes = [{"key": k, "model": list(a), "checkpoint": list(b)} for k, (a, b) in difference.wrong_shape.items()]
    assert shapes == expected["wrong_shape"]
    allowed = compare(needed, found, ["head.weight", "head.kernel", "head.bias"])
    assert not allowed
    assert sorted(allowed.ignored) == ["head.bias", "head.kernel", "head.weight"]
    assert not compare(needed, needed)


def test_every_doubt_is_listed_and_the_network_is_left_alone() -> None:
    state = filled()
    state["head.kernel"] = state.pop("head.weight")
    state["head.bias"] = torch.zeros(3)
    net = Net()
    before = snapshot(net)
    with pytest.raises(CheckpointError) as caught:
        load_weights(net, Weights(state, "", "somewhere.pt"))
    message = str(caught.value)
    assert "missing head.weight (2, 4)  nearest: head.kernel" in message
    assert "unexpected head.kernel (2, 4)  nearest: head.weight" in message
    assert "wrong shape head.bias: (2,) needed, (3,) in the file" in message
    assert "somewhere.pt" in message
    assert same(before, snapshot(net))
    report = load_weights(net, Weights(state, "", ""), ignore=["head.*"])
    assert sorted(report.ignored) == ["head.bias", "head.kernel", "head.weight"]
    assert torch.equal(net.encoder.weight, state["encoder.weight"])
    assert torch.equal(net.head.weight, before["head.weight"])


def test_batch_norm_counters_are_optional_and_running_statistics_are_not() -> None:
    state = filled()
    del state["norm.num_batches_tracked"]
    load_weights(Net(), Weights(state, "", ""))
    del state["norm.running_var"]
    with pytest.raises(CheckpointError, match=r"missing norm\.running_var"):
        load_weights(Net(), Weights(state, "", ""))


@pytest.mark.parametrize("kind", ["safetensors", "torch", "legacy", "module", "training", "folder", "shards", "dict"])
def test_every_container_gives_the_same_weights(kind: str, tmp_path: Path) -> None:
    state = filled()
    layout = Layout(under="state_dict")
    path = tmp_path / ("w.safetensors" if kind == "safetensors" else "w.pt")
    source: Path | dict[str, object] = path
    if kind == "safetensors":
        save_file(state, path)
    elif kind == "legacy":
        torch.save(state, path, _use_new_zipfile_serialization=False)
    elif kind == "module":
        torch.save({f"module.{k}": v for k, v in state.items()}, path)
    elif kind == "training":
        torch.save({"epoch": 3, "state_dict": {f"module.module.{k}": v for k, v in state.items()}}, path)
    elif kind == "folder":
        torch.save(state, tmp_path / "pytorch_model.bin")
        source = tmp_path
    elif kind == "shards":
        names = list(state)
        save_file({n: state[n] for n in names[:3]}, tmp_path / "a.safetensors")
        save_file({n: state[n] for n in names[3:]}, tmp_path / "b.safetensors")
        index = {"weight_map": {n: "a.safetensors" if i < 3 else "b.safetensors" for i, n in enumerate(names)}}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
        source = tmp_path
    elif kind == "dict":
        source = {"state_dict": state, "epoch": 1}
    else:
        torch.save(state, path)
    weights = read_weights(source, layout)
    net = Net()
    load_weights(net, weights)
    assert same(snapshot(net), state)
    assert len(weights.sha256) == 64
    assert ("epoch" in weights.dropped) == (kind in ("training", "dict"))


def test_hash_follows_the_content(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        save_file(filled(seed), tmp_path / f"{name}.safetensors")
    a, b, c = (read_weights(tmp_path / f"{name}.safetensors").sha256 for name in "abc")
    assert a == b != c
    assert read_weights(filled(1)).sha256 == read_weights(filled(1)).sha256 != read_weights(filled(2)).sha256


def test_groups_become_prefixes() -> None:
    state = {"image": {"module.w": torch.ones(2)}, "text": {"w": torch.zeros(2)}, "optimizer": {"x": 1}}
    weights = read_weights(state, Layout(groups=("image", "text")))
    assert set(weights.tensors) == {"image.w", "text.w"}
    assert weights.dropped == ("optimizer",)


def test_torchscript_archive_is_read_without_its_code(tmp_path: Path) -> None:
    state = filled()
    net = Net().eval()
    net.load_state_dict(state)
    path = tmp_path / "archive.pt"
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        torch.jit.trace(net.half(), torch.zeros(1, 3).half(), check_trace=False).save(path)
    weights = read_weights(path)
    restored = Net()
    load_weights(restored, weights)
    for name, value in restored.state_dict().items():
        assert torch.equal(value, state[name].half().float() if value.is_floating_point() else state[name])


def test_object_under_an_unused_key_is_dropped_without_being_run(tmp_path: Path) -> None:
    flag, path = tmp_path / "ran", tmp_path / "w.ckpt"
    content = {"state_dict": filled(), "hyper_parameters": {"trap": Trap(flag), "config": Config()}}
    torch.save(content, path)
    layout = Layout(under="state_dict", unused=("hyper_parameters",))
    weights = read_weights(path, layout)
    net = Net()
    load_weights(net, weights)
    assert same(snapshot(net), filled())
    assert weights.dropped == ("hyper_parameters",)
    assert not flag.exists()


@pytest.mark.parametrize("place", ["beside", "inside", "top", "key"])
def test_object_anywhere_else_is_refused_by_place_and_name(place: str, tmp_path: Path) -> None:
    flag, path = tmp_path / "ran", tmp_path / "w.ckpt"
    trap = Trap(flag)
    content: object = {
        "beside": {"state_dict": filled(), "callbacks": [trap]},
        "inside": {"state_dict": filled() | {"evil": trap}},
        "key": {"state_dict": filled(), Config: 1},
        "top": trap,
    }[place]
    torch.save(content, path)
    with pytest.raises(CheckpointError, match="objects where only weights may be") as caught:
        read_weights(path, Layout(under="state_dict", unused=("hyper_parameters",)))
    expected = "Config" if place == "key" else "system"
    assert expected in str(caught.value)
    if place == "beside":
        assert "callbacks[0]" in str(caught.value)
    assert not flag.exists()


def test_guarded_reading_restores_every_kind_of_tensor(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    state = {
        "plain": whole,
        "transposed": whole.t(),
        "slice": whole[1:, 2],
        "parameter": nn.Parameter(torch.rand(2, 2)),
        "half": torch.rand(3).half(),
        "brain": torch.rand(3).bfloat16(),
        "number": torch.tensor(7),
        "flag": torch.tensor([True, False]),
        "empty": torch.zeros(0, 3),
    }
    path = tmp_path / "w.ckpt"
    torch.save({"state_dict": state, "hyper_parameters": Config()}, path)
    found = read_weights(path, Layout(under="state_dict", unused=("hyper_parameters",))).tensors
    assert found.keys() == state.keys()
    for name, value in state.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value)


def test_pickle_that_holds_itself_is_refused(tmp_path: Path) -> None:
    ring: list[object] = [Config()]
    ring.append(ring)
    path = tmp_path / "w.ckpt"
    torch.save({"state_dict": filled(), "ring": ring}, path)
    with pytest.raises(CheckpointError, match=r"ring\[0\]"):
        read_weights(path, Layout(under="state_dict"))


def test_legacy_pickle_with_an_object_is_refused(tmp_path: Path) -> None:
    flag, path = tmp_path / "ran", tmp_path / "w.pt"
    path.write_bytes(pickle.dumps({"a": Trap(flag)}))
    with pytest.raises(CheckpointError):
        read_weights(path)
    assert not flag.exists()


def test_torchscript_archive_with_a_trap_runs_nothing(tmp_path: Path) -> None:
    flag, path = tmp_path / "ran", tmp_path / "w.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w/code/__torch__.py", "")
        archive.writestr("w/data.pkl", pickle.dumps({"a": Trap(flag)}, protocol=2))
    with pytest.raises(CheckpointError, match="no weights"):
        read_weights(path)
    assert not flag.exists()


def test_tensor_that_reaches_outside_its_storage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.ckpt"
    torch.save({"state_dict": {"w": torch.arange(4.0)}, "hyper_parameters": Config()}, path)
    cut = tmp_path / "cut.ckpt"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(cut, "w") as new:
        for name in old.namelist():
            new.writestr(name, b"" if name.endswith("data/0") else old.read(name))
    with pytest.raises(CheckpointError, match="missing or too short"):
        read_weights(cut, Layout(under="state_dict", unused=("hyper_parameters",)))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "no such checkpoint"),
        (b"", "empty"),
        (b"not weights at all", "cannot be read|holds objects"),
        (b"PK\x03\x04 truncated", "cannot be read|holds objects"),
    ],
)
def test_damaged_files_give_a_clear_message(content: bytes | None, match: str, tmp_path: Path) -> None:
    path = tmp_path / "w.pt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CheckpointError, match=match) as caught:
        read_weights(path)
    assert str(path) in str(caught.value)


def test_folder_without_weights_and_index_that_leaves_the_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no weights"):
        read_weights(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"w": "../w.safetensors"}}')
    with pytest.raises(CheckpointError, match="outside its folder"):
        read_weights(tmp_path)


def test_entries_that_are_no_tensors_or_collide_are_errors() -> None:
    with pytest.raises(CheckpointError, match="no tensor"):
        read_weights({"state_dict": {"a": 1}}, Layout(under="state_dict"))
    with pytest.raises(CheckpointError, match="one name"):
        read_weights({"a": torch.ones(1), "module.a": torch.ones(1)})
    with pytest.raises(CheckpointError, match="no weights"):
        read_weights({"epoch": 3})


def test_stacked_and_transposed_entries_fill_their_parts() -> None:
    class Split(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k, self.v = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
            self.out = nn.Linear(2, 5, bias=False)

    def published(name: str) -> Source:
        module, leaf = name.split(".")
        if module == "out":
            return Source("proj", transpose=True)
        return Source(f"in_proj_{leaf}", "qkv".index(module), 3)

    stacked = {"in_proj_weight": torch.rand(6, 2), "in_proj_bias": torch.rand(6), "proj": torch.rand(2, 5)}
    net = Split()
    load_weights(net, Weights(stacked, "", ""), published=published)
    assert torch.equal(torch.cat([net.q.weight, net.k.weight, net.v.weight]), stacked["in_proj_weight"])
    assert torch.equal(net.out.weight, stacked["proj"].t())
    with pytest.raises(CheckpointError, match=r"wrong shape in_proj_bias: \(6,\) needed, \(5,\)"):
        load_weights(net, Weights(stacked | {"in_proj_bias": torch.rand(5)}, "", ""), published=published)


def test_variant_that_fits_best_is_chosen_although_a_key_is_renamed() -> None:
    state = {name: torch.zeros(t.shape) for name, t in Net(7).state_dict().items()}
    state["encoder.kernel"] = state.pop("encoder.weight")
    assert closest({"two": Net(2), "seven": Net(7)}, Weights(state, "", "")) == "seven"


def test_weights_that_are_allowed_to_be_missing_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    state = {name: value for name, value in network.state_dict().items() if not name.startswith("1.")}
    load_weights(network, read_weights(state), ignore=["1.*"])
    assert "2 of 4 weights of Sequential are not in the file" in caplog.text
    caplog.clear()
    load_weights(network, read_weights(dict(network.state_dict())), ignore=["1.*"])
    assert not caplog.text


def test_every_table_says_that_weights_may_be_missing() -> None:
    from medground.benchmarks.base import Entry
    from medground.models.radiology.kad import Kad
    from medground.reporting.xbench.standing import standing

    assert Entry("k", "kad", Kad, {}).card == Kad.info
    card = Entry("k", "kad", Kad, {"ignore": ["*layers.1*"]}).card
    assert card.title == Kad.info.title
    assert "ignore: *layers.1*" in card.unverified
    (mark,) = standing({"kind": card.kind, "seen": None, "cases_seen": 0, "unverified": card.unverified}).marks
    assert "*layers.1*" in mark
