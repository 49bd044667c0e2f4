"""Tiny towers, tokenizers and pictures, made on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from medground.imaging.reading import Radiograph
from medground.models.common import book as entity_book

TEXT = (
    "a photo of the there is no this picture image in left right base lung pleural effusion cardiomegaly nodule mass "
    "pneumonia edema atelectasis pneumothorax infiltration consolidation opacity yes caption answer question "
    "normal clear description border fluid location other patterns shape texture evidence x ray"
)
WORDS = TEXT.split()


def bert_vocabulary() -> list[str]:
    pieces = ["##s", "##ly", "##thorax"]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *pieces, ".", ",", "?", "-"]


@pytest.fixture(scope="session")
def picture() -> Callable[..., Radiograph]:
    """A smooth picture with noise: ``picture(width, height, seed)``."""

    def make(width: int = 60, height: int = 40, seed: int = 0) -> Radiograph:
        rng = np.random.default_rng(seed)
        y, x = np.mgrid[:height, :width]
        values = 0.5 + 0.3 * np.sin(x / 7 + seed) * np.cos(y / 5) + 0.1 * rng.standard_normal((height, width))
        return Radiograph(np.clip(values, 0, 1).astype(np.float32), case_id=f"case-{seed}")

    return make


@pytest.fixture(scope="session")
def pictures(picture: Callable[..., Radiograph]) -> list[Radiograph]:
    """A landscape, a portrait and a square picture."""
    return [picture(60, 40, 1), picture(44, 70, 2), picture(50, 50, 3)]


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with its tokenizer, as a Hugging Face folder."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    vocabulary = bert_vocabulary()
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=768,
        num_hidden_layers=2,
        num_attention_heads=12,
        intermediate_size=32,
        max_position_embeddings=256,
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny CLIP with its tokenizer, as a Hugging Face folder: 224 pixels, patches of 32."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    folder = tmp_path_factory.mktemp("clip")
    vocabulary = clip_tokenizer(folder)
    torch.manual_seed(0)
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = tower | {
        "vocab_size": len(vocabulary),
        "bos_token_id": vocabulary["<|startoftext|>"],
        "eos_token_id": vocabulary["<|endoftext|>"],
        "pad_token_id": vocabulary["<|endoftext|>"],
    }
    config = CLIPConfig(
        text_config=text, vision_config=tower | {"patch_size": 32, "image_size": 224}, projection_dim=16
    )
    CLIPModel(config).save_pretrained(folder)
    return folder


def word_tokenizer(folder: Path, special: list[str], *, wrap: bool = True, **names: str) -> dict[str, int]:
    """Write a word-level tokenizer; return its vocabulary.

    Args:
        folder: to write to.
        special: special tokens that go before the words.
        wrap: put the first special token before a text and the last behind it.
        names: what the library calls them.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: index for index, word in enumerate([*special, *WORDS, "INST", "[", "]", "/", ".", "?"])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=names["unk_token"]))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    if wrap:
        first, last = names["bos_token"], names["eos_token"]
        inner.post_processor = processors.TemplateProcessing(
            single=f"{first} $A {last}", special_tokens=[(t, vocabulary[t]) for t in (first, last)]
        )
    PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=77, **names).save_pretrained(folder)
    return vocabulary


