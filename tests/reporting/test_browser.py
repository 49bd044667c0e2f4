"""The report in a real Chromium: it opens quietly, sorts, filters, walks through cases, prints, runs nothing else."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from medground.reporting.report import write_report

from .conftest import IMAGE, SCRIPT

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]
DESKTOP, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Opened:
    """A page, and everything that went wrong on it."""

    def __init__(self, browser: Any, path: Path, size: tuple[int, int]) -> None:
        self.page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        self.trouble: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", self.requested)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-figures=drawn]", state="attached")

    def requested(self, request: Any) -> None:
        if not request.url.startswith(("data:", "blob:")) and not request.is_navigation_request():
            self.trouble.append(request.url)

    def cases(self) -> Any:
        """Bring the cases into view and return the first one's button."""
        self.page.locator(".viewer").scroll_into_view_if_needed()
        self.page.wait_for_selector(".card")
        return self.page.locator(".card").first


@pytest.fixture(scope="module")
def report(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([finished], tmp_path_factory.mktemp("report"), images="yes")


def quietly(chromium: Any, report: Path, size: tuple[int, int]) -> Iterator[Opened]:
    found = Opened(chromium, report, size)
    yield found
    assert found.trouble == []
    found.page.close()


@pytest.fixture
def opened(chromium: Any, report: Path) -> Iterator[Opened]:
    yield from quietly(chromium, report, DESKTOP)


@pytest.fixture(params=[DESKTOP, PHONE], ids=["desktop", "phone"])
def resized(request: pytest.FixtureRequest, chromium: Any, report: Path) -> Iterator[Opened]:
    yield from quietly(chromium, report, request.param)


def test_it_fits_the_window_and_draws_every_figure(resized: Opened) -> None:
    page = resized.page
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    canvases = page.locator(".plot .canvas")
    assert canvases.count() == 8
    for k in range(8):
        assert canvases.nth(k).locator("svg.main-svg").count() > 0
        assert canvases.nth(k).bounding_box()["width"] <= width


def test_a_click_sorts_numbers_and_leaves_the_undefined_last(opened: Opened) -> None:
    table = opened.page.locator("table", has=opened.page.locator("caption", has_text="Pointing by view"))

    def column() -> list[float | None]:
        cells = table.locator("tbody tr:not(.count) td:nth-child(2)").all()
        values = [cell.get_attribute("data-value") for cell in cells]
        return [None if value is None else float(value) for value in values]

    head = table.locator("thead th:nth-child(2)")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column() == sorted(column(), reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column() == sorted(column())
    assert table.locator("tbody tr").first.locator("th").inner_text().strip() == "regions"
    corner = table.locator("thead th.corner")
    corner.locator("button").click()
    names = table.locator("tbody tr:not(.count) th").all_inner_texts()
    assert names == sorted(names, key=str.lower)


def test_tables_of_a_family_take_turns(opened: Opened) -> None:
    page = opened.page
    chooser = page.locator('.chooser[aria-label="By finding"]')
    shown = page.locator(f"#{chooser.get_attribute('data-for')} figure:visible caption")
    assert shown.all_inner_texts() == ["Pointing by finding"]
    chooser.get_by_role("button", name="AUC").click()
    assert shown.all_inner_texts() == ["AUC by finding"]
    assert chooser.locator("[aria-pressed=true]").inner_text() == "AUC"


def test_a_figure_shows_another_finding(opened: Opened) -> None:
    page = opened.page
    canvas = page.locator(".plot .canvas").first
    before = canvas.locator("path.js-line").first.get_attribute("d")
    page.locator("select[data-figure]").first.select_option("Mass")
    page.wait_for_timeout(200)
    assert canvas.locator("path.js-line").first.get_attribute("d") != before


def test_cases_are_filtered_by_model_group_finding_and_outcome(opened: Opened) -> None:
    page = opened.page
    opened.cases()
    filters = page.locator(".filters select")

    def shown(what: str) -> set[str]:
        return set(page.locator(f".card .{what}").all_inner_texts())

    filters.nth(1).select_option("failed")
    assert {text.split(",")[0] for text in shown("score")} == {"failed", "undefined"}
    assert page.locator(".shown").inner_text() == "3 cases, in order."
    filters.nth(1).select_option("worst")
    filters.nth(2).select_option("Mass")
    assert shown("finding") == {"Mass"}
    filters.nth(3).select_option("miss")
    assert page.locator(".card").count() == 0
    assert page.locator(".shown").inner_text() == "None of the cases kept in this report."
    filters.nth(0).select_option(label="Corner")
    assert {text.split(",")[0] for text in shown("score")} == {"miss"}


def test_cases_are_searched_sorted_and_linked(chromium: Any, opened: Opened, report: Path) -> None:
    page = opened.page
    opened.cases()
    field = {name: page.locator(".filters label", has_text=name).locator("select") for name in ("Show", "Sort")}
    field["Show"].select_option("all")
    for way, sign in (("up", 1), ("down", -1)):
        field["Sort"].select_option(f"dice {way}")
        told = page.locator(".card .score").all_inner_texts()
        known = [float(text.split("Dice ")[1].split("\u00a0")[0]) for text in told if "Dice undefined" not in text]
        assert known == sorted(known, key=lambda value: sign * value)
        assert all("undefined" in text for text in told[len(known) :])
    every = page.locator(".card .case").all_inner_texts()
    page.locator(".filters input[type=search]").fill(every[0].upper())
    assert set(page.locator(".card .case").all_inner_texts()) == {case for case in every if every[0] in case}
    page.locator(".card").first.click()
    hash_ = page.evaluate("location.hash")
    assert hash_.startswith(f"#case={every[0]}/")
    page.locator(".beside select").select_option(label="Corner")
    assert page.locator("dialog figure:visible").count() == 2
    page.keyboard.press("Escape")
    page.wait_for_function("location.hash === ''")
    other = Opened(chromium, report, DESKTOP)
    other.page.goto(report.as_uri() + hash_)
    other.page.reload()
    assert other.page.locator("dialog[open] h3 small").inner_text() == every[0]
    assert other.trouble == []
    other.page.close()


def test_the_viewer_is_walked_through_with_keys(resized: Opened) -> None:
    page = resized.page
    resized.cases().click()
    dialog = page.locator("dialog[open]")
    position = dialog.locator(".position")
    assert position.inner_text() == "1 of 24"
    page.keyboard.press("ArrowRight")
    assert position.inner_text() == "2 of 24"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert position.inner_text() == "24 of 24"
    case = dialog.locator("h3").inner_text()
    page.keyboard.press("ArrowDown")
    assert dialog.locator(".models [aria-pressed=true] span").inner_text() == "Corner"
    assert dialog.locator("h3").inner_text() == case
    assert dialog.locator("path.truth").count() == 1
    page.keyboard.press("o")
    assert dialog.locator("path").count() == 0
    page.keyboard.press("m")
    assert dialog.locator(".controls select").input_value() == "fixed"
    for _ in range(12):
        page.keyboard.press("-")
    assert dialog.locator("input[type=range]").input_value() == "0"
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_the_map_is_painted_with_the_asked_opacity(opened: Opened) -> None:
    page = opened.page
    opened.cases()
    page.locator(".filters select").nth(1).select_option("best")
    page.locator(".card").first.click()
    page.wait_for_timeout(300)
    strongest = (
        "() => { const c = document.querySelector('dialog canvas');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " return d.filter((_, k) => k % 4 === 3).reduce((a, b) => Math.max(a, b), 0); }"
    )
    assert page.evaluate(strongest) == pytest.approx(255 * 0.6, abs=2)
    page.keyboard.press("+")
    page.wait_for_timeout(300)
    assert page.evaluate(strongest) == pytest.approx(255 * 0.7, abs=2)
    picture = page.locator("dialog .stage img").first
    assert picture.evaluate("image => image.naturalWidth") == 120


def test_it_prints_with_all_tables_and_figures(opened: Opened, tmp_path: Path) -> None:
    page = opened.page
    page.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    assert (tmp_path / "report.pdf").read_bytes().count(b"/Type /Page\n") >= 3
    page.emulate_media(media="print")
    assert page.locator("table:visible").count() == page.locator("table").count()
    assert page.locator("nav").is_hidden()


def test_every_control_and_picture_has_a_name(opened: Opened) -> None:
    page = opened.page
    opened.cases().click()
    named = "e => e.ariaLabel || e.alt || e.innerText.trim() || (e.labels && e.labels.length > 0)"
    for element in page.locator("button, select, input, .stage img:visible").all():
        assert element.evaluate(named), element.evaluate("e => e.outerHTML")
    levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def contrast(one: str, two: str) -> float:
    """Contrast of two colours ``rgb(r, g, b)`` after WCAG."""

    def luminance(colour: str) -> float:
        parts = [int(p) / 255 for p in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(chromium: Any, report: Path, scheme: str) -> None:
    opened = Opened(chromium, report, DESKTOP)
    opened.page.emulate_media(color_scheme=scheme)
    paper = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    for where in ("body", ".lead", ".note", ".interval", "tr.baseline td", ".downloads a", ".answer strong", ".brand"):
        colour = opened.page.locator(where).first.evaluate("e => getComputedStyle(e).color")
        assert contrast(colour, paper) >= 4.5, where
    opened.page.close()


def test_attacks_stay_text(chromium: Any, hostile: Path, tmp_path: Path) -> None:
    opened = Opened(chromium, write_report([hostile], tmp_path, images="yes"), DESKTOP)
    page = opened.page
    opened.cases().click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    dialog = page.locator("dialog[open]")
    assert f"{SCRIPT}{IMAGE}" in dialog.locator("h3").inner_text()
    page.keyboard.press("Escape")
    page.locator(".plot .canvas").first.hover()
    for select in page.locator("select:visible").all():
        for k in range(select.locator("option").count()):
            select.select_option(index=k)
    page.wait_for_timeout(300)
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src=x]").count() == 0
    assert page.locator("body b").count() == 0
    assert "<script>window.hit" in (page.locator(".legendtext").first.text_content() or "")
    assert opened.trouble == []
    page.close()


def test_it_reads_without_scripts(chromium: Any, report: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("table:visible").count() == page.locator("table").count()
    assert page.locator("noscript").first.is_visible()
    assert page.locator(".verdict").first.is_visible()
    context.close()
