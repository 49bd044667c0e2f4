"""Attention and gradient relevance of a chat model of transformers, on the grid of its picture's tokens.

Both are read at the prompt's last token, where the answer begins. ``attention`` is its mean over layers and heads.
``gradient`` is the relevance of Chefer et al. (2021, ICCV) in the language model: ``R <- R + mean over heads of
relu(gradient x attention) R``, from the identity, with the gradient of log P(first) - log P(second) of two next tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from medground.errors import ModelError
from medground.imaging.geometry import Geometry


def attention_map(network: Any, inputs: Mapping[str, Any], place: Tensor) -> Tensor:
    """Return attention of the last token on the tokens at ``place``, ``(P,)``: a mean over layers and heads.

    Args:
        network: with eager attention.
        inputs: of one conversation.
        place: ``(P,)`` indices of the picture's tokens.
    """
    with torch.no_grad():
        told = network(**inputs, output_attentions=True, use_cache=False, logits_to_keep=1)
    return torch.stack([layer[0, :, -1].float().mean(0) for layer in told.attentions]).mean(0)[place]


def gradient_map(network: Any, inputs: Mapping[str, Any], place: Tensor, first: int, second: int) -> Tensor:
    """Return relevance of the tokens at ``place`` for the token ``first`` against ``second``, ``(P,)``.

    Args:
        network: with eager attention; its weights need no gradient.
        inputs: of one conversation.
        place: ``(P,)`` indices of the picture's tokens.
        first: id of a next token.
        second: id of another.
    """
    with torch.enable_grad(), _with_gradients(network):
        told = network(**inputs, output_attentions=True, use_cache=False, logits_to_keep=1)
        margin = told.logits[0, -1, first].float() - told.logits[0, -1, second].float()
        gradients = torch.autograd.grad(margin, told.attentions)
    relevance = torch.eye(told.attentions[0].shape[-1], device=margin.device)[-1]
    # Only the last row is wanted, so the product is taken from the last layer down, one row at a time.
    for weights, gradient in zip(reversed(told.attentions), reversed(gradients), strict=True):
        passed = functional.relu(weights[0].detach() * gradient[0]).mean(0).float()
        relevance = relevance + relevance @ passed
    return relevance[place]


@contextmanager
def _with_gradients(network: Any) -> Iterator[None]:
    """Let the embedded words ask for gradients, so that attention has some though no weight does."""

    def ask(_module: Any, _inputs: Any, embedded: Tensor) -> Tensor:
        return embedded.detach().requires_grad_(True)

    handle = network.get_input_embeddings().register_forward_hook(ask)
    try:
        yield
    finally:
        handle.remove()


def grid_of(loaded: Any, inputs: Mapping[str, Any]) -> tuple[Tensor, int]:
    """Return the places of a picture's tokens in a prompt, row by row, and the side of their square.

    Raises:
        ModelError: the prompt does not hold one picture as one square of tokens.
    """
    config = loaded.network.config
    token = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
    pixels = inputs.get("pixel_values")
    place = (inputs["input_ids"][0] == token).nonzero()[:, 0] if token is not None else torch.zeros(0)
    side = math.isqrt(len(place))
    if pixels is None or pixels.ndim != 4 or len(pixels) != 1 or not side or side**2 != len(place):
        raise ModelError(
            "this model does not show where it looks",
            where=str(config.model_type),
            expected="one picture in one piece, as a square of tokens (LLaVA, PaliGemma, Gemma 3)",
            got=f"{len(place)} picture tokens",
            fix="place: boxes",
        )
    return place, side


def geometry_of(loaded: Any, source: tuple[int, int]) -> Geometry:
    """Return how a model's input frame lies on a picture, from its image processor.

    Args:
        loaded: the chat model.
        source: ``(width, height)`` of the picture.

    Raises:
        ModelError: the processor does something else than resize, and cut out the middle.
    """
    processor = loaded.processor.image_processor
    size, crop = dict(processor.size or {}), dict(getattr(processor, "crop_size", None) or {})
    if getattr(processor, "do_center_crop", False) and "shortest_edge" in size and crop:
        return Geometry.center_crop(source, size["shortest_edge"], (crop["width"], crop["height"]), rounding="floor")
    if not getattr(processor, "do_center_crop", False) and {"height", "width"} <= size.keys():
        return Geometry.squash(source, (size["width"], size["height"]))
    raise ModelError(
        "where this model's picture tokens lie on a picture is not known",
        where=type(processor).__name__,
        expected="a resize to one size, or to the shortest edge and a centred crop",
        fix="place: boxes",
    )


def next_tokens(tokenizer: Any, choices: Sequence[str]) -> tuple[int, int]:
    """Return the first ids of two answers.

    Raises:
        ModelError: they begin alike, so that their next token does not tell them apart.
    """
    first, second = (tokenizer(choice, add_special_tokens=False)["input_ids"] for choice in choices)
    if not first or not second or first[0] == second[0]:
        raise ModelError("two answers begin with the same token", got=" / ".join(map(repr, choices)))
    return int(first[0]), int(second[0])
