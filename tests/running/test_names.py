from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote

import pytest
from hypothesis import given, strategies as st

from medground.running.names import escape, folder_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("carzero", "carzero"),
        ("00000013_005.png", "00000013_005.png"),
        ("my_lab.models:OurModel", "my_lab.models%3AOurModel"),
        ("..", "%2E."),
        (".hidden", "%2Ehidden"),
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
        ("", "%"),
    ],
)
def test_names_stay_readable_and_inside(text, name):
    assert folder_name(text) == name


@given(st.text(max_size=300))
def test_a_folder_name_is_one_component_that_a_file_system_takes(text):
    name = folder_name(text)
    assert len(PurePosixPath(name).parts) == 1
    assert name not in (".", "..")
    assert not name.startswith(".")
    assert name.isascii()
    assert name.isprintable()
    assert len(name) <= 100


@given(st.text(max_size=50))
def test_escaping_can_be_undone(text):
    assert unquote(escape(text)) == text


def test_long_names_differ_where_their_ends_differ():
    assert folder_name("x" * 200 + "a") != folder_name("x" * 200 + "b")
