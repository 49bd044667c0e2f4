"""The shell that the published models share: preprocessing, one forward pass for all findings, caches, fingerprint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from medground.errors import ModelError
from medground.identity import fingerprint_of
from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import ModelInfo, Prediction, Prepared
from medground.models.common.inputs import Preprocess
from medground.models.common.runtime import Runtime
from medground.models.common.text import Prompts


class Adapter(ABC):
    """A grounder around a network.

    A model's file gives the class ``name`` and ``info``, builds the network in its constructor, and says how texts are
    encoded (:meth:`encode_texts`) and how images are scored against them (:meth:`ground`).

    Attributes:
        network: the loaded network, in evaluation mode on the runtime's device.
        preprocess: from a radiograph to the network's input.
        prompts: which texts stand for a finding.
        runtime: device, precision, batches.
        encoded_images: how many images have gone through the image encoder so far.
        encoded_texts: for how many findings texts have gone through the text encoder so far.
    """

    name: ClassVar[str]
    info: ClassVar[ModelInfo]

    def __init__(
        self, network: nn.Module, preprocess: Preprocess, prompts: Prompts, runtime: Runtime, identity: Any
    ) -> None:
        """Keep the parts.

        Args:
            network: loaded.
            preprocess: of the published pipeline.
            prompts: of the published pipeline or the user.
            runtime: where to run.
            identity: JSON-like; what else results depend on: the weights' hash and the model's own options.
        """
        self.network = network.eval().requires_grad_(False).to(runtime.device)
        self.preprocess = preprocess
        self.prompts = prompts
        self.runtime = runtime
        self.encoded_images = 0
        self.encoded_texts = 0
        self._identity = identity
        self._texts: dict[tuple[str, ...], Any] = {}

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
            self.name, self._identity, self.preprocess.describe(), self.prompts.describe(), self.runtime.describe()
        )
