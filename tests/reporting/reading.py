"""Reads a report back, as a program that knows nothing of how it was written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "link", "img", "input", "br", "wbr", "hr"}


@dataclass
class Element:
    """One element: its text without that of data and scripts."""

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Everything written in it, white space folded."""
        return " ".join("".join(self.parts).split())

    def all(self, tag: str, **wanted: str) -> list[Element]:
        """Every element below with a tag and, where given, a class or an id."""
        found = [e for child in self.children for e in [*([child] if child.tag == tag else []), *child.all(tag)]]
        return [e for e in found if all(v in e.attributes.get(k.rstrip("_"), "").split() for k, v in wanted.items())]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("root", {})
        self.stack = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.stack[-1].children.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack[-1].tag == tag, f"</{tag}> closes <{self.stack[-1].tag}>"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        in_code = self.stack[-1].tag in {"script", "style"}
        for element in self.stack[-1:] if in_code else self.stack:
            element.parts.append(data)


def read(path: Path) -> Element:
    """Return the report's root; every element must be closed."""
    return read_text(path.read_text(encoding="utf-8"))


def read_text(html: str) -> Element:
    """Return the root of a page."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.stack == [reader.root]
    return reader.root


def block(page: Element, name: str) -> Any:
    """Return the data of a block."""
    (script,) = [s for s in page.all("script") if s.attributes.get("id") == name]
    return json.loads("".join(script.parts))


def tables(page: Element) -> dict[str, list[list[Element]]]:
    """Return caption -> rows of cells, heads included."""
    return {
        t.all("caption")[0].text: [[c for c in row.children if c.tag in {"th", "td"}] for row in t.all("tr")]
        for t in page.all("table")
    }
