"""One chat model asked several times: members, their words, their samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from medground import registry
from medground.errors import ConfigError
from medground.models.base import GenerationOptions, Message, Reply, capabilities_of
from medground.models.chat.chat_grounder import ChatGrounder
from medground.models.controls.repeated import Repeated, Varied, members_of


@dataclass
class Echo:
    """Says what it was told."""

    capabilities: frozenset[str] = frozenset({"reply", "choose", "pictures", "look"})
    asked: list[Any] = field(default_factory=list)
    defaults: GenerationOptions = field(default_factory=lambda: GenerationOptions(max_new_tokens=7))

    def fingerprint(self) -> str:
        return "echo"

    def reply(self, conversations: Any, options: Any = None) -> list[Reply]:
        self.asked.append((conversations, options))
        return [Reply(" / ".join(f"{turn.role}: {turn.text}" for turn in one)) for one in conversations]


TALK = (Message("user", "is it so?"), Message("assistant", "yes"), Message("user", "sure?"))


def test_a_member_words_and_draws_in_its_own_way() -> None:
    echo = Echo()
    varied = Varied(of=echo, temperature=0.7, sample=3, system="You read films.", suffix="Be brief.")
    (reply,) = varied.reply([TALK])
    assert reply.text == (
        "system: You read films. / user: is it so? Be brief. / assistant: yes / user: sure? Be brief."
    )
    _, options = echo.asked[0]
    assert (options.temperature, options.sample, options.max_new_tokens) == (0.7, 3, 7)
    varied.reply([(Message("system", "own"), *TALK)], GenerationOptions(max_new_tokens=9))
    conversations, options = echo.asked[1]
    assert conversations[0][0].text == "own"
    assert options.max_new_tokens == 9
    plain = Varied(of=echo)
    plain.reply([TALK], GenerationOptions(temperature=0.2, sample=1))
    assert echo.asked[2] == ([TALK], GenerationOptions(temperature=0.2, sample=1))
    assert capabilities_of(plain) == {"reply", "choose", "pictures"}
    assert len({v.fingerprint() for v in (varied, plain, Varied(of=echo, sample=1))}) == 3


def test_a_repeated_model_stands_for_its_members() -> None:
    of = registry.part("model", {"name": "reading_only"}, where="of")
    given = {"of": of, "samples": 2, "temperature": 0.5, "prompts": {"plain": "", "short": "Be brief."}}
    members = list(members_of(Repeated, given))
    assert [member.name for member in members] == ["prompt plain", "sample 2", "prompt short"]
    common = {"of": of, "temperature": 0.5}
    assert [member.parameters for member in members] == [
        common | {"sample": 0, "suffix": ""},
        common | {"sample": 1, "suffix": ""},
        common | {"suffix": "Be brief."},
    ]
    assert Repeated(**given).fingerprint() == Varied(**members[0].parameters).fingerprint()
    # Inside another component each member is that component with the member in its place.
    part = registry.Part("repeated", Repeated, given)
    held = list(members_of(ChatGrounder, {"of": part, "place": "none"}))
    assert [member.name for member in held] == [member.name for member in members]
    assert held[1].cls is ChatGrounder
    assert held[1].parameters["of"].parameters == members[1].parameters
    (alone,) = members_of(ChatGrounder, {"of": of})
    assert (alone.name, alone.parameters) == ("", {"of": of})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"samples": 3}, "all alike"),
        ({"samples": 3, "temperature": 0.0}, "all alike"),
        ({"samples": 0, "temperature": 1.0}, "all alike"),
        ({}, "nothing is repeated"),
        ({"prompts": {"a": ""}}, "nothing is repeated"),
        ({"prompts": {"a": "", "b": {"prefix": "x"}}}, "words to append"),
        ({"prompts": {"a": "", "b": {"system": 3}}}, "words to append"),
    ],
)
def test_what_repeats_nothing_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Repeated(of=Echo(), **given)
