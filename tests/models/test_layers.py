"""The shared networks against the libraries that have the same ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn

import medground.models
from medground.models.layers.attention_pool import AttentionPool
from medground.models.layers.coattention import LAYER_NORM_EPS, CoAttentionLayer, padding_bias
from medground.models.layers.query_decoder import QueryDecoder
from medground.models.layers.resnet import ResNet50, sequential_names
from medground.models.layers.vit import VisionTransformer


def test_vit_equals_the_librarys_through_an_independent_mapping() -> None:
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    ours = VisionTransformer(48, 2, 4, 8, 32).eval()
    config = ViTConfig(
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=192,
        image_size=32,
        patch_size=8,
        layer_norm_eps=1e-6,
    )
    theirs = ViTModel(config, add_pooling_layer=False).eval()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.3)
    state = ours.state_dict()
    mapped = {
        "embeddings.cls_token": state["cls_token"],
        "embeddings.position_embeddings": state["pos_embed"],
        "embeddings.patch_embeddings.projection.weight": state["patch_embed.proj.weight"],
        "embeddings.patch_embeddings.projection.bias": state["patch_embed.proj.bias"],
        "layernorm.weight": state["norm.weight"],
        "layernorm.bias": state["norm.bias"],
    }
    names = list(theirs.state_dict())
    stem = "layers" if any(name.startswith("layers.") for name in names) else "encoder.layer"
    for block in range(2):
        for leaf in ("weight", "bias"):
            parts = state[f"blocks.{block}.attn.qkv.{leaf}"].chunk(3)
            for key, part in zip("qkv", parts, strict=True):
                mapped[f"{stem}.{block}.attention.{key}_proj.{leaf}"] = part
            for there, here in (
                ("attention.o_proj", "attn.proj"),
                ("layernorm_before", "norm1"),
                ("layernorm_after", "norm2"),
                ("mlp.fc1", "mlp.fc1"),
                ("mlp.fc2", "mlp.fc2"),
            ):
                mapped[f"{stem}.{block}.{there}.{leaf}"] = state[f"blocks.{block}.{here}.{leaf}"]
    theirs.load_state_dict(mapped)
    pixels = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert (ours(pixels) - theirs(pixel_values=pixels).last_hidden_state).abs().max() < 1e-5


def test_decoder_equals_pytorchs_own_layers() -> None:
    torch.manual_seed(0)
    ours = QueryDecoder(32, heads=4, layers=2, feed_forward=64).eval()
    layer = nn.TransformerDecoderLayer(32, 4, 64, dropout=0.0, norm_first=True, batch_first=True)
    theirs = nn.TransformerDecoder(layer, 2, nn.LayerNorm(32)).eval()
    theirs.load_state_dict(ours.state_dict())
    queries, memory = torch.randn(5, 32), torch.randn(3, 7, 32)
    with torch.no_grad():
        answers, attention = ours(queries, memory)
        expected = theirs(queries.expand(3, -1, -1), memory)
    assert (answers - expected).abs().max() < 1e-5
    assert attention.shape == (2, 3, 5, 7)
    assert (attention.sum(-1) - 1).abs().max() < 1e-5


def test_decoder_flags() -> None:
    torch.manual_seed(0)
    queries, memory = torch.randn(4, 16), torch.randn(2, 6, 16)
    plain = QueryDecoder(16, 2, 3, 32, self_attention=False).eval()
    assert not any("self_attn" in name or "norm1" in name for name in plain.state_dict())
    with torch.no_grad():
        whole, _ = plain(queries, memory)
        part, _ = plain(queries[1:3], memory)
        assert (whole[:, 1:3] - part).abs().max() < 1e-6
        seeing = QueryDecoder(16, 2, 3, 32, attention="last").eval()
        answers, attention = seeing(queries, memory)
        fewer, _ = seeing(queries[1:3], memory)
        assert attention.shape == (1, 2, 4, 6)
        assert (answers[:, 1:3] - fewer).abs().max() > 1e-3
        normed = QueryDecoder(16, 2, 3, 32, norm_inputs=True).eval()
        scaled, _ = normed(queries * 5, memory * 5)
        same, _ = normed(queries, memory)
        assert (scaled - same).abs().max() < 1e-3


def test_attention_pool_equals_pytorchs_attention() -> None:
    torch.manual_seed(0)
    pool = AttentionPool(6, 16, 8, heads=4).eval()
    nn.init.normal_(pool.positional_embedding)
    grid = torch.randn(2, 16, 2, 3)
    with torch.no_grad():
        pooled, weights = pool(grid)
        tokens = grid.flatten(2).permute(2, 0, 1)
        tokens = torch.cat([tokens.mean(0, keepdim=True), tokens]) + pool.positional_embedding[:, None]
        expected, theirs = nn.functional.multi_head_attention_forward(
            tokens[:1],
            tokens,
            tokens,
            16,
            4,
            None,
            torch.cat([pool.q_proj.bias, pool.k_proj.bias, pool.v_proj.bias]),
            None,
            None,
            False,
            0.0,
            pool.c_proj.weight,
            pool.c_proj.bias,
            use_separate_proj_weight=True,
            training=False,
            q_proj_weight=pool.q_proj.weight,
            k_proj_weight=pool.k_proj.weight,
            v_proj_weight=pool.v_proj.weight,
        )
    assert (pooled - expected[0]).abs().max() < 1e-5
    assert theirs is not None
    assert (weights - theirs[:, 0]).abs().max() < 1e-6


@pytest.mark.parametrize(("stages", "clip_style", "channels"), [(3, False, 1024), (4, False, 2048), (4, True, 2048)])
def test_resnet_has_the_published_entries_and_strides(stages: int, clip_style: bool, channels: int) -> None:
    net = ResNet50(stages, clip_style).eval()
    entries = {3: 258, 4: 318}[stages] + (12 if clip_style else 0)
    assert len(net.state_dict()) == entries
    stride = 4 * 2 ** (stages - 1)
    with torch.no_grad():
        features = net(torch.randn(1, 3, 64, 96))
        every = net.stages(torch.randn(1, 3, 64, 96))
    assert features.shape == (1, channels, 64 // stride, 96 // stride)
    assert len(every) == stages + 1
    if not clip_style:
        renamed = {sequential_names(name) for name in net.state_dict()}
        assert {name.partition(".")[0] for name in renamed} == {"0", "1", *map(str, range(4, 4 + stages))}


def test_coattention_equals_the_librarys_layer() -> None:
    """BERT's layer with cross-attention is the same computation on one stream."""
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLayer

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=64,
        is_decoder=True,
        add_cross_attention=True,
        attn_implementation="eager",
    )
    ours, theirs = CoAttentionLayer(32, 4, 64).eval(), BertLayer(config, layer_idx=0).eval()
    theirs.load_state_dict(ours.state_dict())
    stream, other = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    mask = torch.ones(2, 7)
    mask[1, 4:] = 0
    bias = padding_bias(mask, torch.float32)
    with torch.no_grad():
        result, weights = ours(stream, other, None, bias)
        expected = theirs(stream, None, encoder_hidden_states=other, encoder_attention_mask=bias)
    expected = expected[0] if isinstance(expected, tuple) else expected
    assert (result - expected).abs().max() < 1e-5
    assert weights[1, :, :, 4:].max() == 0


