"""A planted shortcut is found, and gone after balancing, on the half that was not looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medground.benchmarks.medical_checklist import folder
from medground.benchmarks.medical_checklist.audit import base, learned, ngrams, term_frequency
from medground.benchmarks.medical_checklist.audit.base import Caption, Pair
from medground.benchmarks.medical_checklist.audit.run import audit
from medground.benchmarks.medical_checklist.auditing import audit_file
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.refining import half, refine_items
from medground.errors import ConfigError, DataError
from medground.metrics.bootstrap import clusters
from medground.metrics.inference import estimate_mean


def planted(golden: Any) -> list[ChecklistItem]:
    held = []
    for r in golden.rows("audit/planted.csv"):
        at = r["positive"].lower().index(r["term_positive"].lower())
        end = at + len(r["term_positive"])
        term = r["positive"][at:end]
        held.append(
            ChecklistItem(
                r["item_id"], r["item_id"], None, "s", "", r["paper_id"], "", r["category"], r["positive"],
                r["negative"], at, end, term, r["term_negative"], ("a",), ("b",), r["term_positive"],
                r["term_negative"], 1.0, 5, 0.0, "x", "A",
            )
        )  # fmt: skip
    return held


@pytest.mark.parametrize("method", ["reciprocal_type", "cells"])
def test_a_planted_shortcut_is_gone_on_the_other_half(golden: Any, method: str) -> None:
    items = planted(golden)
    reference = [Caption(r["paper_id"], r["caption"]) for r in golden.rows("audit/reference.csv")]
    texts = [c.text for c in base.disjoint(reference, [i.as_pair for i in items])]
    frequency = term_frequency.TermFrequency(texts)
    assert base.hits(frequency.scores([i.as_pair for i in items])).mean() > 0.8
    kept, _ = refine_items(items, method)
    for part in (0, 1):
        pairs: list[Pair] = [i.as_pair for i in kept if half(i, 0) == part]
        for scorer in (frequency, ngrams.Bigram(texts)):
            credit = base.hits(scorer.scores(pairs))
            estimate = estimate_mean(credit, clusters([p.cluster for p in pairs], [p.item_id for p in pairs]))
            assert estimate.low <= 0.5 <= estimate.high, (method, part, scorer.name, credit.mean(), len(pairs))


def test_a_planted_shortcut_is_gone_after_cells_learned_for_a_scorer_that_learns_it_anew(golden: Any) -> None:
    items = planted(golden)
    before = [_learned_on_the_other_half(items, part).mean() for part in (0, 1)]
    assert min(before) > 0.8
    kept, done = refine_items(items, "cells_learned")
    assert len(kept) > 50
    assert done["kept"] == len(kept)
    for part in (0, 1):
        credit = _learned_on_the_other_half(kept, part)
        pairs = [i.as_pair for i in kept if half(i, 0) == part]
        texts = sorted({i.positive for i in kept if half(i, 0) != part})
        for scored in (credit, base.hits(ngrams.Bigram(texts, per_token=True).scores(pairs))):
            estimate = estimate_mean(scored, clusters([p.cluster for p in pairs], [p.item_id for p in pairs]))
            assert estimate.low <= 0.5 <= estimate.high, (part, scored.mean(), len(pairs))


def _learned_on_the_other_half(items: list[ChecklistItem], part: int) -> Any:
    """Credit of a learned scorer that was fitted on the items of the other half of the papers."""
    fitted = [i.as_pair for i in items if half(i, 0) != part]
    gaps = learned.gaps([i.as_pair for i in items if half(i, 0) == part], learned.fit(learned.features(fitted), 1.0))
    return base.hits(np.stack([gaps, -gaps], axis=1))


def test_the_sentence_follows_the_figures(golden: Any) -> None:
    pairs = [i.as_pair for i in planted(golden)]
    report = audit(pairs)
    assert report.needs_the_image == "no"
    assert report.best.accuracy > 0.8
    assert {r.group for r in report.results} == {"all", *{p.category for p in pairs}}
    json.dumps(report.data())
    assert audit(list(reversed(pairs))).data() == report.data()
    assert audit(pairs[:4]).needs_the_image == "cannot be told"
    assert all(np.isin(c, (0, 0.5, 1)).all() for c in report.credits.values())


def test_the_command_reads_files_of_items(golden: Any, tmp_path: Path) -> None:
    found = audit_file(golden.root / "audit" / "planted.csv", golden.root / "audit" / "reference.csv")
    assert "1500 captions" in found.reference
    assert "term_frequency" in found.in_words()
    assert json.loads(json.dumps(found.data()))["needs_the_image"] == "no"
    (tmp_path / "x.csv").write_text("item_id\n1\n")
    with pytest.raises(DataError, match="columns"):
        audit_file(tmp_path / "x.csv")
    with pytest.raises(ConfigError, match="no such value"):
        folder.Asked(source="roco", captions=tmp_path, sampling="magic")


def test_the_command_builds_from_a_table(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "id,caption,licence,paper\n1,CT of the liver.,CC BY,P1\n2,MRI of the spleen.,CC BY,P2\n3,US.,CC BY-ND,P3\n"
    )
    out = folder.build_items(tmp_path / "made", folder.Asked(source="table", captions=path))
    report = json.loads((out / "build.json").read_text())
    assert report["refused_captions"] == {"licence": 1}
    assert report["items"] == len((out / "items.jsonl").read_text().splitlines()) > 0
    with pytest.raises(ConfigError, match="holds a build"):
        folder.build_items(out, folder.Asked(source="table", captions=path))
