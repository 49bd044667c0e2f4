"""Small folders in the layouts of publishers, built anew for every test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image


class Folder:
    """A folder that is filled by a test."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str | bytes) -> Path:
        path = self._place(name)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def table(self, name: str, *lines: str) -> Path:
        return self.write(name, "\n".join(lines) + "\n")

    def json(self, name: str, content: Any) -> Path:
        return self.write(name, json.dumps(content))

    def json_lines(self, name: str, records: Iterable[Any]) -> Path:
        return self.table(name, *map(json.dumps, records))

    def picture(self, *names: str, size: tuple[int, int] = (8, 8), mode: str = "L") -> None:
        for name in names:
            Image.new(mode, size).save(self._place(name))

    def mask(self, name: str, mask: Sequence[Sequence[int]] | np.ndarray, scale: int = 255) -> Path:
        path = self._place(name)
        Image.fromarray((np.asarray(mask) > 0).astype(np.uint8) * np.uint8(scale)).save(path)
        return path

    def _place(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "data"
    root.mkdir()
    return Folder(root)


@pytest.fixture
def another(tmp_path: Path) -> Folder:
    """A second folder, beside the dataset's."""
    root = tmp_path / "elsewhere"
    root.mkdir()
    return Folder(root)
