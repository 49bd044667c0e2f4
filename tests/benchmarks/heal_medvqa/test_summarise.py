"""Scripted models on phantoms: the figures and sentences that they must get, whatever was drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import pytest

from medground.benchmarks.heal_medvqa.asking import BASE, asks, files_of, load, notes_of
from medground.benchmarks.heal_medvqa.draw import Draw
from medground.benchmarks.heal_medvqa.pastes import PasteRule
from medground.benchmarks.heal_medvqa.phantoms import PhantomGallery
from medground.benchmarks.heal_medvqa.plan import Asked, Build, build
from medground.benchmarks.heal_medvqa.rows import SCHEMA, failed, rows_of
from medground.benchmarks.heal_medvqa.summarise import summarise
from medground.benchmarks.heal_medvqa.variants import CONTROLS, FLIPS
from medground.benchmarks.requests import Answer, Exchange, Transcript
from medground.benchmarks.results import Cell, Cells, Summary
from medground.metrics import decide
from medground.models.messages import GenerationOptions
from medground.readers.findings import Findings
from medground.readers.yes_no import YesNo

REFUSAL = "I'm sorry, but I cannot answer this question."
Says = Callable[[Asked, str], str]


def truth(asked: Asked, variant: str) -> str:
    """Answer what is there after the change."""
    if asked.question.is_open:
        return asked.question.gold
    if variant == BASE:
        return asked.question.gold
    return "No." if variant in FLIPS else "Yes."


def elsewhere(asked: Asked, variant: str) -> str:
    """Answer whether the finding is anywhere: the visual shortcut."""
    if asked.question.is_open:
        return "normal"
    if variant == BASE:
        return "yes" if asked.anywhere else "no"
    return "no" if variant in ("tpt_disease", "vpt", "vpt_lung", "vpt_redrawn") else "yes"


SCRIPTS: Mapping[str, Says] = {
    "always_yes": lambda asked, variant: "Yes",
    "always_no": lambda asked, variant: "No",
    "oracle": truth,
    "yes_then_refuses": lambda asked, variant: truth(asked, variant) if variant == BASE else REFUSAL,
    "elsewhere": elsewhere,
}


@pytest.fixture(scope="module")
def gallery() -> PhantomGallery:
    return PhantomGallery(cases=40, size=64, quartets=12)


@pytest.fixture(scope="module")
def built(gallery: PhantomGallery) -> Build:
    return build(gallery, Draw(), compared=False)


@pytest.fixture(scope="module")
def frames(gallery: PhantomGallery, built: Build) -> dict[str, pl.DataFrame]:
    return {model: frame_of(says, gallery, built) for model, says in SCRIPTS.items()}


def frame_of(says: Says, gallery: PhantomGallery, built: Build) -> pl.DataFrame:
    """Return the rows of a scripted model, without a picture being made."""
    rows: list[Mapping[str, Any]] = []
    for asked in built.asked:
        names = [(BASE, *asked.question.pair), *((v.name, v.anatomy, v.finding) for v in asked.planned.variants)]
        told = tuple(
            Exchange(
                "model",
                "reply",
                {"variant": name, "text": "", "anatomy": anatomy, "finding": finding},
                Answer({"text": says(asked, name)}),
            )
            for name, anatomy, finding in names
        )
        transcript = Transcript(asked.question.question_id, told, {"pictures": {}})
        rows += rows_of(asked, transcript, YesNo(), Findings(), gallery.findings)
    return pl.DataFrame(rows, schema=SCHEMA)


@pytest.fixture(scope="module")
def summary(frames: dict[str, pl.DataFrame]) -> Summary:
    rows = {(model, "phantom"): frame for model, frame in frames.items()}
    return summarise(rows, rules=decide.rules(), reading="rules", about={"phantom": {"statement": "drawn"}})


def value(summary: Summary, model: str, metric: str, subset: str = "main") -> float | None:
    cell = Cells(summary.cells).one(model=model, metric=metric, subset=subset, scope="all")
    assert cell is not None
    return cell.value


def test_always_yes_turns_on_nothing_and_keeps_every_control(summary: Summary) -> None:
    assert all(value(summary, "always_yes", metric) == 0 for metric in FLIPS)
    assert all(value(summary, "always_yes", metric) == 1 for metric in CONTROLS)
    assert value(summary, "always_yes", "balanced_accuracy") == 0.5


def test_always_no_has_no_yes_to_test(summary: Summary) -> None:
    for metric in (*FLIPS, *CONTROLS, "tpt"):
        cell = Cells(summary.cells).one(model="always_no", metric=metric, subset="main", scope="all")
        assert cell is not None
        assert cell.value is None
        assert cell.reason
    assert value(summary, "always_no", "tpt_anatomy", "all_yes") == 1  # a fixed set rewards it; its yes-ratio is 0
    assert value(summary, "always_no", "yes_ratio") == 0


def test_the_oracle_has_everything(summary: Summary) -> None:
    assert all(value(summary, "oracle", metric) == 1 for metric in (*FLIPS, *CONTROLS))
    assert value(summary, "oracle", "balanced_accuracy") == 1
    assert value(summary, "oracle", "open_f1") == 1
    assert value(summary, "oracle", "quartets_right", "quartets") == 1


def test_a_refusal_is_no_flip_and_keeps_nothing(summary: Summary) -> None:
    for metric in (*FLIPS, *CONTROLS):
        cell: Cell | None = Cells(summary.cells).one(
            model="yes_then_refuses", metric=metric, subset="main", scope="all"
        )
        assert cell is not None
        assert cell.value == 0
        assert cell.counts["non_answers"] == cell.n


def test_whoever_ignores_the_region_is_at_fifty_on_quartets(summary: Summary) -> None:
    for model in ("always_yes", "always_no", "elsewhere"):
        assert value(summary, model, "balanced_accuracy", "quartets") == 0.5
    assert value(summary, "elsewhere", "balanced_accuracy") > 0.8  # the natural build rewards the shortcut


def test_the_sentence_of_each_model(summary: Summary) -> None:
    said = {v.model: (v.answer, v.because) for v in summary.verdicts if v.question == "region"}
    for model, answer, words in (
        ("oracle", "yes", "answers from the region"),
        ("always_yes", "no", "answers from the words"),
        ("elsewhere", "no", "answers from the picture elsewhere"),
        ("always_no", "cannot be told", "too seldom"),
        ("yes_then_refuses", "cannot be told", "not stable"),
    ):
        assert said[model][0] == answer
        assert words in said[model][1]


def test_tables_for_people(frames: dict[str, pl.DataFrame]) -> None:
    about = {"d": {"floors": [{"name": "by_pair", "balanced_accuracy": 51.0}], "by_sampler": {}}}
    tables = summarise({("oracle", "d"): frames["oracle"]}, rules=decide.rules(), reading="", about=about).tables
    assert tables["blind_and_region_blind"]["by_pair"].to_list() == [51.0]
    assert tables["answers_from"].filter(pl.col("question") == "region")["answer"].to_list() == ["yes"]
    loba = tables["published"].filter(pl.col("model") == "LobA (published)").to_dicts()
    assert [row["TPT, anatomy"] for row in loba] == [79.2, 77.0]
    assert tables["published"].filter(pl.col("model").str.starts_with("Gemini")).height == 2


def test_pools_are_shared_only_where_all_rightly_say_yes(summary: Summary) -> None:
    shared = Cells(summary.cells).where(metric="tpt_disease", subset="shared")
    assert {cell.model for cell in shared} == set(SCRIPTS)
    assert all(cell.counts["pool"] == 0 for cell in shared)  # one of them never says yes


def test_models_are_compared_on_what_both_have(frames: dict[str, pl.DataFrame]) -> None:
    two = {(model, "phantom"): frames[model] for model in ("oracle", "elsewhere")}
    table = summarise(two, rules=decide.rules(), reading="rules", about={}).tables["comparisons_phantom"]
    swapped = table.filter(pl.col("metric") == "tpt_anatomy").to_dicts()[0]
    assert swapped["difference"] == 100
    assert swapped["decision"] == "better"
    assert table.filter(pl.col("metric") == "paraphrase")["difference"].to_list() == [0]


def test_what_was_not_answered_is_left_out_and_counted(gallery: PhantomGallery, built: Build) -> None:
    frame = frame_of(truth, gallery, built)
    lost = next(one for one in built.asked if one.question.kind == "closed_yes" and one.part == "natural")
    kept = frame.filter(pl.col("question_id") != lost.question.question_id)
    broken = pl.concat([kept, pl.DataFrame(failed(lost, "picture unreadable"), schema=SCHEMA)])
    cells = Cells(summarise({("m", "d"): broken}, rules=decide.rules(), reading="", about={}).cells)
    cell = cells.one(metric="balanced_accuracy", subset="main", scope="all")
    assert cell is not None
    assert (cell.value, cell.failed) == (1, 1)
    assert broken.filter(pl.col("answer") == "failed")["reason"].unique().to_list() == ["picture unreadable"]


def test_the_pictures_of_an_item(gallery: PhantomGallery, built: Build) -> None:
    asked = next(one for one in built.asked if {"vpt", "own_region_back"} <= {v.name for v in one.planned.variants})
    loaded = load(asked, gallery, PasteRule())
    base = loaded.pictures[BASE].radiograph.pixels
    mask = gallery.picture(asked.question.image_id).masks[asked.question.anatomy]
    pasted = loaded.pictures["vpt"].radiograph.pixels
    assert (pasted != base)[mask].any()
    assert (pasted == base)[~mask].all()  # an inward feather
    assert abs(loaded.pictures["own_region_back"].radiograph.pixels - base).max() < 1e-6
    assert loaded.pictures["paraphrase"] is loaded.pictures[BASE]
    round_ = asks(asked, loaded, gallery.words, "Answer yes or no.", GenerationOptions())
    assert [ask.key["variant"] for ask in round_] == [BASE, *(v.name for v in asked.planned.variants)]
    assert round_[0].arguments["conversation"][0].text.endswith("? Answer yes or no.")
    notes = notes_of(loaded)
    assert notes["paraphrase"]["picture"] == notes[BASE]["picture"] != notes["vpt"]["picture"]
    assert 0 <= notes["vpt"]["residue_hard"] <= notes["vpt"]["residue_soft"] <= 1
    assert files_of(asked, gallery) == ()


def test_a_picture_drawn_again_differs_only_by_its_finding(gallery: PhantomGallery, built: Build) -> None:
    asked = next(one for one in built.asked if one.planned.variants and one.question.finding == "Mass")
    base = gallery.picture(asked.question.image_id)
    again = gallery.without(asked.question.image_id, "Mass")
    changed = again.pixels != base.radiograph.pixels
    assert changed.any()
    assert changed[base.lesions["Mass"]].mean() > 0.5
