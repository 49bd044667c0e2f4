import io
import json

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

from medground.errors import ConfigError, DataError
from medground.worlds.gridvqa.build import Plan, build
from medground.worlds.gridvqa.hub import export_hub


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("hub") / "set", Plan(per_bucket=1))


def test_parquet_and_card_agree(built, tmp_path, monkeypatch):
    monkeypatch.setattr("medground.worlds.gridvqa.hub.ROWS", 8)
    out = export_hub(built, tmp_path / "hub")
    files = sorted((out / "data").iterdir())
    assert [f.name for f in files] == [f"val-{i:05d}-of-00003.parquet" for i in range(3)]
    table = pl.read_parquet(files)
    head = yaml.safe_load((out / "README.md").read_text().split("---")[1])
    assert [f["name"] for f in head["dataset_info"]["features"]] == table.columns
    size = sum(len(image["bytes"]) for image in table["image"])
    assert head["dataset_info"]["splits"] == [{"name": "val", "num_bytes": size, "num_examples": 19}]
    row = table.row(0, named=True)
    picture = np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
    assert picture.shape == (320, 320, 3)
    scene = json.loads((built / "scenes.jsonl").read_text().splitlines()[0])
    assert json.loads(row["objects"]) == scene["objects"]
    assert (row["question"], row["answer"]) == (scene["question"], str(scene["answer"]))


def test_what_is_no_data_set_is_refused(built, tmp_path):
    with pytest.raises(DataError, match="not a built data set"):
        export_hub(tmp_path, tmp_path / "out")
    with pytest.raises(ConfigError, match="not empty"):
        export_hub(built, built)
    bare = build(tmp_path / "bare", Plan(per_bucket=1, images=False))
    with pytest.raises(DataError, match="no pictures"):
        export_hub(bare, tmp_path / "hub")
