"""Other people's layouts: field maps and CheXStruct's tables."""

import json
from pathlib import Path

import pytest

from medground.benchmarks.cxreasondial import CXReasonDial
from medground.benchmarks.cxreasondial.contract import read_dialogues
from medground.benchmarks.cxreasondial.folder import build
from medground.benchmarks.cxreasondial.imports import import_dialogues, measured_cases, read_chexstruct
from medground.errors import ConfigError, DataError
from medground.judges.evidence import Evidence

GOLDEN = Path(__file__).parents[2] / "golden" / "cxreasondial" / "dialogues.jsonl"


def test_a_field_map_finds_another_layout(tmp_path):
    ours = read_dialogues(GOLDEN)[:3]
    records = []
    for line in GOLDEN.read_text().splitlines()[:3]:
        record = json.loads(line)
        turns = [{"user": t["query"], "gold": t["reference_reply"], "wants": t["requests"]} for t in record["turns"]]
        records.append({"meta": {"uid": record["id"], "xray": record["image"]}, "conversation": turns})
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(records))
    fields = {
        "id": "meta.uid",
        **{f"image.{key}": f"meta.xray.{key}" for key in ("path", "dicom_id", "view")},
        "turns": "conversation",
        "turn.query": "user",
        "turn.reference_reply": "gold",
        "turn.requests": "wants",
    }
    theirs = import_dialogues(path, fields)
    assert [d.turns for d in theirs] == [d.turns for d in ours]
    with pytest.raises(DataError, match="a field is missing") as error:
        import_dialogues(path)
    assert "record 1" in str(error.value)
    with pytest.raises(DataError, match="not ours"):
        import_dialogues(path, {"turn.question": "user"})


def test_chexstruct_rows_become_measurements(tmp_path):
    path = tmp_path / "cardiomegaly.csv"
    path.write_text("image_id,viewposition,label,ctr\na,PA,1,0.4975\nb,AP,0,0.53\nc,,,0.6\nd,PA,0,\n")
    read = read_chexstruct(path, "cardiomegaly")
    assert [read[i][1].decision.label for i in "abcd"] == [1, 0, None, None]
    assert read["d"][1].status == "dropped"
    path.write_text("image_id,viewposition,label,ctr\na,PA,1,wide\n")
    with pytest.raises(DataError, match="no number") as error:
        read_chexstruct(path, "cardiomegaly")
    assert "line 2" in str(error.value)
    path.write_text("image_id,ratio\na,1\n")
    with pytest.raises(DataError, match="columns are missing"):
        read_chexstruct(path, "cardiomegaly")


def test_a_folder_is_built_and_read_again(tmp_path):
    said = build(tmp_path / "out", cases=3, size=128, seed=5)
    dialogues = read_dialogues(tmp_path / "out" / "dialogues.jsonl")
    assert said.startswith("3 dialogues")
    assert all((tmp_path / "out" / d.image.path).is_file() for d in dialogues)
    with pytest.raises(DataError, match="not empty"):
        build(tmp_path / "out", cases=3, size=128, seed=5)


def tables(folder):
    """CheXStruct's tables of two images, with the columns that are read."""
    rows = {
        "cardiomegaly": ("ctr", ["0.57", "0.43"]),
        "rotation": ("ratio,distance_right,distance_left", ["0.24,12.1,50.2", "0.81,,"]),
        "projection": ("ratio_right,ratio_left", ["0.05,0.11", "0.62,0.81"]),
        "trachea_deviation": ("direction", ["flat", "right"]),
        "carina_angle": ("angle", ["66", ""]),
        "aortic_knob_enlargement": ("ratio", ["1.72", "3.04"]),
    }
    for task, (columns, values) in rows.items():
        lines = [f"image_id,viewposition,label,{columns}", f"a,PA,0,{values[0]}", f"b,AP,0,{values[1]}"]
        (folder / f"{task}.csv").write_text("\n".join(lines) + "\n")


def test_tables_of_chexstruct_become_dialogues(tmp_path):
    (tmp_path / "tables").mkdir()
    tables(tmp_path / "tables")
    build(tmp_path / "out", chexstruct=tmp_path / "tables", seed=2)
    dialogues = read_dialogues(tmp_path / "out" / "dialogues.jsonl")
    assert [d.image.path for d in dialogues] == ["images/a.png", "images/b.png"]
    judge, asked = Evidence(), 0
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if turn.requests and not turn.visual:
                asked += 1
                ruling = judge.judge(dialogue.query(turn, draws=False), turn.reference_reply)
                assert (ruling.coverage, ruling.faithfulness) == (1, 1), turn.reference_reply
    assert asked >= 3
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["dropped"] == {"carina_angle: no_value": 1}
    with pytest.raises(ConfigError, match="one source"):
        build(tmp_path / "two", chexstruct=tmp_path, masks=tmp_path)
    with pytest.raises(DataError, match="no table of a task"):
        list(measured_cases(tmp_path / "out"))
    (tmp_path / "tables" / "rotation.csv").write_text("image_id,viewposition,label,ratio\na,AP,0,0.4\n")
    with pytest.raises(DataError, match="two views"):
        list(measured_cases(tmp_path / "tables"))


def test_a_run_reads_a_file_of_another_layout(tmp_path):
    record = json.loads(GOLDEN.read_text().splitlines()[0])
    record["conversation"] = [{**turn, "user": turn.pop("query")} for turn in record.pop("turns")]
    path = tmp_path / "theirs.jsonl"
    path.write_text(json.dumps(record))
    made = CXReasonDial(dialogues=path, fields={"turns": "conversation", "turn.query": "user"})
    assert [d.turns for d in made.source.dialogues()] == [read_dialogues(GOLDEN)[0].turns]
    with pytest.raises(ConfigError, match="belong to a file"):
        CXReasonDial(fields={"turns": "conversation"})


def test_every_wrong_line_is_named(tmp_path):
    lines = GOLDEN.read_text().splitlines()[:4]
    path = tmp_path / "dialogues.jsonl"
    path.write_text("\n".join([lines[0], "{", lines[1], lines[0], '{"id": 1}']))
    with pytest.raises(DataError, match="not a dialogue") as error:
        read_dialogues(path)
    assert ", line 2" in str(error.value)
    assert "lines 4, 5 are wrong, too" in str(error.value)
