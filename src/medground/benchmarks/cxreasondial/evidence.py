"""From a tool's measurement to the evidence of a request, and from evidence to sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medground.errors import DataError
from medground.judges.base import Conclusion, Criterion, Evidence, Landmark, Quantity, Request
from medground.tools import Measurement, tool
from medground.tools.rules import NONE, RULES

#: Task -> name of its one measured number.
_NAMES = {
    "inspiration": "rib_position",
    "rotation": "ratio",
    "cardiomegaly": "ctr",
    "mediastinal_widening": "mcr",
    "carina_angle": "angle",
    "trachea_deviation": "direction",
    "aortic_knob_enlargement": "ratio",
    "ascending_aorta_enlargement": "share_beyond_line",
    "descending_aorta_enlargement": "ratio",
    "descending_aorta_tortuous": "curvature",
}


def evidence_of(measurement: Measurement, view: str | None, visual_ref: str | None = None) -> Evidence:
    """Return what a reply about a measured task is held against.

    Args:
        measurement: not a dropped one.
        view: of the picture as the dialogue states it; None withholds every label that hangs on the view.
        visual_ref: path of an overlay.

    Raises:
        DataError: quality control dropped the case, so there is no evidence.
    """
    if measurement.status == "dropped":
        raise DataError(f"{measurement.task} was not measured", got=measurement.reason or "")
    decision = measurement.decision
    if RULES[measurement.task].by_view:
        rule = tool(measurement.task).rule  # type: ignore[attr-defined]
        decision = rule.decide(measurement.rounded, view) if view is not None else NONE
    conclusion = Conclusion(decision.conclusion, decision.label, decision.acceptable)
    points = tuple(Landmark(name, round(x, 1), round(y, 1)) for name, (x, y) in measurement.landmarks.items())
    return Evidence(_quantities(measurement), _criterion(measurement.task, view), points, conclusion, visual_ref)


def _quantities(measurement: Measurement) -> tuple[Quantity, ...]:
    task, rule = measurement.task, RULES[measurement.task]
    if task == "inclusion":
        return _margins(measurement)
    if task == "projection":
        sides = zip(("right", "left"), measurement.rounded, strict=True)
        return tuple(Quantity("overlap_ratio", value, rule.unit, rule.tolerance, side) for side, value in sides)
    value = measurement.value if measurement.rounded is None else measurement.rounded
    if task == "ascending_aorta_enlargement":
        value = round(value, 2)
    first = Quantity(_NAMES[task], value, rule.unit, rule.tolerance)
    if task != "rotation":
        return (first,)
    distances = (
        Quantity("distance", round(float(measurement.parts[f"distance_{side}"]), 1), "px", None, side)
        for side in ("right", "left")
        if f"distance_{side}" in measurement.parts
    )
    return (first, *distances)


def _margins(measurement: Measurement) -> tuple[Quantity, ...]:
    value: Mapping[str, float] = measurement.value
    parts = measurement.parts["parts"]
    words = {"apex": "apex", "side": "lateral border", "bottom": "costophrenic angle"}
    cut = next((name for name, state in parts.items() if state == "out"), None)
    named = None if cut is None else f"{cut.split('_')[1]} {words[cut.split('_')[0]]}"
    smallest = (
        Quantity(
            f"{part}_margin_min", round(max(min(value[f"{part}_right"], value[f"{part}_left"]), 0.0), 3), "fraction"
        )
        for part in words
    )
    return (*smallest, Quantity("cut_off_part", named, "part"))


def _criterion(task: str, view: str | None) -> Criterion:
    rule = RULES[task]
    texts = {
        "inclusion": "Needed are 0.01 at the apex, 0.005 at the side and 0.09 at the bottom.",
        "inspiration": "Nine or more ribs count as a good breath.",
        "rotation": "A clavicle ratio of at least 0.4 means no rotation.",
        "projection": "A scapular overlap of at least 0.3 on both sides indicates AP; below it on both sides, PA.",
        "carina_angle": "The normal range of the carina angle is 40 to 80 degrees.",
        "trachea_deviation": "A level counts only if the whole trachea lies beyond the vertebral line.",
        "aortic_knob_enlargement": "An aortic knob is called enlarged from 2.5 tracheal widths.",
        "ascending_aorta_enlargement": "Enlargement of the ascending aorta is called when a share from 0.1 up to 0.3 "
        "lies beyond the line; none beyond it is normal.",
        "descending_aorta_enlargement": "The limit for the descending aorta is 2.5 tracheal widths.",
        "descending_aorta_tortuous": "From a curvature of 0.0009 the course is called tortuous.",
    }
    if rule.by_view:
        limit = rule.threshold(view)
        if limit is None:
            return Criterion(None, ">=", None)
        what = "limit of the cardiothoracic ratio" if task == "cardiomegaly" else "cut-off of the mediastinal ratio"
        return Criterion(f"On {view} films the {what} is {limit:.2f}.", ">=", limit, view)
    thresholds: Any = rule.thresholds.get("all")
    if task == "inclusion":
        thresholds = {part: rule.thresholds[part] for part in ("apex", "side", "bottom")}
    elif task == "ascending_aorta_enlargement":
        thresholds = {"no": 0, "yes": [0.1, 0.3]}
    op = {"carina_angle": "within", "trachea_deviation": "all_beyond", "ascending_aorta_enlargement": "share"}
    return Criterion(texts[task], op.get(task, ">="), list(thresholds) if isinstance(thresholds, tuple) else thresholds)


#: What a withheld label or limit is about.
_SHORT = {task: task.replace("_", " ") for task in RULES} | {
    "inclusion": "inclusion of the lungs",
    "cardiomegaly": "heart",
    "mediastinal_widening": "mediastinum",
    "aortic_knob_enlargement": "aortic knob",
    "ascending_aorta_enlargement": "ascending aorta",
    "descending_aorta_enlargement": "descending aorta",
}
_CONCLUSIONS = {
    "included": "The lungs are fully included.",
    "not included": "The lungs are not fully included.",
    "good inspiration": "Inspiration is good.",
    "poor inspiration": "Inspiration is poor.",
    "rotated": "The patient is rotated.",
    "not rotated": "The patient is not rotated.",
    "AP": "This is an AP projection.",
    "PA": "This is a PA projection.",
    "cardiomegaly": "Cardiomegaly is present.",
    "no cardiomegaly": "There is no cardiomegaly.",
    "mediastinal widening": "The mediastinum is widened.",
    "no mediastinal widening": "The mediastinum is not widened.",
    "normal carina angle": "The carina angle is normal.",
    "abnormal carina angle": "The carina angle is abnormal.",
    "deviated": "The trachea is deviated.",
    "not deviated": "The trachea is not deviated.",
}


def sentences(request: Request, parts: tuple[str, ...] | None = None) -> str:
    """Say a request's evidence in words: the parts that were asked for, or those given.

    Example:
        >>> criterion = Criterion("On PA films the limit is 0.50.", ">=", 0.5, "PA")
        >>> found = Evidence((Quantity("ctr", 0.57, "ratio", 0.01),), criterion, (), Conclusion(None, None))
        >>> sentences(Request("cardiomegaly", "diagnostic", found, ("measurement",)))
        'The cardiothoracic ratio is 0.57.'
    """
    wanted = request.asked if parts is None else parts
    if request.evidence_type == "visual":
        return _drawn(request)
    out = []
    if "measurement" in wanted:
        out.append(_measured(request))
    if "criterion" in wanted:
        withheld = f"Without knowing the view no limit can be chosen for the {_SHORT[request.task]}."
        out.append(request.evidence.criterion.text or withheld)
    if "conclusion" in wanted:
        out.append(conclusion(request.task, request.evidence.conclusion.label))
    return " ".join(out)


def conclusion(task: str, label: str | None) -> str:
    """The sentence for a conclusion."""
    if label is None:
        why = "As the view is unknown" if RULES[task].by_view else "As the value lies between the classes"
        return f"{why}, no label can be given for the {_SHORT[task]}."
    return _CONCLUSIONS.get(label) or f"The {_with_verb(label)}."


def _with_verb(label: str) -> str:
    """Give a label its verb: aortic knob not enlarged, aortic knob is not enlarged."""
    noun, _, adjective = label.rpartition(" ")
    noun, negated = noun.removesuffix(" not"), noun.endswith(" not")
    return f"{noun} is not {adjective}" if negated else f"{noun} is {adjective}"


def _measured(request: Request) -> str:
    values = request.evidence.measurements
    first = values[0].value
    if request.task == "inclusion":
        text = (
            f"The smallest margins are {values[0].value:.3f} at the apices, {values[1].value:.3f} beside the lateral "
            f"ribs and {values[2].value:.3f} below the costophrenic angles"
        )
        return f"{text} (the {values[3].value} is cut off)." if values[3].value else f"{text}."
    if request.task == "rotation" and len(values) < 3:
        return f"The ratio of the clavicle distances to the spinous line is {first:.2f}."
    if request.task == "rotation":
        return (
            f"The medial clavicle ends lie {values[1].value:.0f} px (right) and {values[2].value:.0f} px (left) from "
            f"the spinous line, a ratio of {first:.2f}."
        )
    if request.task == "projection":
        return f"The scapula overlaps the lung by {first:.2f} on the right and {values[1].value:.2f} on the left."
    if request.task == "trachea_deviation":
        return _side(str(first))
    texts = {
        "inspiration": "On the mid-clavicular line right posterior rib {0} crosses the right hemidiaphragm.",
        "cardiomegaly": "The cardiothoracic ratio is {0:.2f}.",
        "mediastinal_widening": "The upper mediastinum measures {0:.2f} of the lung-to-lung width on that row.",
        "carina_angle": "The carina angle is {0} degrees.",
        "aortic_knob_enlargement": "The aortic knob is {0:.2f} times as wide as the trachea.",
        "ascending_aorta_enlargement": "A share of {0:.2f} of the ascending aorta lies beyond the line from the right "
        "heart border to the tracheal bottom.",
        "descending_aorta_enlargement": "The descending aorta is at most {0:.2f} times the tracheal width.",
        "descending_aorta_tortuous": "The mean curvature of the descending aortic edge is {0:.4f}.",
    }
    return texts[request.task].format(first)


def _side(direction: str) -> str:
    if direction == "flat":
        return "The trachea touches the midline on most levels."
    if "&" in direction:
        first, second = direction.split("&")
        return f"The trachea lies first to the patient's {first} of the midline and further down to the {second}."
    return f"The trachea lies wholly to the patient's {direction} of the midline on most levels."


def _drawn(request: Request) -> str:
    points = ", ".join(
        f"{landmark.name.replace('_', ' ')} at ({landmark.x:.0f}, {landmark.y:.0f})"
        for landmark in request.evidence.landmarks
    )
    what = f"The overlay shows what was measured for {request.task.replace('_', ' ')}."
    return f"{what} Marked points: {points}." if points else what
