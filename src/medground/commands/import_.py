"""``medground import``: a manifest from the forms that annotations come in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from medground.errors import ConfigError
from medground.importing.lines import Line, Wishes
from medground.storage.files import write_atomic

FORMS: Mapping[str, str] = {
    "coco": "a COCO file: instances.json",
    "voc": "a folder of Pascal VOC: Annotations/*.xml",
    "yolo": "a folder of YOLO: images, labels, data.yaml",
    "labelme": "a folder of LabelMe files",
    "folders": "a folder of folders, one a class",
    "csv": "a table with a picture a row",
}


@dataclass(frozen=True)
class Imported:
    """What an import gave.

    Attributes:
        manifest: the file written.
        cases: how many pictures it names.
        patients: how many patients; None where none is named.
        findings: finding -> (present, absent, not annotated, regions).
    """

    manifest: Path
    cases: int
    patients: int | None
    findings: Mapping[str, tuple[int, int, int, int]]


def names_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return THEIRS -> OURS of ``--map THEIRS=OURS``.

    Raises:
        ConfigError: one is no such pair, or a name stands twice.
    """
    names: dict[str, str] = {}
    for pair in pairs:
        theirs, mark, ours = pair.rpartition("=")
        if not mark or not theirs or theirs in names:
            raise ConfigError("this is no pair of names", where="--map", expected="THEIRS=OURS, each once", got=pair)
        names[theirs] = ours
    return names


def import_annotations(form: str, source: Path, out: Path | None, wishes: Wishes, *, replace: bool = False) -> Imported:
    """Write a manifest.

    Args:
        form: one of :data:`FORMS`.
        source: file or folder.
        out: the manifest; by default ``manifest.jsonl`` in the source's folder.
        wishes: what the user says about the form.
        replace: write over a manifest that stands there.

    Raises:
        ConfigError: there is no such source, or the manifest is there already.
        DataError: the source cannot be read whole; nothing is written then.
    """
    if not source.exists():
        raise ConfigError("there is no such file or folder", where=source)
    folder = source if source.is_dir() else source.parent
    manifest = (out or folder / "manifest.jsonl").resolve()
    if manifest.exists() and not replace:
        raise ConfigError("a manifest is there already", where=manifest, fix="--replace writes over it")
    read = import_module(f"medground.importing.{form}").read
    lines: list[Line] = list(read(source.resolve(), wishes))
    records = [line.record(manifest.parent) for line in lines]
    manifest.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(manifest, "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode())
    patients = {line.patient_id for line in lines if line.patient_id is not None}
    return Imported(manifest, len(lines), len(patients) or None, _counts(lines))


def _counts(lines: Sequence[Line]) -> dict[str, tuple[int, int, int, int]]:
    findings = list(dict.fromkeys(name for line in lines for name in line.labels))
    labels = Counter((name, label) for line in lines for name, label in line.labels.items())
    regions = Counter(
        name for line in lines for own in line.regions.values() for name, values in own.items() for _ in values
    )
    return {
        name: (
            labels[name, True],
            labels[name, False],
            len(lines) - labels[name, True] - labels[name, False],
            regions[name],
        )
        for name in findings
    }
