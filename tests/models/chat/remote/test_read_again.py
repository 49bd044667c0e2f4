"""Kept replies of a chat model in XBench, read again by another reader: nobody is asked, both stand side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from medground.commands.score import score_run
from medground.config import parse_run_file
from medground.errors import ConfigError, RegistryError
from medground.reporting.report import write_report
from medground.reporting.runs import read_run
from medground.reporting.sources import maps_of
from medground.running.reading import read_rows
from medground.session import assemble, run_session


@pytest.fixture
def session(stub: Any, tiny_manifest: Path) -> Any:
    def make(model: dict[str, Any] | None = None, **benchmark: Any) -> Any:
        served = {"name": "api_chat", "base_url": stub.url, "model": "stub-1", "cache": "none", "structured": "text"}
        grounder = {"name": "chat_grounder", "label": "g", "of": served, "box_format": "thousandths"}
        bench = {"name": "xbench", "replicates": 0, "datasets": [{"name": "manifest", "root": str(tiny_manifest)}]}
        return assemble(
            parse_run_file(
                {
                    "name": "r",
                    "benchmark": bench | benchmark,
                    "models": [model or grounder],
                    "engine": {"workers": 0, "torch_threads": 1},
                }
            )
        )

    return make


def rows(folder: Path, reading: str | None = None) -> pl.DataFrame:
    return read_rows(folder, ("g", "manifest"), reading)


def keys(table: pl.DataFrame) -> list[tuple[str, str]]:
    return [(row["case_id"], row["finding"]) for row in table.filter("localised").iter_rows(named=True)]


def test_a_reader_of_prose_reads_what_no_schema_meets(stub: Any, answered: Any, session: Any, tmp_path: Path) -> None:
    def answer(number: int, body: dict[str, Any]) -> dict[str, Any]:
        where = "as a box [" in json.dumps(body["messages"])
        return {"body": answered("It is at [100, 100, 500, 500]." if where else "Yes, there is evidence of it.")}

    stub.answer = answer
    own = run_session(session(), tmp_path / "run")
    first = rows(tmp_path / "run")
    assert first["score"].null_count() == len(first)
    assert set(first.filter("localised")["state"]) == {"absent"}
    asked, before = stub.seen, {p: p.read_bytes() for p in own.reading.rglob("*") if p.is_file()}
    prose = score_run(tmp_path / "run", "reader", "prose")
    again = rows(tmp_path / "run", prose.folder.name)
    assert stub.seen == asked
    assert prose.reading == "xbench-prose"
    assert again["score"].to_list() == [1.0] * len(again)
    assert set(again.filter("localised")["state"]) == {"ok"}
    assert {p: p.read_bytes() for p in own.reading.rglob("*") if p.is_file()} == before
    assert any("read by 'prose'" in note for note in prose.summary.notes)
    # The viewer shows the maps that were measured.
    shown = maps_of(read_run(tmp_path / "run", prose.folder.name), "g", "manifest", keys(again))
    assert len(shown) == again.filter("localised").height
    assert all(float(m[30, 30]) == 1.0 and float(m[100, 100]) == 0.0 for m in shown.values())
    assert not maps_of(read_run(tmp_path / "run"), "g", "manifest", keys(first))
    page = write_report([tmp_path / "run"], readings={tmp_path / "run": prose.folder.name}).read_text()
    assert "answer in words are read by prose" in page
    # Asked anew and read so at once: the same rows.
    fresh = run_session(session(reader="prose"), tmp_path / "fresh")
    assert rows(tmp_path / "fresh", fresh.reading.name).equals(again)


def test_the_structured_reader_gives_what_the_model_read_itself(
    stub: Any, answered: Any, session: Any, tmp_path: Path
) -> None:
    told = [{"answer": "yes"}, {"answer": "no"}, {"answer": "uncertain"}, {"answer": "perhaps"}]
    boxes = [[[100, 100, 500, 500]], [], [[900, 100, 500, 500]], [[0, 0, 10, 10], [500, 500, 1000, 1000]]]

    def answer(number: int, body: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(body["messages"])
        return {
            "body": answered(json.dumps({"boxes": boxes[number % 4]} if "as a box [" in text else told[number % 4]))
        }

    stub.answer = answer
    run_session(session(), tmp_path / "run")
    first = rows(tmp_path / "run")
    structured = score_run(tmp_path / "run", "reader", "structured")
    assert structured.folder is not None
    assert rows(tmp_path / "run", structured.folder.name).equals(first)
    assert first["score"].drop_nulls().len() > 0


def test_a_reader_that_does_not_exist_or_has_nothing_to_read_is_refused(session: Any) -> None:
    with pytest.raises(ConfigError, match="no reader named 'pros'"):
        session(reader="pros")
    with pytest.raises((ConfigError, RegistryError), match="no model of this run answers in words"):
        session({"name": "baseline_class_prior"}, reader="prose")
