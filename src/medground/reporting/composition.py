"""What a benchmark's component hands to the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from medground.reporting.figures.base import ReportFigure
from medground.reporting.moments import Moment
from medground.reporting.tables import Table


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        anchor: its id, unique on the page.
        title: its heading, and its entry in the navigation.
        template: what draws it.
        content: what the template needs beside the section itself.
        tables: what it shows, in order.
        figures: what it shows, in order.
    """

    anchor: str
    title: str
    template: str
    content: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    figures: Sequence[ReportFigure] = ()


@dataclass(frozen=True)
class Composition:
    """What a benchmark says.

    Attributes:
        subject: what was looked at, for the page's title: models on datasets.
        summary: (kind of sign, sentence) of the page's head: the answers in brief.
        facts: (name, text) of the page's head: models, datasets, protocol.
        sections: in order, the verdict first.
        data: id of a block -> JSON-like data for the scripts of a template.
        moments: the best and the worst item of every model at a question, for the trust report.
    """

    subject: str
    summary: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    data: Mapping[str, Any] = field(default_factory=dict)
    moments: Sequence[Moment] = ()
