"""Runs a trained network of the pair as a question answerer, with gradients where an explainer asks for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from medground.errors import CheckpointError, ConfigError, ModelError
from medground.models.networks.gridvqa import slots, tokens

if TYPE_CHECKING:
    from torch import Tensor, nn

WEIGHTS = Path(__file__).parent / "weights"


Edition = Literal["second", "first"]


class Parts(Protocol):
    """A network in the steps that an answerer takes."""

    @property
    def net(self) -> nn.Module:
        """The network."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return ``(N, longest, 3)`` codes of texts; the first is 0 where a text has ended."""

    def see(self, pixels: Tensor) -> Tensor:
        """Return one token a cell from ``(N, 3, H, W)``."""

    def embed(self, codes: Tensor) -> Tensor:
        """Return one vector a word."""

    def answer(self, cells: Tensor, words: Tensor, codes: Tensor) -> Tensor:
        """Return ``(N, 20)`` log-probabilities."""


class FirstParts:
    """The transformer of the first edition, for boards of five cells a side."""

    def __init__(self) -> None:
        from medground.models.networks.gridvqa.network import GridNet

        self._net = GridNet()

    @property
    def net(self) -> nn.Module:
        """See :class:`Parts`."""
        return self._net

    def encode(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """See :class:`Parts`."""
        return tokens.batch(texts)

    def see(self, pixels: Tensor) -> Tensor:
        """See :class:`Parts`."""
        return self._net.see(pixels)

    def embed(self, codes: Tensor) -> Tensor:
        """See :class:`Parts`."""
        return self._net.word(codes[..., 0])  # type: ignore[no-any-return]  # torch modules return Any

    def answer(self, cells: Tensor, words: Tensor, codes: Tensor) -> Tensor:
        """See :class:`Parts`."""
        import torch

        present = torch.ne(codes[..., 0], tokens.PAD)
        return self._net(cells, self._net.ground(words, codes), present).answers  # type: ignore[no-any-return]  # Any


class SecondParts:
    """The modules of the second edition, for boards of any size."""

    def __init__(self, grid: int) -> None:
        from medground.models.networks.gridvqa.modules import ModuleNet

        self._net, self._grid = ModuleNet(), grid

    @property
    def net(self) -> nn.Module:
        """See :class:`Parts`."""
        return self._net

    def encode(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """See :class:`Parts`."""
        return slots.batch(texts)

    def see(self, pixels: Tensor) -> Tensor:
        """See :class:`Parts`."""
        return self._net.see(pixels, self._grid)

    def embed(self, codes: Tensor) -> Tensor:
        """See :class:`Parts`."""
        return self._net.word(codes[..., 0])  # type: ignore[no-any-return]  # torch modules return Any

    def answer(self, cells: Tensor, words: Tensor, codes: Tensor) -> Tensor:
        """See :class:`Parts`."""
        return self._net(cells, words, codes).answers  # type: ignore[no-any-return]  # torch modules return Any


class NetAnswerer:
    """A trained network behind the interface of a question answerer.

    Args:
        variant: ``pure`` or ``spurious``: whose shipped weights to take.
        weights: another ``.safetensors`` file of the same network.
        device: as torch names it.
        batch: pairs a forward pass.
        edition: ``second``, closed under removal of objects and words, or ``first``.
        grid: cells a side of the boards; the first edition knows 5 alone.

    Raises:
        CheckpointError: the file is missing or does not fit the network.
        ConfigError: the edition does not know this grid.
    """

    made_for: ClassVar[Mapping[str, int]] = {"grid": 5}
    """By default; ``grid`` in the run file says otherwise."""

    def __init__(
        self, variant: str, weights: str | Path | None, device: str, batch: int, edition: Edition, grid: int
    ) -> None:
        import torch

        from medground.models.checkpoints import load_weights, read_weights
        from medground.models.networks.gridvqa.network import ANSWERS

        if edition == "first" and grid != 5:
            raise ConfigError("the first edition's pair knows boards of 5 by 5 cells", got=grid, fix="edition: second")
        file = Path(weights) if weights is not None else shipped(variant, edition)
        if not file.is_file():
            raise CheckpointError(
                "there are no weights", where=file, fix=f"medground train gridvqa_x --variant {variant}"
            )
        held = read_weights(file)
        self._parts: Parts = FirstParts() if edition == "first" else SecondParts(grid)
        load_weights(self._parts.net, held)
        self._parts.net.to(device).eval().requires_grad_(False)
        self._device = torch.device(device)
        self._sha256, self._batch, self._edition, self._grid = held.sha256, batch, edition, grid
        self.answers: Sequence[str] = ANSWERS

    def logits(self, images: NDArray[np.floating[Any]], questions: Sequence[str]) -> NDArray[np.floating[Any]]:
        """Return ``(N, 20)`` log-probabilities; ``images`` are ``(N, H, W, 3)`` in [0, 1]."""
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

        codes = torch.from_numpy(self._parts.encode(questions)).to(self._device)
        lengths = torch.ne(codes[..., 0], tokens.PAD).sum(1)
        which = torch.from_numpy(np.asarray(pairs, np.int64).reshape(-1, 2)).to(self._device)
        # Pairs with questions of equal length go together, so that little is spent on padding.
        order = torch.argsort(lengths[which[:, 1]], stable=True)
        logits = torch.empty(len(which), len(self.answers))
        with torch.inference_mode():
            cells = self._see(images)

        def run(chosen: Tensor) -> None:
            with torch.inference_mode():
                image, text = which[chosen].unbind(1)
                part = codes[text][:, : max(1, int(lengths[text].max()))]
                answers = self._parts.answer(cells[image], self._parts.embed(part), part)
                logits[chosen.cpu()] = answers.float().cpu()

        _side_by_side(run, torch.split(order, batch or self._batch))
        return logits.numpy()

    def _see(self, images: NDArray[np.floating[Any]]) -> Tensor:
        import torch

        if images.ndim != 4 or images.shape[-1] != 3:
            raise ModelError("pictures are (N, H, W, 3)", got=f"shape {images.shape}")
        pixels = torch.from_numpy(np.ascontiguousarray(images, np.float32)).permute(0, 3, 1, 2)
        return torch.cat([self._parts.see(part.to(self._device)) for part in torch.split(pixels, 256)])

    def embed(self, question: str) -> Tensor:
        """Return the embedding of every word, ``(words, width)``, to take gradients by."""
        import torch

        codes = torch.from_numpy(self._parts.encode([question])).to(self._device)
        return self._parts.embed(codes)[0]

    def answer_embedded(self, image: Tensor, question: str, words: Tensor) -> Tensor:
        """Return ``(20,)`` log-probabilities of an image ``(H, W, 3)`` and embedded words, with their graph.

        Attention runs in plain arithmetic here: fused kernels cannot be differentiated twice.
        """
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        codes = torch.from_numpy(self._parts.encode([question])).to(self._device)
        with sdpa_kernel(SDPBackend.MATH):
            cells = self._parts.see(image.to(self._device).permute(2, 0, 1)[None])
            return self._parts.answer(cells, words[None], codes)[0]

    def fingerprint(self) -> str:
        """Depends on the weights, the grid and the device."""
        made = "net-1" if self._edition == "first" else f"modules-1-{self._grid}"
        return f"gridvqa-{made}-{self._sha256[:16]}-{self._device.type}"


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


def shipped(variant: str, edition: Edition) -> Path:
    """Return the file of shipped weights; recipe and tables lie beside it as ``.json``."""
    return WEIGHTS / f"{variant}{'_first' if edition == 'first' else ''}.safetensors"


def card(variant: str, edition: Edition = "second") -> dict[str, Any]:
    """Return recipe and tables of the shipped weights."""
    held: dict[str, Any] = json.loads(shipped(variant, edition).with_suffix(".json").read_text())
    return held
