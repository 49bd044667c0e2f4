"""A causal language model from a path: the caption that it finds likelier is taken for the true one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medground.benchmarks.medical_checklist.audit.base import Floats, Pair
from medground.errors import ModelError


class CausalLanguageModel:
    """Log-likelihood of captions under a model in the Hugging Face layout; nothing is fetched.

    Args:
        path: folder with weights and tokenizer.
        per_token: mean instead of sum.
        batch_size: captions at a time.
        device: where it runs.

    Raises:
        ModelError: the folder is missing or holds no causal language model.
    """

    def __init__(self, path: Path, *, per_token: bool = False, batch_size: int = 16, device: str = "cpu") -> None:
        self.name = f"causal_lm:{path.name}" + ("_per_token" if per_token else "")
        self.per_token, self.batch_size, self.device = per_token, batch_size, device
        self._tokenizer, self._model = _load(path, device)

    def scores(self, pairs: Sequence[Pair]) -> Floats:
        """Return the log-likelihood of the true and of the false caption, (N, 2)."""
        texts = sorted({t for p in pairs for t in (p.positive, p.negative)}, key=lambda t: (len(t), t))
        held: dict[str, float] = {}
        for first in range(0, len(texts), self.batch_size):
            block = texts[first : first + self.batch_size]
            held.update(zip(block, self._likelihoods(block), strict=True))
        return np.array([[held[p.positive], held[p.negative]] for p in pairs], dtype=float).reshape(-1, 2)

    def _likelihoods(self, texts: Sequence[str]) -> list[float]:
        import torch

        start = self._tokenizer.bos_token_id
        if start is None:
            start = self._tokenizer.eos_token_id
        rows = [[start, *self._tokenizer(t, add_special_tokens=False)["input_ids"]] for t in texts]
        length = max(len(r) for r in rows)
        ids = torch.tensor([r + [start] * (length - len(r)) for r in rows], device=self.device)
        mask = torch.tensor([[1] * len(r) + [0] * (length - len(r)) for r in rows], device=self.device)
        with torch.inference_mode():
            logits = self._model(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
        log = torch.log_softmax(logits, dim=-1).gather(-1, ids[:, 1:, None])[..., 0] * mask[:, 1:]
        total = log.double().sum(dim=1)
        if self.per_token:
            total = total / mask[:, 1:].sum(dim=1).clamp(min=1)
        return [float(v) for v in total]


def _load(path: Path, device: str) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not path.is_dir():
        raise ModelError("a language model is not there", where=path, fix="give the folder of a downloaded model")
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(path, local_files_only=True, use_safetensors=True)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError("a folder holds no causal language model", where=path, got=str(error).split("\n")[0]) from None
    return tokenizer, model.to(device).eval()
