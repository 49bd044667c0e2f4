"""A protocol is data: every choice that a published evaluation of saliency maps makes, in one frozen object.

Three are named. ``xbench`` follows the XBench paper (arXiv 2510.19599) where it speaks, and fills what it leaves open
so that its printed all-foreground floor comes out; ``chexlocalize`` and ``medklip`` follow those projects' public code.
A run file may name one, or name one as ``base`` and change single choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from medground.benchmarks.doors import RunFileSection
from medground.errors import ConfigError, did_you_mean

Scope = Literal["image", "class", "dataset"]
Split = Literal["test", "crossfit"]


class Protocol(BaseModel):
    """The choices of one evaluation. Two protocols with equal fields give equal numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="how reports call it")
    grid: tuple[int, int] | Literal["original"] = Field(
        description="width and height of the grid that is measured on, or the region's own frame"
    )
    resample: Literal["bilinear", "bilinear_corners", "nearest"] = Field(
        description="map to grid: half-pixel centres, aligned corners, or nearest by the floor rule"
    )
    normalise: Literal["minmax", "max", "none"] = Field(description="what is done to the resampled map")
    comparison: Literal[">=", ">"] = Field(description="which pixels a threshold selects")
    precision: Literal["float64", "float32"] = Field(
        "float64", description="type in which values meet fixed thresholds outside the grid"
    )
    steps: int = Field(100, ge=1, le=1000, description="the threshold grid is k/steps for k = 0..steps")
    fixed: tuple[float, ...] = Field((0.5,), min_length=1, description="thresholds that are reported unsearched")
    search: tuple[float, ...] | None = Field(
        None,
        description="thresholds that the search may pick, each one of the grid; by default the whole grid",
    )
    search_by: Literal["dice", "iou"] = Field("dice", description="the mean that the search maximises")
    search_mean: Literal["printed", "macro", "pairs"] = Field(
        "printed",
        description="which mean the search maximises: the printed one (`averaging`), over classes, or over pairs",
    )
    scope: Scope = Field("dataset", description="one searched threshold an image, a class or a dataset")
    split: Split = Field(
        "test", description="search on the evaluated cases (optimistic), or on the other half of the patients"
    )
    ties: Literal["first", "any", "expected"] = Field(description="what counts when maxima are equal")
    margin: int = Field(0, ge=0, description="pixels of the original by which a region is widened for pointing")
    box_rule: Literal["size_cut", "corner_cut", "rounded"] = Field(
        "size_cut", description="how a box with fractions becomes pixels of its frame"
    )
    mask_resize: Literal["floor", "centre"] = Field("floor", description="region to grid: nearest, which rule")
    empty_prediction: Literal["zero", "undefined"] = Field(
        "zero", description="IoU where nothing is selected; undefined is the true-positive-only form"
    )
    averaging: Literal["macro", "pairs"] = Field(
        "macro", description="what the printed figure averages: class means, or all (image, finding) pairs"
    )
    link: Literal["model", "sigmoid"] = Field(
        "model", description="probability: the model's own, or the sigmoid of its score"
    )
    source: str = Field("", description="where the choices come from")

    @model_validator(mode="after")
    def _choices_fit_each_other(self) -> Protocol:
        if self.grid != "original" and min(self.grid) < 1:
            raise ValueError(f"grid: {self.grid} is no width and height of 1 or more")
        # What a fixed threshold is called in cells and tables must tell it from the others.
        if not np.isfinite(self.fixed).all() or len({f"{tau:g}" for tau in self.fixed}) < len(self.fixed):
            raise ValueError(f"fixed: {self.fixed} are not finite, or not different")
        if self.search == ():
            raise ValueError("search: no threshold is left to pick")
        for tau in self.search or ():
            if tau not in self.tau:
                raise ValueError(f"search: {tau} is not one of 0, 1/{self.steps} ... 1")
        if self.scope == "image" and self.split == "crossfit":
            raise ValueError("one threshold an image cannot come from other patients: scope image needs split test")
        return self

    @cached_property
    def tau(self) -> NDArray[np.float64]:
        """The threshold grid, made from integers, ``(steps + 1,)``."""
        return np.arange(self.steps + 1) / self.steps

    @cached_property
    def extra(self) -> NDArray[np.float64]:
        """Fixed thresholds that are not on the grid; their counts follow those of the grid in a row."""
        return np.array([t for t in self.fixed if t not in self.tau], dtype=np.float64)

    @cached_property
    def thresholds(self) -> NDArray[np.float64]:
        """Every threshold that a row has counts for: the grid, then the fixed ones outside it."""
        return np.concatenate([self.tau, self.extra])

    @cached_property
    def searched(self) -> NDArray[np.intp]:
        """Indices into ``thresholds`` that the search may pick, ascending in tau."""
        wanted = self.tau if self.search is None else np.sort(np.array(self.search))
        return np.flatnonzero(np.isin(self.tau, wanted))

    def index_of(self, tau: float) -> int:
        """Return where a threshold stands in a row's counts."""
        return int(np.flatnonzero(self.thresholds == tau)[0])

    @property
    def searched_mean(self) -> Literal["macro", "pairs"]:
        """The mean that the search maximises, so that no fixed threshold has a larger printed figure."""
        return self.averaging if self.search_mean == "printed" else self.search_mean

    @cached_property
    def crossfitted(self) -> Protocol | None:
        """The same protocol with its threshold from the other half of the patients; None where none can come."""
        if self.scope == "image":
            return None
        return self if self.split == "crossfit" else self.model_copy(update={"split": "crossfit"})

    @property
    def optimistic(self) -> bool:
        """Whether the searched threshold was picked on the very cases that it is scored on."""
        return self.split == "test"

    def __eq__(self, other: object) -> bool:
        # By its choices alone: the arrays that were derived from them are kept beside, and have no truth value.
        return isinstance(other, Protocol) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def in_words(self) -> str:
        """Return the protocol as one sentence for tables and reports."""
        where = "the original picture" if self.grid == "original" else f"{self.grid[0]}x{self.grid[1]}"
        looked = "on the evaluated cases (optimistic)" if self.optimistic else "on the other half of the patients"
        norm = {"minmax": "min-max per map", "max": "divided by the maximum", "none": "not normalised"}[self.normalise]
        measure = {"dice": "Dice", "iou": "IoU"}[self.search_by]
        over = {"macro": "over classes", "pairs": "over pairs"}[self.searched_mean]
        widened = f", region widened by {self.margin} px" if self.margin else ""
        return (
            f"{self.name}: maps {self.resample.replace('_', ' with aligned ')} to {where}, {norm}, value "
            f"{self.comparison} threshold; fixed at {', '.join(map(str, self.fixed))}, "
            f"one searched per {self.scope} by mean {measure} {over} {looked}; pointing: {self.ties} "
            f"maximum{widened}; box rule {self.box_rule}"
        )


