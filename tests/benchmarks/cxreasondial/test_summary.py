"""Cells from rows made by hand: groups, intervals by dialogue, what history adds, and undefined verdicts."""

import json

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.cxreasondial.rows import SCHEMA
from medground.benchmarks.cxreasondial.scores import Judged
from medground.benchmarks.cxreasondial.summarise import summarise
from medground.benchmarks.results import ModelFacts
from medground.errors import MetricError
from medground.metrics.bootstrap import clusters
from medground.metrics.inference import estimate_mean

EMPTY = dict.fromkeys(SCHEMA)


def row(dialogue, turn, faithful, covered=1, task="rotation", known=False, history="without_gt", **more):
    told = {
        "dialogue": f"d{dialogue}", "turn": turn, "history": history, "mode": "model", "kind": "plain",
        "tasks": [task], "evidence_types": ["diagnostic"], "answer_in_history": known,
        "applicable": ["coverage", "faithfulness"], "coverage": covered, "faithfulness": faithful,
        "judge_status": "ok", "by_judge": "{}", "canaries": 0, "canaries_changed": 0, "outcome": "ok",
        "asked_by": "dialogue", "query": "?", "reply": "!", "plan": "", "trace": "", "evidence": "", "reason": "",
        "mismatches": [],
    }  # fmt: skip
    return EMPTY | told | more


def summary(rows, others=(), floors=None):
    frames = {("m", "phantoms, without_gt"): pl.DataFrame(rows, schema=SCHEMA)}
    if others:
        frames["m", "phantoms, with_gt"] = pl.DataFrame(others, schema=SCHEMA)
    return summarise(
        frames, ("evidence", {"judge": "evidence/x", "models": {}}), [ModelFacts(label="m")], floors or {}, ()
    )


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    tasks = ("rotation", "cardiomegaly", "inspiration")
    return [
        row(d, t, int(rng.random() < 0.3 + 0.4 * (d % 2)), task=tasks[t % 3], known=t == 4)
        for d in range(20)
        for t in range(5)
    ]


def cells(made, **where):
    return [c for c in made.cells if all(getattr(c, k) == v for k, v in where.items())]


def test_groups_partition_the_turns(rows):
    made = summary(rows)
    (whole,) = cells(made, metric="faithfulness", scope="all")
    assert whole.n == 100
    for scope, groups in (("task", 3), ("turn", 5), ("evidence", 2)):
        parts = cells(made, metric="faithfulness", scope=scope)
        assert len(parts) == groups
        assert sum(c.n for c in parts) == 100
        assert sum(c.n * c.value for c in parts) == pytest.approx(100 * whole.value)
        assert all(c.low <= c.value <= c.high for c in parts)
    assert {c.group for c in cells(made, metric="faithfulness", scope="turn")} == set("12345")


def test_intervals_are_by_dialogue_and_not_by_turn(rows):
    (whole,) = cells(summary(rows), metric="faithfulness", scope="all")
    values = [float(r["faithfulness"]) for r in rows]
    names = [r["dialogue"] for r in rows]
    right = estimate_mean(values, clusters(names, list(range(len(names)))))
    assert (whole.low, whole.high) == (pytest.approx(right.low), pytest.approx(right.high))
    same = [row(d, t, d % 2) for d in range(10) for t in range(30)]
    (wide,) = cells(summary(same), metric="faithfulness", scope="all")
    alone = estimate_mean([float(d % 2) for d in range(10)], clusters(list(range(10))))
    assert wide.high - wide.low == pytest.approx(alone.high - alone.low, rel=0.02)  # 300 turns, ten dialogues


def test_an_undefined_verdict_is_counted_and_never_a_0(rows):
    lost = [r | {"coverage": None, "faithfulness": None, "judge_status": "parse_error"} if i % 5 == 0 else r
            for i, r in enumerate(rows)]  # fmt: skip
    made = summary(lost)
    (whole,) = cells(made, metric="faithfulness", scope="all")
    kept = [r["faithfulness"] for r in lost if r["faithfulness"] is not None]
    assert (whole.n, whole.failed) == (80, 20)
    assert whole.value == pytest.approx(np.mean(kept))
    (strict,) = cells(made, metric="strict_success", scope="all")
    assert (strict.value, strict.failed) == (None, 20)
    (average,) = cells(made, metric="average_success", scope="all")
    assert average.n == 20


def test_what_reference_history_adds_is_counted_on_the_same_turns(rows):
    shown = [r | {"history": "with_gt", "faithfulness": 1 if r["answer_in_history"] else r["faithfulness"]}
             for r in rows]  # fmt: skip
    shown[0]["faithfulness"] = None
    made = summary(rows, shown)
    (added,) = cells(made, metric="copied_not_seen")
    gains = [
        s["faithfulness"] - r["faithfulness"] for s, r in zip(shown, rows, strict=True) if s["faithfulness"] is not None
    ]
    assert added.value == pytest.approx(np.mean(gains))
    assert added.low < added.value < added.high
    assert (added.dataset, added.n, added.undefined) == ("phantoms", 99, 1)
    assert len(cells(made, metric="faithfulness", scope="all")) == 2  # one a history mode


def test_whose_words_the_queries_were_is_counted(rows):
    asked = [r | {"asked_by": "model" if r["turn"] else "planned"} for r in rows]
    made = summary(asked)
    assert made.data["asked_by"] == {"m / phantoms, without_gt": {"model": 80, "planned": 20}}
    json.dumps(made.to_json())


def test_parts_of_faithfulness_that_do_not_make_1_stop_the_summary(rows, monkeypatch):
    from medground.benchmarks.cxreasondial import summarise as module
    from medground.benchmarks.cxreasondial.scores import Identity

    monkeypatch.setattr(module, "identity", lambda _: Identity(5, 0.5, 0.3, 0.1))
    with pytest.raises(MetricError, match="do not make 1"):
        summary(rows)


def floors_of(**share):
    """Repliers that are faithful on a share of the dialogues."""
    return {
        name.replace("_", " "): [
            Judged(f"d{d}", t, ("coverage", "faithfulness"), {"coverage": 1, "faithfulness": int(d < 20 * part)})
            for d in range(20)
            for t in range(5)
        ]
        for name, part in share.items()
    }


def answer_of(share, floors):
    made = summary([row(d, t, int(d < 20 * share)) for d in range(20) for t in range(5)], floors=floors)
    (verdict,) = made.verdicts
    return verdict


def test_a_constant_replier_is_not_faithful_however_many_floors_it_beats():
    floors = floors_of(refuser=0.0, parrot=0.05, all_normal=0.5)
    verdict = answer_of(0.5, floors)  # word for word what one of the floors says
    assert verdict.answer == "no"
    assert verdict.because.startswith("against all normal: ")
    assert verdict.roles["floor"].group == "all normal"
    assert answer_of(1.0, floors).answer == "yes"
    assert answer_of(0.2, floors).answer == "no"  # better than two floors, worse than the third
    assert answer_of(0.6, floors).answer == "cannot be told"
