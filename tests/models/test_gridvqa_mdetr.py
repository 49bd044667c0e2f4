import math

import numpy as np
import pytest
import torch

from medground.errors import CheckpointError
from medground.models.answerers.gridvqa_mdetr import GridMdetr
from medground.models.networks.gridvqa.mdetr import HEADS, Layout, Mdetr, log_probabilities, sine_places

TINY = Layout(
    blocks=(1, 1, 1, 1),
    hidden=32,
    heads=4,
    feed=48,
    layers=2,
    queries=5,
    classes=7,
    contrastive=8,
    text={
        "vocab_size": 60,
        "max_position_embeddings": 40,
        "type_vocab_size": 1,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
)


def published_layout():
    """Entry -> shape of an MDETR checkpoint with GQA heads, written out from its description."""
    h, f = 256, 2048
    found = {}

    def linear(name, rows, columns):
        found[f"{name}.weight"], found[f"{name}.bias"] = (rows, columns), (rows,)

    def norm(name, width):
        found[f"{name}.weight"] = found[f"{name}.bias"] = (width,)

    def attention(name):
        found[f"{name}.in_proj_weight"], found[f"{name}.in_proj_bias"] = (3 * h, h), (3 * h,)
        linear(f"{name}.out_proj", h, h)

    def feed(name):
        linear(f"{name}.linear1", f, h)
        linear(f"{name}.linear2", h, f)

    for i in range(6):
        name = f"transformer.encoder.layers.{i}"
        attention(f"{name}.self_attn")
        feed(name)
        for k in (1, 2):
            norm(f"{name}.norm{k}", h)
        name = f"transformer.decoder.layers.{i}"
        for part in ("self_attn", "cross_attn_text", "cross_attn_image"):
            attention(f"{name}.{part}")
        feed(name)
        for k in (1, 2, 3, 4):
            norm(f"{name}.norm{k}", h)
    norm("transformer.decoder.norm", h)
    linear("transformer.resizer.fc", h, 768)
    norm("transformer.resizer.layer_norm", h)
    text = "transformer.text_encoder"
    found[f"{text}.embeddings.word_embeddings.weight"] = (50265, 768)
    found[f"{text}.embeddings.position_embeddings.weight"] = (514, 768)
    found[f"{text}.embeddings.token_type_embeddings.weight"] = (1, 768)
    norm(f"{text}.embeddings.LayerNorm", 768)
    for i in range(12):
        name = f"{text}.encoder.layer.{i}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            linear(f"{name}.{part}", 768, 768)
        linear(f"{name}.intermediate.dense", 3072, 768)
        linear(f"{name}.output.dense", 768, 3072)
        norm(f"{name}.attention.output.LayerNorm", 768)
        norm(f"{name}.output.LayerNorm", 768)
    linear(f"{text}.pooler.dense", 768, 768)
    linear("class_embed", 256, h)
    for i, rows in enumerate((h, h, 4)):
        linear(f"bbox_embed.layers.{i}", rows, h)
    found["query_embed.weight"], found["qa_embed.weight"] = (100, h), (6, h)
    found["input_proj.weight"], found["input_proj.bias"] = (h, 2048, 1, 1), (h,)
    for side in ("image", "text"):
        linear(f"contrastive_align_projection_{side}", 64, h)
    for head, logits in {"type": 5, "obj": 3, "rel": 1594, "attr": 403, "cat": 678, "global": 111}.items():
        linear(f"answer_{head}_head", logits, h)
    body = "backbone.0.body"

    def batch_norm(name, width):
        for part in ("weight", "bias", "running_mean", "running_var"):
            found[f"{name}.{part}"] = (width,)

    found[f"{body}.conv1.weight"] = (64, 3, 7, 7)
    batch_norm(f"{body}.bn1", 64)
    channels = 64
    for stage, (blocks, width) in enumerate(zip((3, 4, 23, 3), (64, 128, 256, 512), strict=True), 1):
        for block in range(blocks):
            name = f"{body}.layer{stage}.{block}"
            found[f"{name}.conv1.weight"] = (width, channels, 1, 1)
            found[f"{name}.conv2.weight"] = (width, width, 3, 3)
            found[f"{name}.conv3.weight"] = (4 * width, width, 1, 1)
            for k, size in ((1, width), (2, width), (3, 4 * width)):
                batch_norm(f"{name}.bn{k}", size)
            if block == 0:
                found[f"{name}.downsample.0.weight"] = (4 * width, channels, 1, 1)
                batch_norm(f"{name}.downsample.1", 4 * width)
            channels = 4 * width
    return found


def test_the_key_layout_is_the_published_one():
    with torch.device("meta"):
        network = Mdetr(Layout())
    ours = {name: tuple(t.shape) for name, t in network.state_dict().items() if "num_batches" not in name}
    assert ours == published_layout()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny checkpoint in the published layout, and a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    root = tmp_path_factory.mktemp("mdetr")
    torch.manual_seed(0)
    network = Mdetr(TINY)
    torch.save({"model": network.state_dict(), "epoch": 3, "args": {"lr": 1e-4}}, root / "checkpoint.pth")
    words = [
        "<pad>",
        "<unk>",
        *["how", "many", "is", "there", "any", "red", "blue", "circle", "circles", "square", "left", "of", "are", "?"],
    ]
    plain = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", unk_token="<unk>").save_pretrained(root)
    return root


@pytest.fixture
def tiny(folder, monkeypatch):
    monkeypatch.setattr(GridMdetr, "layout", staticmethod(lambda: TINY))
    return GridMdetr(folder / "checkpoint.pth", folder, size=64, batch=2)


def test_a_checkpoint_in_the_layout_answers_and_batches_change_nothing(tiny):
    images = np.random.default_rng(0).random((3, 80, 80, 3))
    texts = ["how many red circles?", "is there any blue circle left of red square?", "how many circles?"]
    together = tiny.logits(images, texts)
    assert together.shape == (3, 103)
    assert np.exp(together).sum(1) == pytest.approx(np.ones(3), abs=1e-4)
    for i in range(3):
        assert tiny.logits(images[i : i + 1], texts[i : i + 1])[0] == pytest.approx(together[i], abs=1e-4)
    assert not np.allclose(together[0], tiny.logits(images[:1], ["is there any blue circle?"])[0])
    assert not np.allclose(together[0], tiny.logits(images[1:2], texts[:1])[0])
    assert tiny.answers[-2:] == ("yes", "no")


def test_an_entry_too_few_is_an_error(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(GridMdetr, "layout", staticmethod(lambda: TINY))
    held = torch.load(folder / "checkpoint.pth", weights_only=True)["model"]
    held.pop("qa_embed.weight")
    torch.save({"model": held}, tmp_path / "short.pth")
    with pytest.raises(CheckpointError, match=r"qa_embed\.weight"):
        GridMdetr(tmp_path / "short.pth", folder, size=64)


def test_sine_positions_follow_their_formula():
    places = sine_places(torch.zeros(1, 8, 3, 5)).reshape(3, 5, 8)
    for y in range(3):
        for x in range(5):
            for half, value in ((0, (y + 1) / (3 + 1e-6)), (4, (x + 1) / (5 + 1e-6))):
                for k in range(4):
                    angle = value * 2 * math.pi / 10000 ** (2 * (k // 2) / 4)
                    wave = math.sin(angle) if k % 2 == 0 else math.cos(angle)
                    assert float(places[y, x, half + k]) == pytest.approx(wave, abs=1e-5)


def test_the_type_decides_between_counts_and_yes_or_no():
    heads = {name: torch.zeros(2, HEADS[name]) for name in ("type", "obj", "global")}
    heads["type"][0, 0], heads["type"][1, 3] = 9, 9
    heads["obj"][0, 1], heads["global"][1, 12] = 5, 5
    assert log_probabilities(heads).argmax(1).tolist() == [102, 12]
