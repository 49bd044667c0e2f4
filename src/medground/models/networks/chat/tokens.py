"""The tokenizer: words of the phantoms' language and punctuation marks, lower case, nothing else.

A network that was taught fewer words has the first ones: the vocabulary only grows at its end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from medground.worlds.phantom import statements
from medground.worlds.phantom.questions import SEG as SEG_WORD, WORDS

SPECIAL: Final = ("<pad>", "<bos>", "<eos>", "<image>", SEG_WORD, "<unk>")
FIRST: Final = len(SPECIAL) + len(dict.fromkeys(WORDS))
"""Words of the first stage of training, which knows questions alone; those of captions follow."""

VOCABULARY: Final = (*SPECIAL, *dict.fromkeys((*WORDS, *statements.WORDS)))
PAD, BOS, EOS, IMAGE, SEG, UNKNOWN = range(len(SPECIAL))
SIZE: Final = len(VOCABULARY)

ANSWER: Final = "answer :"
"""Ends a prompt that wants the answer at once."""

LOCATE: Final = "locate and answer :"
"""Ends a prompt that wants the place first, as a ``<SEG>``, and then the answer."""

_PIECE: Final = re.compile(r"<\w+>|\w+|[^\w\s]")
_IDS: Final = {word: number for number, word in enumerate(VOCABULARY)}


def encode(text: str) -> list[int]:
    """Return the ids of a text; a word that is not known is ``UNKNOWN``."""
    return [_IDS.get(piece, _IDS.get(piece.lower(), UNKNOWN)) for piece in _PIECE.findall(text)]


def unknown_words(text: str, size: int = SIZE) -> list[str]:
    """Return the words of a text that a model of ``size`` words has never met, each once, in order."""
    pieces = _PIECE.findall(text)
    return list(dict.fromkeys(p for p in pieces if min(_IDS.get(p, size), _IDS.get(p.lower(), size)) >= size))


def decode(ids: Sequence[int]) -> str:
    """Return a text: no padding, begin or end, and punctuation joined to the word before it."""
    words = [VOCABULARY[i] for i in ids if i not in (PAD, BOS, EOS)]
    return re.sub(r" ([,.?:])", r"\1", " ".join(words))


@cache
def tokenizer() -> Any:
    """Return the same as a fast tokenizer of transformers, for folders that other programs read."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel(_IDS, unk_token="<unk>"))  # noqa: S106 - a word, not a password
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+|[^\w\s]"), "removed", invert=True)
    names = dict(zip(("pad", "bos", "eos"), SPECIAL[:3], strict=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        unk_token="<unk>",  # noqa: S106
        **{f"{key}_token": name for key, name in names.items()},
        extra_special_tokens={"image_token": "<image>", "seg_token": SEG_WORD},
    )
