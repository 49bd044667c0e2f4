"""Any dual encoder of ``transformers``, by its folder: CLIP, SigLIP, ALIGN, BLIP, or two towers of one's own.

The folder says everything: ``config.json`` the architecture, ``preprocessor_config.json`` how pictures are prepared,
the tokenizer's files how texts are. The network's own forward gives image and text vectors; the map is the similarity
of every cell, taken through the tower's own pooling as if it were the whole picture, with the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from medground.errors import CheckpointError, ConfigError, MedgroundError
from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, Weights, compare, read_weights
from medground.models.common.adapter import Parts
from medground.models.common.dual import DualEncoder
from medground.models.common.preprocessor_config import read_preprocess
from medground.models.common.saliency import Tower, hugging_face_clip
from medground.models.common.text import Tokenizer
from medground.models.common.transformers import read_config
from medground.models.networks.hugging_face import KINDS, Clip

LAYOUT = Layout(ignore=("*position_ids",))


def load_network(folder: Path, ignore: Sequence[str] = ()) -> tuple[Any, Weights]:
    """Return the network of a folder and its weights, complete or not at all.

    The library knows former names of its parameters, so it places the tensors; what it could not place is an error.

    Raises:
        ConfigError: the folder holds a model of another kind, or a configuration that makes no network.
        CheckpointError: entries are missing, unexpected or mis-shaped.
    """
    import transformers

    weights = read_weights(folder, LAYOUT)
    try:
        config = read_config(folder, "AutoConfig")
        kind = KINDS.get(config.model_type)
        if kind is None:
            raise ConfigError(
                "this adapter does not know such a model",
                where=f"{folder / 'config.json'}: model_type",
                expected=", ".join(KINDS),
                got=config.model_type,
            )
        network, report = getattr(transformers, kind.network).from_pretrained(
            None,
            config=config,
            state_dict=dict(weights.tensors),
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            dtype="float32",
        )
    except MedgroundError:
        raise
    except Exception as error:  # the library fails in many ways on a configuration that makes no network
        raise ConfigError(
            "no network can be built from this configuration",
            where=folder / "config.json",
            got=f"{type(error).__name__}: {error}".splitlines()[0],
        ) from error
    _check_complete(network, weights, report, (*LAYOUT.ignore, *ignore))
    return network, weights


def _check_complete(network: Any, weights: Weights, report: Any, ignore: Sequence[str]) -> None:
    """Raise CheckpointError for what the library's loading report lists and no pattern allows."""
    needed = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    wrong = {name: tuple(stored) for name, stored, *_ in report["mismatched_keys"]}
    unexpected = {name: tuple(weights.tensors[name].shape) for name in report["unexpected_keys"]}
    missing = set(report["missing_keys"])
    present = {name: shape for name, shape in needed.items() if name not in missing}
    difference = compare(needed, present | unexpected | wrong, ignore)
    if difference:
        raise CheckpointError(
            f"the weights do not fit {type(network).__name__}",
            where=weights.source,
            got=difference,
            fix="check that weights and config.json belong together; `ignore: [PATTERN]` accepts entries knowingly",
        )


@dataclass(kw_only=True, eq=False, repr=False)
class HfDual(DualEncoder):
    """A dual encoder of transformers.

    Args:
        checkpoint: a local folder, as ``save_pretrained`` writes it: ``config.json`` with a ``model_type`` of ``clip``,
            ``siglip``, ``vision-text-dual-encoder``, ``align`` or ``blip`` (its retrieval head), weights,
            ``preprocessor_config.json``, tokenizer.
        tokenizer: folder of the tokenizer; by default the checkpoint's.
        saliency: ``similarity``; for ``clip`` folders also ``surgery``, ``gradcam`` and ``chefer``.
        logit_scale: multiply cosines by the stored temperature, and add the stored bias, before the link; by default
            for SigLIP alone, which was trained so.
        length: most tokens of a text; by default what the text tower has positions for.
    """

    name: ClassVar[str] = "hf_dual"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="A dual encoder of transformers",
        licence="that of your folder",
        obtain="a folder as save_pretrained writes it: config.json, weights, preprocessor_config.json, tokenizer",
        unverified="what your folder has been trained on is not known here",
    )

    checkpoint: Path
    tokenizer: Path | None = None
    template: str | list[str] = "a photo of a {label}"
    length: int | None = None

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`.

        Raises:
            ConfigError: the saliency rule takes a tower apart that this folder does not have.
        """
        network, weights = load_network(self.checkpoint, self.ignore or ())
        kind = network.config.model_type
        self._kind: Clip = KINDS[kind]
        self._resized: dict[str, Any] = {}
        preprocess = read_preprocess(self.checkpoint, tower_side(network.config.vision_config))
        if self.saliency != "similarity" and kind != "clip":
            raise ConfigError(
                f"this saliency rule takes a tower of CLIP apart, not of {kind}",
                where="saliency",
                got=self.saliency,
                fix="saliency: similarity",
            )
        if self.logit_scale is None:
            self.logit_scale = self._kind.scaled
        most = self.length or int(network.config.text_config.max_position_embeddings)
        tokenizer = Tokenizer(self.tokenizer or self.checkpoint, most, pad_to_length=self._kind.padded)
        if self.length is None:
            tokenizer.length = min(most, int(tokenizer.inner.model_max_length))
        options = [kind, network.config.to_diff_dict()]
        return Parts(network, weights, preprocess, self.words(), tokenizer, options)

    def takes_size(self, size: int) -> bool:
        """See :meth:`DualEncoder.takes_size`: position embeddings are interpolated, as the library does."""
        network: Any = self.network
        patch = getattr(network.config.vision_config, "patch_size", 1)
        if not self._kind.resizable or size % patch:
            return False
        self._resized = {"interpolate_pos_encoding": True}
        return True

    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.image_features`."""
        return self._kind.image(self.network, pixels, self._resized)

    def embed(self, texts: Sequence[str]) -> Tensor:
        """See :meth:`DualEncoder.embed`."""
        ids, mask = (part.to(self.runtime.device) for part in self.tokenise(texts))
        return self._kind.text(self.network, ids, mask)

    def scale(self) -> float:
        """See :meth:`DualEncoder.scale`."""
        return self._kind.scale(self.network)

    def bias(self) -> float:
        """See :meth:`DualEncoder.bias`; SigLIP's, which others lack."""
        return self._kind.bias(self.network)

    def tower(self) -> Tower:
        """See :meth:`DualEncoder.tower`."""
        return hugging_face_clip(self.network, **self._resized)


def tower_side(vision: Any) -> int | None:
    """Return the side in pixels that an image tower was made for; None: it takes any."""
    convolutional = vision.model_type == "align_vision_model"
    side: int | None = None if convolutional else getattr(vision, "image_size", None)
    return side
