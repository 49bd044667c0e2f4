"""How a run file changes what an encoder's pictures become: colours, size, framing, equalisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from medground.errors import ConfigError
from medground.models.common.inputs import Preprocess, Resample, Rule


@dataclass(kw_only=True, eq=False, repr=False)
class PictureOptions:
    """Fields that take the place of a model's own preprocessing; left alone, they change nothing.

    Args:
        size: side in pixels of what the network sees, where its image tower can be given another than its own.
        mean: subtracted from pixels in [0, 1]; one number, or one a channel.
        std: that pixels are divided by then; one number, or one a channel.
        crop: shortest side and centre crop (true), or the whole picture squashed (false); short for ``frame``.
        frame: how a picture becomes a square: ``squash``; ``squash_then_crop``, of which the centre; ``center_crop``;
            ``pad_square``; ``fit_then_crop``: longest side, padding, centre; ``fit_then_resize``: longest side,
            padding, and the normalised square resized.
        resize_to: side in pixels before a crop or the second resize; of the shortest side for ``center_crop``, of the
            longest for the two ``fit_...`` frames.
        resample: filter of the resize on 8-bit pixels: ``bilinear``, ``bicubic``, ``lanczos`` or ``area``.
        equalise: equalise the histogram first.
    """

    size: int | None = None
    mean: float | list[float] | None = None
    std: float | list[float] | None = None
    crop: bool | None = None
    frame: Rule | None = None
    resize_to: int | None = None
    resample: Resample | None = None
    equalise: bool | None = None

    def adjusted(self, preprocess: Preprocess) -> Preprocess:
        """Return a preprocessing with these options in the place of its own.

        Raises:
            ConfigError: an option has no sense beside the others or out of its range.
        """
        if self.crop is not None and self.frame is not None:
            raise ConfigError("crop and frame both say how a picture becomes a square", where="crop", fix="frame alone")
        if self.size is not None and self.size < 1:
            raise ConfigError("a picture has at least one pixel", where="size", got=self.size)
        changes: dict[str, Any] = {
            "size": self.size,
            "mean": _channels(self.mean, "mean"),
            "std": _channels(self.std, "std"),
            "rule": self.frame or (None if self.crop is None else "center_crop" if self.crop else "squash"),
            "resize_to": self.resize_to,
            "resample": self.resample,
            "equalise": self.equalise,
        }
        changed = replace(preprocess, **{key: value for key, value in changes.items() if value is not None})
        staged = changed.rule in ("squash_then_crop", "fit_then_crop", "fit_then_resize")
        if (staged or changed.resize_to) and changed.resize_to < changed.size:
            raise ConfigError(
                f"the frame {changed.rule} first brings a side to resize_to",
                where="resize_to",
                expected=f"at least {changed.size}",
                got=changed.resize_to,
            )
        if self.resize_to is not None and changed.rule in ("squash", "pad_square"):
            raise ConfigError(f"the frame {changed.rule} has no use for it", where="resize_to", got=self.resize_to)
        return changed


def _channels(value: float | list[float] | None, where: str) -> tuple[float, float, float] | None:
    """Return three numbers, from one or three."""
    if value is None:
        return None
    numbers = tuple(value) if isinstance(value, list) else (value,) * 3
    if len(numbers) != 3 or not all(abs(number) < 1e6 for number in numbers):
        raise ConfigError("pixels have three channels", where=where, expected="one number, or three", got=value)
    if where == "std" and min(numbers) <= 0:
        raise ConfigError("pixels are divided by it", where=where, expected="above 0", got=value)
    return numbers[0], numbers[1], numbers[2]
