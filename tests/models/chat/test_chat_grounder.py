"""A chat model as a grounder: yes against no, boxes in three formats, and what cannot be read."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from medground.errors import ConfigError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Grounder, Message, ModelInfo, Reply
from medground.models.chat.chat_grounder import GRID, ChatGrounder


class Sighted:
    """Finds the bright rectangle of a picture and tells its box in its own format, whatever it is asked for."""

    name: ClassVar[str] = "sighted"
    info: ClassVar[ModelInfo] = ModelInfo("Sighted")
    capabilities: frozenset[str] = frozenset({"reply", "pictures"})

    def __init__(self, form: str = "pixels", *, chooses: bool = False) -> None:
        self.form = form
        self.boxes_asked = 0
        if chooses:
            self.capabilities = self.capabilities | {"choose"}

    def fingerprint(self) -> str:
        return self.form

    def choose(self, conversations: Any, choices: Any) -> list[np.ndarray]:
        return [np.log([0.8, 0.1]) if "mass" in one[0].text else np.log([0.1, 0.8]) for one in conversations]

    def reply(self, conversations: Any, options: Any = None) -> list[Reply]:
        return [self._one(one[0]) for one in conversations]

    def _one(self, turn: Any) -> Reply:
        if "boxes" not in turn.text and "box" not in turn.text:
            if "pneumonia" in turn.text:
                return Reply("", "refusal", "declined")
            return Reply("", data={"answer": "yes" if "mass" in turn.text else "uncertain"})
        self.boxes_asked += 1
        rows, columns = np.nonzero(turn.images[0].pixels > 0.5)
        if "edema" in turn.text or not len(rows):
            return Reply("", data={"boxes": []})
        width, height = turn.images[0].size
        box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        scale = {"pixels": (1, 1), "shares": (1 / width, 1 / height), "thousandths": (1000 / width, 1000 / height)}
        across, down = scale[self.form]
        return Reply("", data={"boxes": [[box[0] * across, box[1] * down, box[2] * across, box[3] * down]]})


def picture() -> Radiograph:
    pixels = np.zeros((200, 100), np.float32)
    pixels[50:100, 20:70] = 1
    return Radiograph(pixels, case_id="a")


@pytest.mark.parametrize("form", ["pixels", "shares", "thousandths"])
def test_the_format_of_boxes_is_probed_once(form: str) -> None:
    model = ChatGrounder(of=Sighted(form))
    assert isinstance(model, Grounder)
    assert model.box_format() == form
    prediction = model.predict([picture(), picture()], ["Mass"])
    assert model.of.boxes_asked == 3 + 2
    (saliency,) = np.asarray(prediction.saliency)[0]
    assert saliency.shape == (GRID, GRID)
    rows, columns = np.nonzero(saliency > 0.5)
    assert (columns.min() / GRID, (columns.max() + 1) / GRID) == pytest.approx((0.2, 0.7), abs=0.01)
    assert (rows.min() / GRID, (rows.max() + 1) / GRID) == pytest.approx((0.25, 0.5), abs=0.01)
    assert saliency.sum() / GRID**2 == pytest.approx(0.5 * 0.25, abs=1e-4)


def test_scores_are_log_odds_where_there_are_log_probabilities() -> None:
    prediction = ChatGrounder(of=Sighted(chooses=True), place="none").predict([picture()], ["Mass", "Edema"])
    assert prediction.scores[0] == pytest.approx([np.log(8), -np.log(8)])
    assert prediction.probabilities[0] == pytest.approx([8 / 9, 1 / 9])
    assert prediction.saliency is None


def test_what_cannot_be_read_has_no_score_and_no_map() -> None:
    model = ChatGrounder(of=Sighted("pixels"), box_format="thousandths")
    model.of.form = "pixels"
    prediction = model.predict([picture()], ["Mass", "Edema", "Pneumonia"])
    assert prediction.scores[0][:2].tolist() == [1.0, 0.5]
    assert np.isnan(prediction.scores[0][2])
    assert np.asarray(prediction.saliency)[0, 1].sum() == 0
    assert prediction.absent[0, 2] == "refusal: declined"
    replies = prediction.replies[0, 0]
    assert replies["presence"]["data"] == {"answer": "yes"}
    assert replies["place"]["data"]["boxes"] == [[20, 50, 70, 100]]
    assert replies["box_format"] == "thousandths"
    assert prediction.replies[0, 2]["presence"]["outcome"] == "refusal"
    shares = ChatGrounder(of=Sighted("pixels"), box_format="shares").predict([picture()], ["Mass"])
    assert "unreadable" in shares.absent[0, 0]
    assert np.isnan(np.asarray(shares.saliency)[0, 0]).all()


def test_a_model_without_sight_or_a_question_without_a_finding_is_refused() -> None:
    blind = Sighted()
    blind.capabilities = frozenset({"reply"})
    with pytest.raises(ModelError, match="look at a picture"):
        ChatGrounder(of=blind)
    with pytest.raises(ConfigError, match="does not name its finding"):
        ChatGrounder(of=Sighted(), question="Anything there?")


class Located(Sighted):
    """Answers with the mask of the bright rectangle."""

    def located(self, conversations: Any) -> list[np.ndarray | None]:
        return [None if "edema" in one[0].text else one[0].images[0].pixels > 0.5 for one in conversations]


def test_masks_of_seg_answers_are_maps() -> None:
    prediction = ChatGrounder(of=Located(), place="masks").predict([picture()], ["Mass", "Edema"])
    mass, edema = np.asarray(prediction.saliency)[0]
    assert mass.sum() / GRID**2 == pytest.approx(0.5 * 0.25, abs=1e-5)
    # A picture of 200 rows on 112 cells: each cell holds the share that the rectangle covers of it.
    edges = np.arange(GRID + 1) * 200 / GRID
    down = np.clip(np.minimum(edges[1:], 100) - np.maximum(edges[:-1], 50), 0, None) / (200 / GRID)
    assert mass[:, 50] == pytest.approx(down, abs=1e-5)
    assert np.isnan(edema).all()
    assert prediction.absent == {(0, 1): "no place named"}
    with pytest.raises(ModelError, match="does not answer with a mask"):
        ChatGrounder(of=Sighted(), place="masks")


def test_a_model_that_cannot_be_reached_shows_no_attention() -> None:
    for place in ("attention", "gradient"):
        with pytest.raises(ModelError, match="say where it looks"):
            ChatGrounder(of=Sighted(), place=place)


def test_the_small_chat_model_grounds_by_its_masks_and_its_attention() -> None:
    from medground.models.chat.small_chat import SmallChat
    from medground.worlds.phantom.questions import PRESENT

    small = SmallChat(device="cpu")
    asked = {"of": small, "question": PRESENT.replace("{finding}", "{label}"), "answers": ("yes", "no")}
    image = Radiograph(np.random.default_rng(0).random((150, 100), np.float32), case_id="a")
    masked = ChatGrounder(**asked, place="masks").predict([image], ["Effusion", "Edema"])
    assert np.asarray(masked.saliency).shape == (1, 2, GRID, GRID)
    assert np.isfinite(masked.scores[0, 0])
    # "edema" is none of its words: it declines, which is no score and no map.
    assert np.isnan(masked.scores[0, 1])
    assert (0, 1) in masked.absent
    looked = ChatGrounder(**asked, place="attention").predict([image], ["Effusion"])
    grid = np.asarray(looked.saliency)[0, 0]
    talk = [asked_about(image, "Is there effusion in the picture?")]
    assert grid == pytest.approx(small.engine.attention(talk[0]), abs=1e-6)
    assert looked.geometry[0].source == (100, 150)
    with pytest.raises(ModelError, match="attention alone"):
        ChatGrounder(**asked, place="gradient").predict([image], ["Effusion"])


def asked_about(image: Radiograph, text: str) -> tuple[Message, ...]:
    return (Message("user", text, (image,)),)
