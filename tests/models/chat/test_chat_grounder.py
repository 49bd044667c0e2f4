"""A chat model as a grounder: yes against no, boxes in three formats, and what cannot be read."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from medground.errors import ConfigError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Grounder, ModelInfo, Reply
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
