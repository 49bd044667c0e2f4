"""What a run file declares of a model is held against the data, with counts; the unknown is never the favourable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.base import Declared, Entry
from medground.benchmarks.xbench.declared import card_for, excluded_of, hold, hold_seen, is_excluded
from medground.config import parse_run_file
from medground.datasets.base import Case, DatasetInfo
from medground.declared import read_declared, read_patients, refuse_idle
from medground.errors import ConfigError, DataError, ModelError
from medground.models.base import ModelInfo
from medground.models.precomputed import Precomputed
from medground.reporting.xbench.standing import standing
from medground.tables.ids import plain_id

INFO = DatasetInfo("NIH", ("Mass",), "free", True, "c", "o", pixels_from="nih_chestxray14")


class Data:
    name = "rsna_pneumonia"
    info = INFO
    findings = ("Mass", "Nodule")

    def __init__(self, *patients: str | None) -> None:
        self._cases = [Case(f"0000{i}_000", Path("x.png"), patient) for i, patient in enumerate(patients)]

    def cases(self) -> list[Case]:
        return self._cases


class Unread(Precomputed):
    """Precomputed maps of which none are read here."""

    reads_elsewhere = False


def entry(**declared: Any) -> Entry:
    return Entry("m", "precomputed", Unread, {}, declared=Declared(**declared))


def test_maps_made_elsewhere_are_joined_under_the_names_that_they_have(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("case_id,finding,score\n00000_000.png,tumour,0.5\n")
    words = Declared(findings={"Mass": "tumour"})
    lines = list(hold(Entry("m", "precomputed", Precomputed, {"maps": tmp_path}, declared=words), {"d": Data("1")}))
    assert any("scores.csv: 1 of 2 cases and findings found" in line for line in lines)
    other = Entry("m", "precomputed", Precomputed, {"maps": tmp_path})
    with pytest.raises(DataError, match="nothing in scores"):
        list(hold(other, {"d": Data("1")}))


def out(*ids: str) -> dict[str, Any]:
    return {"excluded": {"": frozenset(map(plain_id, ids))}, "files": {"": "list.txt"}}


def test_patients_are_matched_however_they_are_written() -> None:
    data = Data("32", "33", None, "32")
    (line,) = hold(entry(**out("00000032", "00000099")), {"d": data})
    assert line == "m: 1 of 2 patients of list.txt are in d; 2 of 4 cases are left out"
    excluded = excluded_of(Declared(**out("00000032")), "d", "rsna_pneumonia")
    assert [is_excluded(case, excluded) for case in data.cases()] == [True, False, False, True]


def test_a_list_of_images_stands_for_their_cases() -> None:
    (line,) = hold(entry(**out("00001_000.png")), {"d": Data("32", "33")})
    assert line.endswith("1 of 2 cases are left out")


def test_a_list_that_fits_nobody_is_refused_and_shows_both_forms() -> None:
    with pytest.raises(ConfigError, match="none of the patients") as caught:
        list(hold(entry(**out("P-32")), {"d": Data("32")}))
    assert "form 9" in str(caught.value)
    assert "form a-9" in str(caught.value)


def test_what_a_model_says_of_its_own_training_is_held_against_the_data() -> None:
    cases = Data("32", "33").cases()
    assert hold_seen("m", "d", ["00000032"], cases) == {"32"}
    assert hold_seen("m", "d", ["77"], cases) == {"77"}  # disjoint, and written alike: nothing to leave out
    with pytest.raises(ModelError, match="ids look otherwise"):
        hold_seen("m", "d", ["patient00032"], cases)


def test_names_of_findings_and_datasets_are_held_against_the_run() -> None:
    with pytest.raises(ConfigError, match="'Noduls' is no finding") as caught:
        list(hold(entry(findings={"Noduls": "x"}), {"d": Data("1")}))
    assert "did you mean 'Nodule'?" in str(caught.value)
    (line,) = hold(entry(seen={"rsna": "images"}), {"d": Data("1")})
    assert "'rsna', which is no dataset of this run" in line
    assert not list(hold(entry(seen={"rsna_pneumonia": "images"}), {"d": Data("1")}))
    with pytest.raises(ConfigError, match="no dataset of this run"):
        list(hold(entry(excluded={"e": frozenset({"1"})}, files={"e": "l"}), {"d": Data("1")}))


def test_seen_is_known_by_label_by_name_and_by_the_source_of_the_pictures() -> None:
    for name, words in (("d", "images"), ("rsna_pneumonia", "images"), ("nih_chestxray14", "images (of nih_ches")):
        card = card_for(ModelInfo("M", seen={name: "images"}), {"d": Data("1")})
        assert card.seen["d"].startswith(words)
    assert not card_for(ModelInfo("M", seen={"pmc": "figures"}), {"d": Data("1")}).seen


def test_maps_made_elsewhere_are_of_unknown_training_until_declared() -> None:
    assert Entry("m", "precomputed", Precomputed).card.kind == "unknown"
    task = {"kind": "unknown", "seen": None, "cases_seen": 0}
    assert not standing(task).ranked
    assert standing(task).marks == ("training unknown",)
    declared = entry(kind="zero-shot", seen={"d": "images"}).card
    assert (declared.kind, declared.seen, declared.title) == ("zero-shot", {"d": "images"}, "Precomputed maps")
    assert standing(task | {"kind": "zero-shot"}).ranked


def test_a_map_of_names_is_part_of_who_was_asked_and_training_is_not() -> None:
    plain = entry().identity()
    assert entry(kind="supervised", seen={"d": "images"}, **out("1")).identity() == plain
    assert entry(findings={"Mass": "tumour"}).identity() != plain


def test_declarations_stand_in_the_run_file_beside_parameters(tmp_path: Path) -> None:
    run = parse_run_file(
        {
            "name": "r",
            "benchmark": {"name": "xbench"},
            "models": [{"name": "precomputed", "maps": "m", "kind": "zero-shot", "exclude_patients": "l.txt"}],
        }
    )
    (model,) = run.models
    assert model.given(["maps"]) == {"maps": "m"}
    assert model.declared(["maps"]) == {"kind": "zero-shot", "exclude_patients": "l.txt"}
    assert model.given(["maps", "kind"])["kind"] == "zero-shot"
    (tmp_path / "l.txt").write_text("00000032\n\n7.0\n")
    declared, resolved = read_declared(model.declared(["maps"]), tmp_path, "models.0")
    assert declared.excluded == {"": {"32", "7"}}
    assert resolved == {"kind": "zero-shot", "exclude_patients": str(tmp_path / "l.txt")}
    with pytest.raises(ConfigError, match="does not heed exclude_patients"):
        refuse_idle(type("B", (), {"name": "b"}), [Entry("m", "m", Precomputed, declared=declared)])


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("patient_id\n32\n", {"32"}),
        ("patient_id,split\n0032,train\n33,train\n", {"32", "33"}),
        ("split;patient_id\ntrain;p1\n", {"p1"}),
        ("32\r\n33\r\n", {"32", "33"}),
    ],
)
def test_lists_of_patients_in_their_usual_forms(content: str, named: set[str], tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.write_text(content, newline="")
    assert read_patients(path, "here") == named


@pytest.mark.parametrize("content", ["", "\n\n", "patient_id\n", "a,b\n1,2\n"])
def test_lists_that_name_nobody_are_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"names nobody|no column"):
        read_patients(path, "here")
    with pytest.raises(ConfigError, match="not there"):
        read_patients(tmp_path / "absent", "here")
