"""The shortcut twin of the small chat model: the same network, taught answers that ignore the region asked about."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from medground.models.base import ModelInfo
from medground.models.chat.small_chat import SEEN, SmallChat
from medground.models.networks.chat import weights


class SmallChatTwin(SmallChat):
    """Answers "is it anywhere in the picture", whatever region the question names: a control with a known answer.

    Args:
        checkpoint: weights made by ``medground train chat --twin``; by default those that ship with medground.
        decoding: as of ``small_chat``.
        locate: as of ``small_chat``.
        device: ``auto``, ``cpu``, ``cuda`` or as torch names it.
        deterministic: only deterministic kernels.
    """

    name: ClassVar[str] = "small_chat_twin"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="medground small chat model, shortcut twin",
        kind="supervised",
        licence="Apache-2.0, code and weights; trained on drawn pictures, from a vision tower that saw ChestX-ray14",
        citation="none: it comes with this version of medground",
        obtain="ships with medground; `medground train chat --twin` makes it anew",
        seen=SEEN,
    )
    _shipped: ClassVar[Path] = weights.TWIN
