"""Loads weights safely and completely.

``read_weights`` opens a file or folder and returns tensors by their published names; nothing in the file is executed.
``load_weights`` puts them into a network and stops at the first doubt: a missing, unexpected or mis-shaped entry is an
error that lists them all with the nearest names, and the network is left as it was. What may be ignored is named by the
adapter (:class:`Layout`) or by the user (``ignore``), and is reported.

Files: safetensors, ``torch.save`` (read with ``weights_only=True``), TorchScript archives (OpenAI's CLIP; the tensors
are read, the code is not), Lightning and other training dictionaries, and sharded Hugging Face folders.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medground.errors import CheckpointError, nearest
from medground.models.common.explain import WRAPPERS, mismatch, nested_weights, shared_prefix
from medground.models.common.weight_files import read_source, tensors_sha256

if TYPE_CHECKING:
    from torch import Tensor, nn

log = logging.getLogger("medground")

_NAMES_WITH_NEAREST = 20  # nearest names are searched for this many entries; a foreign file has thousands


LIGHTNING = (
    "hyper_parameters",
    "callbacks",
    "loops",
    "optimizer_states",
    "lr_schedulers",
    "datamodule_hyper_parameters",
)
"""What Lightning's checkpoints hold beside the weights."""


def strip_module(name: str) -> str:
    """Remove the ``module.`` that data-parallel training puts before every name."""
    while name.startswith("module."):
        name = name.removeprefix("module.")
    return name


@dataclass(frozen=True)
class Layout:
    """How the publisher's file holds the weights.

    Attributes:
        under: top-level key that holds them, where the file is a training dictionary; a bare file is accepted too.
        groups: top-level keys that each hold a part; entry names become ``group.name``.
        unused: top-level keys that may hold pickled objects: they become inert stand-ins and are dropped.
        rename: entry name in the file -> published name (prefixes removed).
        ignore: patterns of published entries that the network does not use (``fnmatch``).
    """

    under: str | None = None
    groups: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    rename: Callable[[str], str] = strip_module
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class Weights:
    """Tensors by published name.

    Attributes:
        tensors: published name -> tensor.
        sha256: hash of the file's bytes (several files: of their hashes in name order).
        source: where they come from, for messages.
        dropped: top-level entries that were left out.
    """

    tensors: Mapping[str, Tensor]
    sha256: str
    source: str
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """Which published entry fills one parameter of a network.

    Attributes:
        name: the published entry.
        part: which of ``parts`` equal pieces along the first axis (stacked query, key, value).
        parts: how many pieces the entry holds.
        transpose: whether the entry is stored transposed.
    """

    name: str
    part: int = 0
    parts: int = 1
    transpose: bool = False

    def published_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the published entry for a parameter of ``shape``."""
        if self.transpose:
            return shape[::-1]
        return (shape[0] * self.parts, *shape[1:]) if self.parts > 1 else shape

    def take(self, tensor: Tensor) -> Tensor:
        """Return the parameter's value out of the published entry."""
        if self.transpose:
            return tensor.t()
        return tensor.chunk(self.parts)[self.part] if self.parts > 1 else tensor


@dataclass(frozen=True)
class KeyDifference:
    """How a file's entries differ from what a network needs.

    Attributes:
        missing: needed entries that the file lacks, with their shapes.
        unexpected: entries that nothing needs, with their shapes.
        wrong_shape: entry -> (needed shape, shape in the file).
        ignored: entries of these three kinds that an allow-list names.
    """

    missing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    unexpected: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    wrong_shape: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.wrong_shape)

    def __len__(self) -> int:
        return len(self.missing) + len(self.unexpected) + len(self.wrong_shape)

    def __str__(self) -> str:
        lines = [
            *_listed("missing", self.missing, self.unexpected),
            *_listed("unexpected", self.unexpected, self.missing),
            *(
                f"wrong shape {name}: {needed} needed, {got} in the file"
                for name, (needed, got) in self.wrong_shape.items()
            ),
        ]
        return "\n    ".join(["", *lines])


