"""Building the towers that come from ``transformers``, without a network and without drawing random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from medground.errors import ModelError
from medground.models.checkpoints import Layout, load_weights, read_weights, strip_module

Network = TypeVar("Network", bound=nn.Module)


def blank(build: Callable[[], Network]) -> Network:
    """Build a network with all parameters 0: its weights come from a checkpoint, so drawing them would be wasted."""
    from transformers.initialization import no_init_weights

    with no_init_weights():
        network = build()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    return network


def read_config(folder: Path, kind: str) -> Any:
    """Return the ``transformers`` configuration of a local folder.

    Args:
        folder: with ``config.json``.
        kind: class name of the configuration, such as ``BertConfig``.

    Raises:
        ModelError: the folder holds no such configuration.
    """
    import transformers

    try:
        return getattr(transformers, kind).from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ModelError(
            "no configuration of a text or image tower can be read from this folder",
            where=folder,
            expected=f"config.json of {kind.removesuffix('Config')}",
            got=str(error).splitlines()[0] if str(error) else type(error).__name__,
            fix="give the folder of the tower, downloaded beforehand",
        ) from error


def bert(config: Any, *, pooler: bool = False) -> nn.Module:
    """Return a blank BERT for a configuration."""
    from transformers import BertModel

    network: nn.Module = blank(lambda: BertModel(config, add_pooling_layer=pooler))
    return network


# What the published BERT files hold beside the encoder: the pooler, training heads, and an index buffer.
BERT_LAYOUT = Layout(
    rename=lambda name: _bert_name(strip_module(name)), ignore=("pooler.*", "cls.*", "*position_ids", "lm_head.*")
)


def _bert_name(name: str) -> str:
    name = name.removeprefix("bert.")
    # Files from before PyTorch's names call a norm's scale and shift gamma and beta.
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def load_bert(folder: Path) -> tuple[nn.Module, str]:
    """Return the BERT of a Hugging Face folder, without its pooler, and the hash of its weights."""
    network = bert(read_config(folder, "BertConfig"))
    weights = read_weights(folder, BERT_LAYOUT)
    load_weights(network, weights, ignore=BERT_LAYOUT.ignore)
    return network, weights.sha256


def bert_config_or(folder: Path, **published: Any) -> Any:
    """Return the configuration of a folder's BERT; the published one where the folder brings a tokenizer alone.

    Args:
        folder: of the tokenizer.
        published: what differs from BERT-base.
    """
    from transformers import BertConfig

    here = (folder / "config.json").is_file()
    return read_config(folder, "BertConfig") if here else BertConfig(**published)
