"""CLIP (Radford et al. 2021): a Hugging Face folder, or the file that OpenAI published.

The map is the similarity of every patch with the text: the last block's patch tokens go through the final norm and the
projection that the class token goes through. CLIP's training never asked for that, and on vision transformers such
maps are known to be inverted; ``saliency: surgery`` is the published remedy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from medground.errors import ConfigError
from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, Weights, closest, load_weights, read_weights
from medground.models.common.adapter import Parts
from medground.models.common.dual import DualEncoder
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess
from medground.models.common.preprocessor_config import read_preprocess, states_preprocess
from medground.models.common.saliency import Tower, hugging_face_clip
from medground.models.common.text import Tokenizer
from medground.models.common.transformers import blank, read_config
from medground.models.layers.openai_names import clip_source

LAYOUT = Layout(ignore=("input_resolution", "context_length", "vocab_size", "*position_ids", "*attn_mask"))
CONTEXT = 77
# The published vision transformers, by what tells them apart: patch, image size, width and depth.
VARIANTS = {
    "ViT-B/32": (32, 224, 768, 12, 512),
    "ViT-B/16": (16, 224, 768, 12, 512),
    "ViT-L/14": (14, 224, 1024, 24, 768),
    "ViT-L/14@336px": (14, 336, 1024, 24, 768),
}


def openai_config(patch: int, image_size: int, width: int, depth: int, joint: int, text_depth: int = 12) -> Any:
    """Return the configuration of a published network; the text tower is as wide as the joint space."""
    from transformers import CLIPConfig

    vision = {
        "patch_size": patch,
        "image_size": image_size,
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": depth,
        "num_attention_heads": width // 64,
    }
    text = {
        "hidden_size": joint,
        "intermediate_size": 4 * joint,
        "num_hidden_layers": text_depth,
        "num_attention_heads": joint // 64,
        "eos_token_id": 2,  # transformers' sign for: read the text at the highest token id, as OpenAI does
    }
    return CLIPConfig(vision_config=vision, text_config=text, projection_dim=joint)


def network_of(config: Any) -> Any:
    """Return a blank ``transformers.CLIPModel``."""
    from transformers import CLIPModel

    return blank(lambda: CLIPModel(config))


def image_tokens(model: Any, pixels: Tensor) -> Tensor:
    """Return all tokens in the joint space ``(n, 1 + patches, E)``, the image's own vector first.

    Position embeddings are interpolated where the pictures are of another size than the tower's own.
    """
    other = pixels.shape[-1] != model.config.vision_config.image_size
    hidden = model.vision_model(pixel_values=pixels, interpolate_pos_encoding=other).last_hidden_state
    tokens: Tensor = model.visual_projection(model.vision_model.post_layernorm(hidden))
    return tokens


def text_vectors(model: Any, ids: Tensor) -> Tensor:
    """Return un-normed text vectors ``(K, E)``, read at the end of each text."""
    vectors: Tensor = model.text_projection(model.text_model(input_ids=ids).pooler_output)
    return vectors


def load_network(checkpoint: Path | Mapping[str, Any], ignore: Sequence[str] = ()) -> tuple[Any, Weights]:
    """Return the network of a Hugging Face folder or a published file, and its weights."""
    weights = read_weights(checkpoint, LAYOUT)
    options: dict[str, Any] = {"ignore": (*LAYOUT.ignore, *ignore)}
    if any(name.startswith("visual.") for name in weights.tensors):
        options["published"] = clip_source
    if isinstance(checkpoint, Path) and (checkpoint / "config.json").is_file():
        config = read_config(checkpoint, "CLIPConfig")
    else:
        with torch.device("meta"):
            variants = {name: network_of(openai_config(*sizes)) for name, sizes in VARIANTS.items()}
        config = openai_config(*VARIANTS[closest(variants, weights, **options)])
    network = network_of(config)
    load_weights(network, weights, **options)
    return network, weights


def preprocess_of(checkpoint: Path, size: int) -> Preprocess:
    """Return how a folder says that pictures are prepared; without a word of it, the published way.

    Raises:
        ConfigError: the folder prepares pictures at another size than its network takes, or in a way not known here.
    """
    if not states_preprocess(checkpoint):
        rounding: Literal["round", "floor"] = "floor" if checkpoint.is_dir() else "round"
        return Preprocess("center_crop", size, "bicubic", CLIP_MEAN, CLIP_STD, rounding=rounding)
    return read_preprocess(checkpoint, size)


@dataclass(kw_only=True, eq=False, repr=False)
class Clip(DualEncoder):
    """CLIP with a vision transformer.

    Args:
        checkpoint: a Hugging Face folder, or OpenAI's ``ViT-B-16.pt``, ``ViT-B-32.pt``, ``ViT-L-14.pt`` (the
            TorchScript archive or its state dict).
        tokenizer: folder of the Hugging Face tokenizer; by default the checkpoint's folder.
    """

    name: ClassVar[str] = "clip"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="CLIP",
        kind="zero-shot",
        pretrained_on="general",
        licence="MIT",
        citation="Radford et al., Learning transferable visual models from natural language supervision, ICML 2021",
        obtain="folder of openai/clip-vit-base-patch16 or -patch32 from Hugging Face; or OpenAI's ViT-B-16.pt with the "
        "folder of a CLIP tokenizer",
    )

    checkpoint: Path
    tokenizer: Path | None = None
    template: str | list[str] = "a photo of a {label}"

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        if self.tokenizer is None and not self.checkpoint.is_dir():
            raise ConfigError(
                "a file of CLIP weights brings no tokenizer",
                where="tokenizer",
                fix="tokenizer: FOLDER of a CLIP tokenizer",
            )
        tokenizer = Tokenizer(self.tokenizer or self.checkpoint, CONTEXT)
        network, weights = load_network(self.checkpoint, self.ignore or ())
        preprocess = preprocess_of(self.checkpoint, network.config.vision_config.image_size)
        return Parts(network, weights, preprocess, self.words(), tokenizer)

    def takes_size(self, size: int) -> bool:
        """See :meth:`DualEncoder.takes_size`."""
        network: Any = self.network
        return bool(size % network.config.vision_config.patch_size == 0)

    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.image_features`."""
        tokens = image_tokens(self.network, pixels)
        side = math.isqrt(tokens.shape[1] - 1)
        return tokens[:, 0], tokens[:, 1:].reshape(len(tokens), side, side, -1)

    def embed(self, texts: Sequence[str]) -> Tensor:
        """See :meth:`DualEncoder.embed`."""
        ids, _ = self.tokenise(texts)
        return text_vectors(self.network, ids.to(self.runtime.device))

    def scale(self) -> float:
        """See :meth:`DualEncoder.scale`."""
        return math.exp(float(self.network.logit_scale))  # type: ignore[arg-type]  # a parameter, to torch a module

    def tower(self) -> Tower:
        """See :meth:`DualEncoder.tower`."""
        network: Any = self.network
        other = self.preprocess.size != network.config.vision_config.image_size
        return hugging_face_clip(network, interpolate_pos_encoding=other)
