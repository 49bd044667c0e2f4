"""What a model made of another one has seen, and what is known of it without building it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from medground.benchmarks.base import Entry
from medground.benchmarks.cards import card_of, facts_of
from medground.config import parse_run_file
from medground.models.base import ModelInfo, seen_patients_of
from medground.models.chat.chat_grounder import ChatGrounder
from medground.models.controls.blind import Blind
from medground.registry import Part
from medground.session import assemble


class Trained:
    name: ClassVar[str] = "trained"
    info: ClassVar[ModelInfo] = ModelInfo(
        "Trained", kind="supervised", seen={"nih_chestxray14": "labels"}, unverified="made up"
    )
    capabilities: ClassVar[frozenset[str]] = frozenset({"ground", "pictures"})

    def __init__(self, ignore: tuple[str, ...] = ()) -> None:
        raise AssertionError("a card needs no instance")

    def seen_patients(self, dataset: str) -> frozenset[str]:
        return frozenset({"7"} if dataset == "nih_chestxray14" else ())


def test_a_model_made_of_another_has_seen_what_that_one_has() -> None:
    inner = Part("trained", Trained, {})
    blind = card_of(Blind, {"of": inner})
    assert (blind.kind, blind.seen, blind.unverified) == ("baseline", {"nih_chestxray14": "labels"}, "made up")
    assert blind.title == "Trained (blind twin)"
    grounder = card_of(ChatGrounder, {"of": inner})
    assert (grounder.kind, grounder.seen) == ("supervised", {"nih_chestxray14": "labels"})
    twice = card_of(Blind, {"of": Part("chat_grounder", ChatGrounder, {"of": inner})})
    assert (twice.kind, twice.seen) == ("baseline", {"nih_chestxray14": "labels"})


def test_weights_that_may_be_missing_are_told_of_the_model_inside_too() -> None:
    inner = Part("trained", Trained, {"ignore": ["*head*"]})
    facts = facts_of("b", Entry("b", "blind", Blind, {"of": inner}).card)
    assert "ignore: *head*" in (facts.unverified or "")
    assert "made up" in (facts.unverified or "")


def test_patients_that_the_model_inside_was_trained_on_are_its_wrappers_too() -> None:
    trained = Trained.__new__(Trained)
    wrapper = Blind.__new__(Blind)
    wrapper.of = trained
    assert seen_patients_of(wrapper, "nih_chestxray14") == {"7"}
    assert seen_patients_of(wrapper, "vindr_cxr") == frozenset()
    assert seen_patients_of(object(), "nih_chestxray14") == frozenset()


def test_a_blind_twin_takes_over_what_the_run_file_declares_of_its_model(tiny_manifest: Path) -> None:
    def models(**twin: Any) -> list[Entry]:
        declared = {"kind": "supervised", "seen": {"manifest": "boxes"}}
        data = {
            "name": "r",
            "benchmark": {"name": "xbench", "datasets": [{"name": "manifest", "root": str(tiny_manifest)}]},
            "models": [
                {"name": "baseline_random"} | declared,
                {"name": "blind", "of": {"name": "baseline_random"}} | twin,
            ],
        }
        return list(assemble(parse_run_file(data)).models)

    model, twin = models()
    assert (model.card.kind, model.card.seen) == ("supervised", {"manifest": "boxes"})
    assert (twin.card.kind, twin.card.seen) == ("baseline", {"manifest": "boxes"})
    assert models(seen={"manifest": "images"})[1].card.seen == {"manifest": "images"}
