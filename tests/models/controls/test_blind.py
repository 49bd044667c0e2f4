"""Blind twins see nothing of the case; answers without a model; the majority's answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from medground import registry
from medground.datasets.base import Case
from medground.errors import ConfigError, ModelError
from medground.imaging.reading import Radiograph
from medground.metrics.majority import majority_by_key
from medground.models.base import MatchScores, Message, ModelInfo, Reply, capabilities_of
from medground.models.controls.blind import Blind
from medground.models.controls.reading_only import ReadingOnly


class Sees:
    """Answers with what it was shown."""

    name: ClassVar[str] = "sees"
    info: ClassVar[ModelInfo] = ModelInfo("Sees")
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply", "choose", "match", "pictures"})
    answers: ClassVar[tuple[str, ...]] = ("yes", "no")

    def __init__(self) -> None:
        self.shown: list[np.ndarray] = []

    def fingerprint(self) -> str:
        return "sees"

    def match(self, images: Any, captions: Any) -> MatchScores:
        self.shown += [image.pixels for image in images]
        return MatchScores(
            np.array([[float(i.pixels.mean())] * len(c) for i, c in zip(images, captions, strict=True)]), 1, "itm"
        )

    def reply(self, conversations: Any, options: Any = None) -> list[Reply]:
        self.shown += [image.pixels for one in conversations for turn in one for image in turn.images]
        return [Reply(str(sum(len(turn.images) for turn in one))) for one in conversations]

    def choose(self, conversations: Any, choices: Any) -> list[np.ndarray]:
        self.reply(conversations)
        return [np.zeros(len(own)) for own in choices]

    def logits(self, images: Any, questions: Any) -> np.ndarray:
        return np.asarray(images).reshape(len(images), -1)[:, :2]


def picture(case: str, seed: int = 0) -> Radiograph:
    pixels = np.random.default_rng(seed).random((8, 12), dtype=np.float32)
    return Radiograph(pixels, case_id=case, patient_id=case)


@pytest.mark.parametrize("kind", ["grey", "noise"])
def test_nothing_of_the_picture_is_shown(kind: Any) -> None:
    model = Blind(of=Sees(), picture=kind)
    first = model.match([picture("a", 1), picture("b", 2)], [["x"], ["y"]])
    second = model.match([picture("a", 3), picture("b", 4)], [["x"], ["y"]])
    assert np.array_equal(first.raw, second.raw)
    assert all(pixels.shape == (8, 12) for pixels in model.of.shown)
    assert np.array_equal(model.of.shown[0], model.of.shown[1]) == (kind == "grey")
    alone = Blind(of=Sees(), picture=kind).match([picture("b", 9)], [["y"]])
    assert alone.raw[0] == first.raw[1]


@pytest.mark.parametrize("kind", ["grey", "noise"])
def test_colours_are_taken_away_with_the_rest(kind: Any) -> None:
    coloured = replace(picture("a"), colour=np.full((8, 12, 3), 7, np.uint8))
    assert Blind(of=Sees(), picture=kind)._shown(coloured).colour is None


def test_a_chat_model_is_asked_without_pictures() -> None:
    model = Blind(of=Sees())
    turns = [Message("user", "?", (picture("a"), picture("b")))]
    assert model.picture == "none"
    assert model.reply([turns])[0].text == "0"
    assert model.choose([turns], [["a", "b"]])[0].shape == (2,)
    assert model.of.shown == []
    assert Blind(of=Sees(), picture="grey").reply([turns])[0].text == "2"
    assert capabilities_of(model) == Sees.capabilities


def test_another_case_is_of_another_patient_in_the_same_view(tmp_path: Path) -> None:
    cases = []
    for number in range(6):
        file = tmp_path / f"{number}.png"
        Image.fromarray(np.full((8, 12), 40 * number, np.uint8)).save(file)
        cases.append(Case(f"c{number}", file, f"p{number // 2}", "PA" if number < 4 else "AP"))
    model = Blind(of=Sees(), picture="other_case")
    model.fit(cases, ["x"])
    for number in range(4):
        level = float(model.match([picture(f"c{number}")], [["x"]]).raw[0, 0]) * 255
        shown = round(level / 40)
        assert shown // 2 != number // 2
        assert shown < 4
    # The only patient of her view has no other case.
    with pytest.raises(ModelError, match="no other case"):
        model.match([picture("c4")], [["x"]])


def test_answers_from_fixed_lists_see_grey() -> None:
    images = np.random.default_rng(0).random((3, 4, 4, 3))
    assert np.all(Blind(of=Sees(), picture="grey").logits(images, ["a"] * 3) == 0.5)
    noise = Blind(of=Sees(), picture="noise").logits(images, ["a"] * 3)
    assert len(np.unique(noise)) == 6
    with pytest.raises(ModelError, match="no other case"):
        Blind(of=Sees(), picture="other_case").logits(images, ["a"] * 3)


def test_a_run_file_names_the_model_inside() -> None:
    given = {"of": {"name": "baseline_random", "seed": 3}, "picture": "grey"}
    model = registry.create("model", "blind", given)
    assert model.of.seed == 3
    other = registry.create("model", "blind", {"of": {"name": "baseline_random", "seed": 4}, "picture": "grey"})
    assert other.fingerprint() != model.fingerprint()
    with pytest.raises(ConfigError, match="no parameter 'sed'"):
        registry.create("model", "blind", {"of": {"name": "baseline_random", "sed": 3}})
    with pytest.raises(ConfigError, match="this parameter is a model"):
        registry.create("model", "blind", {"of": {"seed": 3}})
    with pytest.raises(ModelError, match="without a picture"):
        registry.create("model", "blind", {"of": {"name": "baseline_random"}, "picture": "none"})


def test_a_run_knows_whose_twin_a_model_is(run_file: Path, tmp_path: Path) -> None:
    from medground.config import read_run_file
    from medground.session import assemble, run_file as carry_out

    text = run_file.read_text().replace(
        "{name: baseline_random}]", "{name: baseline_random}, {name: blind, of: {name: baseline_random}}]"
    )
    run_file.write_text(text)
    session = assemble(read_run_file(run_file))
    assert [entry.twin_of for entry in session.models] == [None, None, "baseline_random"]
    folder = carry_out(run_file, out=tmp_path / "runs").folder
    (kept,) = (folder / "readings").glob("*/summary.json")
    summary = json.loads(kept.read_text())
    assert {facts["label"]: facts["twin_of"] for facts in summary["models"]}["blind"] == "baseline_random"
    told = [note for note in summary["notes"] if note.startswith("baseline_random:")]
    # Noise seeded by case is the same noise for the twin: looking adds nothing, on 9 patients nothing can be claimed.
    assert any("AUC" in note and "+0.0" in note and "against its blind twin blind" in note for note in told)
    assert all("cannot be told" in note or "adds nothing" in note for note in told)
    assert (kept.parent / "tables" / "looking.csv").is_file()


def test_reading_only_never_looks() -> None:
    turns = [Message("user", "?", (picture("a"),))]
    assert ReadingOnly(rule="no").reply([turns])[0].text == "No"
    for rule, taken in (("yes", 0), ("no", 1), ("longest", 2)):
        (scores,) = ReadingOnly(rule=rule).choose([turns], [["Yes", "No", "neither of them"]])
        assert int(scores.argmax()) == taken
        assert np.exp(scores).sum() == pytest.approx(1)


def test_the_majority_is_that_of_other_patients() -> None:
    keys = ["a"] * 40 + ["b"] * 40
    answers = [True] * 30 + [False] * 10 + [False] * 40
    clusters = [f"p{i}" for i in range(80)]
    told = majority_by_key(answers, keys, clusters)
    assert np.all(told[:40] == 1)
    assert np.all(told[40:] == 0)
    # One patient alone with a key: nobody else says anything.
    assert majority_by_key([True, True], ["a", "a"], ["p", "p"])[0] == 0.5
