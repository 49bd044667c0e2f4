"""The fake benchmark, and ways to look at what a run left behind."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

_FAKE = Path(__file__).with_name("fake.py")


@pytest.fixture(scope="session")
def fake():
    """The module with the fake benchmark."""
    spec = importlib.util.spec_from_file_location("running_fake", _FAKE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def contents():
    """A function from a run folder to everything in it that must not depend on how the run went."""

    def read(folder: Path) -> dict[str, bytes]:
        files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        for volatile in (".lock", "profile.json"):
            files.pop(volatile, None)
        for name in [name for name in files if name.endswith("made_of")]:
            del files[name]  # the class of a script is called otherwise than that of a module
        manifest = json.loads(files["manifest.json"])
        del manifest["sessions"]
        files["manifest.json"] = json.dumps(manifest).encode()
        return files

    return read
