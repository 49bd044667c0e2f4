"""LobA on a LLaVA folder, end to end with a tiny LLaVA and a tiny SAM: train, stop, go on, locate, answer."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image

from medground.errors import CheckpointError, ConfigError, DataError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message
from medground.models.chat.loba import Loba
from medground.models.networks.loba import folder as folders
from medground.training.loba import LobaLearner, LobaRecipe, lessons, train_loba
from medground.training.loop import Schedule

pytest.importorskip("peft")

TEXT = "USER ASSISTANT : Does the heart have mass ? yes no . The location of is at Locate region first , then answer"


@pytest.fixture(scope="module")
def llava(tmp_path_factory):
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

    words = ["<pad>", "<s>", "</s>", "<unk>", "<image>", *dict.fromkeys(TEXT.split())]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens={"image_token": "<image>"},
    )
    folder = tmp_path_factory.mktemp("llava")
    torch.manual_seed(0)
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            image_size=28,
            patch_size=7,
        ),
        text_config=LlamaConfig(
            vocab_size=len(words),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        ),
        image_token_id=4,
        image_seq_length=16,
    )
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    LlavaProcessor(
        image_processor=CLIPImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}),
        tokenizer=tokenizer,
        patch_size=7,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sam(tmp_path_factory):
    from transformers import SamConfig, SamMaskDecoderConfig, SamModel, SamPromptEncoderConfig, SamVisionConfig

    folder = tmp_path_factory.mktemp("sam")
    torch.manual_seed(1)
    config = SamConfig(
        vision_config=SamVisionConfig(
            hidden_size=16,
            output_channels=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            image_size=64,
            patch_size=8,
            window_size=4,
            global_attn_indexes=[0],
            mlp_dim=32,
            num_pos_feats=8,
        ),
        prompt_encoder_config=SamPromptEncoderConfig(
            hidden_size=16, image_size=64, patch_size=8, mask_input_channels=4
        ),
        mask_decoder_config=SamMaskDecoderConfig(
            hidden_size=16, mlp_dim=32, num_hidden_layers=1, num_attention_heads=2, iou_head_hidden_dim=16
        ),
    )
    SamModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("questions")
    rng = np.random.default_rng(0)
    rows = []
    for number in range(4):
        grey = rng.integers(0, 80, (40, 40)).astype(np.uint8)
        grey[10:30, 10:30] += 150
        Image.fromarray(grey).save(folder / f"{number}.png")
        runs = [number for row in range(10, 30) for number in (row * 40 + 10, 20)]
        mask = {"rle": runs, "h": 40, "w": 40, "order": "row"} if number else None
        asked = {"question": "Does the heart have mass?", "answer": "yes", "anatomy": "heart"}
        rows.append({"image": f"{number}.png", **asked, "mask": mask})
    path = folder / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


RECIPE = LobaRecipe(batch=2, located=1.0)


def learn(llava, sam, table, out, steps=4, stop=None):
    schedule = Schedule(steps=steps, rate=2e-2, warm_up=1, decay=0.0, average=0.5)
    lines: list[str] = []
    if stop is None:
        train_loba(llava, sam, table, out, schedule=schedule, recipe=RECIPE, say=lines.append)
    return lines


def test_it_learns_to_locate_and_answer(llava, sam, table, tmp_path):
    out = tmp_path / "out"
    learn(llava, sam, table, out, steps=40)
    curve = [json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()]
    assert curve[-1]["words"] < 3
    picture = Radiograph(np.asarray(Image.open(table.parent / "1.png"), np.float32) / 255)
    asked = [(Message("user", "Does the heart have mass?", (picture,)),)] * 2
    model = Loba(backbone=str(out), device="cpu")
    replies = model.reply(asked, GenerationOptions(max_new_tokens=12))
    assert replies[0] == replies[1]
    assert replies[0].text.startswith("The location of heart is at <SEG>")
    place = model.engine.locate(asked[:1])[0]
    assert place.mask.shape == (40, 40)
    plain = Loba(backbone=str(out), vision=0, language=0, device="cpu")
    assert plain.fingerprint() != model.fingerprint()
    row = plain.choose(asked[:1], [["yes", "no"]])[0]
    assert row.shape == (2,)
    assert np.isfinite(row).all()
    refused = model.reply([(Message("user", "Does the heart have mass?"),)])[0]
    assert refused.outcome == "refusal"


def test_a_training_that_was_stopped_ends_alike(llava, sam, table, tmp_path):
    from safetensors.torch import load_file

    from medground.training import loba, loop

    learn(llava, sam, table, tmp_path / "a")
    real, stopped = loop.run, {"on": True}

    def halting(*args, **more):
        return real(*args, **{**more, "every": 2, "stop": 3 if stopped["on"] else None})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loba, "run", halting)
        learn(llava, sam, table, tmp_path / "b")
        stopped["on"] = False
        lines = learn(llava, sam, table, tmp_path / "b")
    assert "going on after step 2" in lines
    one, two = (load_file(tmp_path / n / folders.HEAD) for n in "ab")
    assert all(torch.equal(one[name], two[name]) for name in one)
    one, two = (load_file(tmp_path / n / "adapter" / "adapter_model.safetensors") for n in "ab")
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_only_adapters_words_and_decoder_learn(llava, sam, table):
    model, processor = folders.llava(llava)
    decoder, levels = folders.sam(sam)
    segmenter = folders.Segmenter(decoder, 32)
    learner = LobaLearner(model, processor, segmenter, levels, lessons(table), RECIPE)
    learning = {n for n, _ in learner.network.named_parameters() if learner.pace(n)}
    assert any("lora_A" in n and "language_model" in n for n in learning)
    assert any("mask_decoder" in n for n in learning)
    assert not any("vision_tower" in n or "vision_encoder" in n or "prompt_encoder" in n for n in learning)
    loss, parts = learner.loss(0)
    loss.backward()
    assert parts["masks"] > 0
    assert segmenter.project[0].weight.grad.abs().sum() > 0


def test_what_cannot_be_used_is_refused(llava, sam, table, tmp_path):
    with pytest.raises(ModelError, match="flash attention"):
        folders.llava(llava, "flash_attention_2")
    for read in (folders.llava, folders.sam, folders.load):
        with pytest.raises(CheckpointError):
            read(tmp_path)
    with pytest.raises(ConfigError, match="backbone"):
        Loba(backbone="no/such/folder")
    bad = tmp_path / "bad.jsonl"
    for line, message in (
        ('{"image": "../x.png", "question": "q", "answer": "a", "anatomy": "b"}', "outside"),
        ("[1]", "no question"),
        ("", "nothing to learn"),
        (
            '{"image": "x.png", "question": "q", "answer": "a", "anatomy": "b", "mask": {"rle": [1], "h": 2, "w": 2}}',
            "pairs",
        ),
    ):
        bad.write_text(line)
        with pytest.raises(DataError, match=message):
            lessons(bad)
