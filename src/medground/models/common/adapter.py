"""The shell that the published models share: preprocessing, one forward pass for all findings, caches, fingerprint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from medground.errors import ModelError
from medground.identity import fingerprint_of, hash_content
from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import ModelInfo, Prediction, Prepared
from medground.models.checkpoints import Layout, Source, Weights, load_weights
from medground.models.common import inputs
from medground.models.common.explain import explain_absent, explain_other
from medground.models.common.inputs import Preprocess
from medground.models.common.runtime import Precision, Runtime
from medground.models.common.text import Prompts, Tokenizer


@dataclass(frozen=True)
class Parts:
    """What a model is put together from.

    Attributes:
        network: loaded.
        weights: that it was loaded from.
        preprocess: from a radiograph to the network's input.
        prompts: which texts stand for a finding.
        tokenizer: of the text encoder.
        options: JSON-like; what else results depend on.
    """

    network: nn.Module
    weights: Weights
    preprocess: Preprocess
    prompts: Prompts
    tokenizer: Tokenizer
    options: Sequence[Any] = ()


@dataclass(kw_only=True, eq=False, repr=False)
class Adapter(ABC):
    """A grounder around a network.

    A model's file is a card (``name``, ``info``), its own parameters as fields, and rules: :meth:`assemble` builds the
    network from the user's files, :meth:`encode_texts` and :meth:`ground` say how texts and images meet. What all
    models share, from device to fingerprint, happens here once.

    Args:
        device: ``auto``, ``cpu``, ``cuda`` or as torch names it.
        dtype: ``float32``, or ``bfloat16`` or ``float16`` by autocast on a GPU.
        deterministic: only deterministic kernels.
        ignore: patterns of checkpoint entries that may be missing, unexpected or mis-shaped.

    Attributes:
        network: the loaded network, in evaluation mode on the runtime's device.
        preprocess: from a radiograph to the network's input.
        wording: which texts stand for a finding.
        tokenise: from texts to ids and mask, as the text encoder takes them.
        runtime: device, precision, batches.
        encoded_images: how many images have gone through the image encoder so far.
        encoded_texts: for how many findings texts have gone through the text encoder so far.
    """

    name: ClassVar[str]
    info: ClassVar[ModelInfo]

    device: str = "auto"
    dtype: Precision = "float32"
    deterministic: bool = False
    ignore: list[str] | None = None

    network: nn.Module = field(init=False)
    preprocess: Preprocess = field(init=False)
    wording: Prompts = field(init=False)
    tokenise: Tokenizer = field(init=False)
    runtime: Runtime = field(init=False)
    encoded_images: int = field(init=False, default=0)
    encoded_texts: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Put the model together on its device.

        Raises:
            CheckpointError: a file is not there, is none of weights, or does not fit.
        """
        checkpoint = getattr(self, "checkpoint", None)
        if isinstance(checkpoint, Path):
            explain_absent(checkpoint)
            if checkpoint.is_file():
                explain_other(checkpoint)
        self.runtime = Runtime(self.device, self.dtype, deterministic=self.deterministic)
        parts = self.assemble()
        self.network = parts.network.eval().requires_grad_(False).to(self.runtime.device)
        self.preprocess, self.wording, self.tokenise = parts.preprocess, parts.prompts, parts.tokenizer
        self._identity = [parts.weights.sha256, parts.tokenizer.describe(), *parts.options]
        self._texts: dict[tuple[str, ...], Any] = {}

    @abstractmethod
    def assemble(self) -> Parts:
        """Build the model from its parameters; called once."""

    def unneeded(self, layout: Layout) -> tuple[str, ...]:
        """Return patterns of entries that need not fit: the publisher's, then the user's."""
        return (*layout.ignore, *(self.ignore or ()))

    def filled(
        self,
        network: nn.Module,
        weights: Weights,
        layout: Layout,
        published: Callable[[str], str | Source] = Source,
    ) -> nn.Module:
        """Return a network with its weights in place; see :func:`~medground.models.checkpoints.load_weights`."""
        load_weights(network, weights, published=published, ignore=self.unneeded(layout))
        return network

    @abstractmethod
    def encode_texts(self, findings: Sequence[str]) -> Any:
        """Return what :meth:`ground` needs to know of C findings; called once for each list of findings."""

    @abstractmethod
    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        """Score a batch of images against the encoded texts.

        Returns:
            Scores ``(n, C)``, probabilities ``(n, C)`` and maps ``(n, C, h, w)``, or None in their place.
        """

    def predict(self, images: Sequence[Radiograph | Prepared], findings: Sequence[str]) -> Prediction:
        """Return scores, probabilities and maps for every image and finding, in the order asked.

        Raises:
            ModelError: no image or no finding is given, or a finding has no usable prompt.
        """
        if not images or not findings:
            raise ModelError("a prediction needs images and findings", got=f"{len(images)}, {len(findings)}")
        texts = self.texts(findings)
        pixels, geometry = self.inputs(images)
        scores, probabilities, saliency = self.run(lambda batch: self.ground(batch, texts), pixels)
        assert scores is not None
        assert probabilities is not None
        maps = None if saliency is None else saliency.numpy()
        return Prediction(scores.double().numpy(), probabilities.double().numpy(), maps, geometry)

    def run(self, forward: Callable[[Tensor], tuple[Tensor | None, ...]], pixels: Tensor) -> tuple[Tensor | None, ...]:
        """Run a forward pass that encodes each image once, in batches that fit; see :meth:`Runtime.batched`."""

        def counted(batch: Tensor) -> tuple[Tensor | None, ...]:
            self.encoded_images += len(batch)
            return forward(batch)

        return self.runtime.batched(counted, pixels)

    def inputs(self, images: Sequence[Radiograph | Prepared]) -> tuple[Tensor, list[Geometry]]:
        """Return the network's input ``(N, 3, size, size)`` and one geometry an image."""
        prepared = [image if isinstance(image, Prepared) else self.prepare(image) for image in images]
        return torch.from_numpy(np.stack([p.content for p in prepared])), [p.geometry for p in prepared]

    def prepare(self, image: Radiograph) -> Prepared:
        """Return the network's input of one image; see :class:`medground.models.base.Preparing`."""
        content, geometry = self.preprocess(image)
        return Prepared(image.case_id, image.patient_id, image.size, content, geometry)

    def preparation(self) -> str:
        """See :class:`medground.models.base.Repeatable`."""
        return fingerprint_of(self.preprocess.describe(), hash_content(Path(inputs.__file__)))

    def texts(self, findings: Sequence[str]) -> Any:
        """Return the encoded texts of the findings; a list is encoded once and kept."""
        key = tuple(findings)
        if key not in self._texts:
            with self.runtime.inference():
                self._texts[key] = self.encode_texts(findings)
            self.encoded_texts += len(findings)
        return self._texts[key]

    def fingerprint(self) -> str:
        """A hash over weights, prompts, preprocessing, options and precision."""
        return fingerprint_of(
            self.name, self._identity, self.preprocess.describe(), self.wording.describe(), self.runtime.describe()
        )
