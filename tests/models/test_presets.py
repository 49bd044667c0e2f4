"""Presets are models like others; CheXzero's equals the published recipe, written out here a second time."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from medground import registry
from medground.commands.catalogue import describe, from_class
from medground.errors import ConfigError
from medground.identity import component_identity
from medground.imaging.geometry import resample_map
from medground.imaging.reading import Radiograph
from medground.models import presets
from medground.models.radiology import clip

FINDINGS = ["Nodule", "Pleural_Effusion"]
WIDTH, DEPTH, JOINT, PATCH = 64, 2, 64, 32
FACTS = (describe, from_class)


@pytest.mark.parametrize("name", presets.names())
def test_a_preset_is_a_model_with_a_card_and_defaults_of_its_own(name: str, tmp_path: Path) -> None:
    content = presets.read(name)
    cls = registry.load("model", name)
    base = registry.load("model", content["of"].rpartition(".")[2])
    assert issubclass(cls, base)
    assert cls.name == name
    assert cls.info.title != base.info.title
    assert pickle.loads(pickle.dumps(cls)) is cls
    defaults = {p.name: p.default for p in registry.parameters(cls)}
    assert {key: defaults[key] for key in content["parameters"]} == content["parameters"]
    given = {p.name: str(tmp_path) for p in registry.parameters(cls) if p.required}
    checked = registry.check(cls, given, where="models[0]")
    identity = component_identity(cls, checked)
    assert identity != component_identity(base, checked)
    for key, value in content["parameters"].items():
        other: Any = not value if isinstance(value, bool) else value + value
        assert component_identity(cls, checked | {key: other}) != identity
    with pytest.raises(ConfigError, match="no parameter"):
        registry.check(cls, given | {"chekpoint": "x"}, where="models[0]")
    assert describe(name)["title"] == cls.info.title
    read, loaded = ({key.partition(":")[0]: text for key, text in f(name)["parameters"].items()} for f in FACTS)
    assert read == loaded


def openai_weights() -> dict[str, Tensor]:
    """A small ViT-B/32 and its text tower under OpenAI's names."""
    generator = torch.Generator().manual_seed(3)

    def drawn(*shape: int, around: float = 0.0) -> Tensor:
        return around + 0.3 * torch.randn(*shape, generator=generator)

    weights = {
        "visual.class_embedding": drawn(WIDTH),
        "visual.conv1.weight": drawn(WIDTH, 3, PATCH, PATCH) / 10,
        "visual.positional_embedding": drawn((224 // PATCH) ** 2 + 1, WIDTH),
        "visual.proj": drawn(WIDTH, JOINT),
        "token_embedding.weight": drawn(49408, JOINT),
        "positional_embedding": drawn(77, JOINT),
        "text_projection": drawn(JOINT, JOINT),
        "logit_scale": torch.tensor(math.log(50.0)),
    }
    for norm, width in (("visual.ln_pre", WIDTH), ("visual.ln_post", WIDTH), ("ln_final", JOINT)):
        weights |= {f"{norm}.weight": drawn(width, around=1.0), f"{norm}.bias": drawn(width)}
    for tower, width in (("visual.", WIDTH), ("", JOINT)):
        for block in range(DEPTH):
            stem = f"{tower}transformer.resblocks.{block}"
            weights |= {
                f"{stem}.attn.in_proj_weight": drawn(3 * width, width),
                f"{stem}.attn.in_proj_bias": drawn(3 * width),
                f"{stem}.attn.out_proj.weight": drawn(width, width),
                f"{stem}.attn.out_proj.bias": drawn(width),
                f"{stem}.mlp.c_fc.weight": drawn(4 * width, width),
                f"{stem}.mlp.c_fc.bias": drawn(4 * width),
                f"{stem}.mlp.c_proj.weight": drawn(width, 4 * width),
                f"{stem}.mlp.c_proj.bias": drawn(width),
            }
            for norm in ("ln_1", "ln_2"):
                weights |= {f"{stem}.{norm}.weight": drawn(width, around=1.0), f"{stem}.{norm}.bias": drawn(width)}
    return weights


def blocks(x: Tensor, w: dict[str, Tensor], tower: str, heads: int, mask: Tensor | None) -> Tensor:
    """OpenAI's residual blocks, ``x`` as (tokens, batch, width)."""
    width = x.shape[-1]
    for block in range(DEPTH):
        p = {n.split(f"resblocks.{block}.")[1]: v for n, v in w.items() if n.startswith(f"{tower}transformer")
             and f"resblocks.{block}." in n}  # fmt: skip
        normed = functional.layer_norm(x, (width,), p["ln_1.weight"], p["ln_1.bias"])
        attended, _ = functional.multi_head_attention_forward(
            normed, normed, normed, width, heads, p["attn.in_proj_weight"], p["attn.in_proj_bias"], None, None, False,
            0.0, p["attn.out_proj.weight"], p["attn.out_proj.bias"], training=False, attn_mask=mask,
        )  # fmt: skip
        x = x + attended
        hidden = functional.layer_norm(x, (width,), p["ln_2.weight"], p["ln_2.bias"])
        hidden = functional.linear(hidden, p["mlp.c_fc.weight"], p["mlp.c_fc.bias"])
        hidden = hidden * torch.sigmoid(1.702 * hidden)
        x = x + functional.linear(hidden, p["mlp.c_proj.weight"], p["mlp.c_proj.bias"])
    return x


def image_vectors(pixels: Tensor, w: dict[str, Tensor]) -> Tensor:
    x = functional.conv2d(pixels, w["visual.conv1.weight"], stride=PATCH).flatten(2).permute(0, 2, 1)
    x = torch.cat([w["visual.class_embedding"].expand(len(x), 1, -1), x], 1) + w["visual.positional_embedding"]
    x = functional.layer_norm(x, (WIDTH,), w["visual.ln_pre.weight"], w["visual.ln_pre.bias"])
    x = blocks(x.permute(1, 0, 2), w, "visual.", WIDTH // 64, None).permute(1, 0, 2)[:, 0]
    x = functional.layer_norm(x, (WIDTH,), w["visual.ln_post.weight"], w["visual.ln_post.bias"]) @ w["visual.proj"]
    return x / x.norm(dim=-1, keepdim=True)


def text_vectors(ids: Tensor, w: dict[str, Tensor]) -> Tensor:
    x = w["token_embedding.weight"][ids] + w["positional_embedding"][: ids.shape[1]]
    mask = torch.full((ids.shape[1], ids.shape[1]), float("-inf")).triu(1)
    x = blocks(x.permute(1, 0, 2), w, "", JOINT // 64, mask).permute(1, 0, 2)
    x = functional.layer_norm(x, (JOINT,), w["ln_final.weight"], w["ln_final.bias"])
    x = x[torch.arange(len(ids)), ids.argmax(-1)] @ w["text_projection"]
    return x / x.norm(dim=-1, keepdim=True)


def published_pixels(picture: Radiograph) -> Tensor:
    """Longest side to 320 and black around it; then normalised; then 224, as the authors' loader does it."""
    whole = Image.fromarray(np.rint(picture.pixels * 255).astype(np.uint8))
    ratio = float(320) / max(whole.size)
    size = (int(whole.size[0] * ratio), int(whole.size[1] * ratio))
    frame = Image.new("L", (320, 320))
    frame.paste(whole.resize(size, Image.Resampling.LANCZOS), ((320 - size[0]) // 2, (320 - size[1]) // 2))
    values = torch.from_numpy(np.asarray(frame).astype(np.float32)).expand(3, 320, 320)
    normal = (values - 101.48761) / 83.43944
    return functional.interpolate(normal[None], (224, 224), mode="bicubic", align_corners=False)[0]


@pytest.fixture
def chexzero(tmp_path: Path, clip_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """CheXzero of a small ViT-B/32, by name, as a run file makes it."""
    monkeypatch.setattr(clip, "VARIANTS", {"small": (PATCH, 224, WIDTH, DEPTH, JOINT, DEPTH)})
    torch.save(openai_weights(), tmp_path / "best_64.pt")
    given = {"checkpoint": tmp_path / "best_64.pt", "tokenizer": clip_folder, "device": "cpu"}
    return lambda **more: registry.create("model", "chexzero", given | more)


def test_chexzero_equals_the_published_recipe(chexzero: Callable[..., Any], picture: Callable[..., Radiograph]) -> None:
    pictures = [picture(60, 40, 1), picture(44, 70, 2), picture(154, 77, 3), picture(330, 500, 4)]
    model, w = chexzero(), openai_weights()
    pixels = torch.stack([published_pixels(one) for one in pictures])
    assert (model.inputs(pictures)[0] - pixels).abs().max() < 2e-5
    prediction = model.predict(pictures, FINDINGS)
    ids = {text: model.tokenise([text])[0] for f in ("nodule", "pleural effusion") for text in (f, f"no {f}")}
    images = image_vectors(pixels, w)
    for column, finding in enumerate(("nodule", "pleural effusion")):
        yes, no = (images @ text_vectors(ids[text], w)[0] for text in (finding, f"no {finding}"))
        expected = (yes.exp() / (yes.exp() + no.exp())).numpy()
        assert np.abs(prediction.probabilities[:, column] - expected).max() < 1e-5
    assert np.ptp(prediction.probabilities) > 1e-3


def test_maps_of_chexzero_lie_where_the_picture_is(
    chexzero: Callable[..., Any], picture: Callable[..., Radiograph]
) -> None:
    """A tall picture stands in the middle of the frame: its left edge is where the padding ends."""
    _, geometry = chexzero().inputs([picture(100, 200, 1)])
    assert geometry[0].input == (224, 224)
    assert geometry[0].scale == pytest.approx((1.6 * 0.7, 1.6 * 0.7))
    assert geometry[0].offset == pytest.approx((80 * 0.7, 0.0))
    grid = np.zeros((7, 7), np.float32)
    grid[:, 1] = 1.0  # pixels 32 to 64 of the input: of the picture only the first ones
    on_picture = resample_map(grid, geometry[0])
    assert on_picture[:, :5].mean() > on_picture[:, 30:].mean()


def test_a_run_file_may_change_what_a_preset_says(chexzero: Callable[..., Any]) -> None:
    plain, other = chexzero(), chexzero(against=None)
    assert plain.contrary is not None
    assert other.contrary is None
    assert plain.fingerprint() != other.fingerprint()
