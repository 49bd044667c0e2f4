"""Opens weight files of every kind as dictionaries of tensors; nothing in a file is executed."""

from __future__ import annotations

import hashlib
import pickle
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medground.errors import CheckpointError
from medground.models.common.explain import WRAPPERS, explain_absent, explain_other, explain_zip
from medground.tables.documents import read_json

if TYPE_CHECKING:
    from torch import Tensor

WEIGHT_FILES = (
    "model.safetensors",
    "pytorch_model.bin",
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.bin",
)


def read_source(source: Path, unused: Sequence[str] = ()) -> tuple[dict[str, Any], str]:
    """Return a file's or folder's content, nested where it is a training file, and its SHA-256.

    Args:
        source: a file, or a folder with one weight file or with shards and their index.
        unused: top-level keys that may hold pickled objects; they are dropped.

    Raises:
        CheckpointError: nothing is there, the file is damaged, or it holds objects where only weights may be.
    """
    files = _folder_files(source) if source.is_dir() else [source]
    content: dict[str, Any] = {}
    for path in files:
        content |= _read_file(path, unused)
    return content, _digest_of([file_sha256(path) for path in files])


def _read_file(path: Path, unused: Sequence[str]) -> dict[str, Any]:
    """Return a file's content as a dictionary of tensors, nested where it is a training file."""
    explain_absent(path)
    explain_other(path)
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        return _read_torch(path, unused)
    except CheckpointError:
        raise
    except Exception as error:  # damaged files make the readers fail in many ways
        raise CheckpointError(
            "the checkpoint cannot be read",
            where=path,
            expected="safetensors, torch.save or a TorchScript archive, undamaged",
            got=f"{type(error).__name__}: {error}",
        ) from error


def _read_torch(path: Path, unused: Sequence[str]) -> dict[str, Any]:
    import torch

    from medground.models.common.archive import check_sizes, check_sums

    zipped = zipfile.is_zipfile(path)
    if zipped:
        with zipfile.ZipFile(path) as archive:
            check_sizes(archive, path)
            explain_zip(archive, path)
            check_sums(archive, path)
    if zipped and any("/code/" in name for name in zipfile.ZipFile(path).namelist()):
        return _read_torchscript(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except pickle.UnpicklingError as error:
        if not zipped:
            raise CheckpointError(
                "the file holds objects beside weights, and was not opened",
                where=path,
                got=str(error).splitlines()[0],
                fix="save its weights alone: safetensors, or torch.save of the state dict",
            ) from error
        content = _read_guarded(path, unused)
    if not isinstance(content, Mapping):
        raise CheckpointError("not a dictionary of weights", where=path, got=type(content).__name__)
    return dict(content)


def _read_torchscript(path: Path) -> dict[str, Any]:
    from medground.models.common.archive import Archive, module_tensors

    archive = Archive(path)
    return {name: archive.tensor(record) for name, record in module_tensors(archive.tree).items()}


def _read_guarded(path: Path, unused: Sequence[str]) -> dict[str, Any]:
    """Read a file that holds objects: those under ``unused`` keys are dropped, and plain data beside usual ones."""
    from medground.models.common.archive import Archive, stand_ins

    archive = Archive(path)
    tree = archive.tree
    kept = {k: v for k, v in tree.items() if k not in unused} if isinstance(tree, Mapping) else tree
    if isinstance(kept, Mapping) and any(key in kept for key in WRAPPERS):
        kept = {k: v for k, v in kept.items() if k in WRAPPERS or not _is_plain(stand_ins(v))}
    if foreign := list(stand_ins(kept)):
        raise CheckpointError(
            "the file holds objects where only weights may be; nothing in it was run",
            where=path,
            expected=f"weights; objects only under {', '.join(unused)}" if unused else "weights only",
            got="; ".join(f"{place or 'top level'}: {origin}" for place, origin in sorted(foreign)[:10]),
            fix="do not trust this file; ask its publisher for the weights alone (safetensors)",
        )
    return {**archive.resolve(kept), **{key: None for key in tree if key not in kept}}


def _is_plain(found: Iterable[tuple[str, str]]) -> bool:
    """Return whether stand-ins are all of data that training scripts keep: numbers of numpy, parsed options."""
    origins = [origin for _, origin in found]
    return bool(origins) and all(origin.startswith(_PLAIN) for origin in origins)


_PLAIN = ("numpy.", "argparse.Namespace", "omegaconf.")


def _folder_files(folder: Path) -> list[Path]:
    """Return the weight files of a folder: one file, or the shards that its index names."""
    for name in WEIGHT_FILES:
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            shards = _shards(index)
            if outside := [s for s in shards if Path(s).name != s]:
                raise CheckpointError("an index names a file outside its folder", where=index, got=outside[0])
            return [folder / shard for shard in shards]
    raise CheckpointError(
        "the folder holds no weights", where=folder, expected=" or ".join(WEIGHT_FILES), got=_content(folder)
    )


def _shards(index: Path) -> list[str]:
    """Return the names of the files that an index names."""
    listed = read_json(index, largest=1 << 28, error=CheckpointError)
    named = listed.get("weight_map") if isinstance(listed, dict) else None
    if not isinstance(named, dict) or not all(isinstance(shard, str) for shard in named.values()):
        raise CheckpointError("an index names no shards", where=index, expected="weight_map: {entry: file}")
    return sorted(set(named.values()))


def _content(folder: Path) -> str:
    return ", ".join(sorted(path.name for path in folder.iterdir())[:12]) or "an empty folder"


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_of(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else hashlib.sha256("\n".join(parts).encode()).hexdigest()


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """Return a hash over names, types, shapes and values, for weights that come from no file."""
    import torch

    digest = hashlib.sha256()
    for name in sorted(tensors):
        flat = tensors[name].detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {flat.dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
