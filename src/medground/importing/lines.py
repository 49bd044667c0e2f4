"""A line of a manifest in the making, and what all forms of annotation need to make one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from medground.errors import ConfigError, DataError

Kind = Literal["boxes", "boxes_xywh", "polygons", "masks"]
PICTURES = (".png", ".jpg", ".jpeg", ".dcm", ".dicom")


@dataclass
class Line:
    """One picture and what is known of it.

    Attributes:
        image: where the picture lies.
        frame: (width, height) of the pixels that regions are in; None: no regions.
        case_id: by default the picture's stem.
        patient_id: text, or None.
        view: text, or None.
        traits: by what results are split: sex, age, device, site, and others of the user's.
        labels: finding -> present, absent or not annotated.
        regions: kind -> finding -> values as a manifest writes them.
    """

    image: Path
    frame: tuple[int, int] | None = None
    case_id: str | None = None
    patient_id: str | None = None
    view: str | None = None
    traits: dict[str, str] = field(default_factory=dict)
    labels: dict[str, bool | None] = field(default_factory=dict)
    regions: dict[Kind, dict[str, list[Any]]] = field(default_factory=dict)

    def mark(self, finding: str, kind: Kind, value: Any) -> None:
        """Add a region; its finding is present."""
        self.labels[finding] = True
        self.regions.setdefault(kind, {}).setdefault(finding, []).append(value)

    def record(self, root: Path) -> dict[str, Any]:
        """Return the line of ``manifest.jsonl``, paths relative to ``root``.

        Raises:
            DataError: the picture lies outside the manifest's folder.
        """
        try:
            image = self.image.relative_to(root).as_posix()
        except ValueError:
            raise DataError(
                "a picture lies outside the manifest's folder",
                where=self.image,
                expected=f"below {root}",
                fix="write the manifest above the pictures: --out FOLDER/manifest.jsonl",
            ) from None
        facts = {"case_id": self.case_id, "patient_id": self.patient_id, "view": self.view}
        framed = {"frame": list(self.frame)} if self.regions and self.frame else {}
        known = {name: value for name, value in facts.items() if value is not None}
        traits = {"traits": self.traits} if self.traits else {}
        return {"image": image, **known, **traits, "labels": dict(sorted(self.labels.items())), **framed} | dict(
            self.regions
        )


@dataclass(frozen=True)
class Wishes:
    """What the user says about a form.

    Attributes:
        images: folder of the pictures; by default where the form has them.
        names: their name -> ours: of classes, and of columns where the form is a table.
        exhaustive: a class without an annotation in a picture is absent there; otherwise it is not annotated.
        patient: pattern with one group that finds the patient's id in a picture's stem.
        first_pixel: number of the first pixel in forms that count either way (Pascal VOC): 1 or 0.
    """

    images: Path | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    exhaustive: bool = False
    patient: str | None = None
    first_pixel: int = 1

    def finding(self, name: str) -> str:
        """Return our name of a class."""
        return self.names.get(name, name)


def finished(lines: Iterable[Line], classes: Sequence[str], wishes: Wishes) -> Iterator[Line]:
    """Yield lines with their absent classes and patients.

    Raises:
        ConfigError: the pattern of patients is none, or has not one group.
        DataError: a picture's name has no patient in it, or a picture stands twice.
    """
    pattern = _pattern(wishes.patient)
    seen: set[Path] = set()
    for line in lines:
        if line.image in seen:
            raise DataError("a picture stands twice", where=line.image)
        seen.add(line.image)
        if wishes.exhaustive:
            line.labels = {**dict.fromkeys(classes, False), **line.labels}
        if pattern is not None:
            match = pattern.search(line.image.stem)
            if match is None:
                raise DataError("a picture's name has no patient in it", where=line.image, expected=wishes.patient)
            line.patient_id = match[1]
        yield line


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ConfigError("this is no regular expression", where="--patient", got=f"{text}: {error}") from error
    if pattern.groups != 1:
        raise ConfigError(
            "a pattern of patients has one group", where="--patient", got=text, fix=r"--patient '^(\d+)_'"
        )
    return pattern


def picture_size(path: Path) -> tuple[int, int]:
    """Return (width, height) of a PNG or JPEG from its header.

    Raises:
        DataError: there is no such picture, or its header cannot be read.
    """
    from PIL import Image

    try:
        with Image.open(path) as picture:
            width, height = picture.size
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(
            "the size of a picture cannot be read",
            where=path,
            expected="a PNG or JPEG",
            got=f"{type(error).__name__}: {error}"[:200],
        ) from error
    return width, height


def pictures_by_stem(folder: Path) -> dict[str, Path]:
    """Return stem -> picture of all pictures below a folder, in order.

    Raises:
        DataError: there are none, or two have one stem.
    """
    pictures: dict[str, Path] = {}
    for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURES and p.is_file()):
        if path.stem in pictures:
            raise DataError("two pictures have one name", where=pictures[path.stem], got=path)
        pictures[path.stem] = path
    if not pictures:
        raise DataError("there are no pictures", where=folder, expected=", ".join(PICTURES), fix="--images FOLDER")
    return pictures


def located(name: str, folder: Path, where: object) -> Path:
    """Return a picture by the name that a form has for it, below a folder.

    Raises:
        DataError: the name leads outside, or there is no such picture.
    """
    path = (folder / name.replace("\\", "/")).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise DataError("a picture's name leads outside its folder", where=where, got=name[:200])
    if not path.is_file():
        raise DataError("there is no such picture", where=where, got=path, fix="--images FOLDER of the pictures")
    return path


def finite(values: Iterable[Any], where: object) -> list[float]:
    """Return numbers.

    Raises:
        DataError: one is none, or not finite.
    """
    numbers = []
    for value in values:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not abs(number) < 1e9 or isinstance(value, bool):
            raise DataError("a coordinate is no number", where=where, got=repr(value)[:60])
        numbers.append(int(number) if number.is_integer() else number)
    return numbers
