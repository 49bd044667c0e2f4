"""The reference model: a small image-text network that ships with its weights, to try medground on.

It is an instrument, not a clinical model: it was trained with labels and boxes of the task, from drawn pictures and a
few hundred real ones, and must never be ranked among zero-shot models. ``docs/reference_model.md`` says what it has
seen and what was measured.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from medground.errors import ModelError
from medground.identity import fingerprint_of, hash_content
from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import MatchScores, ModelInfo, Prediction, Prepared
from medground.models.common.runtime import Precision, Runtime
from medground.models.common.text import Prompts
from medground.models.networks.reference import captions as language, checkpoint as checkpoints
from medground.models.networks.reference.network import normalise
from medground.models.networks.reference.picture import SIZE, picture
from medground.models.networks.reference.text import padded


class Reference:
    """Scores any finding by its name, and says where it is on a 28 by 28 grid.

    Args:
        checkpoint: weights made by ``medground train reference``; by default those that ship with medground.
        prompts: finding -> words for it, or several whose vectors are averaged; by default its name.
        device: ``auto``, ``cpu``, ``cuda`` or as torch names it.
        dtype: ``float32``, or ``bfloat16`` or ``float16`` by autocast on a GPU.
        deterministic: only deterministic kernels.
    """

    name: ClassVar[str] = "reference"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="medground reference model",
        kind="supervised",
        pretrained_on="chest radiographs",
        licence="Apache-2.0, code and weights; trained on drawn pictures and on ChestX-ray14 (free use, attribution)",
        citation="none: it comes with this version of medground; for its pictures Wang et al., ChestX-ray8, CVPR 2017",
        obtain="ships with medground; `medground train reference` makes it anew",
        seen={
            "nih_chestxray14": "labels and boxes of half of the patients",
            "rsna_pneumonia": "some patients, labels and boxes",
            "siim_pneumothorax": "some patients, labels and boxes",
            "chestx_det": "some patients, labels and boxes",
            "phantom": "same drawing, other seed",
        },
    )

    shipped: ClassVar[tuple[Path, ...]] = (checkpoints.SHIPPED,)

    def __init__(
        self,
        *,
        checkpoint: Path | None = None,
        prompts: dict[str, str | list[str]] | None = None,
        device: str = "auto",
        dtype: Precision = "float32",
        deterministic: bool = False,
    ) -> None:
        self._runtime = Runtime(device, dtype, deterministic=deterministic)
        self._prompts = Prompts("{label}", prompts)
        self._network, self.card, self._sha256 = checkpoints.load(checkpoint or checkpoints.SHIPPED)
        self._network.to(self._runtime.device)

    def seen_patients(self, dataset: str) -> frozenset[str]:
        """Return the patients of a dataset whose pictures, labels and boxes these weights were trained on."""
        return frozenset(self.card["seen_patients"].get(dataset, ()))

    def prepare(self, image: Radiograph) -> Prepared:
        """See :class:`medground.models.base.Preparing`."""
        geometry = Geometry.squash(image.size, (SIZE, SIZE))
        return Prepared(image.case_id, image.patient_id, image.size, picture(image.pixels), geometry)

    def preparation(self) -> str:
        """See :class:`medground.models.base.Repeatable`."""
        return fingerprint_of(self.name, SIZE, hash_content(Path(inspect.getfile(picture))))

    def predict(self, images: Sequence[Radiograph | Prepared], findings: Sequence[str]) -> Prediction:
        """Return scores, probabilities and maps; a finding's answer does not depend on the others of the call.

        Scores are presence logits, probabilities their sigmoid. Maps are the sigmoid of the cross-attention scores,
        ``(N, C, 28, 28)``, in [0, 1].

        Raises:
            ModelError: no image or no finding is given.
        """
        if not images or not findings:
            raise ModelError("a prediction needs images and findings", got=f"{len(images)}, {len(findings)}")
        prepared = [image if isinstance(image, Prepared) else self.prepare(image) for image in images]
        grey = torch.from_numpy(np.stack([image.content for image in prepared]))
        with self._runtime.inference():
            vectors = torch.stack([self._embed(finding) for finding in findings])

        def forward(batch: Tensor) -> tuple[Tensor, ...]:
            presence, logits = self._network(batch, vectors.expand(len(batch), -1, -1))
            return presence, logits.sigmoid()

        scores, saliency = self._runtime.batched(forward, normalise(grey.unsqueeze(1).float() / 255))
        assert scores is not None
        assert saliency is not None
        logits = scores.double()
        return Prediction(
            scores=logits.numpy(),
            probabilities=logits.sigmoid().numpy(),
            saliency=saliency.numpy(),
            geometry=[image.geometry for image in prepared],
        )

    def match(self, images: Sequence[Radiograph], captions: Sequence[Sequence[str]]) -> MatchScores:
        """Return how well captions about phantoms fit, without training for it; see ``networks.reference.captions``.

        Sentences that the grammar of phantoms did not write add nothing: of real captions every pair is a tie.

        Raises:
            ModelError: images and captions differ in number, or the captions of images do.
        """
        if len(images) != len(captions) or len({len(c) for c in captions}) > 1:
            raise ModelError(
                "every image needs equally many captions", expected=len(images), got=[len(c) for c in captions][:8]
            )
        findings = language.findings_of([c for held in captions for c in held])
        if not images or not findings:
            return MatchScores(np.zeros((len(images), len(captions[0]) if captions else 0)), 1.0, "contrastive")
        seen = self.predict(images, findings)
        assert seen.saliency is not None
        raw = [
            [
                language.fit(
                    caption,
                    {f: float(seen.scores[i, j]) for j, f in enumerate(findings)},
                    {f: np.asarray(seen.saliency[i][j]) for j, f in enumerate(findings)},
                )
                for caption in held
            ]
            for i, held in enumerate(captions)
        ]
        return MatchScores(np.array(raw), 1.0, "contrastive")

    def _embed(self, finding: str) -> Tensor:
        """Return the vector of a finding, ``(D,)``."""
        buckets = torch.tensor(padded(list(self._prompts.of(finding))), device=self._runtime.device)
        return self._network.embed(buckets).mean(0)

    def fingerprint(self) -> str:
        """A hash over weights, prompts, preprocessing and precision."""
        return fingerprint_of(
            self.name, self._sha256, self._prompts.describe(), f"squash-{SIZE}", self._runtime.describe()
        )
