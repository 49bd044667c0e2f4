"""HEAL-MedVQA compared: closed answers, and flips over the pool that both rightly affirm, on rows by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from medground.benchmarks.base import Entry, Setting
from medground.benchmarks.comparable import Contender, pair_of
from medground.benchmarks.comparing import compare_pairs
from medground.benchmarks.heal_medvqa import HealMedVQA
from medground.benchmarks.heal_medvqa.compare import compare
from medground.benchmarks.heal_medvqa.rows import SCHEMA
from medground.datasets.phantom import Phantom
from medground.errors import RunError

WANTED = ["yes", "yes", "yes", "yes", "no", "no", "no", "yes", "no", "yes"]
FIRST = ["yes", "yes", "no", "yes", "no", "no", "yes", "yes", "no", "yes"]
SECOND = ["yes", "yes", "yes", "no", "yes", "no", "yes", "yes", "yes", "uncertain"]
FLIPPED = ["no", "no", "no", "yes", "no", "no", "no", "no", "no", "no"]
STUCK = ["yes", "no", "yes", "yes", "yes", "no", "yes", "yes", "no", "no"]
PATIENTS = [f"p{k // 2}" for k in range(10)]


def bench(**given: Any) -> HealMedVQA:
    made = HealMedVQA(**given)
    made.bind(Setting([], [Entry("phantom", "phantom", Phantom, {"cases": 4})]))
    return made


def rows(said: list[str], flips: list[str], **more: Any) -> pl.DataFrame:
    base = dict.fromkeys(SCHEMA) | {"part": "natural", "finding": "Mass", "anatomy": "left lung"} | more
    made = []
    for k, (wanted, answer, flip) in enumerate(zip(WANTED, said, flips, strict=True)):
        own = base | {"question_id": f"q{k}", "image_id": f"i{k}", "cluster": PATIENTS[k], "kind": f"closed_{wanted}"}
        made.append(own | {"variant": "base", "wanted": wanted, "answer": answer})
        if wanted == "yes":
            made.append(own | {"variant": "tpt_anatomy", "wanted": "no", "answer": flip})
    return pl.DataFrame(made, schema=SCHEMA)


def records(one: pl.DataFrame, two: pl.DataFrame) -> dict[tuple[str, str, str], dict[str, Any]]:
    first, second = (Contender(name, name, "", "phantom", table) for name, table in (("a", one), ("b", two)))
    got = compare_pairs([pair_of(compare(bench()), first, second)])
    return {(r["metric"], r["scope"], r["group"]): r for r in got}


def test_closed_answers_are_compared_over_all_and_as_the_mean_of_yes_and_no(exact: Any) -> None:
    got = records(rows(FIRST, FLIPPED), rows(SECOND, STUCK))
    a, b = ([float(x == w) for x, w in zip(said, WANTED, strict=True)] for said in (FIRST, SECOND))
    record = got["accuracy", "all", ""]
    assert (record["difference"], record["p"]) == pytest.approx(exact(a, b, PATIENTS))
    for side in ("yes", "no"):
        own = [k for k, w in enumerate(WANTED) if w == side]
        expected = exact([a[k] for k in own], [b[k] for k in own], [PATIENTS[k] for k in own])
        record = got["balanced_accuracy", "answer", side]
        assert (record["difference"], record["p"]) == pytest.approx(expected)
    parts = [got["balanced_accuracy", "answer", side]["difference"] for side in ("yes", "no")]
    assert got["balanced_accuracy", "macro", ""]["difference"] == pytest.approx(sum(parts) / 2)


def test_flips_are_compared_where_both_rightly_said_yes(exact: Any) -> None:
    record = records(rows(FIRST, FLIPPED), rows(SECOND, STUCK))["tpt_anatomy", "all", ""]
    pool = [k for k in range(10) if WANTED[k] == FIRST[k] == SECOND[k] == "yes"]
    a, b = ([float(flips[k] == "no") for k in pool] for flips in (FLIPPED, STUCK))
    assert len(pool) == record["n"] == 3
    assert (record["difference"], record["p"]) == pytest.approx(exact(a, b, [PATIENTS[k] for k in pool]))


def test_quartets_count_as_wholes(exact: Any) -> None:
    tables = [rows(said, FLIPPED, part="quartets") for said in (FIRST, SECOND)]
    record = records(*tables)["quartets_right", "all", ""]
    whole = [
        [float(all(said[k] == WANTED[k] for k in range(10) if PATIENTS[k] == p)) for p in sorted(set(PATIENTS))]
        for said in (FIRST, SECOND)
    ]
    assert (record["difference"], record["p"]) == pytest.approx(exact(*whole, sorted(set(PATIENTS))))


def test_other_questions_under_one_id_are_refused() -> None:
    with pytest.raises(RunError, match="another one in the two"):
        records(rows(FIRST, FLIPPED), rows(SECOND, STUCK, finding="Nodule"))


def test_words_around_the_question_and_choices_of_the_build_are_settings() -> None:
    base = compare(bench()).settings
    for name, change in (
        ("instruction", {"instruction": "Answer yes or no."}),
        ("longest reply", {"max_new_tokens": 5}),
        ("build", {"donor": "normal"}),
    ):
        assert {k for k, v in compare(bench(**change)).settings.items() if base[k] != v} == {name}
