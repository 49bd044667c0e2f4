"""Builds: the same bytes in any order and on any number of workers, and the invariants of every item."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.medical_checklist import items as item_files
from medground.benchmarks.medical_checklist.build import PAPER, Settings, build
from medground.benchmarks.medical_checklist.mentions.dictionary import Dictionary
from medground.benchmarks.medical_checklist.refining import METHODS, refine_items
from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.medical_checklist.sources.base import Captioned, select
from medground.benchmarks.medical_checklist.substitution import article
from medground.benchmarks.medical_checklist.substitution.number import is_plural
from medground.benchmarks.medical_checklist.terminologies import embedded
from medground.errors import ConfigError, DataError


def captions(golden: Any) -> list[Captioned]:
    rows = golden.rows("mentions_roco/captions.csv")
    held = [
        Captioned(r["roco_id"], r["caption"].strip(), None, r["pmc_file"].split("_")[0], "roco", r["licence"])
        for r in rows
    ]
    return select(held)[0]


def test_every_item_keeps_the_rules(golden: Any) -> None:
    held = captions(golden)
    terms = embedded.read()
    made, report = build(held, terms)
    assert len(made) == report.items > 200
    assert report.mentions == report.items + sum(report.refused_mentions.values())
    by_id = {c.caption_id: c.caption for c in held}
    seen = Counter(m.alias for c in held for m in Dictionary(terms).find(c.caption))
    for item in made:
        assert item.positive == by_id[item.caption_id]
        assert item.positive[item.start : item.end] == item.term_positive
        tail = item.positive[item.end :]
        assert item.negative.endswith(item.term_negative + tail)
        head = item.negative[: len(item.negative) - len(tail) - len(item.term_negative)]
        found = article.before(item.positive[: item.start])
        same = item.positive[: found.start(1) if found else item.start]
        assert head.startswith(same)
        assert item.tui in TYPES
        assert not set(item.concepts_positive) & set(item.concepts_negative)
        assert not terms.related(item.concepts_positive, item.concepts_negative)
        assert is_plural(item.term_positive) == is_plural(item.name_negative)
        assert seen[item.name_negative] > 0
        assert item.lexicon == terms.fingerprint[:16]


def test_neither_order_nor_workers_change_a_byte(golden: Any, tmp_path: Path) -> None:
    held = captions(golden)
    first, _ = build(held, embedded.read(), Settings(seed=3))
    shuffled = list(held)
    random.Random(1).shuffle(shuffled)
    again, _ = build(select(shuffled)[0], embedded.read(), Settings(seed=3))
    item_files.write(tmp_path / "a.jsonl", first)
    item_files.write(tmp_path / "b.jsonl", again)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert item_files.read(tmp_path / "a.jsonl") == first


def test_workers_change_nothing(golden: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from medground.benchmarks.medical_checklist import build as building

    monkeypatch.setattr(building, "CHUNK", 60)
    held = captions(golden)
    assert build(held, embedded.read(), workers=2)[0] == build(held, embedded.read())[0]


def test_another_seed_changes_replacements_alone(golden: Any) -> None:
    held = captions(golden)
    one, first = build(held, embedded.read(), PAPER)
    two, second = build(held, embedded.read(), replace(PAPER, seed=9))
    assert (first.mentions, first.pool) == (second.mentions, second.pool)
    shared = {i.item_id: i for i in one}
    changed = [i for i in two if i.item_id in shared and i.name_negative != shared[i.item_id].name_negative]
    assert len(changed) > len(two) / 2


def test_a_caption_less_changes_no_other_item(golden: Any) -> None:
    from medground.benchmarks.medical_checklist.build import Context, _find, _seen
    from medground.benchmarks.medical_checklist.sampling import pool

    held = captions(golden)
    context = Context(embedded.read(), Settings(), None)
    frozen = pool(_seen(held, _find(context, held)))
    whole, _ = build(held, embedded.read(), frozen=frozen)
    gone = held[7]
    less, _ = build([c for c in held if c is not gone], embedded.read(), frozen=frozen)
    kept = {i.item_id: replace(i, side="A") for i in whole if i.caption_id != gone.caption_id}
    assert {i.item_id: replace(i, side="A") for i in less} == kept


def test_sides_are_balanced_and_fixed(golden: Any) -> None:
    made, _ = build(captions(golden), embedded.read())
    counts = Counter(i.side for i in made)
    assert abs(counts["A"] - counts["B"]) <= 1
    assert item_files.sides([i.item_id for i in reversed(made)], 0) == {i.item_id: i.side for i in made}


def test_nearest_and_limits(golden: Any) -> None:
    held = captions(golden)[:40]
    made, report = build(held, embedded.read(), Settings("nearest", most_per_caption=1))
    assert max(Counter(i.caption_id for i in made).values()) == 1
    assert report.refused_mentions["more_than_asked"] > 0


@pytest.mark.parametrize("method", sorted(METHODS))
def test_refining_keeps_a_part(golden: Any, method: str) -> None:
    made, _ = build(captions(golden), embedded.read())
    kept, report = refine_items(made, method)
    assert {i.item_id for i in kept} <= {i.item_id for i in made}
    assert report["kept"] == len(kept)
    if method == "reciprocal_type":
        orders = Counter((i.tui, i.name_positive, i.name_negative) for i in kept)
        assert all(orders[t, b, a] == n for (t, a, b), n in orders.items())


def test_selection_counts_what_it_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    rows = [
        Captioned("1", "A lung.", "a.png", "P1", "s", "CC BY"),
        Captioned("2", "a  LUNG.", "b.png", "P1", "s", "CC BY"),
        Captioned("3", "A rib.", "b.png", "P2", "s", "CC BY-NC-ND"),
        Captioned("4", "A rib.", "b.png", "P3", "s", "CC BY-NC"),
        Captioned("5", "One.", None, "P4", "s"),
        Captioned("5", "Two.", None, "P4", "s"),
        Captioned("6", "", None, "P5", "s"),
        Captioned("7", "x" * 100_000, None, "P6", "s"),
    ]
    kept, refused = select(rows, images=tmp_path)
    assert [(c.caption_id, c.image) for c in kept] == [("1", "a.png"), ("4", None)]
    assert refused == {
        "duplicate": 1, "licence": 1, "image_missing": 1, "ambiguous_id": 2, "empty_caption": 1, "caption_too_long": 1,
    }  # fmt: skip
    assert [c.caption_id for c in select(rows, images=tmp_path, licences="open", require_image=True)[0]] == ["1"]


def test_embedded_lexicon_has_all_types() -> None:
    counts = Counter(t for c in embedded.read().concepts.values() for t in c.benchmark_tuis)
    assert set(counts) == set(TYPES)
    assert min(counts.values()) >= 40
    assert embedded.read().remarks["concepts_on_a_cycle"] == 0
    assert embedded.read().parents
    assert embedded.read().wholes


def test_a_tampered_file_of_items_is_refused(golden: Any, tmp_path: Path) -> None:
    made, _ = build(captions(golden)[:20], embedded.read())
    path = tmp_path / "items.jsonl"
    item_files.write(path, [*made, made[0]])
    with pytest.raises(DataError, match="twice"):
        item_files.read(path)
    item_files.write(path, [replace(made[0], start=made[0].start + 1)])
    with pytest.raises(DataError, match="offsets"):
        item_files.read(path)
    path.write_text("{}\n")
    with pytest.raises(DataError, match="no item"):
        item_files.read(path)
    with pytest.raises(ConfigError):
        refine_items(made, "magic")
