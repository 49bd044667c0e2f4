"""``python -m torture``: kill runs and compare bytes, damage files and read them; print counts."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from torture.fuzzing import KINDS, fuzz, table_of
from torture.killing import torture
from torture.subjects import SUBJECTS


def main() -> int:
    """Torture the chosen subjects and readers; return 1 where a byte differs or an error escapes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", nargs="*", help="by default all")
    parser.add_argument("--kills", type=int, default=200, help="of each; 0: none")
    parser.add_argument("--damage", type=int, default=0, help="damaged files of each kind that is read")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    differ = False
    if args.damage:
        counts = [fuzz(kind, args.damage, args.seed) for kind in KINDS]
        sys.stdout.write(table_of(iter(counts)) + "\n")
        for line in (line for count in counts for line in count.escaped):
            _say(line)
        differ = not all(count.held for count in counts)
    for subject in (args.subjects or SUBJECTS) if args.kills else ():
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
