"""The values of the twelve tasks in one scene, as drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from medground.worlds.phantom import geometry
from medground.worlds.phantom.scene import Scene
from medground.worlds.phantom.tasks import TaskFact, Value, judge


def values(scene: Scene) -> Mapping[str, Value | None]:
    """Return task -> value; None where the task has none in this scene (a dome between two ribs)."""
    a, ratio = scene.anatomy, scene.heart_ratio
    top = geometry.seen_from(a.pose, scene.exposure.edges)
    return {
        "inclusion": geometry.margins(a, scene.exposure.edges),
        "inspiration": geometry.inspiration(a),
        "rotation": geometry.rotation(a),
        "projection": geometry.projection(a),
        "cardiomegaly": geometry.cardiothoracic(a, ratio),
        "mediastinal_widening": float(geometry.mediastinum(a)),
        "carina_angle": geometry.carina_angle(a),
        "trachea_deviation": geometry.trachea_direction(geometry.trachea_levels(a, top)),
        "aortic_knob_enlargement": geometry.knob_ratio(a),
        "ascending_aorta_enlargement": geometry.ascending_share(a, scene.heart, ratio) if a.ascending[2] else None,
        "descending_aorta_enlargement": geometry.descending_ratio(a),
        "descending_aorta_tortuous": float(geometry.tortuosity(a)),
    }


_REASONS: Final = {
    "inspiration": "the dome lies between two ribs",
    "ascending_aorta_enlargement": "no ascending aorta stands apart",
}


def task_facts(scene: Scene) -> Mapping[str, TaskFact]:
    """Return task -> what is true of it; a lung cut at the side has no width, so no cardiothoracic ratio."""
    drawn = values(scene)
    facts = {}
    for task, value in drawn.items():
        if value is None:
            facts[task] = TaskFact(task, float("nan"), float("nan"), None, reason=_REASONS[task])
        else:
            facts[task] = judge(task, value, scene.view)
    margins = drawn["inclusion"]
    assert isinstance(margins, dict)
    if min(margins["side_right"], margins["side_left"]) <= 0:
        cut = facts["cardiomegaly"]
        reason = "a lung is cut at the side: the chest has no width"
        facts["cardiomegaly"] = TaskFact(cut.task, cut.value, cut.rounded, None, reason=reason)
    return facts
