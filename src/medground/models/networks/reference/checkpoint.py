"""The weight file: float16 tensors, and beside them a card that says what they have seen and what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

from medground.errors import CheckpointError
from medground.models.checkpoints import load_weights, read_weights
from medground.models.networks.reference.network import ReferenceNet

SHIPPED: Final = Path(__file__).parent / "weights" / "reference.safetensors"
"""The weights that come with the package; ``MODEL_CARD.md`` beside them is the card for people."""


class Loaded(NamedTuple):
    """A network in evaluation mode, its card, and the SHA-256 of its file."""

    network: ReferenceNet
    card: Mapping[str, Any]
    sha256: str


def save(network: ReferenceNet, card: Mapping[str, Any], path: Path) -> None:
    """Write a network as float16 with its card; the same network and card give the same bytes."""
    from safetensors.torch import save_file

    tensors = {
        name: (tensor.half() if tensor.is_floating_point() else tensor).contiguous(
            memory_format=torch.contiguous_format
        )
        for name, tensor in network.state_dict().items()
    }
    save_file(tensors, path, metadata={"card": json.dumps(card, sort_keys=True)})
    path.chmod(0o644)  # safetensors writes files that only their owner may read


def load(path: Path = SHIPPED) -> Loaded:
    """Read a network.

    Raises:
        CheckpointError: the file is missing or damaged, does not fit the network, or has no card.
    """
    from safetensors import safe_open

    weights = read_weights(path)
    network = ReferenceNet()
    load_weights(network, weights)
    try:
        with safe_open(path, framework="pt") as file:
            card = json.loads((file.metadata() or {})["card"])
        card["seen_patients"].items()
    except Exception as error:  # a file of another format fails here in many ways
        raise CheckpointError(
            "the weights have no card",
            where=path,
            expected="a file written by `medground train reference`",
            got=f"{type(error).__name__}: {error}",
        ) from error
    return Loaded(network.eval().requires_grad_(False), card, weights.sha256)
