"""Tuning on one type of caption tests with a tiny LLaVA: export, train, go on, answer, evaluate the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from medground.benchmarks.medical_checklist import MedicalChecklist, instruction, items as item_files, phantom
from medground.cli import app
from medground.errors import ConfigError, DataError, ModelError
from medground.imaging.colour import read_picture
from medground.models.base import Message
from medground.models.chat.hf_chat import HfChat
from medground.training.instruct import InstructRecipe, lessons, train_instruct
from medground.training.loop import Schedule

pytest.importorskip("peft")

TEMPLATE = (
    "<s> {% for m in messages %}{{ m['role'] }} : {% for c in m['content'] %}{% if c['type'] == 'image' %}<image> "
    "{% else %}{{ c['text'] }} {% endif %}{% endfor %}{% endfor %}{% if add_generation_prompt %}assistant : {% endif %}"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return phantom.build(tmp_path_factory.mktemp("made") / "p", phantom.Recipe(pairs=12, size=64, seed=5))


@pytest.fixture(scope="module")
def llava(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import (
        CLIPImageProcessor,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
    )

    split = pre_tokenizers.Whitespace()
    texts = ["user assistant : Caption A Caption B", (made / "items.jsonl").read_text()]
    seen = dict.fromkeys(word for text in texts for word, _ in split.pre_tokenize_str(text))
    words = ["<pad>", "<s>", "</s>", "<unk>", "<image>", *seen]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = split
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>",
        extra_special_tokens={"image_token": "<image>"},
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("llava")
    torch.manual_seed(0)
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=28,
            patch_size=14,
        ),
        text_config=LlamaConfig(
            vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        ),
        image_token_id=4,
        image_seq_length=4,
    )  # fmt: skip
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}),
        tokenizer=tokenizer, patch_size=14, vision_feature_select_strategy="default", num_additional_image_tokens=1,
    )  # fmt: skip
    processor.chat_template = tokenizer.chat_template = TEMPLATE
    processor.save_pretrained(folder)
    return folder


def right(model: HfChat, made: Path, rows: list[dict[str, Any]]) -> float:
    """Return the mean log-probability of the true answers."""
    found = []
    for row in rows:
        question = row["conversations"][0]["value"].replace("<image>", "").strip()
        message = Message("user", question, (read_picture(made / row["image"]),))
        a, b = model.choose([(message,)], [("Caption A", "Caption B")])[0]
        found.append(a if row["conversations"][1]["value"] == "Caption A" else b)
    return float(np.mean(found))


def test_one_type_is_tuned_on_and_the_rest_is_evaluated(made: Path, llava: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuning"
    told = CliRunner().invoke(app, ["export", "medical_checklist", str(made), str(out), "--semantic-type", "T047"])
    assert told.exit_code == 0, told.output
    rows = json.loads((out / "train.json").read_text())
    rest = item_files.read(out / "held_out" / "items.jsonl")
    assert rest
    assert all(i.tui != "T047" for i in rest)
    assert {i.image for i in rest}.isdisjoint(row["image"] for row in rows)
    assert len(MedicalChecklist(build=out / "held_out", images=made).items) == len(rest)
    schedule = Schedule(steps=30, rate=2e-2, warm_up=3, decay=0.0, average=0.5)
    recipe = InstructRecipe(batch=2)
    folder = train_instruct(
        llava, out / "train.json", made, tmp_path / "tuned", schedule=schedule, recipe=recipe, say=lambda _: None
    )
    before, after = HfChat(checkpoint=llava, device="cpu"), HfChat(checkpoint=folder, device="cpu")
    assert right(after, made, rows) > right(before, made, rows) + 0.5
    reply = after.reply([(Message("user", "Which ?", (read_picture(made / rows[0]["image"]),)),)])[0]
    assert reply.outcome == "ok"
    old, new = (dict(m._loaded.network.named_parameters()) for m in (before, after))
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert changed
    assert all("language_model" in name and "_proj" in name for name in changed)


def test_a_training_goes_on_where_it_stopped(made: Path, llava: Path, tmp_path: Path) -> None:
    from medground.models.chat.local.loading import load
    from medground.training.instruct import InstructLearner
    from medground.training.loop import run

    instruction.export(made, tmp_path / "t", semantic_type="T047")
    taught = lessons(tmp_path / "t" / "train.json", made)
    schedule = Schedule(steps=4, rate=1e-2, warm_up=1, decay=0.0)

    def weights(folder: Path, stops: list[int | None]) -> list[torch.Tensor]:
        for stop in stops:
            model = load(llava, dtype="float32", device=torch.device("cpu"))
            learner = InstructLearner(model, taught, InstructRecipe(batch=1))
            network = run(learner, schedule, folder, identity={}, say=lambda _: None, every=1, stop=stop)
        return [p for name, p in network.named_parameters() if "lora_" in name]

    once, twice = weights(tmp_path / "a", [None]), weights(tmp_path / "b", [2, None])
    assert all(torch.equal(a, b) for a, b in zip(once, twice, strict=True))


def test_mistakes_are_named(made: Path, llava: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no item of this type"):
        instruction.export(made, tmp_path / "x", semantic_type="T061")
    with pytest.raises(ConfigError, match="no such semantic type"):
        instruction.export(made, tmp_path / "x", semantic_type="T999")
    bad = tmp_path / "bad.json"
    bad.write_text('[{"image": "../x.png", "conversations": [{"from": "human", "value": "a"}]}]')
    with pytest.raises(DataError, match="cannot be read"):
        lessons(bad, made)
    bad.write_text("[]")
    with pytest.raises(DataError, match="nothing to learn"):
        lessons(bad, made)
    instruction.export(made, tmp_path / "t", semantic_type="T047")
    with pytest.raises(ModelError, match="no layer"):
        train_instruct(
            llava, tmp_path / "t" / "train.json", made, tmp_path / "o", schedule=Schedule(steps=1),
            recipe=InstructRecipe(layers="nothing"), say=lambda _: None,
        )  # fmt: skip
