"""From a raw reply to plain sentences: markup, JSON, text for the judge, and what was taken back, are gone."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

#: Of longer replies the two ends are read: no answer about a few measurements needs more, and filler goes in the middle.
LONGEST = 20_000

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.S | re.I)
_BLOCK = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<!--.*?(?:-->|\Z)", re.S | re.I)
_TAG = re.compile(r"</?[a-z!][^<>]{0,200}>", re.I)
_RULE_ROW = re.compile(r"^\s*\|?[\s:|-]{3,}\|?\s*$", re.M)
_LIST = re.compile(r"^\s*(?:[-*\u2022\u2013]\s+|\(?\d{1,2}[.)]\s+|#{1,6}\s*|>\s+)", re.M)
_INLINE_LIST = re.compile(r"(?<=[\s:])\(?\d\)\s+(?=[A-Za-z0-9])")
_EMPHASIS = re.compile(r"[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}|```\w*")
_VERDICT_KEYS = frozenset(("coverage", "faithfulness", "grade", "score", "verdict", "rating"))
_TO_JUDGE = re.compile(
    r"\b(?:evaluator|grader|judges?\b|(?<!would )(?<!i'd )grad(?:e|ed|ing)\b|scor(?:e|ing)\b|mark this|faithful|coverage\s*[=:]|verdict\s*(?:is|[=:])?\s*[\"']?[01]\b|rubric|"
    r"ignore (?:all |the |any )?(?:previous|above|prior|instructions)|instructions? (?:above|below)|system\s*:|"
    r"(?:the )?(?:correct|expected) (?:rating|grade)|end of (?:reply|candidate)|as a judge|assistant answered)",
    re.I,
)
_BACK = re.compile(
    r"(?:\bcorrection\s*[:,-]|\blet me correct\b[^.]*?[:.,]|\bon (?:reflection|second thoughts?)\b|\bscratch that\b[,.:]?|"
    r"\bno,? wait\b[,.:]?|\bi (?:must )?correct myself\b[,.:]?|\bi misspoke\b[,.:]?|\bmore correctly\b[,:]?)",
    re.I,
)
_WORDS = {
    0x2265: " >= ",
    0x2264: " <= ",
    0xB0: " degrees ",
    0xBA: " degrees ",
    0xD7: " x ",
    0x2192: " so ",
    0x21D2: " so ",
    0xB1: " +- ",
    0x2019: "'",
    0x2018: "'",
    0x201C: '"',
    0x201D: '"',
    0x2013: "-",
    0x2014: " - ",
    0x2212: "-",
    0xA0: " ",
}


def clean(reply: str) -> str:
    r"""Return the reply as plain text, one sentence or table row a line at most.

    >>> clean("<b>CTR</b>: 0.57 {\"coverage\": 1}").strip()
    'CTR : 0.57'
    """
    if len(reply) > LONGEST:
        reply = reply[: LONGEST // 2] + "\n" + reply[-LONGEST // 2 :]
    text = reply.translate(_WORDS)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if "->" in text:
        text = text.replace("-->", " so ").replace("->", " so ") if "<!--" not in text else text
    if "</think" in text and "<think" not in text:
        text = text.rsplit("</think", 1)[1].partition(">")[2]
    if "<" in text:
        text = _TAG.sub(" ", _BLOCK.sub(" ", _THINK.sub(" ", text)))
    if "{" in text:
        text = _unwrap(text)
    if "|" in text:
        text = re.sub(r"\s*\|\s*$|^\s*\|\s*", "", _RULE_ROW.sub("", text), flags=re.M).replace("|", ": ")
    text = _LIST.sub("", text)
    if ")" in text:
        text = _INLINE_LIST.sub("\n", text)
    if "*" in text or "`" in text or "_" in text:
        text = _EMPHASIS.sub("", text)
    if _TO_JUDGE.search(text):
        text = "\n".join(line for line in re.split(r"(?<=[.!?])\s+|\n", text) if not _TO_JUDGE.search(line))
    return _after_correction(text)


def _after_correction(text: str) -> str:
    ends = [match.end() for match in _BACK.finditer(text)]
    return text[ends[-1] :] if ends else text


def _unwrap(text: str) -> str:
    """Replace balanced JSON objects: verdicts by nothing, others by ``key: value.`` sentences."""
    out, at = [], 0
    decoder = json.JSONDecoder()
    for _ in range(8):
        start = text.find("{", at)
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            out.append(text[at:start])
            at = start + 1
            continue
        out += [text[at:start], "\n" + _sentences(value)]
        at = end
    return "".join((*out, text[at:]))


def _sentences(value: Any, key: str = "", depth: int = 0) -> str:
    if depth > 6:
        return ""
    if isinstance(value, dict):
        if _VERDICT_KEYS & {str(name).lower() for name in value}:
            return ""
        return "".join(_sentences(part, str(name).replace("_", " "), depth + 1) for name, part in value.items())
    if isinstance(value, list):
        return "".join(_sentences(part, key, depth + 1) for part in value)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    return f"{key}: {value}.\n" if value is not None else ""
