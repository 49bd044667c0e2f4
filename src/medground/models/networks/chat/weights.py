"""The weight files: float16 tensors with a card that says what they have seen and what was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from medground.errors import CheckpointError
from medground.models.checkpoints import load_weights, read_weights
from medground.models.networks.chat.network import ChatNet
from medground.models.networks.chat.tokens import FIRST, VOCABULARY

FOLDER: Final = Path(__file__).parent / "weights"
SHIPPED: Final = FOLDER / "small_chat.safetensors"
TWIN: Final = FOLDER / "small_chat_twin.safetensors"


class Loaded(NamedTuple):
    """A network in evaluation mode, its card, and the SHA-256 of its file."""

    network: ChatNet
    card: Mapping[str, Any]
    sha256: str


def save(network: ChatNet, card: Mapping[str, Any], path: Path) -> None:
    """Write a network as float16 with its card; the same network and card give the same bytes."""
    import torch
    from safetensors.torch import save_file

    tensors = {
        name: (tensor.half() if tensor.is_floating_point() else tensor).contiguous(
            memory_format=torch.contiguous_format
        )
        for name, tensor in network.state_dict().items()
    }
    about = {**card, "vocabulary": list(VOCABULARY[: network.size])}
    save_file(tensors, path, metadata={"card": json.dumps(about, sort_keys=True)})
    path.chmod(0o644)  # safetensors writes files that only their owner may read


def load(path: Path = SHIPPED) -> Loaded:
    """Read a network.

    Raises:
        CheckpointError: the file is missing or damaged, does not fit the network, has no card, or speaks other words.
    """
    from safetensors import safe_open

    weights = read_weights(path)
    try:
        with safe_open(path, framework="pt") as file:
            card = json.loads((file.metadata() or {})["card"])
        vocabulary = list(card["vocabulary"])
    except Exception as error:  # a file of another format fails here in many ways
        raise CheckpointError(
            "the weights have no card",
            where=path,
            expected="a file written by `medground train chat`",
            got=f"{type(error).__name__}: {error}",
        ) from error
    if vocabulary != list(VOCABULARY[: len(vocabulary)]) or len(vocabulary) < FIRST:
        raise CheckpointError(
            "the weights were trained with other words",
            where=path,
            expected=f"{len(VOCABULARY)} words, {' '.join(VOCABULARY[:8])} ...",
            got=f"{len(vocabulary)} words, {' '.join(map(str, vocabulary[:8]))} ...",
            fix="train them anew: medground train chat",
        )
    network = ChatNet(len(vocabulary))
    load_weights(network, weights)
    return Loaded(network.eval().requires_grad_(False), card, weights.sha256)
