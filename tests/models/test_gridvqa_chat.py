"""A chat model as a question answerer: what it is shown, what it may answer, and replies that cannot be read."""

from typing import ClassVar

import numpy as np
import pytest

from medground.errors import ConfigError
from medground.models.answerers.gridvqa_chat import COUNTS, DECISIONS, UNREAD, ChatAnswerer, picture_of, read_answer
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.models.base import ModelInfo, Reply
from medground.worlds.gridvqa.build import picture_of as drawn
from medground.worlds.gridvqa.generate import scenes
from medground.worlds.gridvqa.world import Bucket


class Sighted:
    """Sees the colours of the picture as the executor does, and chooses or says its answer."""

    name: ClassVar[str] = "sighted"
    info: ClassVar[ModelInfo] = ModelInfo("Sighted")
    inner = RuleExecutor()

    def _told(self, talk) -> np.ndarray:
        (message,) = talk
        image = (message.images[0].colour / np.float32(255)).astype(np.float32)
        return self.inner.logits(image[None], [message.text.split(" Answer")[0]])[0]

    def fingerprint(self) -> str:
        return "sighted"


class Choosing(Sighted):
    def choose(self, conversations, choices):
        rows = [self._told(talk) for talk in conversations]
        return [
            np.array([row[list(self.inner.answers).index(c)] for c in own])
            for row, own in zip(rows, choices, strict=True)
        ]


class Talking(Sighted):
    def reply(self, conversations, options=None):
        del options
        return [Reply(f"I see: {self.inner.answers[int(self._told(talk).argmax())]}.") for talk in conversations]


class Rambling(Sighted):
    def reply(self, conversations, options=None):
        del options
        return [Reply("Two, or three, yes and no.") for _ in conversations]


def asked():
    made = [s for form in ("count", "exists") for s in scenes("pure", [Bucket(1, "M", form, 0.7)], 3, seed=2)]
    return made, np.stack([(drawn(s, 16) / np.float32(255)).astype(np.float32) for s in made])


@pytest.mark.parametrize("model", [Choosing, Talking])
def test_the_answer_is_the_model_s_own_in_either_way(model):
    made, images = asked()
    answerer = ChatAnswerer(of=model())
    logits = answerer.logits(images, [s.question.text for s in made])
    assert [answerer.answers[i] for i in logits.argmax(1)] == [str(s.answer) for s in made]
    assert answerer.way == ("choose" if model is Choosing else "reply")


def test_a_reply_that_holds_several_answers_is_none_of_them():
    made, images = asked()
    answerer = ChatAnswerer(of=Rambling())
    logits = answerer.logits(images, [s.question.text for s in made])
    assert {answerer.answers[i] for i in logits.argmax(1)} == {UNREAD}
    assert UNREAD not in {str(s.answer) for s in made}


@pytest.mark.parametrize(
    ("reply", "form", "answer"),
    [
        ("3", COUNTS, "3"),
        ("Three circles.", COUNTS, "3"),
        ("There are 23.", COUNTS, "17+"),
        ("3 of the 5", COUNTS, UNREAD),
        ("Yes, there is.", DECISIONS, "yes"),
        ("No.", DECISIONS, "no"),
        ("There is none", DECISIONS, UNREAD),
        ("", COUNTS, UNREAD),
        ("yes", COUNTS, UNREAD),
    ],
)
def test_replies_are_read_by_the_form_of_the_question(reply, form, answer):
    assert read_answer(reply, form) == answer


def test_the_picture_keeps_its_colours_and_grows_by_whole_factors():
    image = np.random.default_rng(0).random((10, 10, 3)).astype(np.float32)
    shown = picture_of(image, 25)
    assert shown.size == (30, 30)
    np.testing.assert_allclose(shown.colour[::3, ::3] / 255, image, atol=1 / 255)
    np.testing.assert_allclose(shown.pixels, shown.colour.mean(-1) / 255, atol=1e-6)


@pytest.mark.parametrize("options", [{"prompt": "How many?"}, {"side": 0}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigError):
        ChatAnswerer(of=Choosing(), **options)
