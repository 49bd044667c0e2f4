"""LLaVA-Med 1.5 (Li et al. 2023): a Mistral decoder that reads a CLIP tower's patches through a two-layer projector.

It answers in words. As a grounder it is asked about each finding and scored by the log-likelihood of yes against no;
the map is the decoder's attention from the place of the answer to the image tokens, averaged over layers and heads
(the authors give no map).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medground.errors import ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message, ModelInfo, Reply
from medground.models.checkpoints import Layout, read_weights
from medground.models.common.adapter import Adapter, Parts
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess
from medground.models.common.llava_config import read_llava_config
from medground.models.common.preprocessor_config import hold_preprocess
from medground.models.common.text import Prompts, Tokenizer
from medground.models.common.transformers import blank

LAYOUT = Layout(ignore=("*position_ids", "*rotary_emb.inv_freq"))
IMAGE = -200  # stands for one image in a row of token ids, as in the authors' code
ANSWERS = ("Yes", "No")
# The grey that CLIP's mean colour amounts to, with which pictures are padded to a square.
PAD_COLOUR = tuple(int(255 * mean) for mean in CLIP_MEAN)
_PREFIXES = {
    "published": {
        "model.language_model.": "model.",
        "model.vision_tower.": "model.vision_tower.vision_tower.vision_model.",
        "model.multi_modal_projector.linear_1.": "model.mm_projector.0.",
        "model.multi_modal_projector.linear_2.": "model.mm_projector.2.",
    },
    "converted": {
        "model.language_model.": "language_model.model.",
        "model.vision_tower.": "vision_tower.vision_model.",
        "model.multi_modal_projector.": "multi_modal_projector.",
        "lm_head.": "language_model.lm_head.",
    },
    "transformers": {},
}


def published(name: str, layout: str = "published") -> str:
    """Return the entry of a file for a parameter of ``LlavaForConditionalGeneration``.

    Args:
        name: of the parameter.
        layout: ``published`` (the authors' names), ``converted`` (Hugging Face conversions of before 2025) or
            ``transformers`` (names of today).
    """
    for prefix, other in _PREFIXES[layout].items():
        if name.startswith(prefix):
            return other + name.removeprefix(prefix)
    return name


def layout_of(names: Sequence[str]) -> str:
    """Return which layout a file's entries have."""
    if any(name.startswith("model.mm_projector.") for name in names):
        return "published"
    return "converted" if any(name.startswith("language_model.model.") for name in names) else "transformers"


def network_of(config: Any) -> Any:
    """Return a blank network with eager attention, whose weights can be read."""
    from transformers import LlavaForConditionalGeneration

    config._attn_implementation = "eager"
    return blank(lambda: LlavaForConditionalGeneration(config))


def image_features(network: Any, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the tower's patch features ``(N, P, width)`` and what the decoder reads of them ``(N, P, D)``."""
    model = network.model
    hidden = model.vision_tower(pixel_values=pixels, output_hidden_states=True).hidden_states
    patches = hidden[network.config.vision_feature_layer][:, 1:]
    return patches, model.multi_modal_projector(patches)


def embed(network: Any, ids: Sequence[int], images: Sequence[Tensor]) -> tuple[Tensor, list[int]]:
    """Return a sequence's embeddings ``(T, D)``, image features in place of :data:`IMAGE`, and where images start."""
    table, waiting = network.get_input_embeddings(), list(images)
    parts: list[Tensor] = []
    starts: list[int] = []
    for is_image, run in groupby(ids, lambda token: token == IMAGE):
        tokens = list(run)
        if not is_image:
            parts.append(table(torch.tensor(tokens, device=table.weight.device)))
            continue
        for _ in tokens:
            starts.append(sum(map(len, parts)))
            parts.append(waiting.pop(0))
    return torch.cat(parts), starts


@dataclass(frozen=True)
class Scored:
    """What the network says about a prompt and its continuations.

    Attributes:
        total: log-likelihood of each option, the sum over its tokens.
        mean: the same divided by the number of its tokens.
        logits: ``(T, vocabulary)`` at the prompt's positions.
        attention: ``(layers, T)`` from the prompt's last position to all its positions, averaged over heads.
    """

    total: Tensor
    mean: Tensor
    logits: Tensor
    attention: Tensor


def score_options(network: Any, prompt: Tensor, options: Sequence[Sequence[int]]) -> Scored:
    """Score options as continuations of a prompt ``(T, D)``, all in one batch."""
    table = network.get_input_embeddings()
    device, length = prompt.device, len(prompt)
    longest = max(map(len, options))
    ids = torch.zeros(len(options), longest, dtype=torch.long, device=device)
    mask = torch.zeros(len(options), length + longest, dtype=torch.long, device=device)
    for row, option in enumerate(options):
        ids[row, : len(option)] = torch.tensor(option, device=device)
        mask[row, : length + len(option)] = 1
    whole = torch.cat([prompt.expand(len(options), -1, -1), table(ids)], 1)
    output = network(inputs_embeds=whole, attention_mask=mask, output_attentions=True)
    # What stands at position t is foretold at t - 1.
    told = output.logits[:, length - 1 : -1].float().log_softmax(-1)
    each = told.gather(-1, ids[..., None])[..., 0] * mask[:, length:]
    total = each.sum(-1)
    attention = torch.stack([layer[0, :, length - 1, :length].float().mean(0) for layer in output.attentions])
    return Scored(total, total / mask[:, length:].sum(-1), output.logits[0, :length], attention)


@dataclass(kw_only=True, eq=False, repr=False)
class LlavaMed(Adapter):
    """LLaVA-Med 1.5.

    Args:
        checkpoint: folder of ``microsoft/llava-med-v1.5-mistral-7b``, or of a Hugging Face conversion: shards,
            ``config.json``, tokenizer.
        tokenizer: folder of the tokenizer; by default the checkpoint's folder.
        template: question with ``{label}`` for the finding, answered by yes or no.
        prompts: finding -> question.
        max_new_tokens: most tokens of a reply.
    """

    name: ClassVar[str] = "llava_med"
    capabilities: ClassVar[frozenset[str]] = frozenset({"ground", "reply", "choose", "pictures", "several_pictures"})
    info: ClassVar[ModelInfo] = ModelInfo(
        title="LLaVA-Med 1.5",
        kind="zero-shot",
        pretrained_on="biomedical",
        licence="weights: Apache-2.0, as the page of version 1.5 says; code: Microsoft Research licence, not for "
        "commercial and not for clinical use",
        citation="Li et al., LLaVA-Med: training a large language-and-vision assistant for biomedicine in one "
        "day, 2023",
        obtain="folder of microsoft/llava-med-v1.5-mistral-7b from Hugging Face (about 15 GB)",
        seen={"pmc_15m": "figures and captions, as instructions"},
    )

    checkpoint: Path
    tokenizer: Path | None = None
    template: str = "Is there evidence of {label} in this image? Answer yes or no."
    prompts: dict[str, str] | None = None
    max_new_tokens: int = 128

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        tokenizer = Tokenizer(self.tokenizer or self.checkpoint, 4096)
        config, padded = read_llava_config(self.checkpoint)
        weights = read_weights(self.checkpoint, LAYOUT)
        layout = layout_of(list(weights.tensors))
        with _default_dtype(getattr(torch, self.dtype)):
            network = network_of(config)
        self.filled(network, weights, LAYOUT, lambda name: published(name, layout))
        size = config.vision_config.image_size
        colour = (PAD_COLOUR[0], PAD_COLOUR[1], PAD_COLOUR[2])
        preprocess = (
            Preprocess("pad_square", size, "bicubic", CLIP_MEAN, CLIP_STD, fill=colour)
            if padded
            else Preprocess("center_crop", size, "bicubic", CLIP_MEAN, CLIP_STD, rounding="floor")
        )
        hold_preprocess(self.checkpoint, preprocess)
        return Parts(network, weights, preprocess, Prompts(self.template, self.prompts), tokenizer)

    def encode_texts(self, findings: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each finding's question, the image's place in them."""
        return [self._ids([Message("user", self.wording.of(finding)[0])], images=1) for finding in findings]

    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; the score is log P(yes) - log P(no)."""
        options = [self._plain_ids(answer) for answer in ANSWERS]
        margins, maps = [], []
        for features in self._features(pixels):
            for ids in texts:
                prompt, (start,) = embed(self.network, ids, [features])
                scored = score_options(self.network, prompt, options)
                margins.append(scored.total[0] - scored.total[1])
                seen = scored.attention.mean(0)[start : start + len(features)]
                side = math.isqrt(len(features))
                maps.append(seen.reshape(side, side))
        scores = torch.stack(margins).reshape(len(pixels), len(texts))
        return scores, scores.sigmoid(), torch.stack(maps).reshape(*scores.shape, *maps[0].shape)

    def choose(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[Sequence[str]]
    ) -> list[NDArray[np.floating[Any]]]:
        """Return the log-likelihood of every choice as the next words: one array ``(K,)`` a conversation."""
        rows = []
        for conversation, own in zip(conversations, choices, strict=True):
            with self.runtime.inference():
                prompt = self._prompt(conversation)
                scored = score_options(self.network, prompt, [self._plain_ids(choice) for choice in own])
            rows.append(scored.total.double().cpu().numpy())
        return rows

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> list[Reply]:
        """Return one reply a conversation, always taking the likeliest token.

        Raises:
            ModelError: the options ask for sampling, a schema, tools or log-probabilities, which it does not have.
        """
        most = self.max_new_tokens if options is None else _plain_options(options)
        replies = []
        for conversation in conversations:
            with self.runtime.inference():
                replies.append(self._reply(self._prompt(conversation), most))
        return replies

    def _reply(self, prompt: Tensor, most: int) -> Reply:
        network: Any = self.network
        inner = self.tokenise.inner
        made = network.generate(
            inputs_embeds=prompt[None],
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long, device=prompt.device),
            max_new_tokens=most,
            do_sample=False,
            eos_token_id=inner.eos_token_id,
            pad_token_id=inner.eos_token_id,
        )
        ids = [token for token in made[0].tolist() if token != inner.eos_token_id]
        finish = "length" if len(ids) == most else "stop"
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(ids)}
        return Reply(inner.decode(ids, skip_special_tokens=True).strip(), finish=finish, usage=usage)

    def _features(self, pixels: Tensor) -> Tensor:
        network: Any = self.network
        return image_features(network, pixels.to(network.get_input_embeddings().weight.dtype))[1]

    def _prompt(self, conversation: Sequence[Message]) -> Tensor:
        """Return a conversation's embeddings ``(T, D)``, up to the place of the next reply."""
        images: list[Radiograph] = [image for message in conversation for image in message.images]
        ids = self._ids(conversation)
        if not images:
            return embed(self.network, ids, [])[0]
        self.encoded_images += len(images)
        features = self._features(self.inputs(images)[0].to(self.runtime.device))
        return embed(self.network, ids, list(features))[0]

    def _ids(self, conversation: Sequence[Message], images: int = 0) -> list[int]:
        """Return token ids of a conversation in the ``mistral_instruct`` style, :data:`IMAGE` in place of pictures.

        Args:
            conversation: may start with a system message, and ends with the user's turn.
            images: pictures to put before the first turn, beside those that the messages bring.
        """
        ids: list[int] = []
        system = ""
        for message in conversation:
            if message.role == "system":
                system = f"<<SYS>>\n{message.text}\n<</SYS>>\n\n"
            elif message.role == "assistant":
                ids += self._text_ids(f" {message.text} {self.tokenise.inner.eos_token}", first=not ids)
            else:
                # Pictures are put between pieces of ids, so that no word of a text can stand for one.
                pieces = [f"[INST] {system}", *["\n"] * (len(message.images) + images)]
                pieces[-1] += f"{message.text} [/INST]"
                for index, piece in enumerate(pieces):
                    ids += [IMAGE] * (index > 0) + self._text_ids(piece, first=not ids)
                system, images = "", 0
        return ids

    def _text_ids(self, text: str, *, first: bool) -> list[int]:
        ids: list[int] = self.tokenise.inner(text, add_special_tokens=False)["input_ids"]
        return [self.tokenise.inner.bos_token_id, *ids] if first else ids

    def _plain_ids(self, text: str) -> list[int]:
        ids = self._text_ids(text, first=False)
        if not ids:
            raise ModelError("a choice has no tokens", got=repr(text))
        return ids


def _plain_options(options: GenerationOptions) -> int:
    """Return the most new tokens of options that ask for nothing but greedy text."""
    if options.temperature or options.schema or options.tools or options.log_probabilities or options.stop:
        raise ModelError(
            "llava_med replies with the likeliest tokens alone",
            expected="temperature 0, no schema, no tools, no stop texts, no log-probabilities",
            fix="use hf_chat on a Hugging Face conversion of the model",
        )
    return options.max_new_tokens


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make new parameters in a precision, so that a large network is never held in a wider one."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
