"""Why a checkpoint is none: the cause in one sentence, and what helps, before any reader meets a symptom."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from medground.errors import CheckpointError

_POINTER = b"version https://git-lfs.github.com/spec/"
_HUB = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_OTHER = {
    b"GGUF": "a GGUF file of quantised weights",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file (Keras)",
    b"\x1f\x8b": "a gzip archive",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"Rar!": "a RAR archive",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%PDF": "a PDF page",
}


def explain_absent(path: Path) -> None:
    """Raise CheckpointError where there is no file or folder, and say what its name may mean instead."""
    if path.exists():
        return
    *_, parent, name = ("", "", *path.parts)
    hub = f"{parent}/{name}"
    named_hub = not path.suffix and not path.parent.exists() and _HUB.fullmatch(hub)
    if named_hub:
        raise CheckpointError(
            "there is no such folder; its name is that of a model of the Hugging Face hub",
            where=path,
            expected="a folder on this machine: nothing is downloaded here",
            fix=f"hf download {hub} --local-dir {hub}, then give that folder",
        )
    beside = sorted(p.name for p in path.parent.iterdir())[:8] if path.parent.is_dir() else []
    raise CheckpointError(
        "there is no such checkpoint",
        where=path,
        got=f"beside it: {', '.join(beside)}" if beside else f"{path.parent} is not there either",
        fix="give the path of the weight file, or of the folder that holds it",
    )


def explain_other(path: Path) -> None:
    """Raise CheckpointError where the first bytes show that a file holds no weights at all."""
    with path.open("rb") as file:
        head = file.read(512)
    if not head:
        raise CheckpointError("the file is empty", where=path, fix="download it again")
    if head.startswith(_POINTER):
        size = re.search(rb"size (\d+)", head)
        raise CheckpointError(
            "this is a pointer of Git LFS, not the file itself",
            where=path,
            got=f"{path.stat().st_size} bytes that stand for {int(size[1]):,}" if size else None,
            fix="git lfs pull, in the folder that was cloned; or download the file itself",
        )
    text = head.lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise CheckpointError(
            "this is a web page that was saved under the name of a checkpoint",
            where=path,
            got=head[:60].decode("utf-8", "replace"),
            fix="download the file itself: the page may ask for a login, a licence or a click",
        )
    if text.startswith((b"{", b"[")) and path.suffix != ".json":
        fix = "download the file itself: this may be a server's answer"
        raise CheckpointError("this is JSON, not weights", where=path, fix=fix)
    for mark, what in _OTHER.items():
        if head.startswith(mark):
            raise CheckpointError(
                f"this is {what}, not a checkpoint of PyTorch",
                where=path,
                expected="safetensors, or a file of torch.save",
                fix="unpack it first" if "archive" in what else "take the weights that the publisher names for PyTorch",
            )


def explain_zip(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise CheckpointError where a zip is a parcel of files rather than what torch.save wrote."""
    names = [name for name in archive.namelist() if not name.startswith("__MACOSX") and not name.endswith("/")]
    if any(name.endswith(("data.pkl", "constants.pkl")) for name in names):
        return
    weights = [n for n in names if n.endswith((".bin", ".pt", ".pth", ".ckpt", ".safetensors", ".zip"))]
    raise CheckpointError(
        "this is a zip archive of files, not a checkpoint",
        where=path,
        got=", ".join(names[:6]) + (", ..." if len(names) > 6 else "") or "an empty archive",
        fix=f"unzip it, then give {weights[0]}" if weights else "unzip it; does it hold weights at all?",
    )


WRAPPERS = ("state_dict", "model_state_dict", "model", "net", "network", "module", "weights", "params")
"""Keys under which training scripts keep the weights, where the publisher's layout names none that is there."""

_SIGNS = {
    "visual.transformer.resblocks.": "CLIP as OpenAI and open_clip save it",
    "visual.trunk.": "an open_clip model with a timm tower, such as BiomedCLIP",
    "vision_model.encoder.layers.": "CLIP or SigLIP as Hugging Face saves it",
    "vision_model.model.": "MedCLIP",
    "res_features.": "MedKLIP, MAVL or KAD",
    "fusion_module.": "CARZero or PMC-CLIP",
    "multi_modal_vision_layers.": "M3AE",
    "model.mm_projector.": "LLaVA as its authors save it",
    "multi_modal_projector.": "LLaVA as Hugging Face saves it",
    "model.layers.": "a language model",
    "roberta.encoder.layer.": "RoBERTa",
    "encoder.layer.": "BERT or RoBERTa",
    "blocks.0.attn.qkv.": "a vision transformer as timm saves it",
    "layer1.0.conv1.": "a ResNet",
    "features.denseblock1.": "a DenseNet",
    "down_blocks.": "a diffusion model",
}


def nested_weights(content: Mapping[str, Any], is_tensor: Any, depth: int = 3) -> dict[str, int]:
    """Return dotted places inside a file's content -> how many tensors lie there."""
    found: dict[str, int] = {}
    for key, value in content.items():
        if isinstance(value, Mapping) and depth:
            if count := sum(map(is_tensor, value.values())):
                found[str(key)] = count
            inner = nested_weights(value, is_tensor, depth - 1)
            found |= {f"{key}.{place}": count for place, count in inner.items()}
    return found


def shared_prefix(needed: Collection[str], found: Collection[str]) -> str:
    """Return the prefix without which a file's entries have the names that a network needs; empty where none is.

    Example:
        >>> shared_prefix({"fc.weight", "fc.bias"}, {"net.fc.weight", "net.fc.bias"})
        'net.'
    """
    if not found or set(needed) & set(found):
        return ""
    first, prefix = min(found), ""
    while (head := first.removeprefix(prefix).partition("."))[1]:
        prefix += head[0] + "."
        if not all(name.startswith(prefix) for name in found):
            return ""
        if {name.removeprefix(prefix) for name in found} & set(needed):
            return prefix
    return ""


def likeness(names: Collection[str]) -> str | None:
    """Return what a file's entries look like."""
    for sign, what in _SIGNS.items():
        if any(name.startswith(sign) or f".{sign}" in name for name in names):
            return what
    return None


def mismatch(network: str, needed: Collection[str], found: Collection[str]) -> tuple[str, str]:
    """Return in words why entries do not fit a network, and what helps."""
    shared = len(set(needed) & set(found))
    look = likeness(found)
    if not shared:
        example = f"entries such as {min(found)}" if found else "no entries"
        what = f"the weights do not fit {network}, and none of their names does: {example}"
        what += f"; they look like {look}" if look else ""
        return what, "check the model's name in the run file, or take the file that its publisher names"
    share = f"{shared:,} of {len(set(needed)):,} entries have the right name"
    return (
        f"the weights do not fit {network}: {share}",
        "is it another size or version of the model? `ignore: [PATTERN]` accepts named entries knowingly",
    )