def test_epsilons_that_numbers_cannot_tell_apart() -> None:
    layer = CoAttentionLayer()
    assert LAYER_NORM_EPS == layer.output.LayerNorm.eps == layer.crossattention.output.LayerNorm.eps == 1e-12
    assert VisionTransformer(8, 1, 2, 4, 8).norm.eps == 1e-6
    assert QueryDecoder(8, 2).layers[0].norm2.eps == QueryDecoder(8, 2).norm.eps == 1e-5  # type: ignore[union-attr]


def test_there_is_one_vit_one_resnet_and_one_decoder() -> None:
    """Whoever needs one takes it from ``layers``; no foreign library of networks is imported."""
    folder = Path(medground.models.__file__).parent
    defining: dict[str, list[str]] = {"VisionTransformer": [], "ResNet50": [], "QueryDecoder": [], "Bottleneck": []}
    for path in folder.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"^\s*(import|from) (torchvision|timm|open_clip)\b", text, re.MULTILINE), path
        for name in defining:
            defining[name] += [path.name] * len(re.findall(rf"^class {name}\b", text, re.MULTILINE))
    assert defining == {
        "VisionTransformer": ["vit.py"],
        "ResNet50": ["resnet.py"],
        "QueryDecoder": ["query_decoder.py"],
        "Bottleneck": ["resnet.py"],
    }
