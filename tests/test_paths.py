from __future__ import annotations

from pathlib import Path

import pytest

from medground.errors import DatasetError
from medground.paths import resolve_inside


def test_a_path_inside_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert resolve_inside(tmp_path, "a/../a/x.png") == (tmp_path / "a/x.png").resolve()


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "../../etc/passwd"])
def test_a_path_outside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match="outside") as caught:
        resolve_inside(tmp_path / "root", name)
    assert "allow_outside" in str(caught.value)


def test_a_link_that_leads_outside_is_refused_unless_its_folder_is_allowed(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    (other / "x.png").touch()
    (root / "link.png").symlink_to(other / "x.png")
    with pytest.raises(DatasetError):
        resolve_inside(root, "link.png")
    assert resolve_inside(root, "link.png", [other]) == (other / "x.png").resolve()


def test_a_folder_whose_name_begins_alike_is_outside(tmp_path: Path) -> None:
    with pytest.raises(DatasetError):
        resolve_inside(tmp_path / "data", "../data2/x.png")
