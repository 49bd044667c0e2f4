"""A scene: everything that is known about one case before it has pixels.

A scene is a pure function of seed, case and findings. Controls are other scenes of the same case: one finding left
out, or pasted elsewhere, and everything else the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError, did_you_mean
from medground.worlds.phantom.anatomy import Anatomy, draw_anatomy
from medground.worlds.phantom.exposure import Exposure, draw_exposure
from medground.worlds.phantom.findings import ENLARGED, MAKERS, Lesion
from medground.worlds.phantom.heart import Heart, shape_heart
from medground.worlds.phantom.markers import Marker, draw_devices, draw_marker
from medground.worlds.phantom.streams import FINDINGS, chance, stream, uniform
from medground.worlds.phantom.vessels import Segments, draw_vessels

AP: Final = 0.4
"""Share of AP pictures."""

COUNTS: Final = (0.20, 0.45, 0.25, 0.10)
"""Share of cases with 0, 1, 2 and 3 findings."""


@dataclass(frozen=True, eq=False)
class Scene:
    """One case without a resolution.

    Attributes:
        seed: of the dataset.
        case: number of the case.
        findings: what is present, in the order of ``FINDINGS``.
        attempts: finding -> number of its place; 0 where it is missing.
        anatomy: the thorax without any finding.
        heart: its heart; with cardiomegaly an enlarged one.
        heart_ratio: cardiothoracic ratio as drawn.
        lesions: finding -> its lesions (cardiomegaly has none).
        vessels: of the lungs.
        exposure: how the picture is taken.
        marker: letters on it.
        devices: leads and lines.
    """

    seed: int
    case: int
    findings: tuple[str, ...]
    attempts: Mapping[str, int]
    anatomy: Anatomy
    heart: Heart
    heart_ratio: float
    lesions: Mapping[str, tuple[Lesion, ...]]
    vessels: Segments = field(repr=False)
    exposure: Exposure
    marker: Marker
    devices: NDArray[np.float32] = field(repr=False)

    def without(self, finding: str) -> Scene:
        """Return the same case without one of its findings.

        Raises:
            ConfigError: the case does not have it.
        """
        _require(finding, self.findings)
        return make_scene(self.seed, self.case, [f for f in self.findings if f != finding], self.attempts)

    def moved(self, finding: str, attempt: int = 1) -> Scene:
        """Return the same case with one of its findings pasted elsewhere, in the same shape.

        Args:
            finding: one that the case has; cardiomegaly cannot be moved.
            attempt: number of the new place; odd numbers lie in the other lung than the case as it is.

        Raises:
            ConfigError: the case does not have it, or it is the heart itself.
        """
        _require(finding, [f for f in self.findings if f in MAKERS])
        return make_scene(self.seed, self.case, self.findings, {**self.attempts, finding: attempt})


def _require(finding: str, there: Sequence[str]) -> None:
    if finding not in there:
        raise ConfigError(
            f"this case has no {finding!r} to remove or move",
            expected=", ".join(there) or "a case with findings",
            fix=did_you_mean(finding, there),
        )


def make_scene(
    seed: int, case: int, findings: Sequence[str] | None = None, attempts: Mapping[str, int] | None = None
) -> Scene:
    """Return the scene of one case.

    Args:
        seed: of the dataset, 0 or more.
        case: number of the case, 0 or more.
        findings: what is present; by default what the case's own stream says.
        attempts: finding -> number of its place, for those that are pasted elsewhere.

    Raises:
        ConfigError: an unknown finding.
    """
    named = _drawn_findings(stream(seed, case, "truth")) if findings is None else findings
    for finding in named:
        if finding not in FINDINGS:
            raise ConfigError(
                f"a phantom has no finding {finding!r}",
                expected=", ".join(FINDINGS),
                fix=did_you_mean(finding, FINDINGS),
            )
    present = tuple(finding for finding in FINDINGS if finding in named)
    places = dict(attempts or {})
    anatomy = draw_anatomy(stream(seed, case, "anatomy"), "AP" if chance(stream(seed, case, "view"), AP) else "PA")
    heart, ratio = anatomy.heart, anatomy.heart_ratio
    if "Cardiomegaly" in present:
        heart, ratio = _enlarged(stream(seed, case, "Cardiomegaly"), anatomy)
    return Scene(
        seed=seed,
        case=case,
        findings=present,
        attempts=places,
        anatomy=anatomy,
        heart=heart,
        heart_ratio=ratio,
        lesions={f: _lesions(seed, case, f, anatomy, places.get(f, 0)) for f in present if f in MAKERS},
        vessels=draw_vessels(stream(seed, case, "vessels"), anatomy.carina),
        exposure=draw_exposure(stream(seed, case, "exposure"), anatomy.view),
        marker=draw_marker(stream(seed, case, "marker"), anatomy.view),
        devices=draw_devices(stream(seed, case, "devices"), anatomy.view),
    )


def _drawn_findings(rng: np.random.Generator) -> list[str]:
    count = int(rng.choice(len(COUNTS), p=COUNTS))
    return [FINDINGS[i] for i in rng.permutation(len(FINDINGS))[:count]]


def _enlarged(rng: np.random.Generator, anatomy: Anatomy) -> tuple[Heart, float]:
    ratio, heart = uniform(rng, *ENLARGED), anatomy.heart
    half, base, knob = anatomy.cage_half_width, anatomy.dome_peaks[1], anatomy.knob[1]
    return shape_heart(half, ratio, anatomy.heart_share, base, heart.tilt, knob), ratio


def _lesions(seed: int, case: int, finding: str, anatomy: Anatomy, attempt: int) -> tuple[Lesion, ...]:
    """Return a finding's lesions: shape, side and place from a stream each."""
    shape, place = stream(seed, case, finding), stream(seed, case, finding, "place", attempt)
    side = int(chance(stream(seed, case, finding, "side"), 0.5)) ^ (attempt % 2)
    return MAKERS[finding](shape, place, anatomy, side)
