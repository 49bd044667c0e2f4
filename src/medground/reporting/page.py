"""The page: templates, styles and scripts in one file that asks nothing of the world.

Everything that came from data is escaped by the templates; data for scripts lies in blocks that are not run. The
content-security policy allows the page's own scripts and styles by their hashes and nothing else, so that a string
that did get through could still not run or load anything.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from medground.reporting.composition import Composition, Section
from medground.reporting.exports import exports
from medground.reporting.figures.base import ReportFigure
from medground.reporting.tables import Table

FIRST = ("strict.js",)
SCRIPTS = ("tables.js", "figures.js", "overlay.js", "cases.js")
STYLES = ("page.css", "tables.css", "cases.css", "dialogues.css", "print.css")
_TAKEN = "/* Plotly looks for this element, and would otherwise add one of its own, which the policy refuses. */"
_MIME = {"csv": "text/csv", "md": "text/markdown", "tex": "application/x-tex"}
_NAMES = {"csv": "CSV", "md": "Markdown", "tex": "LaTeX"}


def render(compositions: Sequence[Composition], origin: str, provenance: Section) -> str:
    """Return the page as HTML.

    Args:
        compositions: one a benchmark.
        origin: the runs and their dates.
        provenance: the last section.
    """
    sections = [section for composition in compositions for section in composition.sections] + [provenance]
    figures = [figure for section in sections for figure in section.figures]
    plotly = [_plotly()] if figures else []
    scripts = [_read("assets", FIRST), *plotly, _read("assets", SCRIPTS)]
    styles = {"": _read("assets", STYLES)} | dict.fromkeys(_style_ids("".join(plotly)), _TAKEN)
    blocks = {"figures": [_drawn(figure) for figure in figures]}
    for composition in compositions:
        blocks |= composition.data
    page = environment().get_template("page.html")
    return page.render(
        title="; ".join(composition.subject for composition in compositions),
        origin=origin,
        summary=[line for composition in compositions for line in composition.summary],
        facts=[fact for composition in compositions for fact in composition.facts],
        sections=sections,
        policy=policy(scripts, styles.values()),
        styles={name: Markup(style) for name, style in styles.items()},  # noqa: S704  (our own files)
        scripts=[Markup(script) for script in scripts],  # noqa: S704  (our own files, and plotly's)
        blocks=blocks,
    )


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a content-security policy that allows these scripts and styles by their hashes, and nothing else."""
    allowed = {
        "default-src": ["'none'"],
        "script-src": [_hash(script) for script in scripts],
        "style-src": [_hash(style) for style in dict.fromkeys(styles)],
        "img-src": ["data:", "blob:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    return "; ".join(f"{name} {' '.join(values)}" for name, values in allowed.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def environment() -> Environment:
    """Return the templates of every page: everything is escaped, and a name that is not there is an error."""
    templates = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # In the order given, and never a NaN, which is no JSON.
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    templates.globals |= {"downloads": downloads, "families": families, "link": link}
    templates.filters |= {"unbroken": unbroken, "breakable": breakable}
    return templates


def _template(name: str) -> str | None:
    """Return a template: a shared one by its file name, one of a benchmark's folder as ``<folder>/<file>``."""
    folder, _, file = name.rpartition("/")
    path = files("medground.reporting").joinpath(*filter(None, [folder]), "templates", file)
    return path.read_text(encoding="utf-8") if path.is_file() else None


def styles(*names: str) -> Markup:
    """Return style sheets of medground's own, joined."""
    return Markup(_read("assets", names))  # noqa: S704  (our own files)


def _read(folder: str, names: Sequence[str]) -> str:
    root = files("medground.reporting").joinpath(folder)
    return "".join(root.joinpath(name).read_text(encoding="utf-8") for name in names)


def _plotly() -> str:
    return files("plotly").joinpath("package_data", "plotly.min.js").read_text(encoding="utf-8")


def _style_ids(bundle: str) -> list[str]:
    """Return the ids of the style elements that plotly's bundle would add where they are not there."""
    return ["plotly.js-style-global", *re.findall(r'getElementById\("([0-9a-f]{64})"\)', bundle)] if bundle else []


def _drawn(figure: ReportFigure) -> Mapping[str, Any]:
    return {"anchor": figure.anchor, "choices": list(figure.choices.items()), "layout": figure.layout}


def downloads(table: Table, anchor: str) -> list[tuple[str, str, str]]:
    """Return (name, file name, address) of a table in every format."""
    return [
        (_NAMES[suffix], f"{anchor}.{suffix}", link(text, _MIME[suffix])) for suffix, text in exports(table).items()
    ]


def link(text: str, mime: str) -> str:
    """Return an address that holds a text itself, so that it travels with the page."""
    return f"data:{mime};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def unbroken(note: str) -> str:
    """Return a note whose lines break at commas only."""
    return ", ".join(part.replace(" ", "\u00a0") if len(part) < 24 else part for part in note.split(", "))


def breakable(name: str) -> Markup:
    """Return a name that may break after an underscore."""
    return escape(name).replace("_", Markup("_<wbr>"))


def families(tables: Sequence[Table]) -> list[tuple[str, list[Table]]]:
    """Return tables by family, in order."""
    return [(name, list(members)) for name, members in groupby(tables, lambda table: table.family or table.title)]
