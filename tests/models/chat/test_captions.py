"""Captions read as questions: by hand, and through the small chat model's ways of choosing."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from medground.imaging.reading import Radiograph
from medground.models.base import Message, Reply
from medground.models.chat import captions
from medground.models.chat.captions import Asked
from medground.models.chat.small_chat import SmallChat
from medground.models.chat.small_chat_twin import SmallChatTwin
from medground.models.common.runtime import Runtime
from medground.models.networks.chat import tokens
from medground.training.chat import trials
from medground.worlds.phantom.statements import wordings

MASS = "Is there mass in the picture?"
LEFT, RIGHT = "Does the left lung have effusion?", "Does the right lung have effusion?"


def test_sentences_become_questions_with_their_answers():
    text = "Chest film. Collapse in the right lung. Left middle zone infiltrate. No sign of lung mass. Cardiomegaly."
    assert captions.questions(text) == [
        Asked("Does the right lung have atelectasis?", True),
        Asked("Does the left mid lung have infiltration?", True),
        Asked(MASS, False),
        Asked("Is there cardiomegaly in the picture?", True),
    ]
    more = "Large pulmonary mass. A pacemaker is in place. PA chest radiograph. A tumour."
    assert captions.questions(more) == []
    assert captions.questions(more, claims=True) == [
        Asked("True: Large pulmonary mass?", True),
        Asked("True: A pacemaker is in place?", True),
    ]
    assert captions.questions(text, claims=True) == captions.questions(text)


def test_every_question_is_in_words_that_the_first_stage_knows():
    asked = 0
    for statement, texts in wordings().items():
        several = {tuple(captions.questions(f"{text}.")) for text in texts}
        assert len(several) == 1  # every wording of a statement is the same question
        for one in several.pop():
            assert tokens.unknown_words(one.text, tokens.FIRST) == []
            assert statement.kind in ("present", "absent", "side", "third")
            asked += 1
    assert asked == 8 + 8 + 14 + 30


def test_offered_captions_stand_on_lines_of_the_last_turn():
    text = "Which?\nCaption A: No mass.\nCaption B: A mass. Chest film."
    assert captions.offered([Message("user", text)]) == {"Caption A": "No mass.", "Caption B": "A mass. Chest film."}
    assert captions.offered([Message("user", "Caption A: No mass.")]) == {}
    assert captions.offered([Message("user", text), Message("assistant", "Caption A")]) == {}
    assert captions.offered([]) == {}


def test_a_caption_is_as_likely_as_all_its_sentences_together():
    odds = {"a": 0.3, "b": -2.0, "c": 4.0}
    asked = [Asked("a", True), Asked("b", False), Asked("c", True)]
    by_hand = math.prod(1 / (1 + math.exp(-value)) for value in (0.3, 2.0, 4.0))
    log_p = captions.log_probability(asked, odds)
    assert log_p == pytest.approx(math.log(by_hand))
    assert captions.logit(log_p) == pytest.approx(math.log(by_hand / (1 - by_hand)))
    assert captions.log_probability([], odds) == 0
    assert captions.logit(0.0) == pytest.approx(-math.log(1e-12), rel=1e-4)
    assert math.isnan(captions.logit(captions.log_probability(asked, odds | {"b": math.nan})))
    assert captions.log_probability(asked[:1], {"a": -800.0}) == -800
    shares = captions.shares({"a": -1000.0, "b": -1001.0})
    assert sum(map(math.exp, shares.values())) == pytest.approx(1)
    assert shares["a"] - shares["b"] == pytest.approx(1)
    assert all(map(math.isnan, captions.shares({"a": 1.0, "b": math.nan}).values()))


class Odds:
    """An engine that answers from a table of questions."""

    def __init__(self, table):
        self.table, self.asked = table, []

    def odds(self, conversations):
        texts = [talk[0].text for talk in conversations]
        self.asked += texts
        return [self.table[text] for text in texts]

    def choose(self, conversations, choices):
        return [np.full(len(several), np.nan) for several in choices]

    def reply(self, conversations, options=None):
        return [Reply("", "refusal", "words never met") for _ in conversations]


@pytest.fixture
def scripted():
    model = SmallChat.__new__(SmallChat)
    model._runtime = Runtime("cpu", "float32", deterministic=False)
    model.backbone = SimpleNamespace(network=SimpleNamespace(size=tokens.FIRST))
    model.engine = Odds({MASS: 1.0, LEFT: -3.0, RIGHT: 2.0})
    return model


IMAGE = Radiograph(np.zeros((8, 8), np.float32))
CHOICES = [["Caption A", "Caption B"]]
ON_LEFT, ON_RIGHT = (
    "Chest film. Pleural effusion on the left. No lung mass.",
    "Pleural effusion on the right. No lung mass.",
)


def offer(a, b, *images):
    return (Message("user", f"Which caption fits?\nCaption A: {a}\nCaption B: {b}", images or (IMAGE,)),)


def test_it_matches_chooses_and_replies_alike(scripted):
    raw = scripted.match([IMAGE], [[ON_LEFT, ON_RIGHT]])
    both = [
        captions.log_probability([Asked(text, True), Asked(MASS, False)], scripted.engine.table)
        for text in (LEFT, RIGHT)
    ]
    assert raw.kind == "itm"
    assert raw.raw[0].tolist() == pytest.approx([captions.logit(log_p) for log_p in both])
    assert scripted.engine.asked == [LEFT, MASS, RIGHT]  # each question once
    one = scripted.choose([offer(ON_LEFT, ON_RIGHT)], CHOICES)[0]
    two = scripted.choose([offer(ON_RIGHT, ON_LEFT)], CHOICES)[0]
    assert np.exp(one).sum() == pytest.approx(1)
    assert one.tolist() == pytest.approx(two[::-1].tolist())  # the place of a caption changes nothing
    assert scripted.reply([offer(ON_LEFT, ON_RIGHT)])[0].text == "Caption B"
    assert scripted.reply([offer(ON_RIGHT, ON_LEFT)])[0].text == "Caption A"


def test_what_it_cannot_tell_apart_is_a_tie_and_no_reply(scripted):
    size = ("Large lung mass.", "Small lung mass.")
    raw = scripted.match([IMAGE], [size]).raw[0]
    assert raw[0] == raw[1]
    assert np.exp(scripted.choose([offer(*size)], CHOICES)[0]).tolist() == pytest.approx([0.5, 0.5])
    assert scripted.reply([offer(*size)])[0].outcome == "refusal"


def test_other_prompts_go_their_usual_way(scripted):
    two = offer(ON_LEFT, ON_RIGHT, IMAGE, Radiograph(np.ones((8, 8), np.float32)))
    assert scripted.reply([two])[0].outcome == "refusal"
    assert np.isnan(scripted.choose([offer(ON_LEFT, ON_RIGHT)], [["yes", "no"]])[0]).all()
    assert scripted.engine.asked.count(MASS) <= 1


def test_the_model_chooses_by_the_picture_and_the_twin_knows_no_side():
    cases = trials.unseen(40, 47)
    hits = {"model": [], "twin": []}
    models = {"model": SmallChat(device="cpu"), "twin": SmallChatTwin(device="cpu")}
    for case in cases:
        side = [side for side in ("right", "left") if case.truth.share[0, 8 + (side == "left"), 2] > 0.5]
        if len(side) != 1 or not case.truth.present[0, 2]:
            continue
        other = "left" if side[0] == "right" else "right"
        image = Radiograph(case.drawing.pixels.astype(np.float32) / np.float32(255))
        pair = [f"Pleural effusion on the {name}." for name in (side[0], other)]
        for name, model in models.items():
            raw = model.match([image], [pair]).raw[0]
            hits[name].append(raw[0] > raw[1])
    assert len(hits["model"]) >= 4
    assert np.mean(hits["model"]) > 0.9
    assert np.mean(hits["twin"]) < np.mean(hits["model"])
