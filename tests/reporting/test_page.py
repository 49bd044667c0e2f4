"""Pieces of the page: data that cannot end its block, links that hold their content, names that may break."""

from __future__ import annotations

import base64

from medground.reporting.composition import Composition, Section
from medground.reporting.page import breakable, link, render, unbroken
from medground.reporting.words import count, listed

LAST = Section("provenance", "Provenance", "provenance.html", {"runs": []})


def test_data_cannot_end_the_block_that_holds_it() -> None:
    attack = "</script><script>alert(1)</script><!-- &amp; \u2028"
    html = render([Composition("s", (), (), (), {"data": {"text": attack}})], "", LAST)
    inside = html.split('id="data">')[1].split("</script>")[0]
    assert "<" not in inside
    assert html.count("<script") == 4  # two blocks of data, two scripts: no figure, no plotly
    assert "alert(1)</script>" not in html


def test_templates_escape_whatever_they_print() -> None:
    html = render([Composition('<i>"s"', [("yes", "<b>")], [("<u>", "{{ 1 }}")], ())], "<a>", LAST)
    for raw in ("<i>", "<b>", "<u>", "<a>"):
        assert raw not in html
    assert "{{ 1 }}" in html
    assert "<title>&lt;i&gt;&#34;s&#34;</title>" in html


def test_a_link_holds_its_text() -> None:
    address = link("a,b\nü,<script>\n", "text/csv")
    assert address.startswith("data:text/csv;charset=utf-8;base64,")
    assert base64.b64decode(address.partition("base64,")[2]).decode() == "a,b\nü,<script>\n"


def test_names_break_after_underscores_and_stay_escaped() -> None:
    assert breakable("a_b<c>") == "a_<wbr>b&lt;c&gt;"


def test_notes_break_at_commas() -> None:
    assert unbroken("n 4, 2 undefined, the map holds NaN or infinite values") == (
        "n\u00a04, 2\u00a0undefined, the map holds NaN or infinite values"
    )


def test_words() -> None:
    assert [count(1, "case"), count(1200, "case"), count(2, "class", "classes")] == [
        "1 case",
        "1,200 cases",
        "2 classes",
    ]
    assert [listed(list(names)) for names in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
