"""Building the towers that come from ``transformers``, without a network and without drawing random weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from medground.errors import ModelError

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
    """Return a blank BERT for a configuration (or for keywords of one)."""
    from transformers import BertConfig, BertModel

    config = BertConfig(**config) if isinstance(config, dict) else config
    return blank(lambda: BertModel(config, add_pooling_layer=pooler))
