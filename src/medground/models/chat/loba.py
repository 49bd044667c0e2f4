"""LobA (localise before answer, arXiv 2505.00744): locate the region, highlight it, contrast with the plain answer.

The model first says where the region is (``<SEG>``, a mask), then answers with the region's tokens favoured in the
vision tower and in the language model, contrasted with the answer without highlighting. Every part is a switch,
so that the published ablation is five entries of a run file.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from medground.errors import ConfigError
from medground.identity import fingerprint_of
from medground.models.base import ModelInfo
from medground.models.chat.answering import Answering
from medground.models.chat.backbone import Backbone
from medground.models.chat.decoding.base import Decoding, Plain
from medground.models.chat.decoding.loba import LobaDecoding
from medground.models.chat.engine import Engine
from medground.models.chat.small_chat import SEEN
from medground.models.common.highlight import Reading
from medground.models.common.runtime import Precision, Runtime
from medground.models.networks.chat import weights


class Loba(Answering):
    """Answers after locating, with the located region highlighted.

    Args:
        backbone: ``small_chat``, ``small_chat_twin``, a weight file of ``medground train chat``, or a folder written by
            ``medground train loba``.
        grounded: whether the answer begins with its place, as trained; else the place serves the highlighting alone.
        vision: beta of the vision tower; 0: no bias there.
        language: beta of the language model; 0: no bias there.
        reading: what beta is: ``additive`` (odds rise by e to the beta) or ``weight`` (odds rise by beta).
        alpha: weight of the contrast with the pass without highlighting; 0: none.
        device: ``auto``, ``cpu``, ``cuda`` or as torch names it.
        dtype: ``float32``, or ``bfloat16`` or ``float16`` by autocast on a GPU.
        deterministic: only deterministic kernels.

    Example:
        The ablation of the paper, in a run file::

            - {name: loba, grounded: false, vision: 0, language: 0, label: backbone}
            - {name: loba, vision: 0, language: 0, label: + grounded text}
            - {name: loba, language: 0, alpha: 0, label: + vision bias}
            - {name: loba, alpha: 0, label: + language bias}
            - {name: loba, label: + contrast}
    """

    name: ClassVar[str] = "loba"
    capabilities: ClassVar[frozenset[str]] = frozenset(
        {"reply", "choose", "pictures", "attention_bias", "look", "masks"}
    )
    info: ClassVar[ModelInfo] = ModelInfo(
        title="LobA on a LLaVA-type backbone",
        kind="supervised",
        licence="Apache-2.0 with the small chat model; otherwise that of the backbone",
        citation="Localizing Before Answering, IJCAI 2025, arXiv 2505.00744; re-implemented, no code is public",
        obtain="works on the small chat model that ships; `medground train loba` prepares a LLaVA folder of yours",
        seen={dataset: f"on the small chat model: {part}" for dataset, part in SEEN.items()},
    )

    def __init__(
        self,
        *,
        backbone: str = "small_chat",
        grounded: bool = True,
        vision: float = 2.0,
        language: float = 2.0,
        reading: Reading = "additive",
        alpha: float = 0.3,
        device: str = "auto",
        dtype: Precision = "float32",
        deterministic: bool = False,
    ) -> None:
        self._runtime = Runtime(device, dtype, deterministic=deterministic)
        self.backbone, self._sha256 = _backbone(backbone, self._runtime)
        decoding: Decoding = Plain()
        if vision or language:
            decoding = LobaDecoding(vision=vision, language=language, reading=reading, alpha=alpha)
        self.engine = Engine(self.backbone, decoding, grounded=grounded)

    def fingerprint(self) -> str:
        """A hash over weights, switches and precision; the record names the reading of beta."""
        return fingerprint_of(self.name, self._sha256, self.engine.record(), self._runtime.describe())


def _backbone(named: str, runtime: Runtime) -> tuple[Backbone, str]:
    """Return a backbone and the hash of its weights."""
    from medground.models.networks.chat.backbone import SmallBackbone

    path = {"small_chat": weights.SHIPPED, "small_chat_twin": weights.TWIN}.get(named, Path(named).expanduser())
    if path.is_file():
        small = SmallBackbone(path, runtime.device)
        return small, small.sha256
    if path.is_dir():
        from medground.models.networks.loba.backbone import LlavaBackbone

        large = LlavaBackbone(path, runtime.device)
        return large, large.sha256
    raise ConfigError(
        "there is no such backbone",
        where="backbone",
        expected="small_chat, small_chat_twin, a weight file, or a folder written by `medground train loba`",
        got=named,
    )
