"""Runs a LLaVA of transformers pass by pass: own caches, biases that are never left behind, several passes a token.

``generate`` of transformers knows one pass and refuses four-dimensional masks; contrastive decoding needs two passes
with a cache each, and the same token fed to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor

from medground.errors import ModelError
from medground.models.chat.decoding.base import Branch, Decoding, Prompt
from medground.models.common.highlight import ATTENTION, NO_HIGHLIGHT, Highlight, highlighted, register

_PLAIN: Final = ("sdpa", "eager", ATTENTION)


@dataclass
class State:
    """A pass that has read a prompt, and goes on token by token.

    Attributes:
        logits: of the next token, ``(N, V)``.
        hidden: last hidden states of what was read last, ``(N, T, D)``.
        cache: keys and values.
        mask: ``(N, T)`` of everything read.
        positions: of the next token, ``(N,)``.
        highlight: biases of this pass.
    """

    logits: Tensor
    hidden: Tensor
    cache: Any
    mask: Tensor
    positions: Tensor
    highlight: Highlight


class Runner:
    """Forward passes of one ``LlavaForConditionalGeneration``.

    Args:
        model: in evaluation mode; its attention is set to one that takes biases.

    Raises:
        ModelError: the model runs on flash attention, which cannot take a bias.
    """

    def __init__(self, model: Any) -> None:
        for part in (model.config.vision_config, model.config.text_config):
            chosen = str(getattr(part, "_attn_implementation", None) or "sdpa")
            if "flash" in chosen:
                raise ModelError(
                    "highlighting adds a bias to the attention's scores, and flash attention cannot take one",
                    where=type(model).__name__,
                    got=chosen,
                    expected=" or ".join(_PLAIN[:2]),
                    fix="load the model with attn_implementation: sdpa",
                )
        register()
        model.set_attn_implementation(ATTENTION)
        self.model = model
        self.image_token = int(model.config.image_token_id)
        self._lead = 1 if str(model.config.vision_config.model_type).startswith("clip") else 0

    def features(self, pixels: Tensor, highlight: Highlight = NO_HIGHLIGHT) -> Tensor:
        """Return the image tokens of pictures, ``(N, P, D)``; equal pictures with equal biases are encoded once.

        Args:
            pixels: ``(N, C, H, W)``.
            highlight: its vision part, ``(N, patches)``, is added to the scores of these keys in every layer.
        """
        bias = highlight.vision
        keys = [_key(picture, None if bias is None else bias[row]) for row, picture in enumerate(pixels)]
        first = {key: row for row, key in reversed(list(enumerate(keys)))}
        rows = sorted(first.values())
        taken = None if bias is None else torch.nn.functional.pad(bias[rows], (self._lead, 0))
        with highlighted(Highlight(vision=taken, free_rows=highlight.free_rows)):
            out = self.model.model.get_image_features(pixel_values=pixels[rows], return_dict=True)
        encoded = torch.stack(list(out.pooler_output))
        place = {row: number for number, row in enumerate(rows)}
        return encoded[[place[first[key]] for key in keys]]

    def start(self, prompt: Prompt, branch: Branch, more: Tensor | None = None) -> State:
        """Read a prompt under the conditions of a branch.

        Args:
            prompt: what is read.
            branch: picture, biases and scales.
            more: tokens ``(N, L)`` read after the prompt, for the logits at every place.
        """
        ids, mask = prompt.ids, prompt.mask
        if not branch.picture:
            mask = mask * ~prompt.image_places
        embeddings = self.model.get_input_embeddings()(ids)
        if branch.picture:
            features = self.features(branch.pixels, branch.highlight).to(embeddings.dtype)
            embeddings = embeddings.masked_scatter(prompt.image_places[..., None], features)
        if branch.scale is not None:
            embeddings = embeddings * branch.scale[..., None].to(embeddings.dtype)
        if more is not None:
            embeddings = torch.cat([embeddings, self.model.get_input_embeddings()(more)], 1)
            mask = torch.cat([mask, mask.new_ones(more.shape)], 1)
        positions = (mask.cumsum(1) - 1).clamp_min(0)
        state = State(
            embeddings[:, -1], embeddings, None, mask, positions[:, -1] + 1, replace(branch.highlight, vision=None)
        )
        return self._read(state, embeddings, positions)

    def step(self, state: State, tokens: Tensor) -> State:
        """Read one more token a row, ``(N,)``."""
        embeddings = self.model.get_input_embeddings()(tokens)[:, None]
        mask = torch.cat([state.mask, state.mask.new_ones(len(tokens), 1)], 1)
        moved = replace(state, mask=mask, positions=state.positions + 1)
        return self._read(moved, embeddings, state.positions[:, None])

    def _read(self, state: State, embeddings: Tensor, positions: Tensor) -> State:
        with highlighted(state.highlight):
            out = self.model.model.language_model(
                inputs_embeds=embeddings,
                attention_mask=state.mask,
                position_ids=positions,
                cache=state.cache,
                use_cache=True,
            )
        hidden = out.last_hidden_state
        return replace(state, logits=self.model.lm_head(hidden[:, -1]), hidden=hidden, cache=out.cache)

    def all_logits(self, prompt: Prompt, branch: Branch, more: Tensor) -> Tensor:
        """Return the logits that predict ``more`` ``(N, L)``, one a place: ``(N, L, V)``; nothing is cached."""
        state = self.start(prompt, branch, more)
        logits: Tensor = self.model.lm_head(state.hidden[:, -more.shape[1] - 1 : -1])
        return logits


def _key(picture: Tensor, bias: Tensor | None) -> bytes:
    """Return what tells a picture with its bias from others."""
    parts = [picture.detach().float().cpu().numpy().tobytes()]
    if bias is not None:
        parts.append(bias.detach().float().cpu().numpy().tobytes())
    return b"|".join(parts)


@dataclass(frozen=True)
class Generated:
    """What was generated for one prompt.

    Attributes:
        tokens: without the one that ended it.
        log_probabilities: of each token under the decoding, before temperature.
        ended: the token that ended it, or None where the limit did.
        hidden: last hidden state of that token, ``(D,)``, where it was asked for and there is one.
    """

    tokens: list[int]
    log_probabilities: list[float]
    ended: int | None
    hidden: Tensor | None = None


@torch.no_grad()
def generate(
    runner: Runner,
    prompt: Prompt,
    decoding: Decoding,
    *,
    limit: int,
    ends: Sequence[int],
    barred: Sequence[int] = (),
    temperature: float = 0.0,
    top_p: float = 1.0,
    seeds: Sequence[int] = (),
    follow: bool = False,
) -> list[Generated]:
    """Generate token by token; a row's result does not depend on the other rows.

    Args:
        runner: the model.
        prompt: of N rows.
        decoding: which passes, and how they make one score.
        limit: most new tokens.
        ends: tokens that end a row.
        barred: tokens that may not be chosen.
        temperature: 0: the likeliest token.
        top_p: of sampling.
        seeds: one a row, of sampling.
        follow: read the token that ends a row too, for its hidden state under the first pass.
    """
    states = [runner.start(prompt, branch) for branch in decoding.branches(prompt)]
    count = len(prompt.ids)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    tokens: list[list[int]] = [[] for _ in range(count)]
    sure: list[list[float]] = [[] for _ in range(count)]
    ended: list[int | None] = [None] * count
    hidden: list[Tensor | None] = [None] * count
    for number in range(limit):
        logits = [state.logits.float() for state in states]
        if barred:
            logits = [values.index_fill(1, torch.tensor(barred, device=values.device), -torch.inf) for values in logits]
        scores = decoding.combine(logits, number)
        chosen = _pick(scores, temperature, top_p, generators)
        likely = scores.log_softmax(-1).gather(1, chosen[:, None])[:, 0].tolist()
        now = []
        for row, token in enumerate(chosen.tolist()):
            if ended[row] is not None:
                continue
            if token in ends:
                ended[row] = token
                now.append(row)
            else:
                tokens[row].append(token)
                sure[row].append(likely[row])
        done = number + 1 == limit or all(end is not None for end in ended)
        if done and not (follow and now):
            break
        states = [runner.step(state, chosen) for state in states]
        for row in now if follow else ():
            hidden[row] = states[0].hidden[row, -1]
        if done:
            break
    return [Generated(*parts) for parts in zip(tokens, sure, ended, hidden, strict=True)]


def _pick(scores: Tensor, temperature: float, top_p: float, generators: Sequence[torch.Generator]) -> Tensor:
    """Return one token a row, ``(N,)``; the contrast comes before temperature and top-p."""
    if temperature <= 0:
        return scores.argmax(-1)
    shares = (scores / temperature).softmax(-1)
    ordered, order = shares.sort(-1, descending=True)
    # The token that crosses the limit stays: at least one always does.
    ordered = ordered.masked_fill(ordered.cumsum(-1) - ordered > top_p, 0)
    rows = [
        torch.multinomial(row.cpu(), 1, generator=generator) for row, generator in zip(ordered, generators, strict=True)
    ]
    return order.gather(1, torch.stack(rows).to(order.device))[:, 0]


@torch.no_grad()
def score(runner: Runner, prompt: Prompt, decoding: Decoding, continuation: Tensor, lengths: Sequence[int]) -> Tensor:
    """Return the log-probability of a continuation a row, ``(N,)``, under a decoding.

    Args:
        runner: the model.
        prompt: of N rows.
        decoding: which passes, and how they make one score.
        continuation: ``(N, L)``, padded on the right.
        lengths: of the continuations.
    """
    passes = [runner.all_logits(prompt, b, continuation).float() for b in decoding.branches(prompt)]
    total = passes[0].new_zeros(len(continuation), dtype=torch.float64)
    kept = torch.tensor(list(lengths), device=total.device)
    for place in range(continuation.shape[1]):
        scores = decoding.combine([logits[:, place] for logits in passes], place).double().log_softmax(-1)
        value = scores.gather(1, continuation[:, place, None])[:, 0]
        total = total + torch.where(kept > place, value, torch.zeros_like(value))
    return total
