"""The shell of the dual encoders (CLIP and its kin): one vector an image, one a text, their cosine the score."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from medground.errors import ConfigError, ModelError, did_you_mean
from medground.imaging.reading import Radiograph
from medground.models.base import MatchScores
from medground.models.common.adapter import Adapter
from medground.models.common.inputs import Preprocess
from medground.models.common.pictures import PictureOptions
from medground.models.common.saliency import Tower, chefer, surgery, tower_gradcam
from medground.models.common.text import Prompts

Link = Literal["sigmoid", "softmax"]
TEXTS_AT_ONCE = 64


@dataclass(kw_only=True, eq=False, repr=False)
class DualEncoder(PictureOptions, Adapter):
    """A grounder and caption matcher around two encoders.

    A model's file says how images are encoded (:meth:`image_features`), how texts are (:meth:`embed`), what the stored
    temperature is (:meth:`scale`), and how the image tower comes apart (:meth:`tower`) for the saliency rules that
    need it.

    Args:
        template: prompt with ``{label}`` for the finding, or several whose embeddings are averaged.
        against: contrary prompt (``no {label}``), or several. A score is then the difference of the two cosines and a
            probability the softmax of the two, in place of the link; maps are those of the finding itself.
        prompts: finding -> prompt, or several whose embeddings are averaged.
        saliency: ``similarity``, ``surgery``, ``gradcam`` or ``chefer``: the rule that maps are made by.
        link: from score to probability: ``sigmoid`` (XBench) or ``softmax`` over the findings of a call (the model
            cards), which makes a probability depend on the other findings.
        logit_scale: multiply cosines by the stored temperature, and add the stored bias, before the link; not by
            default.

    Attributes:
        contrary: the prompts of ``against``, or None.
    """

    rules: ClassVar[tuple[str, ...]] = ("similarity", "surgery", "gradcam", "chefer")
    tower_rules: ClassVar[tuple[str, ...]] = ("surgery", "gradcam", "chefer")
    """Those that take the image tower apart, and read vectors and maps from one pass through it."""

    template: str | list[str] = "{label}"
    against: str | list[str] | None = None
    prompts: dict[str, str | list[str]] | None = None
    saliency: str = "similarity"
    link: Link = "sigmoid"
    logit_scale: bool | None = None

    contrary: Prompts | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Put the model together.

        Raises:
            ConfigError: the model has no such saliency rule, or pairs of prompts meet a softmax over findings.
        """
        if self.saliency not in self.rules:
            raise ConfigError(
                f"{self.name} has no saliency rule {self.saliency!r}",
                where="saliency",
                expected=", ".join(self.rules),
                fix=did_you_mean(self.saliency, self.rules),
            )
        if self.against is not None and self.link == "softmax":
            raise ConfigError(
                "a softmax is over the findings of a call or over a pair of prompts, not over both",
                where="link",
                fix="link: sigmoid",
            )
        super().__post_init__()
        self.preprocess = self._framed(self.preprocess)
        self.contrary = None if self.against is None else Prompts(self.against)
        options = [self._identity, self.saliency, self.link, bool(self.logit_scale)]
        self._identity = options + ([] if self.contrary is None else [self.contrary.describe()])
        if self.saliency == "surgery" or self.link == "softmax":
            # On the instance: other instances of the class answer each finding by itself.
            self.info = replace(type(self).info, query_dependent=True)  # type: ignore[misc]

    def _framed(self, own: Preprocess) -> Preprocess:
        """Return how pictures are prepared: the model's own way, changed as the options say.

        Raises:
            ConfigError: the image tower takes one size alone.
        """
        if self.saliency == "surgery" and own.rule == "center_crop":
            own = replace(own, rule="squash", resize_to=0)  # its authors crop nothing
        preprocess = self.adjusted(own)
        if preprocess.size != own.size and not self.takes_size(preprocess.size):
            raise ConfigError(
                f"the image tower of {self.name} takes pictures of one size",
                where="size",
                expected=own.size,
                got=preprocess.size,
            )
        return preprocess

    def takes_size(self, size: int) -> bool:
        """Return whether the image tower can be given another size than its own, and make it ready for that."""
        del size
        return False

    def words(self) -> Prompts:
        """Return which texts stand for a finding."""
        return Prompts(self.template, self.prompts)

    @abstractmethod
    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Return un-normed image vectors ``(n, E)`` and cell vectors ``(n, h, w, E)`` of the joint space."""

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Return un-normed text vectors ``(K, E)``; of a text tower that takes ids and mask, unless overridden."""
        ids, mask = (part.to(self.runtime.device) for part in self.tokenise(texts))
        network: Any = self.network
        vectors: Tensor = network.text(ids, mask)
        return vectors

    @abstractmethod
    def scale(self) -> float:
        """Return the multiplier of cosines that the checkpoint stores."""

    def bias(self) -> float:
        """Return what the checkpoint adds to scaled cosines; nothing, but for SigLIP."""
        return 0.0

    def tower(self) -> Tower:
        """Return the image tower, taken apart; only called for models whose ``rules`` need it."""
        raise AssertionError("a model with such saliency rules gives its tower")

    def encode_texts(self, findings: Sequence[str]) -> Any:
        """Return one normed vector a finding ``(C, E)``, or two such tensors where prompts come in pairs."""
        vectors = self.encoded(self.wording, findings)
        return vectors if self.contrary is None else (vectors, self.encoded(self.contrary, findings))

    def encoded(self, prompts: Prompts, findings: Sequence[str]) -> Any:
        """Return one normed vector a finding ``(C, E)``: each prompt's is normed, then their mean is."""
        texts = [prompts.of(finding) for finding in findings]
        vectors = functional.normalize(self.embed([text for own in texts for text in own]), dim=-1)
        parts = torch.split(vectors, [len(own) for own in texts])
        return functional.normalize(torch.stack([part.mean(0) for part in parts]), dim=-1)

    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores, probabilities and maps; see :meth:`Adapter.ground`."""
        texts, contrary = texts if self.contrary is not None else (texts, None)
        vectors, maps = self.seen(pixels, texts)
        scores = self.scores(vectors, texts)
        if contrary is None:
            return scores, self.probabilities(scores), maps
        scores = scores - self.scores(vectors, contrary)
        # A softmax of two is a sigmoid of their difference, in which a bias cancels.
        return scores, (scores.float() * (self.scale() if self.logit_scale else 1.0)).sigmoid(), maps

    def seen(self, pixels: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Return un-normed image vectors ``(n, E)`` and maps ``(n, C, h, w)`` by the chosen rule, in one pass."""
        if self.saliency not in self.tower_rules:
            vectors, cells = self.image_features(pixels)
            return vectors, self.maps(pixels, vectors, cells, texts)
        if self.saliency == "surgery":
            vectors, flat = surgery(self.tower(), pixels, texts)
        else:
            rule = chefer if self.saliency == "chefer" else tower_gradcam
            vectors, flat = rule(self.tower(), pixels, lambda image: self.scores(image, texts) * self.scale())
        side = math.isqrt(flat.shape[-1])
        return vectors, flat.reshape(*flat.shape[:2], side, side)

    def scores(self, vectors: Tensor, texts: Tensor) -> Tensor:
        """Return cosines ``(n, C)`` of un-normed image vectors with normed texts."""
        return functional.normalize(vectors, dim=-1) @ texts.T

    def probabilities(self, scores: Tensor) -> Tensor:
        """Return probabilities ``(n, C)``."""
        logits = scores.float() * self.scale() + self.bias() if self.logit_scale else scores.float()
        return logits.softmax(-1) if self.link == "softmax" else logits.sigmoid()

    def maps(self, pixels: Tensor, vectors: Tensor, cells: Tensor, texts: Tensor) -> Tensor:
        """Return maps ``(n, C, h, w)``: the cosine of every cell with every text."""
        del pixels, vectors  # a model with rules of its own reads these
        return (functional.normalize(cells, dim=-1) @ texts.T).permute(0, 3, 1, 2)

    def match(self, images: Sequence[Radiograph], captions: Sequence[Sequence[str]]) -> MatchScores:
        """Return cosines of N images with K captions each; equal images and equal captions are encoded once.

        Raises:
            ModelError: the images do not have one equally long list of captions each.
        """
        places, vectors = encode_distinct(self, images, captions, lambda batch: self.image_features(batch)[0])
        texts = list(dict.fromkeys(text for own in captions for text in own))
        encoded = dict(zip(texts, self.caption_vectors(texts), strict=True))
        raw = [
            self.scores(vectors[place][None], torch.stack([encoded[text] for text in own]))[0].double().numpy()
            for place, own in zip(places, captions, strict=True)
        ]
        read = np.array([self.tokenise.alike(own) for own in captions])
        return MatchScores(np.stack(raw), self.scale(), "contrastive", read)

    def caption_vectors(self, captions: Sequence[str]) -> Tensor:
        """Return the normed vectors ``(K, E)`` of one image's captions, float32 on the CPU."""
        with self.runtime.inference():
            parts = [
                self.embed(captions[start : start + TEXTS_AT_ONCE]) for start in range(0, len(captions), TEXTS_AT_ONCE)
            ]
            return functional.normalize(torch.cat(parts).float().cpu(), dim=-1)


