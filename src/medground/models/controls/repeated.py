"""One chat model asked several times: by repeated samples, or with its prompt in other words.

A run file names it once; the run asks every member and prints, in a table of its own, how far they agree with each
other and how far apart their figures lie. Tables, verdicts and comparisons show the first member alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError
from medground.identity import fingerprint_of
from medground.models.base import GenerationOptions, Message, ModelInfo, Reply, capabilities_of, require


class Varied:
    """A chat model at a temperature and sample of its own, with words put before or after what it is asked.

    Args:
        of: the model.
        temperature: in place of the benchmark's; None: as the benchmark says.
        sample: number of the sample.
        system: a turn put before the conversation, where it has no such turn of its own; empty: none.
        suffix: appended to every turn of the user; empty: nothing.
    """

    info: ClassVar[ModelInfo] = ModelInfo("Repeated", licence="the model's own", obtain="of: {name: any chat model}")
    parts: ClassVar[Mapping[str, str]] = {"of": "model"}

    def __init__(
        self, *, of: Any, temperature: float | None = None, sample: int = 0, system: str = "", suffix: str = ""
    ) -> None:
        self.of = of.build() if hasattr(of, "build") else of
        require(self.of, ["reply"], by="a repeated model")
        self.temperature, self.sample, self.system, self.suffix = temperature, sample, system, suffix
        self.capabilities = capabilities_of(self.of) & {"reply", "choose", "pictures", "several_pictures", "tools"}
        self.concurrent = bool(getattr(self.of, "concurrent", False))

    @property
    def ledger(self) -> Any:
        """What was asked of a server, where the model is behind one."""
        return getattr(self.of, "ledger", None)

    def fingerprint(self) -> str:
        """A hash over the model's own and what is varied."""
        return fingerprint_of(self.of.fingerprint(), self.temperature, self.sample, self.system, self.suffix)

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> Sequence[Reply]:
        """See :class:`medground.models.base.ChatModel`."""
        wanted = options or getattr(self.of, "defaults", None) or GenerationOptions()
        if self.temperature is not None:
            wanted = replace(wanted, temperature=self.temperature, sample=self.sample)
        replies: Sequence[Reply] = self.of.reply([self._worded(one) for one in conversations], wanted)
        return replies

    def choose(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[Sequence[str]]
    ) -> Sequence[NDArray[np.floating[Any]]]:
        """See :class:`medground.models.base.Chooser`; log-probabilities know no temperature."""
        rows: Sequence[NDArray[np.floating[Any]]] = self.of.choose(
            [self._worded(one) for one in conversations], choices
        )
        return rows

    def _worded(self, conversation: Sequence[Message]) -> tuple[Message, ...]:
        turns = [
            replace(turn, text=f"{turn.text} {self.suffix}") if self.suffix and turn.role == "user" else turn
            for turn in conversation
        ]
        if self.system and not any(turn.role == "system" for turn in turns):
            turns = [Message("system", self.system), *turns]
        return tuple(turns)


@dataclass(frozen=True)
class Member:
    """One of the several that a repeated model stands for.

    Attributes:
        name: ``sample 2``, ``prompt short``.
        cls: its class.
        parameters: of its constructor.
    """

    name: str
    cls: type[Any]
    parameters: Mapping[str, Any]


class Repeated(Varied):
    """A chat model that is asked several times; the first member stands in every table, the others beside it.

    Args:
        of: the model.
        samples: replies that are drawn of everything that is asked, each with a seed of its own.
        temperature: of the samples; above 0 where there are several.
        prompts: name -> words appended to every question, or ``{system: ..., suffix: ...}``; the first is the main one.
    """

    name: ClassVar[str] = "repeated"

    def __init__(
        self,
        *,
        of: Any,
        samples: int = 1,
        temperature: float | None = None,
        prompts: dict[str, str | dict[str, str]] | None = None,
    ) -> None:
        given = {"of": of, "samples": samples, "temperature": temperature, "prompts": prompts}
        super().__init__(**self.members(given)[0].parameters)

    @classmethod
    def members(cls, parameters: Mapping[str, Any]) -> list[Member]:
        """Return the members that the parameters of a run file stand for, the main one first.

        Raises:
            ConfigError: samples without a temperature, nothing that is repeated, or a prompt of another form.
        """
        samples, temperature = parameters.get("samples", 1), parameters.get("temperature")
        if samples < 1 or (samples > 1 and not temperature):
            raise ConfigError(
                "samples of the likeliest reply are all alike",
                where="samples",
                expected="1 or more, with a temperature above 0",
                got=f"samples {samples}, temperature {temperature}",
                fix="temperature: 0.7",
            )
        words = {name: _words(name, given) for name, given in (parameters.get("prompts") or {}).items()}
        first = next(iter(words.values()), {})
        common = {"of": parameters["of"], "temperature": temperature}
        members = [Member(f"sample {i + 1}", Varied, {**common, "sample": i, **first}) for i in range(samples)]
        others = [Member(f"prompt {name}", Varied, {**common, **own}) for name, own in list(words.items())[1:]]
        if len(members) + len(others) < 2:
            raise ConfigError("nothing is repeated", where="repeated", fix="samples: 5, or several prompts")
        if others:
            main = members[0]
            members[0] = Member(f"prompt {next(iter(words))}", main.cls, main.parameters)
        return members + others


def members_of(cls: type[Any], parameters: Mapping[str, Any]) -> Iterator[Member]:
    """Yield what a component stands for: itself, or, where it is repeated or holds such a model, every member."""
    if issubclass(cls, Repeated):
        yield from cls.members(parameters)
        return
    for key, value in parameters.items():
        if hasattr(value, "cls") and hasattr(value, "parameters"):
            inner = list(members_of(value.cls, value.parameters))
            if len(inner) > 1:
                for member in inner:
                    part = replace(value, cls=member.cls, parameters=member.parameters)
                    yield Member(member.name, cls, {**parameters, key: part})
                return
    yield Member("", cls, parameters)


def _words(name: str, given: Any) -> dict[str, str]:
    words = {"suffix": given} if isinstance(given, str) else given
    if not isinstance(words, Mapping) or set(words) - {"system", "suffix"} or not all(map(_is_text, words.values())):
        raise ConfigError(
            "a prompt is words to append, or a system turn and words", where=f"prompts.{name}",
            expected="text, or {system: ..., suffix: ...}", got=repr(given)[:80],
        )  # fmt: skip
    return dict(words)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
