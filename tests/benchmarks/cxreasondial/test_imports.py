"""Other people's layouts: field maps and CheXStruct's tables."""

import json
from pathlib import Path

import pytest

from medground.benchmarks.cxreasondial.contract import read_dialogues
from medground.benchmarks.cxreasondial.folder import build
from medground.benchmarks.cxreasondial.imports import import_dialogues, read_chexstruct
from medground.errors import DataError

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
