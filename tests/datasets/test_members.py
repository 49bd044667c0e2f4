"""Tables, boxes, masks and labels in the forms that people have: read right, doubted, or refused with the cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from medground.datasets.manifest import Manifest
from medground.datasets.plausible import doubts
from medground.errors import DataError

SIZE = (64, 48)
HEAD = "image,patient_id,finding,x0,y0,x1,y1,frame_width,frame_height\n"
ROWS = "a.png,p1,Mass,4,5,20,30,64,48\nb.png,p2,Mass,1,2,10,12,64,48\n"
RIGHT = {"a": ("p1", (4, 5, 20, 30)), "b": ("p2", (1, 2, 10, 12))}


def folder_of(root: Path, content: str | bytes, name: str = "manifest.csv") -> Path:
    """Write a table and the two pictures that it names."""
    for picture in ("a.png", "b.png"):
        levels = np.arange(SIZE[0] * SIZE[1]).reshape(SIZE[::-1]) % 251
        Image.fromarray(levels.astype(np.uint8)).save(root / picture)
    (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


FORMS: dict[str, str | bytes] = {
    "as written": HEAD + ROWS,
    "byte order mark": (HEAD + ROWS).encode("utf-8-sig"),
    "semicolons": (HEAD + ROWS).replace(",", ";"),
    "tabs": (HEAD + ROWS).replace(",", "\t"),
    "bars": (HEAD + ROWS).replace(",", "|"),
    "lines of Windows": (HEAD + ROWS).replace("\n", "\r\n"),
    "lines of old Macs": (HEAD + ROWS).replace("\n", "\r"),
    "trailing empty fields": (HEAD + ROWS).replace("64,48\n", "64,48,,\n"),
    "blank lines": HEAD + "\n" + ROWS + "\n\n",
    "no last line end": (HEAD + ROWS).rstrip("\n"),
    "quoted": (HEAD + ROWS).replace("p1", '"p1"').replace("4,5", '"4","5"'),
    "blanks": (HEAD + ROWS).replace("p1,", " p1 ,"),
    "index column": "," + HEAD + "0," + ROWS.replace("\nb", "\n1,b"),
    "decimals": (HEAD + ROWS).replace("4,5,20", "4.0,0.5e1,20.00"),
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_one_table_in_many_forms_is_one_table(content: str | bytes, tmp_path: Path) -> None:
    cases = Manifest(folder_of(tmp_path, content)).cases()
    got = {c.case_id: (c.patient_id, tuple(int(x) for x in c.regions["Mass"].boxes[0].corners)) for c in cases}
    assert got == RIGHT


def with_box(numbers: str) -> str:
    return HEAD + f"a.png,p1,Mass,{numbers}\n"


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "UTF-16": ((HEAD + ROWS).encode("utf-16"), "UTF-8"),
    "UTF-16 without its mark": ((HEAD + ROWS).encode("utf-16-le"), "zero bytes"),
    "Latin-1": ((HEAD + ROWS).replace("p1", "p\u00e9").encode("latin-1"), "UTF-8"),
    "zero byte": (HEAD + ROWS.replace("p1", "p\x001"), "zero bytes"),
    "surplus field": (HEAD + ROWS.replace("64,48\n", "64,48,9\n", 1), "line 2"),
    "short row": (HEAD + "a.png,p1,Mass,4\n", "fewer fields"),
    "open quote": (HEAD + 'a.png,"p1,Mass,4,5,20,30,64,48\n', "cannot be read"),
    "column twice": ("image,image,finding\na.png,b.png,Mass\n", "twice"),
    "other capitals": ((HEAD + ROWS).replace("image", "Image"), "did you mean 'image'"),
    "empty": ("", "empty"),
    "header alone": (HEAD, "no cases"),
    "two patients of one case": (HEAD + "a.png,p1,Mass,4,5,20,30,64,48\na.png,p2,Mass,4,5,20,30,64,48\n", "differ"),
    "decimal commas": ((HEAD + ROWS).replace(",", ";").replace("4;5;", "4,5;5;", 1), "four numbers"),
    "thousands": (with_box('"1,004",5,20,30,64,48'), "four numbers"),
    "words": (with_box("four,5,20,30,64,48"), "four numbers"),
    "no number": (with_box("nan,5,20,30,64,48"), "four numbers"),
    "infinite": (with_box("4,5,inf,30,64,48"), "four numbers"),
    "upside down": (with_box("20,30,4,5,64,48"), "degenerate"),
    "width for a corner": (with_box("40,30,10,10,64,48"), "degenerate"),
    "no width": (with_box("4,5,4,30,64,48"), "degenerate"),
    "beyond the frame": (with_box("4,5,200,30,64,48"), "beyond its frame"),
    "before the frame": (with_box("-4,5,20,30,64,48"), "beyond its frame"),
    "frame of nothing": (with_box("4,5,20,30,0,48"), "frame"),
    "no frame": (with_box("4,5,20,30,,"), "no frame"),
    "picture without its ending": ((HEAD + ROWS).replace(".png", ""), "missing"),
    "picture in capitals": ((HEAD + ROWS).replace("a.png", "A.PNG"), "missing"),
    "path of Windows": ((HEAD + ROWS).replace("a.png", ".\\a.png"), "missing"),
    "path out of the folder": ((HEAD + ROWS).replace("a.png", "../a.png"), "outside"),
    "absolute path": ((HEAD + ROWS).replace("a.png", "/etc/hostname"), "outside"),
    **{
        f"label {value}": (f"image,finding,label\na.png,Mass,{value}\n", "1 or 0")
        for value in ("yes", "TRUE", "-1", "2", "0.7", "1x")
    },
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_cause(content: str | bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        Manifest(folder_of(tmp_path, content)).cases()
    assert words in str(caught.value)


LINES: dict[str, tuple[str, str]] = {
    "NaN": ('{"image": "a.png", "frame": [64, 48], "boxes": {"Mass": [[NaN, 1, 2, 3]]}}', "NaN"),
    "key twice": ('{"image": "a.png", "image": "b.png"}', "twice"),
    "list": ("[1, 2]", "not a JSON object"),
    "comma too many": ('{"image": "a.png",}', "not JSON"),
    "very deep": ("[" * 3000 + "]" * 3000, "not JSON"),
    "label as text": (json.dumps({"image": "a.png", "labels": {"Mass": "1"}}), "true, false or null"),
    "label as share": (json.dumps({"image": "a.png", "labels": {"Mass": 0.5}}), "true, false or null"),
    "misspelt key": (json.dumps({"image": "a.png", "lables": {"Mass": True}}), "did you mean 'labels'"),
    "box of three": (json.dumps({"image": "a.png", "frame": SIZE, "boxes": {"Mass": [[4, 5, 20]]}}), "four numbers"),
    "box that is no list": (json.dumps({"image": "a.png", "frame": SIZE, "boxes": {"Mass": [4, 5, 20, 30]}}), "four"),
    "polygon of two": (
        json.dumps({"image": "a.png", "frame": SIZE, "polygons": {"Mass": [[[1, 1], [5, 5]]]}}),
        "degenerate",
    ),
    "flat polygon": (
        json.dumps({"image": "a.png", "frame": SIZE, "polygons": {"Mass": [[1, 1, 5, 5, 9, 1]]}}),
        "points",
    ),
    "short code": (json.dumps({"image": "a.png", "masks": {"Mass": {"size": [48, 64], "counts": [1, 2]}}}), "fill"),
    "negative code": (json.dumps({"image": "a.png", "masks": {"Mass": {"size": [48, 64], "counts": [-1, 3073]}}}), "0"),
    "endless code": (json.dumps({"image": "a.png", "masks": {"Mass": {"size": [10**6] * 2, "counts": [1]}}}), "large"),
}


@pytest.mark.parametrize(("line", "words"), LINES.values(), ids=LINES)
def test_lines_that_cannot_be_meant_are_refused(line: str, words: str, tmp_path: Path) -> None:
    data = Manifest(folder_of(tmp_path, line + "\n", "manifest.jsonl"))
    try:
        problems = "\n".join(map(str, data.check()))
    except DataError as error:
        problems = str(error)
    assert words in problems


def disc() -> np.ndarray[Any, np.dtype[np.uint8]]:
    mask = np.zeros(SIZE[::-1], np.uint8)
    mask[10:20, 5:30] = 255
    return mask


GREY = (np.arange(SIZE[0] * SIZE[1]) % 256).reshape(SIZE[::-1]).astype(np.uint8)
MASKS: dict[str, tuple[Any, int | None, str]] = {
    "as written": (disc(), 250, ""),
    "of 0 and 1": (disc() // 255, 250, ""),
    "of 16 bit": (disc().astype(np.uint16) * 257, 250, ""),
    "twice the size": (np.kron(disc(), np.ones((2, 2), np.uint8)), 1000, ""),
    "inside out": (255 - disc(), None, "inside out"),
    "grey": (GREY, None, "not of two values"),
    "full": (np.full_like(disc(), 255), None, "inside out"),
    "empty": (np.zeros_like(disc()), 0, "regions are empty, such as a, Mass"),
    "of another shape": (np.tile(disc(), (1, 2)), None, "another shape"),
    "turned": (np.ascontiguousarray(disc().T), None, "swapped"),
    "in colour": (np.dstack([disc()] * 3), None, "one channel"),
    "with alpha": (np.dstack([disc()] * 4), None, "one channel"),
}


@pytest.mark.parametrize(("pixels", "area", "words"), MASKS.values(), ids=MASKS)
def test_masks_are_read_doubted_or_refused(pixels: Any, area: int | None, words: str, tmp_path: Path) -> None:
    folder_of(tmp_path, "image,patient_id,finding,mask\na.png,p1,Mass,m.png\n")
    Image.fromarray(pixels).save(tmp_path / "m.png")
    data = Manifest(tmp_path)
    said = [*map(str, data.check())]
    if not said:
        said = [*map(str, doubts(data.cases()))]
    assert bool(said) == bool(words), said
    assert words in "\n".join(said)
    if area is not None:
        assert data.cases()[0].regions["Mass"].area == area


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_box("0.1,0.2,0.5,0.6,64,48"), "shares of the picture"),
        (with_box("4,5,20,30,640,120"), "another shape"),
        (HEAD + ROWS.replace("p1", "00000032").replace("p2", "32"), "written in several ways"),
    ],
    ids=["shares", "frame of another shape", "one patient written twice"],
)
def test_what_makes_no_sense_is_doubted(content: str, words: str, tmp_path: Path) -> None:
    said = "\n".join(map(str, doubts(Manifest(folder_of(tmp_path, content)).cases())))
    assert words in said
