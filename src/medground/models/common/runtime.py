"""Where and how a network runs: device, precision, determinism, and batches that shrink when memory runs out."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from medground.errors import ConfigError

Precision = Literal["float32", "bfloat16", "float16"]
log = logging.getLogger("medground")


class Runtime:
    """Runs forward passes.

    Args:
        device: ``auto`` takes the GPU where there is one; otherwise as torch names it (``cpu``, ``cuda:1``).
        dtype: precision of the network's arithmetic; the halves are for GPUs, by autocast. float32 means float32: no
            TF32.
        deterministic: only deterministic kernels, at some cost; an operation without one is an error.

    Raises:
        ConfigError: there is no such device, or it cannot work in this precision.
    """

    def __init__(self, device: str = "auto", dtype: Precision = "float32", *, deterministic: bool = False) -> None:
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            self.device = torch.device(device)
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise ConfigError("there is no such device", where="device", got=device, fix="device: auto") from error
        if self.device.type == "cpu" and dtype != "float32":
            raise ConfigError("on a CPU models run in float32", where="dtype", got=dtype, fix="dtype: float32")
        if deterministic and self.device.type == "cuda":
            # cuBLAS reads this when it starts; without it, deterministic mode is an error.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        self.dtype = dtype
        self.deterministic = deterministic
        self._most: int | None = None

    def describe(self) -> dict[str, Any]:
        """Return what a result depends on in its last bits, for fingerprints."""
        return {"device": self.device.type, "dtype": self.dtype, "deterministic": self.deterministic}

    @contextmanager
    def inference(self) -> Iterator[None]:
        """No gradients, the chosen precision, the chosen kernels; torch's own settings are restored afterwards."""
        before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if self.device.type == "cuda":
                flags = {"deterministic": self.deterministic, "benchmark": False, "allow_tf32": False}
                stack.enter_context(torch.backends.cudnn.flags(enabled=True, **flags))
                if self.dtype != "float32":
                    stack.enter_context(torch.autocast("cuda", getattr(torch, self.dtype)))
            if self.deterministic:
                torch.use_deterministic_algorithms(True)
                stack.callback(torch.use_deterministic_algorithms, before[0], warn_only=before[1])
            yield

    def batched(
        self, forward: Callable[[Tensor], tuple[Tensor | None, ...]], inputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        """Run ``forward`` over inputs ``(N, ...)`` and join its results, float32 on the CPU.

        All at once where memory allows it. When a GPU's memory runs out the batch is halved, which is logged, and the
        smaller size is kept for later calls.
        """
        size, start, parts = self._most or len(inputs), 0, []
        while start < len(inputs):
            try:
                with self.inference():
                    results = forward(inputs[start : start + size].to(self.device))
                    parts.append([None if r is None else r.detach().float().cpu() for r in results])
                start += size
            except torch.OutOfMemoryError:
                if size == 1:
                    raise
                size = self._most = max(1, min(size, len(inputs) - start) // 2)
                torch.cuda.empty_cache()
                log.warning("out of GPU memory: going on with %d images at a time", size)
        return tuple(None if column[0] is None else torch.cat(column) for column in _transposed(parts))


def _transposed(parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*parts, strict=True)]
