"""Wordings of the user's turns, as data: what a task is called, asked for, and shown by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """How users speak of a task.

    Attributes:
        topics: noun phrases for the subject.
        values: noun phrases for the measurement.
        questions: yes-or-no questions; half of them are answered with yes for a normal film where that can be said.
        shows: requests for a picture.
        claims: what a premise says for label 0 and for label 1.
    """

    topics: tuple[str, ...]
    values: tuple[str, ...]
    questions: tuple[str, ...]
    shows: tuple[str, ...]
    claims: tuple[str, str]


WORDS: Mapping[str, Words] = {
    "inclusion": Words(
        ("lung inclusion", "whether the whole lungs are on the film", "the coverage of the lungs"),
        ("the margins around the lungs", "the smallest margins at apices, sides and costophrenic angles"),
        ("Were all parts of both lungs captured?", "Is anything of the lungs cut off at the borders?"),
        ("Mark the margins you checked for lung coverage.", "Show me the lung margins on the picture."),
        ("the lungs are cut off", "both lungs are fully captured"),
    ),
    "inspiration": Words(
        ("the depth of inspiration", "the inspiratory effort", "how deep the breath was"),
        ("the number of the right posterior rib at the hemidiaphragm", "the rib that crosses the right diaphragm"),
        ("Was the breath deep enough?", "Is the inspiration poor?"),
        ("Highlight the rib that crosses the right hemidiaphragm.", "Draw that rib and the dome of the diaphragm."),
        ("the breath was deep enough", "the breath was too shallow"),
    ),
    "rotation": Words(
        ("patient rotation", "whether the patient is turned", "the rotation of the film"),
        ("the clavicle distance ratio", "the ratio of the clavicle distances to the spinous line"),
        ("Is the patient rotated?", "Was the patient facing straight, without rotation?"),
        (
            "Overlay the clavicle ends and the spinous line.",
            "Draw how far both clavicles lie from the spinous line.",
        ),
        ("the patient stands straight", "the patient is rotated"),
    ),
    "projection": Words(
        ("the projection", "the projection by the shoulder blades", "which way the film was projected"),
        ("the scapular overlap on each side", "how much of each scapula covers the lung"),
        ("Is this an AP projection?", "Is this a PA projection by the shoulder blades?"),
        ("Draw both scapulae and where they overlap the lungs.", "Show both shoulder blades and the overlap."),
        ("this is a PA projection", "this is an AP projection"),
    ),
    "cardiomegaly": Words(
        ("heart size", "the size of the heart", "possible cardiomegaly"),
        ("the cardiothoracic ratio", "the CTR"),
        ("Is the heart enlarged?", "Is the heart of normal size?"),
        ("Draw the two widths behind the cardiothoracic ratio.", "Show me the outline of the heart and both widths."),
        ("the heart is of normal size", "the heart is enlarged"),
    ),
    "mediastinal_widening": Words(
        ("the width of the mediastinum", "possible mediastinal widening", "the upper mediastinum"),
        ("the mediastinal ratio", "the share of the chest that the mediastinum takes on its row"),
        ("Is the upper mediastinum wide?", "Is the mediastinum of normal width?"),
        ("Draw the mediastinal width.", "Outline the upper mediastinum where it is widest."),
        ("the mediastinum is of normal width", "the mediastinum is widened"),
    ),
    "carina_angle": Words(
        ("the carina angle", "the angle of the main bronchi", "the subcarinal angle"),
        ("the carina angle in degrees", "the subcarinal angle in degrees"),
        ("Is the carina angle normal?", "Is the subcarinal angle abnormal?"),
        ("Point out the three points of the carina angle.", "Draw the two arms of the carina angle."),
        ("the carina angle is normal", "the carina angle is abnormal"),
    ),
    "trachea_deviation": Words(
        ("tracheal position", "possible tracheal deviation", "the position of the windpipe"),
        ("the side on which the trachea lies", "the direction of the trachea against the midline"),
        ("Is the windpipe in the middle?", "Is the trachea deviated?"),
        ("Show the trachea against the vertebral midline.", "Draw the windpipe and the midline."),
        ("the trachea is in the middle", "the trachea is deviated"),
    ),
    "aortic_knob_enlargement": Words(
        ("aortic knob size", "the aortic knob", "the aortic knuckle"),
        ("the ratio of the aortic knob to the trachea", "how many tracheal widths the knob measures"),
        ("Is the aortic knob enlarged?", "Is the aortic knuckle of normal size?"),
        ("Show how the aortic knob was measured.", "Draw the width of the aortic knob."),
        ("the aortic knob is of normal size", "the aortic knob is enlarged"),
    ),
    "ascending_aorta_enlargement": Words(
        ("the ascending aorta", "possible ascending aortic enlargement", "the border of the ascending aorta"),
        ("the share of the ascending aorta beyond the line", "how much of the ascending aorta lies beyond its line"),
        ("Is the ascending aorta enlarged?", "Is the ascending aorta of normal size?"),
        ("Draw the border line for the ascending aorta.", "Outline the ascending aorta and its line."),
        ("the ascending aorta is of normal size", "the ascending aorta is enlarged"),
    ),
    "descending_aorta_enlargement": Words(
        (
            "the width of the descending aorta",
            "possible enlargement of the descending aorta",
            "descending aortic width",
        ),
        ("the ratio of the descending aorta to the trachea", "how many tracheas wide the descending aorta is"),
        ("Is the descending aorta enlarged?", "Is the descending aorta of normal width?"),
        ("Outline the descending aorta where it is widest.", "Draw the width of the descending aorta."),
        ("the descending aorta is of normal width", "the descending aorta is too wide"),
    ),
    "descending_aorta_tortuous": Words(
        ("the tortuosity of the descending aorta", "how winding the descending aorta is", "tortuosity of the aorta"),
        ("the mean curvature of the descending aorta", "the curvature of the descending aortic edge"),
        ("Is the descending aorta winding?", "Is the descending aorta tortuous?"),
        ("Plot the six points used for the curvature.", "Draw the six edge points behind the curvature."),
        ("the descending aorta runs without tortuosity", "the descending aorta is tortuous"),
    ),
}

#: What is asked for -> wordings with ``topic``, ``value`` and ``question`` to be filled in.
ASKED: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("measurement", "criterion", "conclusion"): (
        "Please assess {topic}: give {value}, the criterion and your conclusion.",
        "What about {topic}? I need {value}, the rule you apply and the result.",
        "{question} State {value} and the limit that you apply, too.",
        "I would like your opinion on {topic}, with {value} and the criterion behind it.",
    ),
    ("measurement", "conclusion"): (
        "{question} And what is {value}?",
        "Give me your conclusion on {topic} together with {value}.",
        "How do you judge {topic}, and on what measurement ({value}) do you base it?",
    ),
    ("measurement",): (
        "Only tell me {value}, please.",
        "I just need {value}.",
        "Can you tell me {value}?",
    ),
    ("conclusion",): ("{question}", "In one word if you can: {question}", "Your conclusion on {topic}, please."),
    ("criterion",): (
        "By which criterion do you judge {topic}?",
        "Which rule do you apply for {topic}?",
        "What threshold holds for {topic}?",
    ),
}
CORRECTIONS = (
    "Are you sure? I read {value}.",
    "That surprises me, I get {value}. Are you sure?",
    "Is that right? A colleague has {value}.",
)
RECHECKS = ("Are you sure about that?", "Could you check that again?", "And in words, with the value again?")
FOLLOWING_RULE = ("What threshold did you use there?", "Which criterion is that?", "By which rule do you say that?")
FOLLOWING_PICTURE = (
    "And can you show me that on the image?",
    "Please draw that for me.",
    "Could you mark it on the picture?",
)
PREMISES = ("Since {claim}, {rest}", "Given that {claim}: {rest}", "We know that {claim}. {rest}")
CHATTER = ("Thanks, that helps.", "Good, thank you.", "Understood, thanks.")
WITHOUT_TOOL = ("Is there a pneumothorax?", "Do you see a pleural effusion?", "Is there a nodule in the lungs?")
