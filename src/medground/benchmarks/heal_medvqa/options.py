"""From the plain mapping of a run file to checked choices, and what a report says about a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from medground.benchmarks.heal_medvqa.choices import Choices, MaskChoice
from medground.benchmarks.heal_medvqa.draw import Draw
from medground.benchmarks.heal_medvqa.pastes import PasteRule
from medground.benchmarks.heal_medvqa.plan import Build
from medground.benchmarks.heal_medvqa.relation import RelationRule
from medground.errors import ConfigError, did_you_mean

T = TypeVar("T")


def checked_choices(given: Mapping[str, Any], seed: int) -> Choices:
    """Return the choices of a run file.

    Args:
        given: the benchmark's parameters.
        seed: of the run.

    Raises:
        ConfigError: an option is unknown, of a wrong type or out of range.
    """
    least, most = given["questions"]
    if not 1 <= least <= most <= 20:
        raise ConfigError("questions an image are out of range", where="benchmark.questions", got=[least, most])
    if not 0 <= given["open_share"] < 1 or not 0 <= given["train_share"] < 1:
        raise ConfigError("a share lies between 0 and 1", where="benchmark.open_share, benchmark.train_share")
    draw = {
        "samplers": given["samplers"],
        "least": least,
        "most": most,
        "open_share": given["open_share"],
        "valid_only": given["valid_only"],
        "seed": seed,
    }
    return Choices(
        draw=_read(Draw, draw, "samplers"),
        relation=_read(RelationRule, given["relation"], "relation"),
        paste=_read(PasteRule, given["paste"], "paste"),
        donor=given["donor"],
        masks=None if given["masks"] is None else _read(MaskChoice, given["masks"], "masks"),
        quartets=given["quartets"],
        longest=given["longest"],
        train_share=given["train_share"],
    )


def _read(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # always a dataclass
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ConfigError(
            f"there is no option {unknown[0]!r}",
            where=f"benchmark.{where}",
            expected=", ".join(known),
            fix=did_you_mean(unknown[0], known),
        )
    try:
        return TypeAdapter(kind).validate_python(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(["benchmark", where, *map(str, first["loc"])])
        raise ConfigError(first["msg"].lower(), where=place, got=repr(first["input"])) from error


def about(built: Build, choices: Choices) -> dict[str, Any]:
    """Return what a report says about a build: choices, counts, and what baselines get from every sampler."""
    return {
        "statement": built.statement,
        "choices": choices.in_words(),
        "counts": dict(built.counts),
        "floors": [asdict(one) for one in built.floors],
        "by_sampler": {name: [asdict(one) for one in listed] for name, listed in built.by_sampler.items()},
    }
