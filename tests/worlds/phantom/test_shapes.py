"""Lesions of a wished shape: the field asked for, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import ConfigError
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.findings import LESIONS
from medground.worlds.phantom.scene import make_scene
from medground.worlds.phantom.shapes import FORMS, SHAPES, form_of

FIELDS = [(form, name) for form in SHAPES for name in SHAPES[form]]


def finding_of(form: str) -> str:
    return next((finding for finding, forms in FORMS.items() if form in forms), form)


def test_what_is_drawn_lies_inside_the_stated_ranges() -> None:
    seen: dict[tuple[str, str], list[float]] = {}
    for case in range(250):
        for finding, lesions in make_scene(81, case, LESIONS).lesions.items():
            for lesion in lesions:
                form = form_of(finding, lesion)
                for name in SHAPES[form]:
                    seen.setdefault((form, name), []).append(getattr(lesion, name))
    assert sorted(seen) == sorted(FIELDS)
    for (form, name), values in seen.items():
        low, high = SHAPES[form][name]
        assert low <= min(values), (form, name)
        assert max(values) <= high, (form, name)
        assert max(values) - min(values) > 0.5 * (high - low), (form, name)


@settings(max_examples=40, derandomize=True)
@given(field=st.sampled_from(FIELDS), share=st.floats(0, 1), case=st.integers(0, 30))
def test_a_field_has_the_value_asked_for_and_all_else_stays(field: tuple[str, str], share: float, case: int) -> None:
    form, name = field
    finding = finding_of(form)
    low, high = SHAPES[form][name]
    value = min(low + share * (high - low), high)
    forms = {"form": form} if finding in FORMS else {}
    plain = make_scene(82, case, [finding, "Cardiomegaly"], shapes={finding: forms})
    asked = plain.shaped(finding, **forms, **{name: value})
    assert (
        asked.lesions
        == make_scene(82, case, [finding, "Cardiomegaly"], shapes={finding: {**forms, name: value}}).lesions
    )
    for before, after in zip(plain.lesions[finding], asked.lesions[finding], strict=True):
        assert form_of(finding, after) == form
        assert after == before._replace(**{name: value})


@pytest.mark.parametrize("form", ["plate", "wedge"])
def test_either_form_of_an_atelectasis_can_be_had_of_any_case(form: str) -> None:
    for case in range(10):
        scene = make_scene(83, case, ["Atelectasis"], shapes={"Atelectasis": {"form": form}})
        assert {form_of("Atelectasis", lesion) for lesion in scene.lesions["Atelectasis"]} == {form}
        drawn = make_scene(83, case, ["Atelectasis"])
        if form_of("Atelectasis", drawn.lesions["Atelectasis"][0]) == form:
            assert drawn.lesions == scene.lesions


def test_a_longer_mass_is_drawn_longer() -> None:
    scene = make_scene(84, 1, ["Mass"]).shaped("Mass", a=0.05, b=0.05, rough=0.05)
    long = scene.shaped("Mass", a=0.10, b=0.05, rough=0.05)
    areas = [draw(one, 224).findings["Mass"].sum() for one in (scene, long)]
    assert areas[1] / areas[0] == pytest.approx(2, rel=0.12)


def test_a_denser_pneumonia_is_brighter() -> None:
    faint = make_scene(85, 2, ["Pneumonia"], shapes={"Pneumonia": {"amount": 0.30}})
    dense = faint.shaped("Pneumonia", amount=0.50)
    one, two = draw(faint, 128), draw(dense, 128)
    mask = one.findings["Pneumonia"]
    assert np.array_equal(mask, two.findings["Pneumonia"])
    assert two.pixels[mask].mean() > one.pixels[mask].mean() + 5


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"Masss": {"a": 0.06}}, "no shape of a finding 'Masss'"),
        ({"Cardiomegaly": {"a": 0.06}}, "no shape of a finding"),
        ({"Mass": {"length": 0.06}}, "no 'length'"),
        ({"Mass": {"a": 0.5}}, "cannot be drawn with this a"),
        ({"Mass": {"a": "large"}}, "cannot be drawn with this a"),
        ({"Mass": {"form": "plate"}}, "no such form"),
        ({"Atelectasis": {"form": "ball"}}, "no such form"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(shapes: dict[str, dict[str, float | str]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_scene(0, 0, ["Mass", "Atelectasis"], shapes=shapes)
