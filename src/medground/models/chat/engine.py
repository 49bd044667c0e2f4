"""Answers conversations with a LLaVA-type model: localise where that is asked for, then decode in one of the ways."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medground.errors import ModelError
from medground.models.base import GenerationOptions, Message, Reply, conversation_hash
from medground.models.chat.backbone import Backbone, Declined, Encoded
from medground.models.chat.decoding.base import Decoding, Plain, Prompt
from medground.models.chat.decoding.runner import Generated, generate, score
from medground.models.chat.looks import How, Look
from medground.models.common.highlight import recording

Mask = NDArray[np.bool_]

BATCH = 16
"""Conversations that are answered at a time."""

LONGEST_PLACE = 48
"""Most tokens up to ``<SEG>``."""


@dataclass(frozen=True)
class AnsweredPlace:
    """Where the model says that an answer lies.

    Attributes:
        mask: in the picture's own pixels, or None: it named no place.
        said: the ids that it wrote up to ``<SEG>``, that one included.
    """

    mask: Mask | None
    tokens: tuple[int, ...] = ()


class Engine:
    """A backbone, a decoding, and the switches between them.

    Args:
        backbone: the model.
        decoding: how the next token is picked.
        grounded: whether an answer begins with its place (``the location of ... is at <SEG>``).
        seed: of sampling, beside that of the options.
    """

    def __init__(self, backbone: Backbone, decoding: Decoding, *, grounded: bool = False, seed: int = 0) -> None:
        self.backbone, self.decoding, self.grounded, self.seed = backbone, decoding, grounded, seed

    def record(self) -> dict[str, Any]:
        """Return the switches, for fingerprints and run records."""
        return {"decoding": self.decoding.record(), "grounded": self.grounded, "seed": self.seed}

    @torch.no_grad()
    def reply(
        self,
        conversations: Sequence[Sequence[Message]],
        options: GenerationOptions | None = None,
        regions: Sequence[Mask | None] | None = None,
    ) -> list[Reply]:
        """Return one reply a conversation.

        Args:
            conversations: each with one picture.
            options: None: greedy.
            regions: masks ``(height, width)`` on the pictures that stand for what the model would locate: a truth, or
                a control; None: it locates by itself.
        """
        chosen = options or GenerationOptions()
        if chosen.schema is not None or chosen.tools:
            return [Reply("", "error", "it gives no structured answers and calls no tools")] * len(conversations)
        replies: list[Reply] = []
        for start in range(0, len(conversations), BATCH):
            part = slice(start, start + BATCH)
            replies += self._reply(conversations[part], chosen, None if regions is None else regions[part])
        return replies

    def _reply(
        self,
        conversations: Sequence[Sequence[Message]],
        options: GenerationOptions,
        regions: Sequence[Mask | None] | None,
    ) -> list[Reply]:
        encoded = [self.backbone.encode(conversation, locate=self.grounded) for conversation in conversations]
        replies = [Reply("", "refusal", e.reason) if isinstance(e, Declined) else Reply("") for e in encoded]
        open_ = [row for row, e in enumerate(encoded) if isinstance(e, Encoded)]
        asked = [e for e in encoded if isinstance(e, Encoded)]
        given = None if regions is None else [regions[row] for row in open_]
        places = self._places([conversations[row] for row in open_], asked, given)
        seeds = [_seed(conversations[row], options, self.seed) for row in open_]
        for rows, decoding in self._groups(places):
            texts = self._generate(
                [asked[r] for r in rows], [places[r] for r in rows], decoding, options, [seeds[r] for r in rows]
            )
            for row, generated in zip(rows, texts, strict=True):
                replies[open_[row]] = self._told(asked[row], places[row], generated, options)
        return replies

    def _groups(self, places: Sequence[AnsweredPlace]) -> list[tuple[list[int], Decoding]]:
        """Return the rows that a decoding can work on; where it needs a region and none is there, plain decoding."""
        if not self.decoding.needs_region:
            return [(list(range(len(places))), self.decoding)] if places else []
        there = [row for row, place in enumerate(places) if place.mask is not None and place.mask.any()]
        without = [row for row in range(len(places)) if row not in set(there)]
        groups: list[tuple[list[int], Decoding]] = [(there, self.decoding), (without, Plain())]
        return [(rows, decoding) for rows, decoding in groups if rows]

    def _places(
        self,
        conversations: Sequence[Sequence[Message]],
        asked: Sequence[Encoded],
        regions: Sequence[Mask | None] | None,
    ) -> list[AnsweredPlace]:
        """Return the place of every conversation: located where it is needed, or as given."""
        if not asked or not (self.grounded or self.decoding.needs_region):
            return [AnsweredPlace(None) for _ in asked]
        if regions is not None and not self.grounded:
            return [AnsweredPlace(region) for region in regions]
        located = self.locate(conversations, asked)
        if not self.grounded:  # the place served to highlight it; the answer begins with the answer
            located = [AnsweredPlace(place.mask) for place in located]
        if regions is None:
            return located
        return [AnsweredPlace(region, place.tokens) for region, place in zip(regions, located, strict=True)]

    @torch.no_grad()
    def locate(
        self, conversations: Sequence[Sequence[Message]], encoded: Sequence[Encoded] | None = None
    ) -> list[AnsweredPlace]:
        """Return where the model says that the answers lie: the first of LobA's two passes.

        Args:
            conversations: each with one picture and known words.
            encoded: the same, encoded with ``locate``, where that is at hand.
        """
        seg = self.backbone.seg
        if seg is None:
            return [AnsweredPlace(None) for _ in conversations]
        if encoded is None or not self.grounded:
            tried = [self.backbone.encode(conversation, locate=True) for conversation in conversations]
            encoded = [e for e in tried if isinstance(e, Encoded)]
        prompt = self._prompt(encoded)
        generated = generate(
            self.backbone.runner, prompt, Plain(), limit=LONGEST_PLACE, ends=(seg, *self.backbone.ends), follow=True
        )
        places = [AnsweredPlace(None) for _ in encoded]
        states = {row: m.hidden for row, m in enumerate(generated) if m.ended == seg and m.hidden is not None}
        if states:
            masks = self.backbone.masks(torch.stack(list(states.values())), [encoded[row] for row in states])
            for row, mask in zip(states, masks, strict=True):
                places[row] = AnsweredPlace(mask, (*generated[row].tokens, seg))
        return places

    def located(self, conversations: Sequence[Sequence[Message]]) -> list[Mask | None]:
        """Return where the model says that the answers lie, in the pictures' own pixels.

        None: it names no place, or declines the conversation.
        """
        encoded = [self.backbone.encode(conversation, locate=True) for conversation in conversations]
        rows = [row for row, e in enumerate(encoded) if isinstance(e, Encoded)]
        masks: list[Mask | None] = [None] * len(conversations)
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            places = self.locate([conversations[row] for row in part])
            for row, place in zip(part, places, strict=True):
                masks[row] = place.mask
        return masks

    def looks(self, conversations: Sequence[Sequence[Message]], how: How) -> list[Look]:
        """Return :meth:`attention` of every conversation on its picture.

        Raises:
            ModelError: something else is asked for, or a conversation is declined.
        """
        if how != "attention":
            raise ModelError("this model shows its attention alone", expected="place: attention", got=f"place: {how}")
        looks = []
        for conversation in conversations:
            attention = self.attention(conversation).astype(np.float32)
            (size,) = {image.size for message in conversation for image in message.images}
            looks.append(Look(attention, self.backbone.geometry(size)))
        return looks

    @torch.no_grad()
    def masks_of(self, encoded: Sequence[Encoded], tokens: Sequence[Sequence[int]]) -> list[Mask]:
        """Return the masks of answers that end with ``<SEG>``, all of one length, in the pictures' own pixels."""
        prompt = self._prompt(encoded)
        state = self.backbone.runner.start(
            prompt, Plain().branches(prompt)[0], torch.tensor([list(ids) for ids in tokens], device=prompt.ids.device)
        )
        return self.backbone.masks(state.hidden[:, -1], encoded)

    def _prompt(self, encoded: Sequence[Encoded], places: Sequence[AnsweredPlace] | None = None) -> Prompt:
        """Return prompts as one batch, padded on the left; places that were said stand after them."""
        tokens = [place.tokens for place in places] if places else [()] * len(encoded)
        rows = [[*e.ids, *ids] for e, ids in zip(encoded, tokens, strict=True)]
        length, device = max(map(len, rows)), encoded[0].pixels.device
        ids = torch.full((len(rows), length), self.backbone.pad)
        mask = torch.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, length - len(row) :], mask[number, length - len(row) :] = torch.tensor(row), 1
        pixels = torch.stack([e.pixels for e in encoded])
        return Prompt(
            ids.to(device),
            mask.to(device),
            pixels,
            self.backbone.runner.image_token,
            self.backbone.black,
            *self._highlighted(places, device),
        )

    def _highlighted(
        self, places: Sequence[AnsweredPlace] | None, device: torch.device
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return the places as image tokens and as pixels of the input, or None where there are none."""
        masks = [place.mask for place in places or () if place.mask is not None]
        if not masks or len(masks) < len(places or ()):
            return None, None
        marks = torch.from_numpy(np.stack([self.backbone.marks(mask) for mask in masks])).float()
        region = torch.from_numpy(np.stack([self.backbone.onto_input(mask) for mask in masks]))
        return marks.to(device), region.to(device)

    def _generate(
        self,
        encoded: Sequence[Encoded],
        places: Sequence[AnsweredPlace],
        decoding: Decoding,
        options: GenerationOptions,
        seeds: Sequence[int],
    ) -> list[Generated]:
        prompt = self._prompt(encoded, places)
        return generate(
            self.backbone.runner,
            prompt,
            decoding,
            limit=options.max_new_tokens,
            ends=self.backbone.ends,
            temperature=options.temperature,
            top_p=options.top_p,
            seeds=seeds,
        )

    def _told(self, asked: Encoded, place: AnsweredPlace, generated: Generated, options: GenerationOptions) -> Reply:
        """Return the reply, cut at a stop text."""
        text = self.backbone.text([*place.tokens, *generated.tokens])
        cuts = [text.find(stop) for stop in options.stop if stop in text]
        return Reply(
            text=text[: min(cuts)] if cuts else text,
            finish="stop" if cuts or generated.ended is not None else "length",
            usage={"prompt_tokens": len(asked.ids), "completion_tokens": len(place.tokens) + len(generated.tokens)},
            log_probabilities=tuple(generated.log_probabilities) if options.log_probabilities else None,
        )

    @torch.no_grad()
    def choose(
        self,
        conversations: Sequence[Sequence[Message]],
        choices: Sequence[Sequence[str]],
        regions: Sequence[Mask | None] | None = None,
    ) -> list[NDArray[np.float64]]:
        """Return natural log-probabilities ``(K,)`` a conversation: of each choice as the whole answer, end included.

        The end counts: without it a sentence that leaves something out is always likelier than the whole one. A
        conversation that is not answered, and a choice with a word never met, gets NaN.
        """
        out = [np.full(len(several), np.nan) for several in choices]
        for row, (conversation, several) in enumerate(zip(conversations, choices, strict=True)):
            encoded = self.backbone.encode(conversation, locate=self.grounded)
            if isinstance(encoded, Declined) or not several:
                continue
            given = None if regions is None else [regions[row]]
            place = self._places([conversation], [encoded], given)[0]
            decoding = self._groups([place])[0][1]
            ids = [[*self.backbone.words(text), self.backbone.ends[0]] for text in several]
            out[row][:] = self._scores(encoded, place, decoding, ids)
        return out

    @torch.no_grad()
    def odds(self, conversations: Sequence[Sequence[Message]]) -> list[float]:
        """Return the log odds of "yes" against "no" as the next word, without highlighting or contrast.

        NaN: the conversation is one that the model declines.
        """
        encoded = [self.backbone.encode(conversation, locate=False) for conversation in conversations]
        rows = [row for row, e in enumerate(encoded) if isinstance(e, Encoded)]
        (yes,), (no,) = self.backbone.words("yes"), self.backbone.words("no")
        odds = [float("nan")] * len(conversations)
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            prompt = self._prompt([e for row in part if isinstance(e := encoded[row], Encoded)])
            logits = self.backbone.runner.start(prompt, Plain().branches(prompt)[0]).logits.float()
            for row, value in zip(part, (logits[:, yes] - logits[:, no]).tolist(), strict=True):
                odds[row] = value
        return odds

    @torch.no_grad()
    def attention(self, conversation: Sequence[Message], region: Mask | None = None) -> NDArray[np.float64]:
        """Return where the model looks before it answers, under this engine's highlighting, ``(rows, columns)``.

        Attention of the prompt's last token on the image tokens, a mean over layers and heads; it sums to the share
        that the picture gets beside the words. Two engines give the map before and after highlighting.

        Args:
            conversation: with one picture.
            region: as in :meth:`reply`; None: located where the decoding needs one.

        Raises:
            ModelError: the conversation is one that the model declines.
        """
        encoded = self.backbone.encode(conversation, locate=self.grounded)
        if isinstance(encoded, Declined):
            raise ModelError("there is no answer to look at", got=encoded.reason)
        place = self._places([conversation], [encoded], None if region is None else [region])[0]
        prompt = self._prompt([encoded], [place])
        branch = self._groups([place])[0][1].branches(prompt)[0]
        with recording() as rows:
            self.backbone.runner.start(prompt, branch)
        looked = torch.stack([row[0].mean(0) for row in rows]).mean(0)[prompt.image_places[0]]
        side = int(looked.numel() ** 0.5)
        return looked[looked.numel() - side * side :].view(side, side).double().cpu().numpy()

    def _scores(
        self, encoded: Encoded, place: AnsweredPlace, decoding: Decoding, ids: Sequence[Sequence[int]]
    ) -> NDArray[np.float64]:
        """Return the log-probabilities of several continuations of one prompt."""
        longest = max(map(len, ids))
        padded = torch.full((len(ids), longest), self.backbone.pad)
        for row, part in enumerate(ids):
            padded[row, : len(part)] = torch.tensor(list(part))
        prompt = self._prompt([encoded] * len(ids), [place] * len(ids))
        scores = score(
            self.backbone.runner, prompt, decoding, padded.to(prompt.ids.device), [len(part) for part in ids]
        )
        return scores.cpu().numpy()


def _seed(conversation: Sequence[Message], options: GenerationOptions, seed: int) -> int:
    """Return the seed of one reply's sampling: it hangs on what was said, not on the batch."""
    if options.temperature <= 0:
        return 0
    text = f"{conversation_hash(conversation)} {options.seed} {options.sample} {seed}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")
