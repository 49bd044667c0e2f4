"""Every YAML and console block of the documentation is checked here, or says why it is not.

A block that cannot run carries a comment before it: ``<!-- not run: REASON -->``. YAML is held against what a run file
may say; console blocks run line by line in a folder of tiny data, where the folders and weights that the pages name
are replaced by small ones.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

from medground.cli import app
from medground.config import parse_run_file, read_mapping
from medground.session import assemble
from medground.suite import read_suite

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
FENCE = re.compile(r"^(?P<mark>(?:<!--.*?-->\n)?)```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- not run: (?P<reason>\S.{8,}) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    number: int
    language: str
    text: str
    mark: str

    @property
    def name(self) -> str:
        return f"{self.page}-{self.language or 'plain'}-{self.number}"


def blocks() -> Iterator[Block]:
    for page in PAGES:
        for number, found in enumerate(FENCE.finditer(page.read_text(encoding="utf-8")), 1):
            yield Block(page.name, number, found["language"], found["text"], found["mark"])


BLOCKS = list(blocks())
YAML = [block for block in BLOCKS if block.language == "yaml" and not MARK.match(block.mark)]
CONSOLE = [block for block in BLOCKS if block.language == "console" and not MARK.match(block.mark)]


def test_a_mark_says_why_a_block_is_not_run() -> None:
    assert len(BLOCKS) > 60
    for block in BLOCKS:
        if "not run" in block.mark:
            assert MARK.match(block.mark), f"{block.name}: {block.mark}"


def test_commands_stand_in_console_blocks() -> None:
    for block in BLOCKS:
        commands = [line for line in block.text.splitlines() if re.match(r"(\$ )?(medground|make|python -m) \w", line)]
        if block.language != "console":
            assert not commands, f"{block.name}: a command outside a console block is not run: {commands[0]}"
        else:
            assert all(line.startswith("$ ") for line in commands), f"{block.name}: commands begin with $"


# -- YAML --------------------------------------------------------------------------------------------------------------

WHERE: dict[str, dict[str, Any]] = {
    "chat_models.md": {"name": "heal_medvqa", "datasets": [{"name": "phantom", "cases": 4}]},
    "small_chat_model.md": {"name": "heal_medvqa", "datasets": [{"name": "phantom", "cases": 4}]},
    "heal_medvqa.md": {"name": "heal_medvqa", "datasets": [{"name": "phantom", "cases": 4}]},
    "cxreasondial.md": {"name": "cxreasondial", "phantoms": 2},
}
"""Page -> the benchmark that its fragments belong to; XBench on phantoms elsewhere."""
GROUNDING = {"name": "xbench", "datasets": [{"name": "phantom", "cases": 4}]}


def whole(block: Block) -> Iterator[dict[str, Any]]:
    """Yield the run files that a block is, or is a part of."""
    for read in yaml.safe_load_all(block.text):
        given = {"models": read} if isinstance(read, list) else read
        if "name" in given and "models" in given:
            yield given
            continue
        base = {"name": "part", "benchmark": dict(WHERE.get(block.page, GROUNDING))}
        chat = base["benchmark"]["name"] in ("heal_medvqa", "cxreasondial")
        base["models"] = [{"name": "small_chat"}] if chat else [{"name": "baseline_centre"}]
        for key, value in given.items():
            if key in ("benchmark", "models", "roles", "limits", "engine", "prompts"):
                base[key] = value
            else:  # a parameter of the benchmark
                base["benchmark"][key] = value
        yield base


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with modules that the pages take for the reader's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab/__init__.py").write_text("")
    modules = [tmp_path / "my_lab/models.py", tmp_path / "my_model.py"]
    text = (
        "from pathlib import Path\n"
        "from medground.models.baselines.baseline_centre import CentrePrior\n"
        "class OurModel(CentrePrior):\n"
        "    name = 'ours'\n"
        "    def __init__(self, checkpoint: Path | None = None, device: str = 'auto') -> None:\n"
        "        super().__init__()\n"
        "class Segmenter:\n"
        "    name = 'segmenter'\n"
        "    def masks(self, image): return {}\n"
        "    def fingerprint(self): return 'x'\n"
    )
    for module in modules:
        module.write_text(text)
    sys.modules.pop("my_model", None)
    return tmp_path


def write_modules(page: str, place: Path) -> None:
    """Write the Python blocks of a page that begin with the name of a file, and the example's module."""
    for block in BLOCKS:
        if block.page == page and block.language == "python" and (name := re.match(r"# (\w+\.py)\n", block.text)):
            (place / name[1]).write_text(block.text)
            sys.modules.pop(name[1].removesuffix(".py"), None)
    shutil.copy(ROOT / "examples/my_explainer.py", place)


