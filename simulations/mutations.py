"""Does a test notice when a rule of decision is broken? ``make mutations`` breaks each of them on purpose.

Every mutation changes one place of a copy of the source and runs the tests that should notice. A mutation that no test
notices is printed: the rule that it breaks has no test.

python -m simulations.mutations [--only WORD] [--least 0.95]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from simulations.rules import MUTATIONS, Mutation

ROOT = Path(__file__).parent.parent
PACKAGE = Path("src/medground")
LIMIT_S = 3600


def mutated(mutation: Mutation, package: Path = ROOT / PACKAGE) -> tuple[Path, str]:
    """Return which file changes, and its text with the rule broken.

    Raises:
        ValueError: what is to be broken stands there never or more than once: the list must follow the code.
    """
    place = package / mutation.file
    files = [place] if place.is_file() else sorted(place.glob("*.py"))
    texts = {path: path.read_text("utf-8") for path in files}
    times = sum(text.count(mutation.old) for text in texts.values())
    if times != 1:
        raise ValueError(f"{mutation.file}: {times} times {mutation.old!r} ({mutation.rule})")
    path = next(path for path, text in texts.items() if mutation.old in text)
    return path, texts[path].replace(mutation.old, mutation.new)


def noticed(mutation: Mutation) -> bool:
    """Run the tests on a broken copy of the source; True where one fails."""
    return not _passes(mutation.tests, mutation)


def unbroken(only: str = "") -> bool:
    """Run the same tests on an unbroken copy, on which all must pass."""
    return _passes(tuple(dict.fromkeys(name for m in MUTATIONS if only in m.rule for name in m.tests)))


def _passes(tests: Sequence[str], mutation: Mutation | None = None) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src" / "medground"
        shutil.copytree(ROOT / PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            path, text = mutated(mutation, copy)
            path.write_text(text, "utf-8")
        environment = os.environ | {"PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider"]
        command += [str(Path("tests") / name) for name in tests]
        done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT_S)
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"the tests do not run: {done.stdout.decode()[-2000:]}")
    return done.returncode == 0


def run(only: str = "") -> Iterator[tuple[Mutation, bool]]:
    """Yield every mutation whose rule holds a word, and whether it was noticed."""
    for mutation in MUTATIONS:
        if only in mutation.rule:
            yield mutation, noticed(mutation)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; 0 where enough are noticed."""
    parser = argparse.ArgumentParser(prog="simulations.mutations", description=__doc__)
    parser.add_argument("--only", default="", help="rules that hold this word")
    parser.add_argument("--least", type=float, default=0.95, help="share that must be noticed")
    chosen = parser.parse_args(arguments)
    if not unbroken(chosen.only):
        print("tests fail without any mutation: correct them first")
        return 1
    results = []
    for mutation, seen in run(chosen.only):
        results.append(seen)
        print(f"{'noticed' if seen else 'MISSED '}  {mutation.rule} ({mutation.file})", flush=True)
    print(f"{sum(results)} of {len(results)} noticed")
    return 0 if results and sum(results) >= chosen.least * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
