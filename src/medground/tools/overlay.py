"""A picture with what a tool measured drawn on it: visual evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from medground.errors import DataError
from medground.tools.anatomy import Anatomy, Mask
from medground.tools.base import Mark, Measurement
from medground.tools.rules import RULES

#: What was measured in orange, what it was held against in blue: told apart without red and green.
COLOURS = {"value": (255, 159, 28), "reference": (86, 180, 233)}
FILL = 0.25


def overlay(
    pixels: NDArray[np.generic], measurement: Measurement, anatomy: Anatomy, *, captioned: bool = True
) -> NDArray[np.uint8]:
    """Draw the masks, points and lines of a measurement, and its value, on a picture.

    Args:
        pixels: (height, width), grey; integers of 0 to 255 or floats of 0 to 1.
        measurement: what to draw; a dropped case shows its reason.
        anatomy: the masks that the marks name, on the same pixels.
        captioned: whether the value is written at the foot of the picture, where no page says it beside it.

    Returns:
        (height, width, 3), 0 to 255.

    Raises:
        DataError: the picture has not the size of the anatomy.
    """
    if pixels.shape != (anatomy.height, anatomy.width):
        raise DataError(
            "the picture and its anatomy differ in size",
            expected=f"{anatomy.width} x {anatomy.height}",
            got=f"{pixels.shape[-1]} x {pixels.shape[0]}",
        )
    grey = np.clip(pixels if pixels.dtype == np.uint8 else np.asarray(pixels, dtype=np.float64) * 255, 0, 255)
    canvas = np.repeat(grey.astype(np.uint8)[:, :, None], 3, axis=2)
    for mark in measurement.marks:
        if mark.kind == "mask" and mark.name in anatomy.masks:
            _shade(canvas, anatomy.masks[mark.name], COLOURS[mark.role])
    picture = Image.fromarray(canvas)
    draw = ImageDraw.Draw(picture)
    size = max(1, round(max(anatomy.width, anatomy.height) / 256))
    for mark in measurement.marks:
        _draw(draw, mark, size)
    if captioned:
        _write(draw, caption(measurement), anatomy, size)
    return np.asarray(picture)


def caption(measurement: Measurement) -> str:
    """One line for the foot of the picture: the task, its value and its conclusion.

    >>> caption(Measurement("cardiomegaly", "dropped", "lung_width_ratio"))
    'cardiomegaly: not measured (lung_width_ratio)'
    """
    task = measurement.task.replace("_", " ")
    if measurement.status == "dropped":
        return f"{task}: not measured ({measurement.reason})"
    conclusion = measurement.decision.conclusion or "no label"
    return f"{task}: {printed(measurement)}, {conclusion}"


def printed(measurement: Measurement) -> str:
    """The value as the task rounds it, with its unit where that needs saying."""
    value = measurement.value if measurement.rounded is None else measurement.rounded
    decimals = RULES[measurement.task].decimals
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {part:.3f}" for name, part in value.items())
    if isinstance(value, list):
        return f"right {value[0]:.2f}, left {value[1]:.2f}"
    if isinstance(value, str):
        return value
    if measurement.task == "carina_angle":
        return f"{value} degrees"
    return f"rib {value}" if measurement.task == "inspiration" else f"{value:.{2 if decimals is None else decimals}f}"


def _shade(canvas: NDArray[np.uint8], mask: Mask, colour: tuple[int, int, int]) -> None:
    """Tint a mask and draw its border, in place."""
    inner = mask.copy()
    inner[1:-1, 1:-1] &= mask[:-2, 1:-1] & mask[2:, 1:-1] & mask[1:-1, :-2] & mask[1:-1, 2:]
    tint = np.array(colour, dtype=np.float64)
    canvas[mask] = (canvas[mask] * (1 - FILL) + tint * FILL).astype(np.uint8)
    canvas[mask & ~inner] = colour


def _draw(draw: ImageDraw.ImageDraw, mark: Mark, size: int) -> None:
    colour = COLOURS[mark.role]
    if mark.kind == "line":
        draw.line([tuple(point) for point in mark.points], fill=colour, width=size)
    elif mark.kind == "point":
        x, y = mark.points[0]
        radius = 2 * size
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour, outline=(0, 0, 0))


def _write(draw: ImageDraw.ImageDraw, text: str, anatomy: Anatomy, size: int) -> None:
    font = ImageFont.load_default(size=9 * size)
    left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
    y = anatomy.height - (bottom - top) - 4 * size
    draw.rectangle((0, y - 2 * size, right - left + 6 * size, anatomy.height), fill=(0, 0, 0))
    draw.text((3 * size, y - top), text, fill=(255, 255, 255), font=font)
