"""Damaged files of every kind that is read: read, or refused with a sentence; ``make torture`` tries 5,000 of each."""

from __future__ import annotations

import numpy as np
import pytest
from torture.fuzzing import KINDS, damage, fuzz

from medground.errors import MedgroundError


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_read_or_refused(kind: str) -> None:
    count = fuzz(kind, 120, seed=5)
    assert count.escaped == []
    assert count.changed == 0
    assert count.tried == count.read + count.refused == 120
    assert count.refused > 20  # the damage is felt


@pytest.mark.parametrize(
    ("kind", "number"), [("DICOM", 2862), ("DICOM", 2893), ("table, zipped", 115), ("table, zipped", 3158)]
)
def test_damage_that_once_escaped_is_refused(kind: str, number: int) -> None:
    sound, read, _ = KINDS[kind]()
    with pytest.raises(MedgroundError):
        read(damage(sound, np.random.default_rng((0, number))))


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_file_is_read(kind: str) -> None:
    sound, read, _ = KINDS[kind]()
    assert read(sound) is not None


def test_damage_can_be_made_again() -> None:
    content = bytes(range(200))
    made = [damage(content, np.random.default_rng((1, n))) for n in range(30)]
    assert made == [damage(content, np.random.default_rng((1, n))) for n in range(30)]
    assert len(set(made)) > 25
