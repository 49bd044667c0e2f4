"""Checks, ledgers and reports."""

from __future__ import annotations

import pytest

from medground.datasets.base import Case
from medground.datasets.lazy import LazyRegions, Maker
from medground.datasets.report import Ledger, Problem, Remark, Report, check_cases, shorten
from medground.errors import DatasetError, RegionError
from medground.imaging.regions import Region


def square(side):
    return Region.from_boxes((8, 8), [(0, 0, side, side)])


def broken():
    raise RegionError("it is broken", where="row 7")


def test_a_check_finds_every_kind_of_mistake(folder):
    folder.picture("a.png")
    image, seen = folder.root / "a.png", []
    cases = [
        Case("good", image, labels={"Mass": True}, regions={"Mass": square(2)}),
        Case("lost", folder.root / "b.png"),
        Case("strange", image, labels={"Masss": True}),
        Case("broken", image, regions=LazyRegions({"Mass": Maker(broken, "")})),
    ]
    problems = check_cases(cases, ["Mass"], lambda case, region: seen.append((case.case_id, region.area)))
    assert [str(p).partition(";")[0] for p in problems] == [
        "lost: a picture is missing",
        "strange: 'Masss' is no finding of this dataset",
        "broken, Mass: row 7: it is broken",
    ]
    assert seen == [("good", 4)]


@pytest.mark.parametrize(
    ("frame", "size", "swapped"),
    [
        ((40, 30), (40, 30), False),
        ((30, 40), (40, 30), True),
        ((2828, 2320), (224, 184), False),
        ((2320, 2828), (224, 184), True),
        ((2320, 2828), (224, 224), False),
        ((2022, 2021), (2021, 2022), False),
        ((512, 512), (40, 30), False),
    ],
)
def test_a_frame_with_its_sides_swapped_is_told(folder, frame, size, swapped):
    folder.picture("a.png", size=size)
    case = Case("a", folder.root / "a.png", regions={"Mass": Region.from_boxes(frame, [(0, 0, 2, 2)])})
    found = check_cases([case], ["Mass"])
    assert [problem.what for problem in found] == ["width and height of a frame are swapped"] * swapped


def test_a_damaged_header_is_told(folder):
    folder.write("a.png", b"")
    case = Case("a", folder.root / "a.png", regions={"Mass": Region.from_boxes((3, 4), [(0, 0, 2, 2)])})
    assert [problem.what for problem in check_cases([case], ["Mass"])] == ["a file is empty"]


def test_a_ledger_counts_remarks_and_raises_the_first_problem():
    ledger = Ledger()
    ledger.raise_problems()
    for name in "aabcdef":
        ledger.remark("things mended", name)
    ledger.remark("others dropped", count=1234)
    assert [str(r) for r in ledger.remarks] == ["things mended: 7 (a, b, c, ...)", "others dropped: 1,234"]
    ledger.problem("it is wrong", "row 2", expected=1, got=(2, 3))
    ledger.problem("it is wrong too", "row 3")
    assert str(ledger.problems[0]) == "row 2: it is wrong; expected 1; got (2, 3)"
    with pytest.raises(DatasetError, match="it is wrong \\(and 1 more\\)") as caught:
        ledger.raise_problems()
    assert "row 2" in str(caught.value)


def test_a_report_puts_counts_beside_the_published_ones():
    report = Report(
        "set", 2, ("c",), {"images": 3, "rows": 1234}, {"images": 26_684}, (Remark("x", 1, ["a"]),), "look there"
    )
    assert report.lines() == [
        "set: 2 cases; pictures missing: 1",
        "  images: 3 (published: 26,684)",
        "  rows: 1,234",
        "  x: 1 (a)",
        "  look there",
    ]
    assert str(Problem("w", "h")) == "h: w"
    assert shorten([]) == ""
