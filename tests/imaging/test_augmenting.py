"""Small changes of pictures and regions against pixel by pixel loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from medground.errors import ConfigError
from medground.imaging.augmenting import KINDS, Augmentation, other_side
from medground.imaging.reading import Radiograph
from medground.imaging.regions import Region


def picture(height: int = 12, width: int = 17) -> Radiograph:
    return Radiograph(np.random.default_rng(4).random((height, width)).astype(np.float32), "c", "p")


def region() -> Region:
    """A box, a polygon and a mask in one frame."""
    mask = np.zeros((12, 17), dtype=bool)
    mask[8:11, 1:3] = True
    parts = (
        Region.from_boxes((17, 12), [(2, 3, 6, 5)]),
        Region.from_polygons((17, 12), [[(9, 1), (14, 2), (11, 6)]]),
        Region.from_mask(mask),
    )
    return Region.union(*parts)


def moved_by_hand(array, right, down):
    made = np.zeros_like(array)
    for y in range(array.shape[0]):
        for x in range(array.shape[1]):
            if 0 <= y - down < array.shape[0] and 0 <= x - right < array.shape[1]:
                made[y, x] = array[y - down, x - right]
    return made


def steps_found(plain, changed):
    """Return the whole steps by which one array is another's shift."""
    reach = range(-8, 9)
    return [(r, d) for r in reach for d in reach if (r, d) != (0, 0) and (moved_by_hand(plain, r, d) == changed).all()]


@pytest.mark.parametrize("case_id", [f"c{i}" for i in range(6)])
def test_a_shift_moves_picture_and_region_by_the_same_whole_pixels(case_id: str) -> None:
    how, image = Augmentation("shift", 0.25), picture()
    changed = how.picture(image, case_id)
    ((right, down),) = steps_found(image.pixels, changed.pixels)
    assert math.hypot(right, down) == pytest.approx(0.25 * 12, abs=1)
    assert (how.region(region(), case_id).mask() == moved_by_hand(region().mask(), right, down)).all()
    assert changed.size == image.size


def test_directions_differ_between_cases_and_repeat_for_each() -> None:
    image = picture()
    made = [Augmentation("shift", 0.25).picture(image, f"c{i}").pixels for i in range(8)]
    assert len({array.tobytes() for array in made}) > 4
    assert (Augmentation("shift", 0.25).picture(image, "c3").pixels == made[3]).all()
    other = Augmentation("noise", seed=1).picture(image, "c").pixels
    assert (other != Augmentation("noise", seed=2).picture(image, "c").pixels).any()


def test_a_flip_is_its_own_inverse_and_takes_the_region_along() -> None:
    how, image = Augmentation("flip"), picture()
    changed, where = how.picture(image, "c"), how.region(region(), "c")
    for x in range(17):
        assert (changed.pixels[:, x] == image.pixels[:, 16 - x]).all()
        assert (where.mask()[:, x] == region().mask()[:, 16 - x]).all()
    assert (how.picture(changed, "c").pixels == image.pixels).all()
    assert (how.region(where, "c").mask() == region().mask()).all()


def turned_by_hand(array, degrees, *, nearest):
    """Look up each pixel's middle where it was before the turn, counter-clockwise, about the middle of the picture."""
    height, width = array.shape
    made, angle = np.zeros(array.shape), math.radians(degrees)
    for y in range(height):
        for x in range(width):
            dx, dy = x + 0.5 - width / 2, y + 0.5 - height / 2
            sx = math.cos(angle) * dx - math.sin(angle) * dy + width / 2
            sy = math.sin(angle) * dx + math.cos(angle) * dy + height / 2
            if not (0 <= sx < width and 0 <= sy < height):
                continue
            if nearest:
                made[y, x] = array[int(sy), int(sx)]
                continue
            fx, fy = sx - 0.5, sy - 0.5
            x0, y0 = math.floor(fx), math.floor(fy)
            for yy, wy in ((y0, 1 - (fy - y0)), (y0 + 1, fy - y0)):
                for xx, wx in ((x0, 1 - (fx - x0)), (x0 + 1, fx - x0)):
                    made[y, x] += wy * wx * array[min(max(yy, 0), height - 1), min(max(xx, 0), width - 1)]
    return made


@pytest.mark.parametrize("case_id", ["a", "b", "c", "d"])
def test_a_turn_takes_picture_and_region_the_same_way(case_id: str) -> None:
    how, image = Augmentation("turn", 20), picture(30, 24)
    mask = np.zeros((30, 24), dtype=bool)
    mask[5:14, 3:9] = True
    changed = how.picture(image, case_id).pixels
    errors = {
        degrees: np.abs(turned_by_hand(image.pixels, degrees, nearest=False) - changed).max() for degrees in (-20, 20)
    }
    degrees = min(errors, key=errors.__getitem__)
    assert errors[degrees] < 1e-4 < errors[-degrees]
    found = how.region(Region.from_mask(mask), case_id).mask()
    expected = turned_by_hand(mask, degrees, nearest=True) > 0
    assert np.count_nonzero(found != expected) <= 2  # a middle that lies on a pixel's edge
    box = how.region(Region.from_boxes((24, 30), [(3, 5, 9, 14)]), case_id)
    assert (box.mask() == found).all()


def test_values_change_by_their_amounts_and_stay_in_their_range() -> None:
    image = picture(60, 60)
    values = image.pixels.astype(float)
    assert Augmentation("brightness", 0.2).picture(image, "c").pixels == pytest.approx(np.minimum(values + 0.2, 1))
    stretched = np.clip(0.5 + 1.5 * (values - 0.5), 0, 1)
    assert Augmentation("contrast", 0.5).picture(image, "c").pixels == pytest.approx(stretched, abs=1e-6)
    grey = Radiograph(np.full((200, 200), 0.5, np.float32))
    noise = Augmentation("noise", 0.05).picture(grey, "c").pixels - 0.5
    assert float(noise.std()) == pytest.approx(0.05, rel=0.03)
    assert abs(float(noise.mean())) < 0.001


@pytest.mark.parametrize("kind", ["brightness", "contrast", "noise"])
def test_what_does_not_move_leaves_regions_alone(kind: str) -> None:
    how = Augmentation(kind)  # type: ignore[arg-type]  # one of the kinds
    assert not how.moves
    assert how.region(region(), "c") == region()


def test_what_leaves_the_picture_is_gone() -> None:
    how = Augmentation("shift", 0.5)
    ids = [f"c{i}" for i in range(200)]
    corner = Region.from_boxes((20, 20), [(0, 0, 2, 2)])
    left = [name for name in ids if how.region(corner, name).is_empty]
    assert 0 < len(left) < len(ids)
    for name in left:
        assert not moved_by_hand(corner.mask(), *how._steps((20, 20), name)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_amounts_out_of_range_are_refused(kind: str) -> None:
    for amount in (0.0, -2.0, 50.0, float("nan")):
        with pytest.raises(ConfigError, match="out of range"):
            Augmentation(kind, amount)  # type: ignore[arg-type]  # one of the kinds


def test_sides_are_exchanged_in_words_alone() -> None:
    told = {
        "LEFT LATERAL": "RIGHT LATERAL",
        "Left Pleural Effusion": "Right Pleural Effusion",
        "right_lung": "left_lung",
        "upright, bilateral, leftover": "upright, bilateral, leftover",
        "Levoscoliosis": "Dextroscoliosis",
        "Mass": "Mass",
    }
    for words, expected in told.items():
        assert other_side(words) == expected
        assert other_side(expected) == words
