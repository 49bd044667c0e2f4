"""The kernels against slow, obvious versions, and without compilation."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from medground.worlds.phantom.anatomy import Pose
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.exposure import _blur
from medground.worlds.phantom.lesions import noise
from medground.worlds.phantom.outlines import AXIS, UNIT, _table
from medground.worlds.phantom.scene import make_scene
from medground.worlds.phantom.tables import lookup, share, smooth
from medground.worlds.phantom.vessels import capsules


def test_lookups_interpolate_and_hold_the_ends() -> None:
    table = np.sin(AXIS).astype(np.float32)
    for at in (-5.0, -0.7, -0.123, 0.5, 1.3, 7.0):
        assert lookup(table, at) == pytest.approx(np.interp(at, AXIS, table), abs=1e-5)
    other = (UNIT**2).astype(np.float32)
    for t in (-1.0, 0.0, 0.31, 1.0, 2.0):
        assert share(other, t) == pytest.approx(np.interp(t, UNIT, other), abs=1e-5)


def test_outlines_are_scipys_monotone_cubic_to_the_last_bit() -> None:
    rng = np.random.default_rng(8)
    for n in (3, 5, 9, 14):
        for flat in (False, True):
            x = np.cumsum(rng.uniform(0.01, 0.4, n)) - 0.6
            y = rng.normal(size=n)
            if flat:
                y[n // 2] = y[n // 2 - 1]
            expected = PchipInterpolator(x, y)(np.clip(AXIS, x[0], x[-1])).astype(np.float32)
            assert np.array_equal(_table(x.tolist(), y.tolist()), expected)


def test_kernels_take_an_anatomy_without_its_text() -> None:
    anatomy = make_scene(0, 0, population="tasks").anatomy
    assert anatomy.numbers[1:] == anatomy[1:]
    assert not any(isinstance(part, str) for part in anatomy.numbers)


def test_the_step_is_smooth_and_bounded() -> None:
    values = [smooth(x) for x in np.linspace(-1, 2, 301)]
    assert values[0] == 0
    assert values[-1] == 1
    assert np.all(np.diff(values) >= 0)
    assert smooth(0.5) == 0.5


def test_noise_is_bounded_continuous_and_seeded() -> None:
    line = np.array([noise(x, 0.3, 5) for x in np.linspace(-4, 4, 801)])
    assert np.abs(line).max() <= 1
    assert np.abs(np.diff(line)).max() < 0.05
    assert line.std() > 0.2
    assert not np.allclose(line, [noise(x, 0.3, 6) for x in np.linspace(-4, 4, 801)])


def test_blur_equals_three_box_means() -> None:
    image = np.random.default_rng(0).random((17, 17))
    expected = image
    for _ in range(3):
        for axis in (0, 1):
            padded = np.pad(expected, [(2, 2) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
            expected = np.mean([np.roll(padded, -k, axis).take(range(17), axis) for k in range(5)], axis=0)
    assert np.allclose(_blur(image, 2), expected)


def test_a_capsule_lies_around_its_segment() -> None:
    segment = np.array([[0.1, 0.3, 0.4, 0.3, 0.05, 1.0]], np.float32)
    out = np.zeros((100, 100), np.float32)
    capsules(segment, Pose(1.0, 0.0, -0.5, 0.0), 1.0, out)
    rows, columns = np.nonzero(out)
    assert (rows.min(), rows.max()) == (25, 34)
    assert (columns.min(), columns.max()) == (55, 94)
    assert out[:, 70].argmax() in {29, 30}


def test_the_plain_functions_draw_the_same_picture() -> None:
    """NUMBA_DISABLE_JIT runs the kernels as Python: last bits of float32 aside, the same."""
    script = (
        "import numpy as np, sys;"
        "from medground.worlds.phantom.drawing import draw;"
        "from medground.worlds.phantom.scene import make_scene;"
        "sys.stdout.buffer.write(draw(make_scene(2, 0, ['Pneumonia', 'Pneumothorax']), 64).pixels.tobytes())"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment)
    plain = np.frombuffer(done.stdout, np.uint8).reshape(64, 64).astype(int)
    compiled = draw(make_scene(2, 0, ["Pneumonia", "Pneumothorax"]), 64).pixels.astype(int)
    assert np.abs(plain - compiled).max() <= 1
