"""The text side: which words stand for a finding, and how they become token ids.

Prompts are data. A model has a template and, where its authors used other words than the dataset's, a table of names;
``prompts`` in the run file replaces both, finding by finding.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from medground.errors import ConfigError, ModelError

VOCABULARY_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model")
_SENTENCEPIECE = ("tokenizer.model", "spiece.model")
PromptTable = Mapping[str, str | Sequence[str]]


def plain(finding: str) -> str:
    """Return a finding's name as words of a sentence: no underscores, lower case but for acronyms.

    >>> plain("Pleural_Thickening"), plain("COVID-19"), plain("Enlarged PA")
    ('pleural thickening', 'COVID-19', 'enlarged PA')
    """
    words = finding.replace("_", " ").split()
    return " ".join(w if len(w) > 1 and w.upper() == w else w.lower() for w in words)


def key_of(finding: str) -> str:
    """Return the form in which findings are looked up: case and underscores make no difference."""
    return finding.replace("_", " ").casefold()


class Prompts:
    """Which texts stand for a finding.

    Args:
        template: with ``{label}`` for the finding's name as words; or several, whose embeddings are averaged.
        given: the user's texts by finding; one text, or several whose scores or embeddings are averaged.
        names: the authors' words by finding, in place of its name.
    """

    def __init__(
        self, template: str | Sequence[str], given: PromptTable | None = None, names: Mapping[str, str] | None = None
    ) -> None:
        self.templates = (template,) if isinstance(template, str) else tuple(template)
        if not self.templates or not all("{label}" in one for one in self.templates):
            raise ConfigError("a template has no place for the finding", got=template, expected="... {label} ...")
        self._given = {key_of(f): (t,) if isinstance(t, str) else tuple(t) for f, t in (given or {}).items()}
        self._names = {key_of(finding): name for finding, name in (names or {}).items()}
        if empty := [finding for finding, texts in self._given.items() if not texts or not all(texts)]:
            raise ConfigError("a prompt is empty", where=f"prompts: {empty[0]}")

    def given(self, finding: str) -> tuple[str, ...]:
        """Return the user's own texts for a finding, if there are any."""
        return self._given.get(key_of(finding), ())

    def of(self, finding: str) -> tuple[str, ...]:
        """Return the texts of a finding; several when the user gave several, or several templates."""
        words = self._names.get(key_of(finding), plain(finding))
        return self.given(finding) or tuple(one.replace("{label}", words) for one in self.templates)

    def describe(self) -> dict[str, Any]:
        """Return template and tables as JSON-like data, for fingerprints and reports."""
        template = self.templates[0] if len(self.templates) == 1 else self.templates
        return {"template": template, "given": self._given, "names": self._names}


def read_book(path: Path) -> dict[str, Any]:
    """Read the authors' book of descriptions, a JSON object whose order counts.

    Raises:
        ModelError: the file is missing or is no JSON object.
    """
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError("a book of descriptions cannot be read", where=path, got=str(error)) from error
    if not isinstance(book, dict) or not book:
        raise ModelError("a book of descriptions is a JSON object", where=path, got=type(book).__name__)
    return book


class Tokenizer:
    """A Hugging Face tokenizer from a local folder; nothing is downloaded and no remote code is run.

    Args:
        folder: with the tokenizer's files.
        length: most tokens of a text, special ones included.
        pad_to_length: pad every text to ``length`` rather than to the longest of its batch.

    Raises:
        ModelError: the folder holds no tokenizer.
    """

    def __init__(self, folder: Path, length: int, *, pad_to_length: bool = False) -> None:
        from transformers import AutoTokenizer

        self.length = length
        self._padding = "max_length" if pad_to_length else "longest"
        # Without these the library quietly makes an empty tokenizer out of a model's config.json.
        if not any((folder / name).is_file() for name in VOCABULARY_FILES):
            raise _no_tokenizer(folder, ", ".join(sorted(p.name for p in folder.glob("*"))) or "nothing")
        _need_sentencepiece(folder)
        try:
            self.inner: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # the library fails in many ways on an incomplete folder
            raise _no_tokenizer(folder, f"{type(error).__name__}: {error}".splitlines()[0]) from error

    def __call__(self, texts: Sequence[str]) -> tuple[Any, Any]:
        """Return token ids and attention mask of a batch, ``(N, T)`` int64 tensors."""
        batch = self.inner(
            list(texts), padding=self._padding, truncation=True, max_length=self.length, return_tensors="pt"
        )
        return batch["input_ids"], batch["attention_mask"]

    def alike(self, texts: Sequence[str]) -> list[int]:
        """Return for each text the place of the first one with the same tokens, once cut at the limit.

        Texts that differ beyond the limit alone are one text to the model.
        """
        first: dict[tuple[int, ...], int] = {}
        ids = self.inner(list(texts), truncation=True, max_length=self.length)["input_ids"]
        return [first.setdefault(tuple(own), place) for place, own in enumerate(ids)]

    def describe(self) -> dict[str, Any]:
        """Return what the ids depend on, for fingerprints: a hash of vocabulary and rules, length, padding."""
        backend = getattr(self.inner, "backend_tokenizer", None)
        rules = json.dumps(sorted(self.inner.get_vocab().items())) if backend is None else backend.to_str()
        digest = hashlib.sha256(rules.encode()).hexdigest()
        return {"rules": digest, "length": self.length, "padding": self._padding}


def _need_sentencepiece(folder: Path) -> None:
    """Raise ModelError where a tokenizer is a file of SentencePiece alone, and what reads it is not installed."""
    if (folder / "tokenizer.json").is_file() or not any((folder / name).is_file() for name in _SENTENCEPIECE):
        return
    if absent := [name for name in ("sentencepiece", "google.protobuf") if not _installed(name)]:
        raise ModelError(
            "this tokenizer is a file of SentencePiece, which needs packages that are not installed",
            where=folder,
            got=f"no {' and no '.join(absent)}",
            fix="pip install 'medground[sentencepiece]'",
        )


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is not there
        return False


def _no_tokenizer(folder: Path, got: str) -> ModelError:
    return ModelError(
        "no tokenizer can be read from this folder",
        where=folder,
        expected="a folder with one of " + ", ".join(VOCABULARY_FILES),
        got=got,
        fix="give the folder of the text encoder, downloaded beforehand",
    )


def sentences(text: str) -> list[str]:
    """Split at full stops, and at numbers of a list such as ``2.``; blank pieces are left out."""
    return [piece.strip() for piece in re.split(r"[0-9]+\.|\.", text.replace("\n", " ")) if piece.strip()]
