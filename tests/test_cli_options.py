"""Options of the command line as a whole: version, quiet, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest


def medground(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "medground", *arguments]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # which would say how wide to fold
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, env=env)


def test_it_says_its_version() -> None:
    done = medground("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"medground {version('medground')}")


def test_a_shell_can_complete_it() -> None:
    assert "--install-completion" in medground("--help").stdout


def test_quiet_leaves_results_and_errors_alone(run_file: Path, tmp_path: Path) -> None:
    loud = medground("run", str(run_file), "--out", str(tmp_path / "loud"))
    quiet = medground("--quiet", "run", str(run_file), "--out", str(tmp_path / "quiet"))
    assert loud.returncode == quiet.returncode == 0
    assert loud.stderr
    assert quiet.stderr == ""
    assert "pointing" in quiet.stdout
    wrong = medground("--quiet", "run", str(tmp_path / "none.yaml"))
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("error:")


def test_a_table_of_a_run_is_written_in_every_form(run_file: Path, tmp_path: Path) -> None:
    medground("--quiet", "run", str(run_file), "--out", str(tmp_path))
    csv = medground("table", str(tmp_path / "tiny"), "--columns", "pointing,dice@best", "--format", "csv")
    assert csv.stdout.splitlines()[0] == "model,Pointing,Dice at searched threshold (optimistic),n"
    assert len(csv.stdout.splitlines()) == 3
    text = medground("table", str(tmp_path / "tiny"), "--by", "class", "--columns", "pointing")
    assert "Mass" in text.stdout
    wrong = medground("table", str(tmp_path / "tiny"), "--columns", "pointng")
    assert wrong.returncode == 1
    assert "did you mean 'pointing'" in wrong.stderr


@pytest.mark.parametrize("escape", ["\x1b[31m", "\x9b31m"])
def test_an_error_moves_no_terminal(tmp_path: Path, escape: str) -> None:
    done = medground("report", f"{tmp_path}/{escape}")
    assert done.returncode == 1
    assert escape[0] not in done.stderr


def test_components_are_listed_with_a_line_each() -> None:
    lines = medground("list", "explainers").stdout.splitlines()
    assert lines[0] == "explainers:"
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines[1:])
    everything = medground("list").stdout
    assert "baseline_centre" in everything
    assert "benchmarks:" in everything
