"""Loading a chat model of transformers from a local folder: network, processor or tokenizer, and what they can do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from medground.errors import CheckpointError, ConfigError, ModelError
from medground.models.common.weight_files import file_sha256

Quantization = Literal["8bit", "4bit"]
_HASHED = (".safetensors", ".gguf", ".bin", ".json", ".model", ".jinja", ".txt")


@dataclass(frozen=True)
class Loaded:
    """A chat model in memory.

    Attributes:
        network: in evaluation mode.
        processor: makes inputs of conversations; a tokenizer for a model without sight.
        tokenizer: of the processor, padding on the left.
        sees: whether it takes pictures.
        sha256: over the files of weights, configuration, tokenizer and template.
    """

    network: Any
    processor: Any
    tokenizer: Any
    sees: bool
    sha256: str


def load(
    checkpoint: Path,
    *,
    dtype: str,
    device: torch.device,
    chat_template: Path | None = None,
    trust_remote_code: bool = False,
    unsafe_weights: bool = False,
    attention: str = "sdpa",
    device_map: str | None = None,
    quantization: Quantization | None = None,
) -> Loaded:
    """Load a folder of Hugging Face, or a GGUF file; see :class:`medground.models.chat.hf_chat.HfChat`.

    Raises:
        CheckpointError: there is no such folder or file, or it cannot be loaded.
        ModelError: the model is no chat model, or has no chat template.
    """
    from transformers import AutoConfig

    folder, more = _source(checkpoint)
    common = {"local_files_only": True, "trust_remote_code": trust_remote_code}
    try:
        config = AutoConfig.from_pretrained(folder, **common, **more)
        sees = _sees(config)
        # Quantised weights cannot be moved afterwards: they are put where the inputs go.
        placed: Any = {"": str(device)} if quantization is not None and device_map is None else device_map
        network = _network(sees, folder, common, more, dtype, unsafe_weights, attention, placed, quantization)
        processor, tokenizer = _processor(sees, folder, common, more)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise CheckpointError(
            "the chat model cannot be loaded",
            where=checkpoint.name,
            expected="a folder with config.json, safetensors and a tokenizer, or a .gguf file",
            got=f"{type(error).__name__}: {error}".splitlines()[0][:300],
            fix=_fix(error, checkpoint),
        ) from error
    if device_map is None and quantization is None:
        network = network.to(device)
    if chat_template is not None:
        processor.chat_template = tokenizer.chat_template = chat_template.read_text(encoding="utf-8")
    if not getattr(processor, "chat_template", None):
        raise ModelError("the model brings no chat template", where=checkpoint.name, fix="chat_template: FILE.jinja")
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    parts = [checkpoint] if checkpoint.is_file() else _files(checkpoint)
    hashes = [f"{path.name}:{file_sha256(path)}" for path in [*parts, *([chat_template] if chat_template else [])]]
    return Loaded(
        network.eval().requires_grad_(False),
        processor,
        tokenizer,
        sees,
        hashlib.sha256("\n".join(hashes).encode()).hexdigest(),
    )


def _source(checkpoint: Path) -> tuple[Path, dict[str, Any]]:
    if checkpoint.suffix == ".gguf" and checkpoint.is_file():
        return checkpoint.parent, {"gguf_file": checkpoint.name}
    if not (checkpoint / "config.json").is_file():
        raise CheckpointError(
            "there is no chat model here",
            where=checkpoint.name,
            expected="a folder with config.json, or a .gguf file",
            got="a file" if checkpoint.is_file() else "a folder without it" if checkpoint.is_dir() else "nothing",
            fix="download it first: hf download ORG/NAME --local-dir FOLDER",
        )
    return checkpoint, {}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in _HASHED)


def _sees(config: Any) -> bool:
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    )

    automatic = getattr(config, "auto_map", None) or {}
    if config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES or "AutoModelForImageTextToText" in automatic:
        return True
    if config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or "AutoModelForCausalLM" in automatic:
        return False
    raise ModelError(
        "this model does not answer in words",
        got=config.model_type,
        expected="an image-text-to-text or a causal language model of transformers",
    )


def _network(
    sees: bool,
    folder: Path,
    common: dict[str, Any],
    more: dict[str, Any],
    dtype: str,
    unsafe_weights: bool,
    attention: str,
    device_map: str | Mapping[str, str] | None,
    quantization: Quantization | None,
) -> Any:
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    options: dict[str, Any] = {"dtype": getattr(torch, dtype), "attn_implementation": attention, **common, **more}
    if not more:
        options["use_safetensors"] = None if unsafe_weights else True
    if device_map is not None:
        options["device_map"] = device_map
    if quantization is not None:
        options["quantization_config"] = _quantization(quantization, dtype)
    kind = AutoModelForImageTextToText if sees else AutoModelForCausalLM
    return kind.from_pretrained(folder, **options)


def _quantization(quantization: Quantization, dtype: str) -> Any:
    from importlib.util import find_spec

    from transformers import BitsAndBytesConfig

    if find_spec("bitsandbytes") is None:
        raise ConfigError(
            "quantised loading needs the package bitsandbytes", where="quantization", fix="pip install bitsandbytes"
        )
    if quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=getattr(torch, dtype))


def _processor(sees: bool, folder: Path, common: dict[str, Any], more: dict[str, Any]) -> tuple[Any, Any]:
    from transformers import AutoProcessor, AutoTokenizer

    if not sees:
        tokenizer = AutoTokenizer.from_pretrained(folder, **common, **more)
        return tokenizer, tokenizer
    processor = AutoProcessor.from_pretrained(folder, **common)
    return processor, processor.tokenizer


def _fix(error: Exception, checkpoint: Path) -> str | None:
    text = str(error)
    if "gguf" in text.casefold() and isinstance(error, ImportError):
        return "pip install 'medground[gguf]'"
    if "accelerate" in text.casefold():
        return "pip install accelerate"
    if "trust_remote_code" in text:
        return "read the folder's Python files, then set trust_remote_code: true"
    if "safetensors" in text or (not list(checkpoint.glob("*.safetensors")) and list(checkpoint.glob("*.bin"))):
        return "convert the weights to safetensors, or set unsafe_weights: true for files that you trust"
    return None


def stop_ids(loaded: Loaded) -> Sequence[int]:
    """Return the ids that end a reply."""
    stated = loaded.network.generation_config.eos_token_id
    ids = stated if isinstance(stated, list) else [] if stated is None else [stated]
    own = loaded.tokenizer.eos_token_id
    return sorted({*ids, *([] if own is None else [own])})
