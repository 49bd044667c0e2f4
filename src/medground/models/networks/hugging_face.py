"""The dual encoders of ``transformers``: how each kind gives vectors of pictures, of their cells, and of texts.

A kind is what ``config.json`` calls ``model_type``. All that the kinds differ in stands here; loading, preprocessing
and maps are the same for all and stand in :mod:`medground.models.radiology.hf_dual`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from torch import Tensor

from medground.errors import ConfigError


class Clip:
    """``CLIPModel``: a class token, its norm and a projection; texts are read at their end."""

    network: ClassVar[str] = "CLIPModel"
    resizable: ClassVar[bool] = True
    """Whether position embeddings can be interpolated to another size of picture."""
    masked: ClassVar[bool] = True
    """Whether the text tower is told which tokens are padding."""
    padded: ClassVar[bool] = False
    """Whether texts are padded to the longest that the tower takes, as in training."""
    scaled: ClassVar[bool] = False
    """Whether the temperature was trained for a sigmoid, so that probabilities use it unless told otherwise."""

    def image(self, network: Any, pixels: Tensor, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return un-normed vectors ``(n, E)`` of pictures and ``(n, h, w, E)`` of their cells."""
        output = network.get_image_features(pixel_values=pixels, **options)
        return output.pooler_output, pooled_cells(network, output.last_hidden_state, pixels)

    def text(self, network: Any, ids: Tensor, mask: Tensor) -> Tensor:
        """Return un-normed vectors ``(K, E)`` of texts."""
        options = {"attention_mask": mask} if self.masked else {}
        vectors: Tensor = network.get_text_features(input_ids=ids, **options).pooler_output
        return vectors

    def scale(self, network: Any) -> float:
        """Return the multiplier of cosines that the checkpoint stores."""
        return math.exp(float(network.logit_scale))

    def bias(self, network: Any) -> float:
        """Return what is added to scaled cosines."""
        del network
        return 0.0


class Siglip(Clip):
    """``SiglipModel``: an attention pool; trained on padded texts without a mask, with a sigmoid and a bias."""

    network = "SiglipModel"
    masked, padded, scaled = False, True, True

    def bias(self, network: Any) -> float:
        """Return the stored bias."""
        return float(network.logit_bias)


class Pair(Clip):
    """``VisionTextDualEncoderModel``: two towers of one's own."""

    network = "VisionTextDualEncoderModel"
    resizable = False


class Align(Clip):
    """``AlignModel``: EfficientNet, whose mean over cells is the picture's vector, and BERT's class token."""

    network = "AlignModel"

    def image(self, network: Any, pixels: Tensor, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """See :meth:`Clip.image`."""
        del options  # a convolutional tower takes any size
        output = network.get_image_features(pixel_values=pixels)
        return output.pooler_output, output.last_hidden_state.permute(0, 2, 3, 1)

    def scale(self, network: Any) -> float:
        """Return the multiplier of cosines: the stored temperature divides."""
        return 1.0 / float(network.temperature)


class Blip(Clip):
    """``BlipForImageTextRetrieval``: the contrastive half; its checkpoints store no temperature."""

    network = "BlipForImageTextRetrieval"

    def image(self, network: Any, pixels: Tensor, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """See :meth:`Clip.image`."""
        states = network.vision_model(pixel_values=pixels, **options).last_hidden_state
        tokens = network.vision_proj(states)
        side = math.isqrt(tokens.shape[1] - 1)
        return tokens[:, 0], tokens[:, 1:].unflatten(1, (side, side))

    def text(self, network: Any, ids: Tensor, mask: Tensor) -> Tensor:
        """See :meth:`Clip.text`."""
        states = network.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        vectors: Tensor = network.text_proj(states[:, 0])
        return vectors

    def scale(self, network: Any) -> float:
        """Return 1: a temperature was trained, but the published files leave it out."""
        del network
        return 1.0


# Siglip2Model takes ragged patches and a mask of them, which no square preprocessing gives; the published SigLIP 2
# files of a fixed size are of type siglip.
KINDS: dict[str, Clip] = {
    "clip": Clip(),
    "siglip": Siglip(),
    "vision-text-dual-encoder": Pair(),
    "align": Align(),
    "blip": Blip(),
}


def pooled_cells(network: Any, states: Tensor, pixels: Tensor) -> Tensor:
    """Return the vectors ``(n, h, w, E)`` of the joint space for the tower's last states ``(n, T, D)``.

    Each patch goes through the pooling and projection of the whole picture, alone.

    Raises:
        ConfigError: the tower's states are no square of patches.
    """
    tower, vision = network.vision_model, network.config.vision_config
    patch = getattr(vision, "patch_size", None)
    side = pixels.shape[-1] // patch if isinstance(patch, int) else 0
    extra = states.shape[1] - side * side if states.ndim == 3 else -1
    if not side or extra not in (0, 1):
        raise ConfigError(
            "maps need an image tower with square patches and at most a class token",
            where="config.json: vision_config",
            got=f"{vision.model_type}, states of shape {tuple(states.shape)}",
        )
    each = states[:, extra:].reshape(-1, 1, states.shape[-1])
    if hasattr(tower, "post_layernorm") and not hasattr(tower, "head"):
        pooled = tower.post_layernorm(each[:, 0])
    else:
        pool = getattr(tower, "head", None) or tower.pooler
        pooled = pool(each)
    projection = getattr(network, "visual_projection", None)
    cells: Tensor = pooled if projection is None else projection(pooled)
    return cells.reshape(len(states), side, side, -1)
