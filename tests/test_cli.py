"""The command line as a user types it: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def medground(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "medground", *arguments]
    env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=env, check=False)


def test_run_then_compare_then_score(run_file: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "runs")
    first = medground("run", str(run_file), "--out", out)
    assert first.returncode == 0, first.stderr
    assert "pointing of the class prior" in first.stdout
    assert f"run: {out}/tiny" in first.stdout
    assert "items" in first.stderr
    second = medground("run", str(run_file), "--out", out, "--set", "name=again", "--set", "seed=1", "--json")
    summary = json.loads(second.stdout)
    assert summary["folder"] == f"{out}/again"
    compared = json.loads(medground("compare", f"{out}/tiny", f"{out}/again", "--json").stdout)
    centre = [
        r
        for r in compared["records"]
        if (r["first"], r["second"], r["metric"]) == ("tiny:baseline_centre", "again:baseline_centre", "pointing")
    ]
    assert {r["difference"] for r in centre if r["difference"] is not None} == {0}
    shown = medground("compare", f"{out}/tiny", f"{out}/again")
    assert "tiny:baseline_centre minus again:baseline_centre" in shown.stdout
    assert "mean of groups" in shown.stdout
    assert "Nodule" not in shown.stdout
    assert "Nodule" in medground("compare", f"{out}/tiny", f"{out}/again", "--by-group").stdout
    scored = medground("score", f"{out}/tiny", "--protocol", "medklip")
    assert scored.returncode == 0, scored.stderr
    assert "medklip-" in scored.stdout


def test_a_dry_run_and_validation(run_file: Path, tmp_path: Path) -> None:
    dry = medground("run", str(run_file), "--dry-run", "--json", "--out", str(tmp_path / "runs"))
    assert [e["items"] for e in json.loads(dry.stdout)] == [12, 12]
    checks = json.loads(medground("validate", str(run_file), "--json").stdout)
    assert all(check["ok"] for check in checks)
    assert len(checks) == 4
    text = medground("validate", str(run_file))
    assert text.returncode == 0
    assert "ok   baseline_centre/manifest: 3 cases" in text.stdout


def test_validation_fails_with_what_is_wrong(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in tiny_manifest.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    run_file.write_text(run_file.read_text().replace(str(tiny_manifest), str(broken)))
    (broken / "case00.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    failed = medground("validate", str(run_file))
    assert failed.returncode == 1
    assert "FAIL" in failed.stdout
    assert "case00.png" in failed.stdout
    (broken / "manifest.jsonl").write_text('{"imagee": "x.png"}\n')
    failed = medground("validate", str(run_file))
    assert "did you mean 'image'?" in failed.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "nowhere.yaml"], 1, "the run file cannot be read"),
        (["runn"], 2, "No such command"),
        (["describe", "carzerro"], 1, "no component named"),
        (["list", "modells"], 1, "did you mean 'models'"),
        (["score", "nowhere", "--protocol", "xbench"], 1, "not a run folder"),
        (["score"], 1, "score takes one reading"),
        (["score", "--protocol", "xbench"], 1, "a run folder, or cases and maps"),
        (["score", "--cases", "x", "--maps", "y", "--protocol", "xbensch"], 1, "did you mean 'xbench'"),
        (["compare", "a", "b"], 1, "not a run folder"),
    ],
)
def test_a_mistake_is_a_short_message(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    done = medground(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_skipped_cases_are_counted(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in tiny_manifest.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    (broken / "case03.png").write_bytes(b"nothing")
    run_file.write_text(run_file.read_text().replace(str(tiny_manifest), str(broken)))
    stopped = medground("run", str(run_file), "--out", str(tmp_path / "runs"))
    assert stopped.returncode == 1
    assert "case03" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    skipped = medground(
        "run", str(run_file), "--out", str(tmp_path / "runs"), "--set", "engine.on_error=skip", "--json"
    )
    assert skipped.returncode == 3, "finished, with failures"
    data = json.loads(skipped.stdout)
    assert [task["cases_failed"] for task in data["summary"]["data"]["tasks"]] == [1, 1]
    failures = (tmp_path / "runs/tiny/failures.jsonl").read_text().splitlines()
    assert len(failures) == 2
    assert json.loads(failures[0])["item"] == "case03"


def test_lists_and_descriptions() -> None:
    everything = json.loads(medground("list", "--json").stdout)
    assert set(everything) >= {"models", "datasets", "explainers", "benchmarks"}
    assert "xbench" in medground("list", "protocols").stdout
    facts = json.loads(medground("describe", "nih_chestxray14", "--json").stdout)
    assert facts["dataset"] == "nih_chestxray14"
    assert facts["citation"]
    assert any(name.startswith("root") for name in facts["parameters"])


def test_doctor_says_what_is_here() -> None:
    facts = json.loads(medground("doctor", "--json").stdout)
    assert facts["versions"]["numpy"] != "not installed"
    assert facts["devices"]


def test_a_model_of_the_users_that_raises_is_a_failed_check_without_a_traceback(run_file: Path, tmp_path: Path) -> None:
    (tmp_path / "broken_lab.py").write_text(
        "from medground.models.base import ModelInfo\n"
        "class Broken:\n"
        "    name = 'broken'\n"
        "    info = ModelInfo('Broken')\n"
        "    def predict(self, images, findings):\n"
        "        return [][1]\n"
        "    def fingerprint(self):\n"
        "        return 'x'\n"
    )
    text = run_file.read_text()
    run_file.write_text(text.replace("{name: baseline_random}", '{name: "broken_lab:Broken"}'))
    done = medground("validate", str(run_file), cwd=tmp_path)
    assert done.returncode == 1
    assert "FAIL Broken/manifest" in done.stdout
    assert "IndexError" in done.stdout
    assert "broken_lab.py line 6" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_terminal_without_the_letters_of_a_name_is_no_error(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = medground("run", str(run_file), "--out", str(tmp_path / "runs"), "--set", 'models.0.label="Опухоль"')
    assert done.returncode == 0, done.stderr
    assert "\\u041e\\u043f" in done.stdout


def test_too_many_failures_have_an_exit_code_of_their_own(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in tiny_manifest.iterdir():
        (broken / file.name).write_bytes(b"nothing" if file.suffix == ".png" else file.read_bytes())
    run_file.write_text(run_file.read_text().replace(str(tiny_manifest), str(broken)))
    options = ["--set", "engine.on_error=skip", "--set", "engine.max_failures=1%"]
    ended = medground("run", str(run_file), "--out", str(tmp_path / "runs"), *options)
    assert ended.returncode == 4, ended.stderr
    assert "max_failures" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_suite_can_be_estimated(tiny_manifest: Path, tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    part = f"{{name: xbench, datasets: [{{name: manifest, root: {tiny_manifest}}}]}}"
    suite.write_text(
        f"name: two\nbenchmarks: [{part}, {part[:-1]}, protocol: medklip}}]\nmodels: [{{name: baseline_centre}}]\n"
    )
    dry = medground("run", str(suite), "--dry-run", "--json", "--out", str(tmp_path / "runs"))
    assert [e["items"] for e in json.loads(dry.stdout)] == [12, 12], dry.stderr