def _listed(kind: str, names: Mapping[str, tuple[int, ...]], others: Mapping[str, tuple[int, ...]]) -> list[str]:
    lines = []
    for count, (name, shape) in enumerate(names.items()):
        # A renamed entry keeps its shape, so names of that shape are asked first.
        alike = [other for other, found in others.items() if found == shape]
        near = (nearest(name, alike) or nearest(name, others)) if count < _NAMES_WITH_NEAREST else None
        lines.append(f"{kind} {name} {shape}" + (f"  nearest: {near}" if near else ""))
    return lines


def compare(
    needed: Mapping[str, Sequence[int]], found: Mapping[str, Sequence[int]], ignore: Iterable[str] = ()
) -> KeyDifference:
    """Compare entry names and shapes.

    Args:
        needed: what the network needs, name -> shape.
        found: what the file holds, name -> shape.
        ignore: patterns of entries that may be missing, unexpected or mis-shaped.

    Returns:
        The difference; falsy when there is none but what ``ignore`` names.
    """
    patterns = tuple(ignore)
    wanted, got = ({name: tuple(shape) for name, shape in side.items()} for side in (needed, found))
    allowed = {name for name in {*wanted, *got} if any(fnmatchcase(name, pattern) for pattern in patterns)}
    missing = {name: shape for name, shape in wanted.items() if name not in got}
    unexpected = {name: shape for name, shape in got.items() if name not in wanted}
    wrong = {name: (shape, got[name]) for name, shape in wanted.items() if got.get(name, shape) != shape}
    return KeyDifference(
        {name: shape for name, shape in missing.items() if name not in allowed},
        {name: shape for name, shape in unexpected.items() if name not in allowed},
        {name: shapes for name, shapes in wrong.items() if name not in allowed},
        tuple(name for name in (*missing, *unexpected, *wrong) if name in allowed),
    )


def load_weights(
    network: nn.Module,
    weights: Weights,
    *,
    published: Callable[[str], str | Source] = Source,
    ignore: Iterable[str] = (),
) -> KeyDifference:
    """Fill a network from weights; nothing is changed unless everything fits.

    Args:
        network: every parameter and buffer of its state dict is needed, batch-norm counters excepted.
        weights: from :func:`read_weights`.
        published: name in the network -> published entry.
        ignore: patterns of published entries that may be missing, unexpected or mis-shaped.

    Returns:
        The difference, with what was ignored.

    Raises:
        CheckpointError: entries are missing, unexpected or mis-shaped; all are listed.
    """
    import torch

    sources = _sources(network, published)
    weights = _without_prefix(weights, sources)
    difference = _difference(network, weights, published, ignore)
    if difference:
        what, fix = mismatch(type(network).__name__, {s.name for s in sources.values()}, weights.tensors)
        raise CheckpointError(
            f"{what}; {len(difference.missing)} missing, {len(difference.unexpected)} unexpected, "
            f"{len(difference.wrong_shape)} of a wrong shape",
            where=weights.source,
            got=difference,
            fix=fix,
        )
    skipped = set(difference.ignored)
    _warn_empty(network, {name for name, s in sources.items() if s.name in skipped})
    with torch.no_grad():
        for name, target in network.state_dict().items():
            if sources[name].name not in skipped:
                target.copy_(sources[name].take(weights.tensors[sources[name].name]))
    return difference


def _without_prefix(weights: Weights, sources: Mapping[str, Source]) -> Weights:
    """Return weights without a prefix that training put before every entry (Lightning's ``model.``, ``net.``)."""
    prefix = shared_prefix({s.name for s in sources.values()}, weights.tensors)
    if not prefix:
        return weights
    return replace(weights, tensors={name.removeprefix(prefix): value for name, value in weights.tensors.items()})


def _warn_empty(network: nn.Module, left: set[str]) -> None:
    """Log how many parameters keep what they were made with because a pattern allows it; buffers are no weights."""
    if empty := [name for name, _ in network.named_parameters() if name in left]:
        log.warning(
            "%d of %d weights of %s are not in the file and keep their starting values: %s",
            *(len(empty), len(list(network.parameters())), type(network).__name__),
            ", ".join(empty[:3]) + (", ..." if len(empty) > 3 else ""),
        )


