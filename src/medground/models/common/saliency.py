"""Named saliency rules for dual encoders whose image tower is a transformer, and Grad-CAM for any tower.

* ``gradcam`` (Selvaraju et al. 2017): activations weighted by their mean gradient, negative sums cut.
* ``chefer`` (Chefer et al. 2021): relevance carried through the blocks by positive gradient-weighted attention.
* ``surgery`` (Li et al. 2023, CLIP Surgery): value-value attention on a path beside the late blocks, and what all
  findings share is taken away; a map then depends on the other findings of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

Saliency = Literal["similarity", "surgery", "gradcam", "chefer"]
Heads = tuple[Tensor, Tensor, Tensor]
SURGERY_TEMPERATURE = 2.0


@dataclass(frozen=True)
class Block:
    """A pre-norm transformer block, taken apart.

    Attributes:
        norm: before attention, ``(N, T, D) -> (N, T, D)``.
        heads: query, key and value ``(N, heads, T, d)`` of normed tokens.
        out: joined heads ``(N, T, D)`` to what is added to the tokens.
        feed: tokens to what the feed-forward half, its norm included, adds.
    """

    norm: Callable[[Tensor], Tensor]
    heads: Callable[[Tensor], Heads]
    out: Callable[[Tensor], Tensor]
    feed: Callable[[Tensor], Tensor]

    def attend(self, heads: Heads, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return what attention adds to the tokens, and the weights ``(N, heads, T, T)``."""
        query, key, value = heads
        if weights is None:
            weights = (query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).flatten(2)), weights


@dataclass(frozen=True)
class Tower:
    """A vision transformer, taken apart.

    Attributes:
        embed: images to the tokens that enter the first block, the class token first.
        blocks: in order.
        project: tokens of the last block to the joint space, ``(N, T, D) -> (N, T, E)``.
    """

    embed: Callable[[Tensor], Tensor]
    blocks: Sequence[Block]
    project: Callable[[Tensor], Tensor]


def gradcam(activation: Tensor, logits: Callable[[Tensor], Tensor]) -> Tensor:
    """Return Grad-CAM maps ``(n, C, cells)``.

    Args:
        activation: ``(n, cells, D)`` features, a leaf of the graph.
        logits: from the features to ``(n, C)``.
    """
    with torch.enable_grad():
        leaf = activation.detach().requires_grad_(True)
        scores = logits(leaf)
        maps = []
        for column in range(scores.shape[1]):
            (gradient,) = torch.autograd.grad(scores[:, column].sum(), leaf, retain_graph=True)
            maps.append(functional.relu((gradient.mean(1, keepdim=True) * leaf).sum(-1)))
    return torch.stack(maps, 1).detach()


def _through(block: Block, tokens: Tensor) -> Tensor:
    """Return the tokens behind a block."""
    tokens = tokens + block.attend(block.heads(block.norm(tokens)))[0]
    return tokens + block.feed(tokens)


