"""How the picture was taken: tube, detector and the processing that a workstation applies."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.worlds.phantom.kernels import kernel
from medground.worlds.phantom.streams import chance, uniform

COARSE: Final = 64
"""Side of the finding-free picture from which scatter and the local mean are taken.

They come from the thorax without its findings, so that they spread no finding over the rest of the picture.
"""


class Exposure(NamedTuple):
    """Numbers of one exposure.

    Attributes:
        curve: c of ``1 - exp(-c * A)``.
        white: value that is shown white.
        gamma: exponent of the display curve.
        attenuation: line integral a body unit, for the photon count.
        photons: photons a pixel at 512 pixels before the patient.
        sharpen: strength of the unsharp mask.
        scatter: share of scattered radiation.
        fog: grey level of an unattenuated ray, 0 to 1.
        edges: dark collimation at left, top, right, bottom, image widths.
    """

    curve: float
    white: float
    gamma: float
    attenuation: float
    photons: float
    sharpen: float
    scatter: float
    fog: float
    edges: tuple[float, float, float, float]


def draw_exposure(rng: np.random.Generator, view: str) -> Exposure:
    """Draw one exposure; portable (AP) pictures take fewer photons."""
    ap = view == "AP"
    edges = (0.0, 0.0, 0.0, 0.0)
    if chance(rng, 0.3):
        a, b, c, d = (uniform(rng, 0.0, 0.035) if chance(rng, 0.5) else 0.0 for _ in range(4))
        edges = (a, b, c, d)
    return Exposure(
        curve=uniform(rng, 1.10, 1.45),
        white=uniform(rng, 0.89, 0.99),
        gamma=uniform(rng, 0.95, 1.25),
        attenuation=uniform(rng, 1.8, 2.2),
        photons=uniform(rng, 2000, 6000) if ap else uniform(rng, 5000, 20000),
        sharpen=uniform(rng, 0.15, 0.45),
        scatter=uniform(rng, 0.03, 0.07) + (0.03 if ap else 0.0),
        fog=uniform(rng, 0.0, 0.10) + (0.03 if ap else 0.0),
        edges=edges,
    )


def draw_texture(rng: np.random.Generator, size: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return soft-tissue texture of the body and of the lungs, ``(size, size)`` each, body units.

    The lattices do not depend on ``size``: every size shows the same texture.
    """
    cells = ((6, 0.025), (14, 0.020), (36, 0.012), (100, 0.018))
    body = np.zeros((size, size), np.float32)
    layers = []
    for count, sigma in cells:
        lattice = rng.standard_normal((count, count), np.float32) * np.float32(sigma)
        layers.append(np.asarray(Image.fromarray(lattice).resize((size, size), Image.Resampling.BICUBIC)))
    for layer in layers[:3]:
        body += layer
    return body, layers[3]


@kernel
def _blur(image: NDArray[np.float64], radius: int) -> NDArray[np.float64]:
    """Return three box blurs in both directions with held edges: nearly a Gaussian of sigma ``radius``."""
    size = image.shape[0]
    now = image.copy()
    for _ in range(3):
        for axis in range(2):
            out = np.empty_like(now)
            for row in range(size):
                for col in range(size):
                    total = 0.0
                    for k in range(-radius, radius + 1):
                        if axis == 0:
                            total += now[min(max(row + k, 0), size - 1), col]
                        else:
                            total += now[row, min(max(col + k, 0), size - 1)]
                    out[row, col] = total / (2 * radius + 1)
            now = out
    return now


def veil(coarse: NDArray[np.float32], exposure: Exposure) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the local mean and the scatter of a picture, ``(COARSE, COARSE)`` each, before the display curve.

    Args:
        coarse: line integral of the thorax without findings, ``(COARSE, COARSE)``.
        exposure: how it was taken.
    """
    shown = 1.0 - np.exp(-exposure.curve * coarse.astype(np.float64))
    return _blur(shown, 3).astype(np.float32), _blur(shown, 9).astype(np.float32)


@kernel
def _sample(table: NDArray[np.float32], u: float, v: float) -> float:
    size = table.shape[0]
    x, y = min(max(u * size - 0.5, 0.0), size - 1.001), min(max(v * size - 0.5, 0.0), size - 1.001)
    i, j = int(x), int(y)
    fx, fy = x - i, y - j
    top = table[j, i] * (1.0 - fx) + table[j, i + 1] * fx
    low = table[j + 1, i] * (1.0 - fx) + table[j + 1, i + 1] * fx
    return float(top * (1.0 - fy) + low * fy)


@kernel
def develop(
    total: NDArray[np.float32],
    mean: NDArray[np.float32],
    scatter: NDArray[np.float32],
    grain: NDArray[np.float32],
    exposure: Exposure,
    out: NDArray[np.uint8],
) -> None:
    """Turn a line integral into grey values.

    Args:
        total: ``(size, size)``, body units.
        mean: local mean from :func:`veil`.
        scatter: scatter from :func:`veil`.
        grain: ``(size, size)`` standard normal numbers of the noise stream.
        exposure: how it was taken.
        out: ``(size, size)`` grey values 0 to 255; written.
    """
    size = total.shape[0]
    step = 1.0 / size
    curve = np.empty(4097, np.uint8)
    for k in range(4097):
        curve[k] = int(255.0 * (exposure.fog + (1.0 - exposure.fog) * (k / 4096.0) ** exposure.gamma) + 0.5)
    # A pixel of a smaller picture gathers more photons.
    per_pixel = exposure.photons * (512.0 / size) ** 2
    left, top, right, bottom = exposure.edges
    for row in range(size):
        v = (row + 0.5) * step
        for col in range(size):
            u = (col + 0.5) * step
            if u < left or v < top or u > 1.0 - right or v > 1.0 - bottom:
                out[row, col] = 0
                continue
            a = total[row, col]
            through = math.exp(-exposure.curve * a)
            counted = per_pixel * math.exp(-exposure.attenuation * a) + 30.0
            error = grain[row, col] / (math.sqrt(counted) * exposure.attenuation)
            z = 1.0 - through + exposure.curve * through * error
            z += exposure.sharpen * (z - _sample(mean, u, v)) * (1.0 if a > 0.05 else 0.0)
            z += exposure.scatter * (_sample(scatter, u, v) - z)
            z = min(max(z / exposure.white, 0.0), 1.0)
            out[row, col] = curve[int(4096.0 * z + 0.5)]
