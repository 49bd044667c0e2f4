"""A scene: everything that is known about one case before it has pixels.

A scene is a pure function of seed, case and wishes. Controls are other scenes of the same case: one finding left out,
pasted elsewhere or of another size, another view, another value of a task, and everything else the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, cast

import numpy as np

from medground.errors import ConfigError, did_you_mean
from medground.worlds.phantom.anatomy import Anatomy, draw_anatomy
from medground.worlds.phantom.devices import MAKERS as DEVICE_MAKERS, SHARES, Device, draw_leads
from medground.worlds.phantom.exposure import Exposure, draw_exposure
from medground.worlds.phantom.findings import ENLARGED, LESIONS, make_lesions
from medground.worlds.phantom.heart import Heart, shape_heart
from medground.worlds.phantom.markers import Marker, draw_marker
from medground.worlds.phantom.shapes import FORMS, Lesion, Shape, resized, shaped
from medground.worlds.phantom.solve import check_reached, solve, usual_heart
from medground.worlds.phantom.streams import DEVICES, FINDINGS, TASKS, chance, stream, uniform
from medground.worlds.phantom.tasks import Value, judge
from medground.worlds.phantom.vessels import Segments, draw_vessels
from medground.worlds.phantom.wishes import check_wishes, wish

Population = Literal["default", "tasks"]

POPULATIONS: Final[tuple[Population, ...]] = ("default", "tasks")

AP: Final[Mapping[Population, float]] = {"default": 0.4, "tasks": 0.5}
"""Share of AP pictures."""

COUNTS: Final = (0.20, 0.45, 0.25, 0.10)
"""Share of cases with 0, 1, 2 and 3 findings; in the population ``tasks`` an enlarged heart is counted apart."""

HEART: Final = "Cardiomegaly"
"""The finding that is no lesion but another heart, and whose label is that of the task ``cardiomegaly``."""


@dataclass(frozen=True)
class Wishes:
    """What was asked of a case beside its number; everything else follows from seed and case.

    Attributes:
        findings: what is present; None for what the case's own stream says.
        attempts: finding -> number of its place; 0 where it is missing.
        population: whose ranges are drawn from.
        view: PA or AP; None for the drawn one.
        values: task -> wanted value; in the population ``tasks`` the others are drawn.
        sizes: finding -> 0 (the smallest that is drawn) to 1 (the largest).
        shapes: finding -> field of its lesions -> wanted value, see :mod:`medground.worlds.phantom.shapes`.
        devices: kinds that are there; None for what the devices' own streams say.
    """

    findings: tuple[str, ...] | None = None
    attempts: Mapping[str, int] = field(default_factory=dict)
    population: Population = "default"
    view: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    sizes: Mapping[str, float] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    devices: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Scene:
    """One case without a resolution.

    Attributes:
        seed: of the dataset.
        case: number of the case.
        wishes: what was asked for.
        findings: what is present, in the order of ``FINDINGS``.
        anatomy: the thorax without any finding.
        heart: its heart; with cardiomegaly an enlarged one.
        heart_ratio: width of the heart as a share of the cage's.
        lesions: finding -> its lesions (cardiomegaly has none).
        vessels: of the lungs.
        exposure: how the picture is taken.
        marker: letters on it.
        devices: leads, tubes, lines and pacemakers.
    """

    seed: int
    case: int
    wishes: Wishes = field(repr=False)
    findings: tuple[str, ...]
    anatomy: Anatomy
    heart: Heart
    heart_ratio: float
    lesions: Mapping[str, tuple[Lesion, ...]]
    vessels: Segments = field(repr=False)
    exposure: Exposure
    marker: Marker
    devices: tuple[Device, ...] = field(repr=False)

    @property
    def view(self) -> str:
        """PA or AP."""
        return self.anatomy.view

    def without(self, finding: str) -> Scene:
        """Return the same case without one of its findings.

        Raises:
            ConfigError: the case does not have it.
        """
        _require(finding, self.findings)
        return self._with(findings=tuple(f for f in self.findings if f != finding))

    def with_finding(self, finding: str, attempt: int = 0) -> Scene:
        """Return the same case with one more finding, or with this one at another place.

        Args:
            finding: one of the eight.
            attempt: number of its place; odd numbers lie in the other lung than 0.
        """
        attempts = {**self.wishes.attempts, finding: attempt}
        return self._with(findings=(*self.findings, finding), attempts=attempts)

    def moved(self, finding: str, attempt: int = 1) -> Scene:
        """Return the same case with one of its findings pasted elsewhere, in the same shape.

        Args:
            finding: one that the case has; cardiomegaly cannot be moved.
            attempt: number of the new place; odd numbers lie in the other lung than the case as it is.

        Raises:
            ConfigError: the case does not have it, or it is the heart itself.
        """
        _require(finding, [f for f in self.findings if f in LESIONS])
        return self._with(findings=self.findings, attempts={**self.wishes.attempts, finding: attempt})

    def sized(self, finding: str, share: float) -> Scene:
        """Return the same case with one of its findings smaller or larger, at the same place.

        Args:
            finding: a mass, a nodule, an effusion or a pneumothorax that the case has.
            share: 0 (the smallest that is drawn) to 1 (the largest).

        Raises:
            ConfigError: the case does not have it, or it has no such range.
        """
        _require(finding, self.findings)
        return self._with(findings=self.findings, sizes={**self.wishes.sizes, finding: share})

    def shaped(self, finding: str, **shape: float | str) -> Scene:
        """Return the same case with lesions of another shape, at the same place.

        Args:
            finding: a lesion that the case has.
            shape: fields of the lesion (``a``, ``b``, ``turn``, ``amount``, ...) and their values, inside the ranges of
                :data:`medground.worlds.phantom.shapes.SHAPES`; ``form`` of an atelectasis: ``plate`` or ``wedge``.

        Raises:
            ConfigError: the case does not have it, or it cannot have this shape.
        """
        _require(finding, [f for f in self.findings if f in LESIONS])
        return self._with(findings=self.findings, shapes={**self.wishes.shapes, finding: shape})

    def in_view(self, view: str) -> Scene:
        """Return the same patient in the other view: heart, domes, pose and exposure as that view has them."""
        if view == self.view:
            return self
        return self._with(view=view, findings=None if self.wishes.findings is None else self.findings)

    def valued(self, values: Mapping[str, Value]) -> Scene:
        """Return the same case with other values of some tasks, see :mod:`medground.worlds.phantom.wishes`."""
        return self._with(values={**self.wishes.values, **values})

    def _with(self, **changes: Any) -> Scene:
        kept = {name: getattr(self.wishes, name) for name in Wishes.__dataclass_fields__}
        before, after = HEART in self.findings, HEART in changes.get("findings", self.findings)
        if before != after and "values" not in changes:
            # The wish for a heart's width gives way to the wish for a finding.
            changes["values"] = {task: value for task, value in kept["values"].items() if task != "cardiomegaly"}
        elif changes.keys() <= {"findings", "attempts", "sizes", "shapes"}:
            return self._lesioned(Wishes(**{**kept, **changes}))
        return make_scene(self.seed, self.case, **{**kept, **changes})

    def _lesioned(self, asked: Wishes) -> Scene:
        """Return the scene with other lesions; thorax, exposure and the rest stay as they are."""
        _check(asked)
        present: tuple[str, ...] = tuple(finding for finding in FINDINGS if finding in (asked.findings or ()))
        lesions = {f: _lesions(self.seed, self.case, f, self.anatomy, asked) for f in present if f in LESIONS}
        return replace(self, wishes=asked, findings=present, lesions=lesions)


def _require(finding: str, there: Sequence[str]) -> None:
    if finding not in there:
        raise ConfigError(
            f"this case has no {finding!r} to remove or move",
            expected=", ".join(there) or "a case with findings",
            fix=did_you_mean(finding, there),
        )


def make_scene(
    seed: int,
    case: int,
    findings: Sequence[str] | None = None,
    attempts: Mapping[str, int] | None = None,
    *,
    population: Population = "default",
    view: str | None = None,
    values: Mapping[str, Value] | None = None,
    sizes: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    devices: Sequence[str] | None = None,
) -> Scene:
    """Return the scene of one case.

    Args:
        seed: of the dataset, 0 or more.
        case: number of the case, 0 or more.
        findings: what is present; by default what the case's own stream says.
        attempts: finding -> number of its place, for those that are pasted elsewhere.
        population: ``default``, or ``tasks`` with balanced labels of the twelve tasks.
        view: PA or AP; by default the case's own. Words and leads then do not follow it.
        values: task -> wanted value; the parameter of the anatomy is solved for.
        sizes: finding -> 0 (smallest) to 1 (largest).
        shapes: finding -> field of its lesions -> value, see :data:`medground.worlds.phantom.shapes.SHAPES`; a size
            comes after them.
        devices: kinds that are there; by default what the devices' streams say.

    Raises:
        ConfigError: an unknown finding, task, device, view or population, or a value that cannot be drawn, here or in
            this case.

    Example:
        >>> scene = make_scene(7, 3, ["Mass"], view="AP", values={"rotation": 0.3}, devices=["tube"])
        >>> scene.findings, scene.view, [device.kind for device in scene.devices]
        (('Mass',), 'AP', ['tube'])
    """
    asked = Wishes(
        None if findings is None else tuple(findings),
        MappingProxyType(dict(attempts or {})),
        population,
        view,
        MappingProxyType(dict(values or {})),
        MappingProxyType(dict(sizes or {})),
        MappingProxyType({finding: MappingProxyType(dict(shape)) for finding, shape in (shapes or {}).items()}),
        None if devices is None else tuple(devices),
    )
    _check(asked)
    seen = view or ("AP" if chance(stream(seed, case, "view"), AP[population]) else "PA")
    wanted, present = _wanted(seed, case, asked, seen)
    anatomy = draw_anatomy(stream(seed, case, "anatomy"), seen)
    exposure = draw_exposure(stream(seed, case, "exposure"), seen)
    if wanted:
        anatomy, exposure = solve(anatomy, exposure, seed, case, wanted)
        check_reached(anatomy, asked.values)
    heart, ratio = anatomy.heart, anatomy.heart_ratio
    if "cardiomegaly" in wanted:
        # What is the same with and without the finding (scatter, for one) is taken from a usual heart.
        anatomy = usual_heart(anatomy)
    elif HEART in present:
        heart, ratio = _enlarged(stream(seed, case, HEART), anatomy)
    follows = seen if view is None and population == "default" else ""
    return Scene(
        seed=seed,
        case=case,
        wishes=asked,
        findings=present,
        anatomy=anatomy,
        heart=heart,
        heart_ratio=ratio,
        lesions={f: _lesions(seed, case, f, anatomy, asked) for f in present if f in LESIONS},
        vessels=draw_vessels(stream(seed, case, "vessels"), anatomy.carina),
        exposure=exposure,
        marker=draw_marker(stream(seed, case, "marker"), follows),
        devices=_devices(seed, case, anatomy, asked, follows),
    )


def _check(asked: Wishes) -> None:
    for kind, names, known in (
        ("finding", asked.findings or (), FINDINGS),
        ("finding", tuple(asked.attempts), FINDINGS),
        ("size of a finding", tuple(asked.sizes), RESIZABLE),
        ("shape of a finding", tuple(asked.shapes), LESIONS),
        ("device", asked.devices or (), DEVICES),
        ("population", (asked.population,), POPULATIONS),
        ("view", () if asked.view is None else (asked.view,), ("PA", "AP")),
    ):
        for name in names:
            if name not in known:
                raise ConfigError(
                    f"a phantom has no {kind} {name!r}", expected=", ".join(known), fix=did_you_mean(name, known)
                )
    for finding, share in asked.sizes.items():
        if not 0 <= share <= 1:
            raise ConfigError(f"a phantom cannot be drawn with this size of {finding}", expected="0 to 1", got=share)
    for finding, shape in asked.shapes.items():
        form, known = shape.get("form"), FORMS.get(finding, ())
        if form is not None and form not in known:
            raise ConfigError(f"a phantom has no such form of {finding}", expected=", ".join(known) or "none", got=form)
    check_wishes(asked.values)


def _wanted(seed: int, case: int, asked: Wishes, view: str) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Return the wanted value of every task that has one, and the findings that are present."""
    tasks = asked.population == "tasks"
    named = asked.findings
    if named is None:
        named = tuple(_drawn_findings(stream(seed, case, "truth"), FINDINGS if not tasks else LESIONS))
    wanted: dict[str, Value] = {}
    if tasks:
        wanted = {task: wish(seed, case, task, view) for task in TASKS}
        if asked.findings is not None:
            wanted["cardiomegaly"] = wish(seed, case, "cardiomegaly", view, int(HEART in named))
    wanted |= asked.values
    present = set(named)
    if "cardiomegaly" in wanted:
        # One rule for the finding and the task: they cannot contradict each other.
        enlarged = judge("cardiomegaly", cast("float", wanted["cardiomegaly"]), view).label
        present = (present - {HEART}) | ({HEART} if enlarged else set())
    return wanted, tuple(finding for finding in FINDINGS if finding in present)


