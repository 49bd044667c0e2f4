"""``python -m torture``: kill runs, compare bytes, print counts."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from torture.killing import torture
from torture.subjects import SUBJECTS


def main() -> int:
    """Torture the chosen subjects; return 1 where a byte differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", nargs="*", help="by default all")
    parser.add_argument("--kills", type=int, default=200, help="of each")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    differ = False
    for subject in args.subjects or SUBJECTS:
        with tempfile.TemporaryDirectory() as folder:
            count = torture(subject, args.kills, Path(folder), args.seed, _say)
        sys.stdout.write(json.dumps(asdict(count)) + "\n")
        sys.stdout.flush()
        differ |= bool(count.differ)
    return int(differ)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
