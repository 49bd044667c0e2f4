"""What a report rests on, and how to repeat it."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medground.reporting.composition import Section
from medground.reporting.runs import Run, unique_names
from medground.reporting.words import count

MOST_FAILURES = 200


def provenance(runs: Sequence[Run]) -> Section:
    """Return the section on run files, manifests, hashes, prompts, environment and failures."""
    content = [_about(run, name) for run, name in zip(runs, unique_names(runs), strict=True)]
    return Section("provenance", "Provenance", "provenance.html", {"runs": content})


def _about(run: Run, name: str) -> dict[str, Any]:
    reasons = Counter(str(failure["reason"]) for failure in run.failures)
    return {
        "name": name,
        "commands": [f"medground run {shlex.quote('run.yaml')}", f"medground report {shlex.quote(f'runs/{run.name}')}"],
        "facts": list(_facts(run)),
        "reasons": reasons.most_common(),
        "failures": run.failures[:MOST_FAILURES],
        "n_failures": len(run.failures),
        "prompts": list(_prompts(run)),
        "config": run.config_text,
        "manifest": json.dumps(run.manifest, indent=2, ensure_ascii=False),
    }


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    manifest = run.manifest
    environment = manifest["environment"]
    versions = {"medground": environment["medground"], "python": environment["python"]} | environment["packages"]
    yield "Environment", f"{environment['platform']}; " + ", ".join(f"{k} {v}" for k, v in versions.items() if v)
    for session in manifest["sessions"]:
        yield "Session", _session(session)
    for entry in run.ledger:
        for label, counts in entry["asked"].items():
            yield f"Asked of {label}", f"{entry['started']}, {entry['reading']}: {_counts(counts)}"
    yield "Reading", run.reading or manifest["reading"]
    yield "SHA-256 of summary.json", run.summary_sha256
    for task in manifest["plan"]:
        yield (
            f"Fingerprint of {' / '.join(task['path'])}",
            f"{task['fingerprint']} ({count(task['items'], 'item')}, {count(len(task['chunks']), 'chunk')}, "
            f"batches of {task['batch_size']})",
        )
    yield "Settings", ", ".join(f"{key} {value}" for key, value in manifest["settings"].items())


def _session(session: Mapping[str, Any]) -> str:
    sentence = f"{session['started']} to {session.get('ended') or 'an unknown end'}: {session['outcome']}, "
    sentence += f"{session.get('chunks_computed', 0)} chunks computed, {session.get('chunks_reused', 0)} reused, "
    sentence += f"on {', '.join(session.get('devices', ['an unknown device']))}"
    changed = session.get("environment_changed")
    return f"{sentence}; the environment had changed: {json.dumps(changed)}" if changed else sentence


def _counts(counts: Mapping[str, Any]) -> str:
    """Return the counts of a ledger in words; money with its currency and the date of its prices."""
    plain = {k: v for k, v in counts.items() if k not in ("money", "currency", "price_date", "waited_s")}
    parts = [f"{value:,} {name.replace('_', ' ')}" for name, value in plain.items()]
    parts.append(f"{counts['waited_s']:g} s waited")
    if "money" in counts:
        parts.append(f"{counts['money']:.4f} {counts['currency']} by the prices of {counts['price_date']}")
    return ", ".join(parts)


def _prompts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the prompts of the run file, those of single models under the model's label."""
    yield from dict(run.config.get("prompts") or {}).items()
    for model in run.config.get("models", []):
        given = model.get("prompts")
        if isinstance(given, Mapping):
            for finding, prompt in given.items():
                yield f"{model.get('label', model['name'])}: {finding}", str(prompt)