def encode_distinct(
    model: Adapter,
    images: Sequence[Radiograph],
    captions: Sequence[Sequence[str]],
    encode: Callable[[Tensor], Tensor],
) -> tuple[list[int], Tensor]:
    """Encode each different image once.

    Args:
        model: whose pictures they become.
        images: N.
        captions: K an image.
        encode: from pixels to one row an image.

    Returns:
        For each image the row of its own, and the rows.

    Raises:
        ModelError: the images do not have one equally long list of captions each.
    """
    check_captions(images, captions)
    pixels, _ = model.inputs(images)
    places, distinct = distinct_rows(pixels)
    (rows,) = model.run(lambda batch: (encode(batch),), pixels[distinct])
    assert rows is not None
    return places, rows


def distinct_rows(pixels: Tensor) -> tuple[list[int], list[int]]:
    """Return for each image ``(N, ...)`` its place among the distinct ones, and the rows of these."""
    places: dict[bytes, int] = {}
    keys = [row.numpy().tobytes() for row in pixels]
    held = [places.setdefault(key, len(places)) for key in keys]
    return held, [held.index(place) for place in range(len(places))]


def check_captions(images: Sequence[Radiograph], captions: Sequence[Sequence[str]]) -> None:
    """Raise ModelError unless every image has a list of captions, all equally long and none empty."""
    lengths = {len(own) for own in captions}
    if not images or len(images) != len(captions) or len(lengths) != 1 or 0 in lengths:
        raise ModelError(
            "captions do not fit the images",
            expected="for every image one list of captions, all equally long",
            got=f"{len(images)} images, lists of {sorted(lengths)} captions for {len(captions)}",
        )
