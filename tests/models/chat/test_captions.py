"""Captions read sentence by sentence: by hand, and through the small chat model's ways of choosing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from medground.imaging.reading import Radiograph
from medground.models.base import Message
from medground.models.chat import captions
from medground.models.chat.small_chat import SmallChat
from medground.models.chat.small_chat_twin import SmallChatTwin
from medground.models.common.runtime import Runtime


def test_sentences_are_cut_at_full_stops_alone():
    assert captions.sentences("Chest film. Right-sided mass, large in size.  Finding: 1.5 cm nodule.") == [
        "Chest film",
        "Right-sided mass, large in size",
        "Finding: 1.5 cm nodule",
    ]
    assert captions.sentences(" ") == []


def test_offered_captions_stand_on_lines_of_the_last_turn():
    text = "Which?\nCaption A: No mass.\nCaption B: A mass. Chest film."
    assert captions.offered([Message("user", text)]) == {"Caption A": "No mass.", "Caption B": "A mass. Chest film."}
    assert captions.offered([Message("user", "Caption A: No mass.")]) == {}
    assert captions.offered([Message("user", text), Message("assistant", "Caption A")]) == {}
    assert captions.offered([]) == {}


def test_a_caption_is_as_likely_as_all_its_sentences_together():
    odds = [0.3, -2.0, 4.0]
    by_hand = math.prod(1 / (1 + math.exp(-value)) for value in odds)
    log_p = captions.log_probability(odds)
    assert log_p == pytest.approx(math.log(by_hand))
    assert captions.logit(log_p) == pytest.approx(math.log(by_hand / (1 - by_hand)))
    assert captions.logit(captions.log_probability([200.0])) > 20
    assert math.isnan(captions.logit(captions.log_probability([float("nan"), 1.0])))
    assert captions.log_probability([-800.0]) == -800
    shares = captions.shares({"a": -1000.0, "b": -1001.0})
    assert sum(map(math.exp, shares.values())) == pytest.approx(1)
    assert shares["a"] - shares["b"] == pytest.approx(1)


class Odds:
    """An engine that answers from a table of sentences."""

    def __init__(self, table):
        self.table, self.asked = table, []

    def odds(self, conversations):
        texts = [talk[0].text.removeprefix("True: ").removesuffix("?") for talk in conversations]
        self.asked += texts
        return [self.table.get(text, float("nan")) for text in texts]

    def choose(self, conversations, choices):
        return [np.full(len(several), np.nan) for several in choices]

    def reply(self, conversations, options=None):
        from medground.models.base import Reply

        return [Reply("", "refusal", "words never met") for _ in conversations]


@pytest.fixture
def scripted():
    model = SmallChat.__new__(SmallChat)
    model._runtime = Runtime("cpu", "float32", deterministic=False)
    model.engine = Odds({"No mass": -3.0, "A mass": 2.0, "Chest film": 1.0})
    return model


IMAGE = Radiograph(np.zeros((8, 8), np.float32))


def offer(a, b, *images):
    return (Message("user", f"Which caption fits?\nCaption A: {a}\nCaption B: {b}", images or (IMAGE,)),)


def test_it_matches_chooses_and_replies_alike(scripted):
    raw = scripted.match([IMAGE], [["No mass. Chest film.", "A mass. Chest film."]])
    no, a = (captions.log_probability([value, 1.0]) for value in (-3.0, 2.0))
    assert raw.kind == "itm"
    assert raw.raw[0].tolist() == pytest.approx([captions.logit(no), captions.logit(a)])
    assert scripted.engine.asked == ["No mass", "Chest film", "A mass"]  # each sentence once
    choices = [["Caption A", "Caption B"]]
    one = scripted.choose([offer("No mass.", "A mass.")], choices)[0]
    two = scripted.choose([offer("A mass.", "No mass.")], choices)[0]
    assert np.exp(one).sum() == pytest.approx(1)
    assert one.tolist() == pytest.approx(two[::-1].tolist())  # the place of a caption changes nothing
    assert scripted.reply([offer("No mass.", "A mass.")])[0].text == "Caption B"


def test_what_it_cannot_read_stays_unread(scripted):
    assert np.isnan(scripted.match([IMAGE], [["A tumour.", "A mass."]]).raw[0]).tolist() == [True, False]
    choices = [["Caption A", "Caption B"]]
    assert np.isnan(scripted.choose([offer("A tumour.", "A mass.")], choices)[0]).all()
    assert scripted.reply([offer("A tumour.", "A mass.")])[0].outcome == "refusal"
    two = offer("No mass.", "A mass.", IMAGE, Radiograph(np.ones((8, 8), np.float32)))
    assert scripted.reply([two])[0].outcome == "refusal"
    assert np.isnan(scripted.choose([offer("No mass.", "A mass.")], [["yes", "no"]])[0]).all()


def test_the_twin_was_taught_no_captions():
    assert "match" not in SmallChatTwin.capabilities
    twin = SmallChatTwin(device="cpu")
    assert twin.reply([offer("No mass.", "A mass.")])[0].outcome == "refusal"
    assert np.isnan(twin.choose([offer("No mass.", "A mass.")], [["Caption A", "Caption B"]])[0]).all()
