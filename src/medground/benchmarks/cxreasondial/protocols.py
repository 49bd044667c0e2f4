"""The two protocols of the benchmark, in words."""

from __future__ import annotations

from collections.abc import Mapping

PROTOCOLS: Mapping[str, str] = {
    "dialogue": "every turn of a dialogue, judged against what was measured",
    "cxreasonbench": "one question a case and task, reasoned through in stages; choices are read by rules",
}


def protocols() -> Mapping[str, Mapping[str, str]]:
    """Return every protocol with what it is."""
    return {name: {"in words": words} for name, words in PROTOCOLS.items()}
