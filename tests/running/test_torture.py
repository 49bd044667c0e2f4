"""A few kills at random instants of a run of three benchmarks; ``make torture`` does 200 of each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("subject", ["xbench", "gridvqa_x", "cxreasondial"])
def test_a_run_killed_again_and_again_ends_with_the_same_bytes(subject: str) -> None:
    command = [sys.executable, "-m", "torture", subject, "--kills", "5", "--seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    count = json.loads(done.stdout)
    assert (count["kills"], count["differ"]) == (5, [])
    assert count["files"] > 0
