"""Stand-in weights: numbers that follow from the published name of a parameter.

Two implementations that agree on names and shapes hold the same numbers without any weight file, so they can be
compared. The values resemble no trained model and mean nothing clinically; they never enter a run.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray


def parameter(name: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """Return the stand-in value of one entry of a state dict.

    Args:
        name: the published name, without ``module.``.
        shape: ``()`` gives a scalar.

    Returns:
        float32 of ``shape``; int64 zeros for ``num_batches_tracked``. Running variances lie in [0.5, 1.5], norm
        scales and other vectors too; matrices are normal with variance 1 / fan-in.
    """
    leaf = name.rpartition(".")[2]
    if leaf == "num_batches_tracked":
        return np.zeros(shape, dtype=np.int64)
    rng, size = _generator(name.encode()), math.prod(shape)
    if leaf == "running_mean":
        flat = 0.1 * rng.standard_normal(size)
    elif leaf == "logit_scale":
        flat = np.full(size, 2.0)
    elif leaf == "bias" or leaf.endswith("_bias"):
        flat = 0.05 * rng.standard_normal(size)
    elif leaf == "running_var" or len(shape) <= 1:
        flat = rng.uniform(0.5, 1.5, size)
    else:
        flat = rng.standard_normal(size) / math.sqrt(math.prod(shape[1:]))
    return flat.astype(np.float32).reshape(shape)


def tensor(key: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return a stand-in input (an image, an embedding): standard normal, float32."""
    flat = _generator(b"input:" + key.encode()).standard_normal(math.prod(shape))
    return flat.astype(np.float32).reshape(shape)


def _generator(name: bytes) -> np.random.Generator:
    seed = int.from_bytes(hashlib.sha256(name).digest()[:8], "little")
    return np.random.Generator(np.random.PCG64(seed))
