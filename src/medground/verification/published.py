"""Golden inputs through the shipped path: the published folder on disk, the adapter by name, ``predict``, ``match``.

Weights are stand-ins, laid out in the files, containers and with the further entries that the publisher's have. A
tokenizer on disk has one word for every token id (``w17``), so that a text becomes the ids of a golden case. What a
case does not say in files (text vectors that were injected) takes the place of :meth:`Adapter.encode_texts` alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from medground import registry
from medground.imaging.geometry import Geometry
from medground.models import standin
from medground.models.base import Prepared
from medground.models.common import book
from medground.models.common.text import Prompts
from medground.verification.cases import Array, Case

Folder = Callable[[Path], Mapping[str, Any]]


def shipped(case: Case, name: str, write: Folder, swaps: Sequence[tuple[ModuleType, str, Any]] = ()) -> Any:
    """Return a model that was built as a run file's entry is, from the published folder of stand-in weights.

    Args:
        case: whose network it is; cases of one network share the model.
        name: of the model, as a run file names it.
        write: writes the folder and returns the entry's parameters.
        swaps: (module, name, value) that the model is built under, where a case has fewer blocks than the publication.
    """

    def build() -> Any:
        with TemporaryDirectory() as place, swapped(swaps):
            parameters = {"device": "cpu", **write(Path(place))}
            return registry.create("model", name, parameters)

    return case.golden.keep("shipped", case.key(), build)


@contextmanager
def swapped(swaps: Sequence[tuple[ModuleType, str, Any]]) -> Iterator[None]:
    """Give names of modules other values for a while."""
    before = [getattr(module, name) for module, name, _ in swaps]
    for module, name, value in swaps:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(swaps, before, strict=True):
            setattr(module, name, value)


def travels(case: Case) -> bool:
    """Whether a case goes the shipped way: those with fewer blocks, where the folder has any; else all.

    The full depth is compared on the network itself; writing and reading it would take gigabytes for the same rules.
    """
    shallow = [bool(one.options.get("depth")) for one in case.golden.cases()]
    return bool(case.options.get("depth")) or not any(shallow)


def prepared(pixels: Tensor) -> list[Prepared]:
    """Return golden pixels ``(N, 3, h, w)`` as pictures that are prepared for a network."""
    side = (int(pixels.shape[-1]), int(pixels.shape[-2]))
    return [Prepared(str(i), None, side, np.asarray(one), Geometry.identity(side)) for i, one in enumerate(pixels)]


def injected(model: Any, texts: Any) -> Any:
    """Let a model take golden text features in place of its own."""
    model.encode_texts = lambda _: texts
    model._texts.clear()
    return model


def own_texts(model: Any) -> Any:
    """Let a model encode its texts itself again."""
    vars(model).pop("encode_texts", None)
    model._texts.clear()
    return model


def names(count: int) -> list[str]:
    """Return names that stand for findings."""
    return [f"finding {place}" for place in range(count)]


def prompts(texts: Sequence[str | Sequence[str]]) -> dict[str, Any]:
    """Return the prompts of a run file, one entry a finding of :func:`names`."""
    return dict(zip(names(len(texts)), texts, strict=True))


def worded(model: Any, texts: Sequence[str | Sequence[str]]) -> Any:
    """Give a model the prompts of a case, as ``prompts`` in the run file does, and forget those of the one before."""
    model.wording = Prompts("{label}", prompts(texts))
    model._texts.clear()
    return model


def text_of(ids: Sequence[int], special: Sequence[int]) -> str:
    """Return the text that becomes these token ids, without special ones."""
    return " ".join(f"w{number}" for number in ids if number not in special)


def held(value: Array, *agree: bool) -> Array:
    """Return an output, or NaN in its place where something else that has to hold does not."""
    return value if all(agree) else np.full_like(np.asarray(value, dtype=np.float64), np.nan)


def close(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    """Return whether two arrays agree."""
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return one.shape == other.shape and bool(np.abs(one - other).max(initial=0.0) <= tolerance)


def dual_outputs(model: Any, pixels: Tensor, texts: Sequence[str], keys: tuple[str, str, str]) -> dict[str, Array]:
    """Return what a dual encoder says to pictures and texts: cosines, maps and scaled cosines, under three keys."""
    images = prepared(pixels)
    said = worded(model, texts).predict(images, names(len(texts)))
    matched = model.match(images, [list(texts)] * len(images))
    cosines, maps, scaled = keys
    return {
        cosines: said.scores,
        maps: np.asarray(said.saliency),
        scaled: np.asarray(matched.raw * matched.scale),
    }


def bert_tokenizer(folder: Path, size: int, special: Mapping[int, str]) -> None:
    """Write ``vocab.txt``, as the publishers of BERTs do.

    Args:
        folder: that gets the file.
        size: of the vocabulary.
        special: token id -> special token.
    """
    folder.mkdir(exist_ok=True)
    words = [special.get(place, f"w{place}") for place in range(size)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


BERT_TOKENS = {0: "[PAD]", 1: "[UNK]", 2: "[CLS]", 3: "[SEP]", 4: "[MASK]"}
"""Token id -> special token, in the order of uncased BERTs."""


SMALL = {"vocab_size": 160, "num_hidden_layers": 1, "intermediate_size": 64, "max_position_embeddings": 64}
"""A BERT of the published width with one small layer; its words are the ids themselves."""


def small_bert() -> Any:
    """Return a small BERT with stand-in weights."""
    from transformers import BertConfig, BertModel

    network = BertModel(BertConfig(**SMALL), add_pooling_layer=False).eval()
    network.load_state_dict(_stand_in(network), strict=False)
    return network


def small_bert_folder(folder: Path) -> None:
    """Write the folder of :func:`small_bert` as Bio_ClinicalBERT is published.

    The file is that of the network with its training heads: names begin with ``bert.``, norms have gamma and beta.
    """
    network = small_bert()
    bert_tokenizer(folder, SMALL["vocab_size"], BERT_TOKENS)
    write_config(folder, network.config)
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    content = {f"bert.{_renamed(name, old)}": value for name, value in _stand_in(network).items()}
    content["cls.predictions.bias"] = torch.zeros(SMALL["vocab_size"])
    save(folder / "pytorch_model.bin", content)


def _stand_in(network: Any) -> dict[str, Tensor]:
    return {
        name: torch.from_numpy(np.array(standin.parameter(name, tuple(value.shape))))
        for name, value in network.state_dict().items()
        if value.is_floating_point()
    }


def _renamed(name: str, endings: Mapping[str, str]) -> str:
    return next((name.removesuffix(new) + old for new, old in endings.items() if name.endswith(new)), name)


def observations(folder: Path) -> Path:
    """Write a book of the published length and order, a word of the small BERT an entry."""
    held = {position: name for name, position in book.POSITIONS.items()}
    entries = {held.get(place, f"observation {place}"): f"w{place + 10} w{place + 11}" for place in range(book.ENTRIES)}
    path = folder / "observation explanation.json"
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def class_states(ids: Sequence[Sequence[int]]) -> Tensor:
    """Return the last hidden state of the class token of texts of one length in :func:`small_bert`."""
    with torch.no_grad():
        return torch.as_tensor(small_bert()(input_ids=torch.tensor(ids)).last_hidden_state[:, 0])


def word_tokenizer(
    folder: Path, size: int, start: int, end: int, pad: int, words: Mapping[int, str] | None = None
) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``: one word a token id, texts between two special ones."""
    folder.mkdir(exist_ok=True)
    special = {start: "<start>", end: "<end>", pad: "<pad>"}
    named = {**(words or {}), **special}
    vocabulary = {named.get(place, f"w{place}"): place for place in range(size)}
    added = [
        {
            "id": place,
            "content": text,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for place, text in sorted(special.items())
    ]
    template = {
        "type": "TemplateProcessing",
        "single": [_special("<start>"), {"Sequence": {"id": "A", "type_id": 0}}, _special("<end>")],
        "pair": [],
        "special_tokens": {
            text: {"id": text, "ids": [place], "tokens": [text]} for place, text in special.items() if text != "<pad>"
        },
    }
    rules = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": template,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<pad>"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(rules), encoding="utf-8")
    stated = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<start>",
        "eos_token": "<end>",
        "pad_token": "<pad>",
        "cls_token": "<start>",
        "sep_token": "<end>",
        "unk_token": "<pad>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(stated), encoding="utf-8")


