"""Runs a trained network of the pair as a question answerer, with gradients where an explainer asks for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.errors import CheckpointError, ModelError
from medground.models.networks.gridvqa import tokens

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = Path(__file__).parent / "weights"


class NetAnswerer:
    """A trained network behind the interface of a question answerer.

    Args:
        variant: ``pure`` or ``spurious``: whose shipped weights to take.
        weights: another ``.safetensors`` file of the same network.
        device: as torch names it.
        batch: pairs a forward pass.

    Raises:
        CheckpointError: the file is missing or does not fit the network.
    """

    made_for: ClassVar[Mapping[str, int]] = {"grid": 5}
    """What a benchmark must offer; scenes of another grid are a task that the network never saw."""

    def __init__(self, variant: str, weights: str | Path | None, device: str, batch: int) -> None:
        import torch

        from medground.models.checkpoints import load_weights, read_weights
        from medground.models.networks.gridvqa.network import ANSWERS, GridNet

        file = Path(weights) if weights is not None else WEIGHTS / f"{variant}.safetensors"
        if not file.is_file():
            raise CheckpointError(
                "there are no weights", where=file, fix=f"medground train gridvqa_x --variant {variant}"
            )
        held = read_weights(file)
        self._net = GridNet()
        load_weights(self._net, held)
        self._net.to(device).eval().requires_grad_(False)
        self._device = torch.device(device)
        self._sha256, self._batch = held.sha256, batch
        self.answers: Sequence[str] = ANSWERS

    def logits(self, images: NDArray[np.floating[Any]], questions: Sequence[str]) -> NDArray[np.floating[Any]]:
        """Return ``(N, 20)`` log-probabilities; ``images`` are ``(N, H, W, 3)`` in [0, 1], five cells a side."""
        if len(images) != len(questions):
            raise ModelError("one question an image", expected=len(images), got=len(questions))
        return self.pair_logits(images, questions, np.arange(len(images))[:, None].repeat(2, 1))

    def pair_logits(
        self,
        images: NDArray[np.floating[Any]],
        questions: Sequence[str],
        pairs: NDArray[np.integer[Any]],
        batch: int | None = None,
    ) -> NDArray[np.floating[Any]]:
        """Return ``(N, 20)`` for pairs of positions in ``images`` and ``questions``; each is encoded once."""
        import torch

        codes = torch.from_numpy(tokens.batch(questions)).to(self._device)
        lengths = torch.ne(codes[..., 0], tokens.PAD).sum(1)
        which = torch.from_numpy(np.asarray(pairs, np.int64).reshape(-1, 2)).to(self._device)
        # Pairs with questions of equal length go together, so that little is spent on padding.
        order = torch.argsort(lengths[which[:, 1]], stable=True)
        found = torch.empty(len(which), len(self.answers))
        with torch.inference_mode():
            cells = self._see(images)

        def run(chosen: Tensor) -> None:
            with torch.inference_mode():
                image, text = which[chosen].unbind(1)
                part = codes[text][:, : max(1, int(lengths[text].max()))]
                output = self._net(cells[image], self._net.read(part), torch.ne(part[..., 0], tokens.PAD))
                found[chosen.cpu()] = output.answers.float().cpu()

        _side_by_side(run, torch.split(order, batch or self._batch))
        return found.numpy()

    def _see(self, images: NDArray[np.floating[Any]]) -> Tensor:
        import torch

        if images.ndim != 4 or images.shape[-1] != 3:
            raise ModelError("pictures are (N, H, W, 3)", got=f"shape {images.shape}")
        pixels = torch.from_numpy(np.ascontiguousarray(images, np.float32)).permute(0, 3, 1, 2)
        return torch.cat([self._net.see(part.to(self._device)) for part in torch.split(pixels, 256)])

    def embed(self, question: str) -> Tensor:
        """Return the embedding of every word, ``(words, width)``, to take gradients by."""
        import torch

        codes = torch.from_numpy(tokens.batch([question])).to(self._device)
        return self._net.word(codes[0, :, 0])  # type: ignore[no-any-return]  # torch modules return Any

    def answer_embedded(self, image: Tensor, question: str, words: Tensor) -> Tensor:
        """Return ``(20,)`` log-probabilities of an image ``(H, W, 3)`` and embedded words, with their graph.

        Attention runs in plain arithmetic here: fused kernels cannot be differentiated twice.
        """
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        codes = torch.from_numpy(tokens.batch([question])).to(self._device)
        with sdpa_kernel(SDPBackend.MATH):
            cells = self._net.see(image.to(self._device).permute(2, 0, 1)[None])
            grounded = self._net.ground(words[None], codes)
            output = self._net(cells, grounded, torch.ne(codes[..., 0], tokens.PAD))
        return output.answers[0]  # type: ignore[no-any-return]  # torch modules return Any

    def fingerprint(self) -> str:
        """Depends on the weights and the device."""
        return f"gridvqa-net-1-{self._sha256[:16]}-{self._device.type}"


def _side_by_side(run: Callable[[Tensor], None], parts: Sequence[Tensor]) -> None:
    """Run every part, one a thread of torch: small batches gain nothing from threads within an operation.

    What is in a batch does not depend on the number of threads, and neither does its result.
    """
    import torch

    threads = torch.get_num_threads()
    if threads == 1 or len(parts) == 1:
        for part in parts:
            run(part)
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, parts))
    finally:
        torch.set_num_threads(threads)


def card(variant: str) -> dict[str, Any]:
    """Return recipe and accuracy tables of the shipped weights."""
    found: dict[str, Any] = json.loads((WEIGHTS / f"{variant}.json").read_text())
    return found