def closest(
    candidates: Mapping[str, nn.Module],
    weights: Weights,
    *,
    published: Callable[[str], str | Source] = Source,
    ignore: Iterable[str] = (),
) -> str:
    """Return the key of the network that a file fits best: how the published variants of a model are told apart.

    Args:
        candidates: variant -> network, on the meta device where they are large.
        weights: from :func:`read_weights`.
        published: see :func:`load_weights`.
        ignore: see :func:`load_weights`.
    """
    patterns = tuple(ignore)

    def distance(key: str) -> int:
        known = _without_prefix(weights, _sources(candidates[key], published))
        return len(_difference(candidates[key], known, published, patterns))

    return min(candidates, key=distance)


def _sources(network: nn.Module, published: Callable[[str], str | Source]) -> dict[str, Source]:
    named = {name: published(name) for name in network.state_dict()}
    return {name: s if isinstance(s, Source) else Source(s) for name, s in named.items()}


def _difference(
    network: nn.Module, weights: Weights, published: Callable[[str], str | Source], ignore: Iterable[str]
) -> KeyDifference:
    sources = _sources(network, published)
    state = network.state_dict()
    needed = {s.name: s.published_shape(tuple(state[name].shape)) for name, s in sources.items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.tensors.items()}
    # Batch-norm counters play no part in evaluation, and files of some ages lack them.
    return compare(needed, found, (*ignore, "*num_batches_tracked"))


def read_weights(source: Path | Mapping[str, Any], layout: Layout | None = None) -> Weights:
    """Read weights from a file, a Hugging Face folder, or a dictionary laid out like a file.

    Raises:
        CheckpointError: nothing is there, the file is damaged, or it holds objects where only weights may be.
    """
    layout = layout or Layout()
    if isinstance(source, Mapping):
        tensors, dropped = _select(source, layout, "a dictionary")
        return Weights(tensors, tensors_sha256(tensors), "a dictionary", dropped)
    content, digest = read_source(source, layout.unused)
    tensors, dropped = _select(content, layout, str(source))
    return Weights(tensors, digest, str(source), dropped)


def _wrapper(content: Mapping[str, Any]) -> str | None:
    """Return the one usual key that holds tensors, or None."""
    import torch

    def holds(value: Any) -> bool:
        return isinstance(value, Mapping) and bool(value) and all(isinstance(v, torch.Tensor) for v in value.values())

    return next((key for key in WRAPPERS if holds(content.get(key))), None)


def _select(content: Mapping[str, Any], layout: Layout, place: str) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Return the tensors of a file's content by published name, and the top-level keys that were left out."""
    import torch

    flat: dict[str, Any] = {}
    if layout.groups and all(isinstance(content.get(group), Mapping) for group in layout.groups):
        chosen = set(layout.groups)
        for group in layout.groups:
            flat |= {f"{group}.{strip_module(key)}": value for key, value in content[group].items()}
    elif layout.under and isinstance(content.get(layout.under), Mapping):
        chosen = {layout.under}
        flat = dict(content[layout.under])
    else:
        flat = {key: value for key, value in content.items() if isinstance(value, torch.Tensor)}
        chosen = set(flat)
        wrapper = None if flat or layout.groups else _wrapper(content)
        if wrapper is not None:
            flat, chosen = dict(content[wrapper]), {wrapper}
    renamed: dict[str, Tensor] = {}
    for key, value in flat.items():
        if not isinstance(value, torch.Tensor):
            raise CheckpointError("an entry is no tensor", where=f"{place}: {key}", got=type(value).__name__)
        name = layout.rename(key)
        if name in renamed:
            raise CheckpointError("two entries have one name", where=f"{place}: {name}", got=key)
        renamed[name] = value
    if not renamed:
        wanted = ", ".join(layout.groups or filter(None, [layout.under])) or "tensors"
        inner = nested_weights(content, lambda value: isinstance(value, torch.Tensor))
        most = max(inner, key=lambda key: inner[key], default=None)
        raise CheckpointError(
            "the file holds no weights where they are looked for",
            where=place,
            expected=f"{wanted}, or one of {', '.join(WRAPPERS)}",
            got=", ".join(map(str, list(content)[:20])) or "nothing",
            fix=f"save the part {most} alone: it holds {inner[most]} tensors" if most else None,
        )
    return renamed, tuple(key for key in content if key not in chosen)
