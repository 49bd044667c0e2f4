"""A benchmark of ours, taken from the guide: runs, is killed, resumes, reports, is judged again and compared."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "adding.md"
PLAYERS = """
import os, signal
from pathlib import Path
from medground.models.base import ModelInfo, Reply


class Player:
    info = ModelInfo("a player")
    capabilities = frozenset({"reply"})

    def reply(self, conversations, options=None):
        with Path("calls.txt").open("a") as file:
            file.writelines(f"{self.name} {len(c)}\\n" for c in conversations)
        if len(Path("calls.txt").read_text().splitlines()) >= int(os.environ.get("KILL_AT", "1000")):
            os.kill(os.getpid(), signal.SIGKILL)
        return [self.one(c) for c in conversations]


class Steady(Player):
    name = "steady"

    def one(self, conversation):
        return Reply("No.")


class Wavering(Player):
    name = "wavering"

    def one(self, conversation):
        if "raised" in conversation[0].text and len(conversation) == 1:
            return Reply("", "timeout", "no answer in 5 s")
        return Reply("No." if len(conversation) == 1 or "mass" in conversation[0].text else "Yes.")


class Literal(Player):
    name = "literal"

    def one(self, conversation):
        _, first, second = conversation[-1].text.splitlines()
        return Reply("Yes" if first[3:] == second[3:] else "No")


class Lenient(Player):
    name = "lenient"

    def one(self, conversation):
        return Reply("Yes, more or less")
"""
ITEMS = 12


def block(language: str, name: str) -> str:
    (text,) = re.findall(
        rf"^```{language}\n(# {re.escape(name)}\n.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    return text


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "my_benchmark.py").write_text(block("python", "my_benchmark.py"))
    (tmp_path / "my_benchmark.yaml").write_text(block("yaml", "my_benchmark.yaml"))
    (tmp_path / "my_players.py").write_text(PLAYERS)
    return tmp_path


def medground(place: Path, *words: str, code: int = 0, **more: str) -> str:
    command = [sys.executable, "-m", "medground", *words]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, env=os.environ | more)
    assert done.returncode == code, done.stderr
    return done.stdout if not code else done.stderr


def calls(place: Path, *players: str) -> int:
    lines = (place / "calls.txt").read_text().splitlines()
    return sum(line.split()[0] in players for line in lines)


def cells(out: str) -> dict[str, dict[str, Any]]:
    return {cell["model"]: cell for cell in json.loads(out)["summary"]["cells"]}


def test_the_benchmark_is_about_forty_lines_long() -> None:
    code = block("python", "my_benchmark.py").split("\nclass ")[1].splitlines()
    assert len([line for line in code if line.strip()]) <= 40


def test_it_runs_is_killed_resumes_reports_is_judged_again_and_compared(place: Path) -> None:
    run = ("run", "my_benchmark.yaml", "--set", "engine.chunk=4", "--set", "engine.workers=0", "--json")
    medground(place, *run, code=-signal.SIGKILL, KILL_AT="20")
    resumed = medground(place, *run)
    # What was safe at the kill is not asked again: at most the chunk in flight is.
    assert calls(place, "steady") <= 2 * ITEMS + 2 * 4
    (place / "calls.txt").unlink()
    whole = medground(place, *run, "--out", "again")
    assert cells(whole) == cells(resumed)
    assert calls(place, "steady") == 2 * ITEMS
    # The two items that timed out were asked once, and the judge was not asked about them.
    assert calls(place, "wavering") == 2 * ITEMS - 2
    assert calls(place, "literal") == 2 * ITEMS - 2
    for name in ("rows", "replies"):
        made = sorted(path.relative_to(place / "runs") for path in (place / "runs").rglob(f"{name}/**/*.parquet"))
        assert made
        assert all((place / "runs" / p).read_bytes() == (place / "again" / p).read_bytes() for p in made)

    steady, wavering = (cells(whole)[label] for label in ("Steady", "Wavering"))
    assert (steady["value"], steady["n"], steady["failed"]) == (1.0, ITEMS, 0)
    assert (wavering["value"], wavering["n"], wavering["failed"]) == (0.2, ITEMS - 2, 2)

    medground(place, "report", "runs/stands-by")
    assert "Stood by its answer" in (place / "runs/stands-by/report.html").read_text()

    asked = calls(place, "steady", "wavering")
    judged = cells(medground(place, "score", "runs/stands-by", "--judge", "{name: my_players:Lenient}", "--json"))
    assert (judged["Wavering"]["value"], judged["Wavering"]["failed"]) == (1.0, 2)
    assert calls(place, "steady", "wavering") == asked
    assert calls(place, "lenient") == 2 * ITEMS - 2

    (record,) = json.loads(medground(place, "compare", "runs/stands-by", "--json"))["records"]
    # Five findings, each asked twice, of which one does not differ: 2 ** (1 - 4).
    assert (record["difference"], record["p"], record["n"]) == (pytest.approx(0.8), pytest.approx(0.125), ITEMS - 2)
    assert (record["n_undefined"], record["patients"]) == (2, 5)

    lenient = ("--judge", "{name: my_players:Lenient}")
    (again,) = json.loads(medground(place, "compare", "runs/stands-by", *lenient, "--json"))["records"]
    assert (again["difference"], again["p"]) == (0.0, 1.0)
    page = Path(medground(place, "report", "runs/stands-by", *lenient).splitlines()[0])
    assert page.parent.parent.name == "readings"
    assert "Lenient" in (place / page).read_text()
    assert "medground score" in medground(place, "report", "again/stands-by", *lenient, code=1)

    medground(place, *run, "--set", "name=other", "--set", "roles.judge.name=my_players:Lenient")
    refused = medground(place, "compare", "runs/stands-by", "runs/other", code=1)
    assert "measured under another reading" in refused