PROTOCOLS: Mapping[str, Protocol] = {
    p.name: p
    for p in (
        Protocol(
            name="xbench",
            grid=(224, 224),
            resample="bilinear",
            normalise="minmax",
            comparison=">=",
            ties="first",
            source="XBench, arXiv 2510.19599; grid, enlargement, ties and search scope inferred",
        ),
        Protocol(
            name="chexlocalize",
            grid="original",
            resample="bilinear",
            normalise="minmax",
            comparison=">",
            ties="first",
            empty_prediction="undefined",
            source="CheXlocalize public code; Dice is not part of it and given for comparison",
        ),
        Protocol(
            name="medklip",
            grid=(224, 224),
            resample="nearest",
            normalise="none",
            comparison=">",
            precision="float32",
            fixed=(0.008,),
            ties="any",
            source="MedKLIP public code",
        ),
    )
}


def protocols() -> dict[str, dict[str, Any]]:
    """Return every named protocol: in one sentence, and with all its choices."""
    return {name: {"in words": p.in_words(), **p.model_dump(mode="json")} for name, p in PROTOCOLS.items()}


def run_file() -> list[RunFileSection]:
    """Return what a run file may say of a protocol."""
    names = ", ".join(f"`{name}`" for name in PROTOCOLS)
    text = f"A name ({names}), or a mapping of these choices; `base: NAME` starts from a named one."
    return [RunFileSection("A protocol: `benchmark.protocol`", text, Protocol)]


def resolve_protocol(given: str | Mapping[str, Any]) -> Protocol:
    """Return a named protocol, or one spelt out by a mapping (with ``base: xbench``, only what differs).

    Raises:
        ConfigError: no such protocol, or a choice that does not exist.
    """
    if isinstance(given, str):
        if given not in PROTOCOLS:
            raise ConfigError(
                f"there is no protocol named {given!r}",
                expected=f"{', '.join(PROTOCOLS)}, or a mapping of choices",
                fix=did_you_mean(given, PROTOCOLS),
            )
        return PROTOCOLS[given]
    changes = dict(given)
    base = changes.pop("base", None)
    if base is not None and not isinstance(base, str):
        raise ConfigError("a protocol's base is a name", where="protocol.base", expected=", ".join(PROTOCOLS), got=base)
    known = [*Protocol.model_fields, "base"]
    for key in changes:
        if key not in known:
            raise ConfigError(
                f"a protocol has no choice named {key!r}",
                where="protocol",
                expected=", ".join(known),
                fix=did_you_mean(key, known),
            )
    start = resolve_protocol(base).model_dump() | {"source": f"{base}, changed"} if base is not None else {}
    try:
        protocol = Protocol.model_validate(
            {"name": f"{base} (changed)" if base else "own"} | start | _renamed(base, changes)
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"the protocol is not right: {first['msg'].removeprefix('Value error, ').lower()}",
            where=".".join(["protocol", *map(str, first["loc"])]),
            got=repr(first["input"]) if first["loc"] and first["type"] != "missing" else None,
        ) from error
    published = PROTOCOLS.get(protocol.name)
    if published is not None and protocol.model_copy(update={"source": published.source}) != published:
        raise ConfigError(
            "a protocol with choices of its own needs a name of its own", where="protocol", got=protocol.name
        )
    return protocol


def _renamed(base: str | None, changes: dict[str, Any]) -> dict[str, Any]:
    """A changed protocol does not carry the published name."""
    real = {k: v for k, v in changes.items() if k not in {"name", "source"}}
    if base and real and "name" not in changes:
        return changes | {"name": f"{base} (changed)"}
    return changes
