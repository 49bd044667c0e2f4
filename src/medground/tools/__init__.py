"""Measurements of a frontal chest radiograph from anatomy masks and landmarks, one file a diagnostic task.

>>> from medground.tools import TASKS, measure
>>> TASKS[4]
'cardiomegaly'
"""

from medground.tools.anatomy import Anatomy, Masks, Segmenter
from medground.tools.base import Mark, Measurement, Tool
from medground.tools.cases import frontal, measure, tool
from medground.tools.rules import RULES, TASKS, Decision, Rule
from medground.tools.sources import Folder, Segmented

__all__ = [
    "RULES",
    "TASKS",
    "Anatomy",
    "Decision",
    "Folder",
    "Mark",
    "Masks",
    "Measurement",
    "Rule",
    "Segmented",
    "Segmenter",
    "Tool",
    "frontal",
    "measure",
    "tool",
]
