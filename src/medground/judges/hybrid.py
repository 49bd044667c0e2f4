"""Rules first; a chat model for what the rules cannot read, and for a fixed sample that audits them."""

from __future__ import annotations

import hashlib
from typing import ClassVar

from medground.judges.base import Ruling
from medground.judges.evidence import Evidence
from medground.judges.llm import Llm


class Hybrid:
    """The evidence judge, with a model behind it.

    Args:
        audit: share of turns that the model judges too, chosen by the turn's identity and not by its content.
        max_new_tokens: of a model's verdict.
        seed: of the sample.
    """

    name: ClassVar[str] = "hybrid"

    def __init__(self, audit: float = 0.1, max_new_tokens: int = 512, seed: int = 0) -> None:
        self.rules, self.llm = Evidence(), Llm(max_new_tokens, seed)
        self.audit, self.seed = audit, seed

    def fingerprint(self) -> str:
        """Both judges and the sample."""
        return f"hybrid/{self.rules.fingerprint()}+{self.llm.fingerprint()}/{self.audit}"

    def asks(self, turn: str, ruling: Ruling) -> bool:
        """Whether the model is asked about a turn, named by its dialogue and place."""
        digest = hashlib.sha256(f"{self.seed}\0{turn}".encode()).digest()
        return ruling.status == "abstained" or int.from_bytes(digest[:8], "big") < self.audit * 2**64

    def decide(self, rules: Ruling, model: Ruling) -> Ruling:
        """The rules' verdict where they have one, else the model's."""
        return model if rules.status == "abstained" else rules