@pytest.mark.parametrize("block", YAML, ids=lambda block: block.name)
def test_yaml_is_what_a_run_file_may_say(block: Block, place: Path) -> None:
    write_modules(block.page, place)
    for given in whole(block):
        if "benchmarks" in given:
            continue
        run = parse_run_file(given, where=block.name)
        assert len(assemble(run, place).models) >= len(run.models)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
@pytest.mark.parametrize("commented", [False, True], ids=["as it is", "with its comments"])
def test_examples_are_run_files(file: Path, commented: bool, place: Path) -> None:
    text = file.read_text()
    if commented:  # lines that a reader would take in by removing the mark of a comment
        text = re.sub(r"^( *)# (- \{|\w+: [/\w])", r"\1\2", text, flags=re.MULTILINE)
        text = re.sub(r"^ *protocol: xbench .*\n", "", text, flags=re.MULTILINE)
    for module in (ROOT / "examples").glob("*.py"):
        shutil.copy(module, place)
    (place / "run.yaml").write_text(text)
    given = read_mapping(place / "run.yaml")
    if "benchmarks" in given:
        assert len(read_suite(place / "run.yaml").parts) == len(given["benchmarks"])
    else:
        assert assemble(parse_run_file(given), place).models


# -- console -----------------------------------------------------------------------------------------------------------

QUICKER = {
    "verify carzero --cases tests/golden/models/carzero": "verify llava_med --cases tests/golden/models/llava_med",
    "--pairs 400": "--pairs 30",
    "--cases 20": "--cases 2",
}
"""What a page shows -> the same on less data."""
FILES = {"README.md": "nih.yaml", "getting_started.md": "first.yaml", "tutorial_checkpoint.md": "nih.yaml"}
"""Page -> what its console blocks call the run file that it shows."""


def commands(block: Block) -> Iterator[str]:
    """Yield the commands of a block, without comments."""
    for line in block.text.splitlines():
        if line.startswith("$ "):
            yield from (part.strip() for part in re.sub(r"\s+#.*$", "", line[2:]).split(" && "))


def tiny_nih(folder: Path) -> None:
    """Write a folder in the layout of NIH ChestX-ray14: eight drawn pictures, seven patients."""
    rng = np.random.default_rng(3)
    (folder / "images").mkdir(parents=True)
    labels = [
        "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
        "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
    ]
    boxes = ["Image Index,Finding Label,Bbox [x,y,w,h],,,"]
    for number in range(8):
        name, finding = f"0000000{number % 7}_00{number}.png", ("Mass", "Effusion")[number % 2]
        pixels = rng.integers(0, 160, (64, 64)).astype(np.uint8)
        pixels[16 + number : 32 + number, 20:40] = 250
        Image.fromarray(pixels).resize((1024, 1024), Image.Resampling.NEAREST).save(folder / "images" / name)
        labels.append(f"{name},{finding},0,{number % 7},50,M,PA,1024,1024,0.143,0.143")
        boxes.append(f"{name},{finding},320,{256 + 16 * number},320,256")
    (folder / "Data_Entry_2017_v2020.csv").write_text("\n".join(labels) + "\n")
    (folder / "BBox_List_2017.csv").write_text("\n".join(boxes) + "\n")