def tower_gradcam(tower: Tower, pixels: Tensor, score: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Return image vectors and Grad-CAM maps on the normed input of the last block, in one pass.

    The score reads the class token alone, which sees the patches through their keys and values; these are linear in the
    patches, so the mean gradient over patches is that of the mean gradients of keys and values.

    Args:
        tower: the image tower.
        pixels: ``(n, 3, H, W)``.
        score: image embedding ``(n, E)`` to logits ``(n, C)``.

    Returns:
        Un-normed vectors ``(n, E)`` and maps ``(n, C, patches)``.
    """
    tokens = tower.embed(pixels)
    for block in tower.blocks[:-1]:
        tokens = _through(block, tokens)
    last = tower.blocks[-1]
    normed = last.norm(tokens)
    query, key, value = last.heads(normed)
    with torch.enable_grad():
        keys, values = (part[:, :, 1:].detach().requires_grad_(True) for part in (key, value))
        own = (torch.cat([key[:, :, :1], keys], 2), torch.cat([value[:, :, :1], values], 2))
        mixed = tokens[:, :1] + last.attend((query[:, :, :1], *own))[0]
        vectors = tower.project(mixed + last.feed(mixed))[:, 0]
        scores = score(vectors)
        one = normed[:, 1:2].detach().requires_grad_(True)
        _, *parts = last.heads(one)
        maps = []
        for column in range(scores.shape[1]):
            gradients = torch.autograd.grad(scores[:, column].sum(), (keys, values), retain_graph=True)
            means = [gradient.mean(2, keepdim=True) for gradient in gradients]
            (weight,) = torch.autograd.grad(parts, one, means, retain_graph=True)
            maps.append(functional.relu((weight * normed[:, 1:]).sum(-1)))
    return vectors.detach(), torch.stack(maps, 1).detach()


def chefer(tower: Tower, pixels: Tensor, score: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Return image vectors and relevance maps: ``R <- R + mean over heads of relu(gradient x attention) R``.

    Only the class token's row of R is wanted, so it is carried from the last block to the first.

    Args:
        tower: the image tower.
        pixels: ``(n, 3, H, W)``.
        score: image embedding ``(n, E)`` to logits ``(n, C)``.

    Returns:
        Un-normed vectors ``(n, E)`` and maps ``(n, C, patches)``.
    """
    attentions: list[Tensor] = []
    with torch.enable_grad():
        tokens = tower.embed(pixels).detach().requires_grad_(True)
        for block in tower.blocks:
            added, weights = block.attend(block.heads(block.norm(tokens)))
            attentions.append(weights)
            tokens = tokens + added
            tokens = tokens + block.feed(tokens)
        vectors = tower.project(tokens[:, :1])[:, 0]
        scores = score(vectors)
        maps = []
        for column in range(scores.shape[1]):
            gradients = torch.autograd.grad(scores[:, column].sum(), attentions, retain_graph=True)
            maps.append(_relevance(attentions, gradients))
    return vectors.detach(), torch.stack(maps, 1)


def _relevance(attentions: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """Return the class token's relevance ``(n, patches)``."""
    row = torch.zeros_like(attentions[0][:, 0, :1]).float().detach()
    row[..., 0] = 1.0
    for weights, gradient in zip(reversed(attentions), reversed(gradients), strict=True):
        row = row + row @ functional.relu(weights.detach() * gradient).mean(1).float()
    return row[:, 0, 1:]


def surgery(tower: Tower, pixels: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
    """Return image vectors and CLIP Surgery maps.

    The late half of the blocks gets a second path, which adds value-value attention and skips the feed-forward half.

    Args:
        tower: the image tower.
        pixels: ``(n, 3, H, W)``.
        texts: normed text embeddings ``(C, E)``.

    Returns:
        Un-normed vectors ``(n, E)`` and maps ``(n, C, patches)``.
    """
    tokens = tower.embed(pixels)
    beside: Tensor | None = None
    for index, block in enumerate(tower.blocks):
        heads = block.heads(block.norm(tokens))
        if index >= len(tower.blocks) // 2:
            value = heads[2]
            beside = (tokens if beside is None else beside) + block.attend((value, value, value))[0]
        tokens = tokens + block.attend(heads)[0]
        tokens = tokens + block.feed(tokens)
    assert beside is not None
    # The class token comes from the usual path: it says how much each finding is at work in the picture.
    joined = tower.project(torch.cat([tokens[:, :1], beside[:, 1:]], 1))
    return joined[:, 0], _without_what_is_shared(functional.normalize(joined, dim=-1), texts)


def _without_what_is_shared(image: Tensor, texts: Tensor) -> Tensor:
    """Return similarities ``(n, C, patches)`` less the features that all findings have in common."""
    presence = (image[:, 0] @ texts.T * SURGERY_TEMPERATURE).softmax(-1)
    weight = presence / presence.mean(-1, keepdim=True)
    plain = image[:, 1:] @ texts.T
    if len(texts) == 1:  # nothing is shared with nobody
        return plain.transpose(1, 2)
    # sum over e of f_e (w_c t_ce - mean over c of w_c t_ce), without the (n, patches, C, E) product
    common = torch.einsum("nc,ce->ne", weight, texts) / len(texts)
    return (plain * weight[:, None] - torch.einsum("npe,ne->np", image[:, 1:], common)[..., None]).transpose(1, 2)


def hugging_face_clip(model: Any, **options: Any) -> Tower:
    """Return the image tower of ``transformers.CLIPModel``, taken apart; ``options`` are those of its embeddings."""
    vision = model.vision_model

    def block(layer: Any) -> Block:
        attention = layer.self_attn

        def heads(x: Tensor) -> Heads:
            q, k, v = (
                p(x).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
                for p in (attention.q_proj, attention.k_proj, attention.v_proj)
            )
            return q, k, v

        return Block(layer.layer_norm1, heads, attention.out_proj, lambda x: layer.mlp(layer.layer_norm2(x)))

    return Tower(
        lambda pixels: vision.pre_layrnorm(vision.embeddings(pixels, **options)),
        [block(layer) for layer in vision.encoder.layers],
        lambda tokens: model.visual_projection(vision.post_layernorm(tokens)),
    )


def timm_vit(trunk: Any, head: Callable[[Tensor], Tensor]) -> Tower:
    """Return a :class:`~medground.models.layers.vit.VisionTransformer` and its head, taken apart."""

    def block(layer: Any) -> Block:
        return Block(layer.norm1, layer.attn.heads_of, layer.attn.proj, lambda x: layer.mlp(layer.norm2(x)))

    return Tower(trunk.embed, [block(layer) for layer in trunk.blocks], lambda tokens: head(trunk.norm(tokens)))