RESIZABLE: Final = ("Effusion", "Mass", "Nodule", "Pneumothorax")
"""Findings whose size is one number."""


def _drawn_findings(rng: np.random.Generator, among: Sequence[str]) -> list[str]:
    count = int(rng.choice(len(COUNTS), p=COUNTS))
    return [among[i] for i in rng.permutation(len(among))[:count]]


def _enlarged(rng: np.random.Generator, anatomy: Anatomy) -> tuple[Heart, float]:
    ratio, heart = uniform(rng, *ENLARGED), anatomy.heart
    half, base, knob = anatomy.cage_half_width, anatomy.dome_peaks[1], anatomy.knob[1]
    return shape_heart(half, ratio, anatomy.heart_share, base, heart.tilt, knob), ratio


def _lesions(seed: int, case: int, finding: str, anatomy: Anatomy, asked: Wishes) -> tuple[Lesion, ...]:
    """Return a finding's lesions: shape, side and place from a stream each."""
    attempt = asked.attempts.get(finding, 0)
    shape, place = stream(seed, case, finding), stream(seed, case, finding, "place", attempt)
    side = int(chance(stream(seed, case, finding, "side"), 0.5)) ^ (attempt % 2)
    wanted = asked.shapes.get(finding, {})
    form = wanted.get("form")
    lesions = make_lesions(finding, shape, place, anatomy, side, None if form is None else str(form))
    lesions = tuple(shaped(finding, lesion, wanted) for lesion in lesions) if wanted else lesions
    if finding in asked.sizes:
        lesions = tuple(resized(finding, lesion, asked.sizes[finding]) for lesion in lesions)
    return lesions


def place_lesions(scene: Scene, finding: str, attempt: int) -> tuple[Lesion, ...]:
    """Return the lesions of a finding at one of its places, whether or not the scene has it."""
    asked = replace(scene.wishes, attempts={**scene.wishes.attempts, finding: attempt})
    return _lesions(scene.seed, scene.case, finding, scene.anatomy, asked)


def _devices(seed: int, case: int, anatomy: Anatomy, asked: Wishes, follows: str) -> tuple[Device, ...]:
    """Return what is on the patient; in the default population leads alone, unless others are asked for."""
    found: list[Device] = []
    for kind in DEVICES:
        if kind == "lead":
            wanted = asked.devices is None or kind in asked.devices
            rng = stream(seed, case, "devices")
            leads = draw_leads(rng, follows) if asked.devices is None else draw_leads(rng, "always") if wanted else ()
            found.extend(leads)
            continue
        rng = stream(seed, case, kind)
        drawn = chance(rng, SHARES[kind]) and asked.population == "tasks"
        if drawn if asked.devices is None else kind in asked.devices:
            found.append(DEVICE_MAKERS[kind](rng, anatomy))
    return tuple(found)