def clip_tokenizer(folder: Path) -> dict[str, int]:
    """Write a tokenizer with CLIP's special tokens, the end of a text the highest id."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = ["<unk>", *WORDS, "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {word: index for index, word in enumerate(names)}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A <|endoftext|>",
        special_tokens=[(t, vocabulary[t]) for t in ("<|startoftext|>", "<|endoftext|>")],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<|startoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        unk_token="<unk>",
        model_max_length=77,
    ).save_pretrained(folder)
    return vocabulary


@pytest.fixture(scope="session")
def roberta_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configuration and tokenizer of a tiny RoBERTa."""
    from transformers import RobertaConfig

    folder = tmp_path_factory.mktemp("roberta")
    vocabulary = word_tokenizer(
        folder,
        ["<s>", "<pad>", "</s>", "<unk>"],
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token="<s>",
        sep_token="</s>",
    )
    RobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=768,
        num_hidden_layers=1,
        num_attention_heads=12,
        intermediate_size=32,
        max_position_embeddings=80,
        type_vocab_size=1,
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def llava_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny LLaVA with the authors' names: configuration, tokenizer, weights."""
    import torch
    from transformers import CLIPVisionConfig, LlavaConfig, MistralConfig

    from medground.models.radiology import llava_med

    folder = tmp_path_factory.mktemp("llava")
    vocabulary = word_tokenizer(
        folder, ["<unk>", "<s>", "</s>"], wrap=False, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    tower = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = MistralConfig(
        **tower, num_key_value_heads=2, vocab_size=len(vocabulary), bos_token_id=1, eos_token_id=2, head_dim=16
    )
    vision = CLIPVisionConfig(**tower, image_size=56, patch_size=14, projection_dim=16)
    config = LlavaConfig(text_config=text, vision_config=vision, image_token_index=0)
    config.save_pretrained(folder)
    torch.save(publish(randomised(llava_med.network_of(config)), llava_med.published), folder / "pytorch_model.bin")
    return folder


def randomised(network: Any, seed: int = 0) -> Any:
    """Fill a network with numbers of a useful size, batch-norm statistics included."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    for name, value in network.state_dict().items():
        if not value.is_floating_point():
            continue
        drawn = torch.randn(value.shape, generator=generator)
        if name.endswith("running_var") or (value.dim() <= 1 and name.endswith("weight")):
            value.copy_(1 + 0.2 * drawn.abs())
        elif value.dim() <= 1:
            value.copy_(0.1 * drawn)
        else:
            value.copy_(drawn * (1.5 / value[0].numel() ** 0.5))
    return network


def publish(network: Any, published: Callable[[str], Any]) -> dict[str, Any]:
    """Return a network's state under published names: the inverse of what the loader does."""
    import torch

    from medground.models.checkpoints import Source

    state: dict[str, Any] = {}
    for name, value in network.state_dict().items():
        source = published(name)
        source = source if isinstance(source, Source) else Source(source)
        if source.parts > 1:
            whole = state.setdefault(source.name, torch.zeros(source.published_shape(tuple(value.shape))))
            whole.chunk(source.parts)[source.part].copy_(value)
        else:
            state[source.name] = (value.t() if source.transpose else value).contiguous()
    return state


@dataclass
class Spec:
    """How a tiny checkpoint of one model is made and opened."""

    network: Callable[[Any], Any]
    options: dict[str, Any]
    published: Callable[[str], Any] = str
    under: str | None = None
    prefix: str = ""
    groups: bool = False
    patches: dict[str, Any] = field(default_factory=dict)


@dataclass
class Zoo:
    """Tiny stand-ins of the published models, loaded from files through their own constructors."""

    folder: Path
    specs: Mapping[str, Spec]
    _contents: dict[str, dict[str, Any]] = field(default_factory=dict)
    _built: dict[str, Any] = field(default_factory=dict)

    def content(self, name: str) -> dict[str, Any]:
        """Return the published entries of a model's checkpoint."""
        if name not in self._contents:
            spec = self.specs[name]
            with self._smaller(name):
                self._contents[name] = publish(randomised(spec.network(self._config(name))), spec.published)
        return dict(self._contents[name])

    def laid_out(self, name: str, content: dict[str, Any], prefix: str | None = None) -> dict[str, Any]:
        """Return entries as the published file holds them."""
        spec = self.specs[name]
        prefix = spec.prefix if prefix is None else prefix
        if spec.groups:
            groups: dict[str, Any] = {}
            for entry, value in content.items():
                group, _, rest = entry.partition(".")
                groups.setdefault(group, {})[prefix + rest] = value
            return groups | {"epoch": 1}
        named = {prefix + entry: value for entry, value in content.items()}
        return {spec.under: named, "epoch": 1} if spec.under else named

    def open(self, name: str, file: dict[str, Any], path: Path, **options: Any) -> Any:
        """Save a file and open it with the model's class."""
        import torch

        from medground import registry

        torch.save(file, path)
        with self._smaller(name):
            return registry.load("model", name)(
                **{"checkpoint": path, "device": "cpu", **self.specs[name].options, **options}
            )

    def build(self, name: str, **options: Any) -> Any:
        """Return a model; one without options is shared."""
        key = f"{name}{sorted(options.items())}"
        if key not in self._built:
            path = self.folder / f"{name}.pt"
            self._built[key] = self.open(name, self.laid_out(name, self.content(name)), path, **options)
        return self._built[key]

    def build_folder(self, name: str, folder: Path) -> Any:
        """Return a model whose checkpoint is a folder."""
        from medground import registry

        key = f"{name} {folder}"
        if key not in self._built:
            self._built[key] = registry.load("model", name)(checkpoint=folder, device="cpu")
        return self._built[key]

    def _config(self, name: str) -> Any:
        from transformers import AutoConfig

        return AutoConfig.from_pretrained(self.specs[name].options["text_model"])

    @contextmanager
    def _smaller(self, name: str) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(mock.patch("medground.models.layers.resnet.BLOCKS", (1, 1, 1, 1)))
            for target, replacement in self.specs[name].patches.items():
                stack.enter_context(mock.patch(target, replacement))
            yield


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path, roberta_folder: Path) -> Zoo:
    """Tiny stand-ins of the published models."""
    from transformers import SwinConfig

    from medground.models.layers.vit import VisionTransformer
    from medground.models.radiology import biomedclip, carzero, devide, kad, m3ae, mavl, medclip, medklip, pmc_clip

    folder = tmp_path_factory.mktemp("zoo")
    keys = {position: key for key, position in entity_book.POSITIONS.items()}
    names = [keys.get(i, f"observation {i}") for i in range(entity_book.ENTRIES)]
    words = WORDS[10:40]
    book = {name: f"opacity in the {words[i % 30]} of the {words[(i * 7) % 29]}" for i, name in enumerate(names)}
    aspects = ("border", "fluid", "location", "opacity", "other", "patterns", "shape", "texture")
    concepts = {name: {a: f"{a} {words[(i + j) % 30]}" for j, a in enumerate(aspects)} for i, name in enumerate(names)}
    (folder / "book.json").write_text(json.dumps(book))
    (folder / "concepts.json").write_text(json.dumps(concepts))
    text = {"text_model": bert_folder}
    books = {"book": folder / "book.json"}
    key_map = folder / "key_map.json"
    key_map.write_text(json.dumps({"image_encoder.": "vit.", "head.weight": "out.w", "head.bias": "out.b"}))
    small = partial(m3ae.M3aeNetwork, vision_depth=1, depth=2)
    specs = {
        "medklip": Spec(
            lambda _: medklip.MedklipNetwork(),
            text | books | {"resolution": 64},
            medklip.published,
            "model",
            "module.",
        ),
        "kad": Spec(lambda config: kad.KadNetwork(4, config), text | {"resolution": 128}, kad.published, groups=True),
        "mavl": Spec(
            lambda _: mavl.MavlNetwork(),
            text | books | {"concept_book": folder / "concepts.json"},
            mavl.published,
            "model",
            "module.",
        ),
        "carzero": Spec(
            carzero.CarzeroNetwork,
            dict(text),
            under="state_dict",
            prefix="CARZero.",
            patches={"medground.models.radiology.carzero.VisionTransformer": partial(VisionTransformer, depth=1)},
        ),
        "biomedclip": Spec(
            partial(biomedclip.BiomedclipNetwork, depth=2),
            dict(text),
            patches={
                "medground.models.radiology.biomedclip.BiomedclipNetwork": partial(
                    biomedclip.BiomedclipNetwork, depth=2
                )
            },
        ),
        "medclip": Spec(
            partial(medclip.MedclipNetwork, "swin"),
            dict(text),
            medclip.published,
            patches={"transformers.SwinConfig": partial(SwinConfig, depths=[1, 1, 1, 1])},
        ),
        "pmc_clip": Spec(pmc_clip.PmcClipNetwork, dict(text), under="state_dict", prefix="module."),
        "m3ae": Spec(
            lambda config: small(config, 64),
            {"text_model": roberta_folder, "resolution": 64},
            m3ae.published,
            "state_dict",
            patches={"medground.models.radiology.m3ae.M3aeNetwork": small},
        ),
        "devide": Spec(
            partial(devide.DevideNetwork, image_size=64, depth=1, layers=2),
            text | {"resolution": 64, "depth": 1, "decoder_layers": 2, "key_map": key_map},
            lambda name: devide.renamed(name, json.loads(key_map.read_text())),
        ),
    }
    return Zoo(folder, specs)


@pytest.fixture(scope="session")
def write_book(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, dict[str, object]], Path]:
    """Write a JSON book: ``write_book(name, content)``."""
    folder = tmp_path_factory.mktemp("books")

    def write(name: str, content: dict[str, object]) -> Path:
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content))
        return path

    return write
