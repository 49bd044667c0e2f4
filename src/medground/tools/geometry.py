"""Small measuring kernels that several tasks share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from medground.tools.anatomy import Box

Points = NDArray[np.float64]


def vertical_line(points: Points) -> tuple[float, float]:
    """Fit x = m y + b through points (n, 2) by least squares; returns m, b.

    >>> vertical_line(np.array([[3.0, 0.0], [5.0, 2.0]]))
    (1.0, 3.0)
    """
    y = points[:, 1] - points[:, 1].mean()
    x = points[:, 0]
    spread = float(y @ y)
    slope = float(y @ x) / spread if spread else 0.0
    return slope, float(x.mean() - slope * points[:, 1].mean())


def angle(apex: Points, first: Points, second: Points) -> float:
    """Angle at ``apex`` between two points, in degrees (0 to 180)."""
    a, b = first - apex, second - apex
    cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def differences(values: Points) -> Points:
    """First derivative over the index: forward at the start, central inside, backward at the end."""
    return np.gradient(values)


def mean_curvature(points: Points) -> tuple[float, list[float]]:
    """Mean of |x'y'' - y'x''| / (x'^2 + y'^2)^1.5 over points (n, 2); a zero denominator counts as 0.

    The second derivative is the first applied twice.
    """
    dx, dy = differences(points[:, 0]), differences(points[:, 1])
    ddx, ddy = differences(dx), differences(dy)
    speed = (dx * dx + dy * dy) ** 1.5
    bend = np.abs(ddx * dy - ddy * dx)
    curvature = np.divide(bend, speed, out=np.zeros_like(bend), where=speed > 0)
    return float(curvature.mean()), [float(value) for value in curvature]


def median_width(box: Box) -> float:
    """Median of xmax - xmin over all rows of a mask."""
    _, first, last = box.rows()
    return float(np.median(last - first))


def lung_ratio(right: Box, left: Box) -> float:
    """Smaller over larger extent of the two lungs."""
    longer = max(right.width, left.width)
    return min(right.width, left.width) / longer if longer else 0.0