def _special(text: str) -> dict[str, Any]:
    return {"SpecialToken": {"id": text, "type_id": 0}}


def write_config(folder: Path, config: Any, **more: Any) -> None:
    """Write the ``config.json`` of a configuration of transformers."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**config.to_dict(), **more}, default=str), encoding="utf-8")


def save(path: Path, content: Any) -> Path:
    """Write a checkpoint with ``torch.save``, as the publishers do."""
    torch.save(content, path)
    return path


def training_entries() -> dict[str, Any]:
    """Return what training checkpoints hold beside weights: an optimizer with scalars of numpy among them."""
    group = {"lr": np.float64(1e-4), "betas": (0.9, 0.98), "params": [0, 1]}
    state = {0: {"step": torch.tensor(3.0), "exp_avg": torch.zeros(2)}}
    return {
        "optimizer": {"state": state, "param_groups": [group]},
        "lr_scheduler": {"base_lrs": [np.float64(1e-4)], "last_epoch": 3},
        "epoch": 3,
    }


@contextmanager
def foreign(module: str, name: str) -> Iterator[Any]:
    """Yield an object of a class that is not installed, as hyper-parameters of another library are; to be pickled."""
    parts = module.split(".")
    places = [".".join(parts[: depth + 1]) for depth in range(len(parts))]
    before = {place: sys.modules.get(place) for place in places}
    cls = type(name, (), {"__module__": module})
    for place in places:
        sys.modules[place] = ModuleType(place)
    setattr(sys.modules[module], name, cls)
    try:
        yield cls()
    finally:
        for place, old in before.items():
            if old is None:
                del sys.modules[place]
            else:
                sys.modules[place] = old
