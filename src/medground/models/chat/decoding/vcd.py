"""Visual contrastive decoding (Leng et al., CVPR 2024, arXiv 2311.16922): against the same picture drowned in noise."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Final

import torch
from torch import Tensor

from medground.errors import ConfigError
from medground.models.chat.decoding.base import Branch, Prompt
from medground.models.chat.decoding.contrast import contrast

STEPS: Final = 1000


@cache
def kept_signal() -> Tensor:
    """Return the cumulative product of the diffusion, ``(1000,)``: entry 0 is after one step.

    Sigmoid schedule from 1e-5 to 5e-3 over -6 to 6, as in the authors' code.
    """
    ramp = torch.linspace(-6, 6, STEPS, dtype=torch.float64).sigmoid()
    return (1 - (ramp * (0.5e-2 - 1e-5) + 1e-5)).cumprod(0)


def noised(pixels: Tensor, noise: Tensor, step: int) -> Tensor:
    """Return ``sqrt(abar) x + sqrt(1 - abar) e`` for pictures and noise of one shape, after ``step + 1`` steps."""
    kept = float(kept_signal()[step])
    return math.sqrt(kept) * pixels + math.sqrt(1 - kept) * noise


def plausible(scores: Tensor, logits: Tensor, beta: float) -> Tensor:
    """Bar the tokens whose logit lies below ``max + ln beta``; one exactly at the cut stays, and 0 bars none."""
    if beta <= 0:
        return scores
    cut = logits.amax(-1, keepdim=True) + math.log(beta)
    return scores.masked_fill(logits < cut, -torch.inf)


class Vcd:
    """Contrasts with a noised picture, and bars what the plain pass holds for implausible.

    Args:
        alpha: weight of the contrast.
        beta: share of the greatest probability below which a token is barred, in [0, 1].
        noise_step: how far the diffusion goes, 0 to 999.
        seed: of the noise; one picture always gets the same.

    Raises:
        ConfigError: a number is out of range.
    """

    needs_region: ClassVar[bool] = False

    def __init__(self, *, alpha: float = 1.0, beta: float = 0.1, noise_step: int = 500, seed: int = 0) -> None:
        if not 0 <= noise_step < STEPS or not 0 <= beta <= 1:
            raise ConfigError(
                "VCD cannot work like that",
                where="decoding",
                expected="noise_step from 0 to 999, beta from 0 to 1",
                got=f"noise_step {noise_step}, beta {beta}",
            )
        self.alpha, self.beta, self.noise_step, self.seed = alpha, beta, noise_step, seed

    def branches(self, prompt: Prompt) -> Sequence[Branch]:
        """Return the pass with the picture and that with the noised one."""
        other = noised(prompt.pixels, self._noise(prompt.pixels), self.noise_step)
        return Branch(prompt.pixels), Branch(other.to(prompt.pixels.dtype))

    def _noise(self, pixels: Tensor) -> Tensor:
        """Return noise ``(N, C, H, W)`` that hangs on the picture and the seed alone, not on the batch."""
        planes = []
        for picture in pixels.detach().float().cpu():
            digest = hashlib.sha256(picture.numpy().tobytes() + self.seed.to_bytes(8, "little")).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
            planes.append(torch.randn(picture.shape, generator=generator))
        return torch.stack(planes).to(pixels.device)

    def combine(self, logits: Sequence[Tensor], step: int) -> Tensor:  # noqa: ARG002 - every step is alike
        """Return ``(1 + alpha) l - alpha l'`` on raw logits, with the cut."""
        return plausible(contrast(logits[0], logits[1], self.alpha, log_space=False), logits[0], self.beta)

    def record(self) -> dict[str, Any]:
        """Return its parameters."""
        return {
            "name": "vcd",
            "alpha": self.alpha,
            "beta": self.beta,
            "noise_step": self.noise_step,
            "seed": self.seed,
        }