def annotated(folder: Path) -> None:
    """Write annotations in the forms that ``medground import`` is shown with."""
    folder.mkdir()
    Image.new("L", (40, 30), 90).save(folder / "a.png")
    image = {"id": 1, "file_name": "a.png", "width": 40, "height": 30}
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [4, 5, 10, 12], "iscrowd": 0}
    coco = {"images": [image], "annotations": [box], "categories": [{"id": 1, "name": "nodule"}]}
    (folder / "instances.json").write_text(json.dumps(coco))
    (folder / "labels.csv").write_text("File,Person,Pl. Eff.\na.png,p1,1\n")


def tiny(text: str, place: Path) -> str:
    """Return a run file of a page on tiny data, with weights that nobody has here replaced by a baseline."""
    text = text.replace("/data/nih", str(place / "nih"))
    text = re.sub(r"\{name: (\w+), checkpoint: /weights[^}]*\}", r"{name: baseline_centre, label: \1}", text)
    text = re.sub(r"(of: )\{name: my_model:[^}]*\}", r"\1{name: baseline_centre}", text)
    text = re.sub(r"\{name: my_(lab|model:)[^}]*\}", "{name: baseline_random, label: ours}", text)
    return text.replace("name: xbench", "name: xbench\n  replicates: 20", 1)


@pytest.fixture
def workplace(place: Path) -> Path:
    """Everything that the pages take for granted, small."""
    tiny_nih(place / "nih")
    annotated(place / "mine")
    annotated(place / "others")
    (place / "tests").symlink_to(ROOT / "tests")
    return place


def prepare(page: str, place: Path) -> None:
    """Write the files that a page shows before its commands."""
    for block in BLOCKS:
        if block.page != page:
            continue
        if block.language == "yaml" and page in FILES and "models:" in block.text:
            (place / FILES[page]).write_text(tiny(block.text, place))
    if any("--maps maps.npz" in block.text for block in BLOCKS if block.page == page):
        shown = next(b for b in BLOCKS if b.page == "metrics.md" and b.language == "jsonl")
        (place / "cases.jsonl").write_text(shown.text)
        maps = {"a": np.random.default_rng(0).random((14, 14)), "b": np.eye(3), "c/Mass": np.ones((3, 7))}
        np.savez(place / "maps.npz", **maps, **{"c/Nodule": np.zeros((3, 7))})
    if page == "reading_the_report.md":
        text = next(b.text for b in BLOCKS if b.page == "getting_started.md" and b.language == "yaml")
        for name in ("nih-grounding", "clip", "carzero", "nih", "vindr"):
            (place / "run.yaml").write_text(tiny(text, place).replace("name: first", f"name: {name}"))
            invoke("run run.yaml")


def invoke(command: str) -> None:
    """Run a command of medground as a shell would."""
    for shown, quicker in QUICKER.items():
        command = command.replace(shown, quicker)
    done = CliRunner().invoke(app, shlex.split(command))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, f"{command}: {done.output}"


@pytest.mark.parametrize("page", sorted({block.page for block in CONSOLE}))
def test_console_blocks_run(page: str, workplace: Path) -> None:
    prepare(page, workplace)
    for block in CONSOLE:
        for command in commands(block) if block.page == page else ():
            assert command.startswith("medground "), f"{block.name}: only medground is run here: {command}"
            invoke(command.removeprefix("medground ").replace("/data/", f"{workplace}/"))


MARKED = [block for block in BLOCKS if block.language == "console" and MARK.match(block.mark)]


@pytest.mark.parametrize("block", MARKED, ids=lambda block: block.name)
def test_commands_that_are_not_run_are_understood(block: Block) -> None:
    import typer

    for command in commands(block):
        if not command.startswith("medground "):
            assert re.match(r"make (demo|test|lint|coverage|bench|torture)\b", command)
            continue
        group: Any = typer.main.get_command(app)
        context = group.make_context("medground", [], resilient_parsing=True)
        words = shlex.split(command)[1:]
        while words and hasattr(group, "resolve_command"):
            name, group, words = group.resolve_command(context, words)
            context = context if hasattr(group, "resolve_command") else group.make_context(name, words, parent=context)
        assert not hasattr(group, "resolve_command"), command
