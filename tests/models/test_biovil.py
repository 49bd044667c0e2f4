"""BioViL and BioViL-T equal the published steps, written out here a second time on their files' own entries."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from scipy import ndimage
from torch import Tensor
from torch.nn import functional

from medground import registry
from medground.errors import CheckpointError
from medground.imaging.reading import Radiograph
from medground.models.base import CaptionMatcher, Grounder

FINDINGS = ["Effusion", "Nodule"]
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def resnet_entries(draw: Callable[..., Tensor]) -> dict[str, Tensor]:
    """ResNet-50 under torchvision's names, its head too."""
    entries: dict[str, Tensor] = {
        "conv1.weight": draw(64, 3, 7, 7) / 12,
        "fc.weight": draw(10, 2048),
        "fc.bias": draw(10),
    }

    def norm(name: str, width: int) -> None:
        entries.update(
            {
                f"{name}.weight": 1 + 0.1 * draw(width),
                f"{name}.bias": 0.1 * draw(width),
                f"{name}.running_mean": 0.1 * draw(width),
                f"{name}.running_var": 1 + 0.2 * draw(width).abs(),
                f"{name}.num_batches_tracked": torch.tensor(7),
            }
        )

    norm("bn1", 64)
    channels = 64
    for stage, (blocks, width) in enumerate(STAGES, start=1):
        for block in range(blocks):
            stem = f"layer{stage}.{block}"
            sizes = {"conv1": (width, channels, 1, 1), "conv2": (width, width, 3, 3), "conv3": (4 * width, width, 1, 1)}
            for name, size in sizes.items():
                entries[f"{stem}.{name}.weight"] = draw(*size) / np.sqrt(size[1] * size[2] ** 2)
                norm(f"{stem}.bn{name[-1]}", size[0])
            if block == 0:
                entries[f"{stem}.downsample.0.weight"] = draw(4 * width, channels, 1, 1) / np.sqrt(channels)
                norm(f"{stem}.downsample.1", 4 * width)
            channels = 4 * width
    return entries


def image_file(variant: str) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    entries = {f"encoder.encoder.{name}": value for name, value in resnet_entries(draw).items()}
    channels = 2048
    if variant == "biovil_t":
        entries |= {
            "encoder.backbone_to_vit.weight": draw(256, 2048, 1, 1) / 45,
            "encoder.missing_previous_emb": draw(1, 256, 1, 1),
            "encoder.vit_pooler.type_embed": draw(2, 1, 256),
        }
        channels = 512
    entries |= {
        "projector.model.0.weight": draw(128, channels, 1, 1) / np.sqrt(channels),
        "projector.model.1.weight": 1 + 0.1 * draw(128),
        "projector.model.1.bias": draw(128),
        "projector.model.1.running_mean": 0.1 * draw(128),
        "projector.model.1.running_var": 1 + 0.1 * draw(128).abs(),
        "projector.model.1.num_batches_tracked": torch.tensor(3),
        "projector.model.3.weight": draw(128, 128, 1, 1) / 12,
        "projector.model.3.bias": draw(128),
    }
    return entries


def normed(x: Tensor, w: Mapping[str, Tensor], name: str) -> Tensor:
    return functional.batch_norm(
        x, w[f"{name}.running_mean"], w[f"{name}.running_var"], w[f"{name}.weight"], w[f"{name}.bias"]
    )


def resnet_stages(pixels: Tensor, w: Mapping[str, Tensor], p: str) -> list[Tensor]:
    """ResNet-50 on the entries below a prefix: what its four stages give, step by step."""
    x = functional.relu(normed(functional.conv2d(pixels, w[f"{p}conv1.weight"], stride=2, padding=3), w, f"{p}bn1"))
    x = functional.max_pool2d(x, 3, 2, 1)
    stages = []
    for stage, (blocks, _) in enumerate(STAGES, start=1):
        for block in range(blocks):
            stem, stride = f"{p}layer{stage}.{block}.", 2 if stage > 1 and block == 0 else 1
            y = functional.relu(normed(functional.conv2d(x, w[f"{stem}conv1.weight"]), w, f"{stem}bn1"))
            y = functional.conv2d(y, w[f"{stem}conv2.weight"], stride=stride, padding=1)
            y = functional.conv2d(functional.relu(normed(y, w, f"{stem}bn2")), w[f"{stem}conv3.weight"])
            y = normed(y, w, f"{stem}bn3")
            if block == 0:
                down = functional.conv2d(x, w[f"{stem}downsample.0.weight"], stride=stride)
                x = normed(down, w, f"{stem}downsample.1")
            x = functional.relu(x + y)
        stages.append(x)
    return stages


def published_cells(pixels: Tensor, w: Mapping[str, Tensor], variant: str) -> Tensor:
    """The image file's forward pass, step by step."""
    x = resnet_stages(pixels, w, "encoder.encoder.")[-1]
    if variant == "biovil_t":
        x = functional.conv2d(x, w["encoder.backbone_to_vit.weight"])
        x = torch.cat([x, w["encoder.missing_previous_emb"].repeat(len(x), 1, *x.shape[2:])], 1)
    x = functional.relu(normed(functional.conv2d(x, w["projector.model.0.weight"]), w, "projector.model.1"))
    return functional.conv2d(x, w["projector.model.3.weight"], w["projector.model.3.bias"])


def published_pixels(picture: Radiograph, crop: int) -> Tensor:
    values = np.rint(picture.pixels * 255).astype(np.uint8).astype(float)
    values -= values.min()
    values /= values.max()
    values *= 255
    image = Image.fromarray(values.astype(np.uint8))
    width, height = image.size
    size = (512, int(512 * height / width)) if width <= height else (int(512 * width / height), 512)
    image = image.resize(size, Image.Resampling.BILINEAR)
    left, top = round((size[0] - crop) / 2), round((size[1] - crop) / 2)
    grey = np.asarray(image.crop((left, top, left + crop, top + crop)), dtype=np.float32) / 255
    return torch.from_numpy(grey).expand(3, crop, crop)


@pytest.fixture(scope="module")
def text_folder(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Path:
    """CXR-BERT's folder: BERT, its masked-language head and the projection, under the published names."""
    folder = tmp_path_factory.mktemp("cxr-bert")
    shutil.copytree(bert_folder, folder, dirs_exist_ok=True)
    generator = torch.Generator().manual_seed(9)
    head = {"dense_to_hidden": (128, 768), "dense_to_output": (128, 128)}
    entries = {f"bert.{name}": value for name, value in load_file(bert_folder / "model.safetensors").items()}
    for name, shape in head.items():
        entries[f"cls_projection_head.{name}.weight"] = torch.randn(*shape, generator=generator) / np.sqrt(shape[1])
        entries[f"cls_projection_head.{name}.bias"] = torch.randn(128, generator=generator)
    entries["cls_projection_head.LayerNorm.weight"] = 1 + 0.1 * torch.randn(128, generator=generator)
    entries["cls_projection_head.LayerNorm.bias"] = 0.1 * torch.randn(128, generator=generator)
    entries["cls.predictions.bias"] = torch.zeros(4)
    save_file(entries, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, text_folder: Path) -> Callable[..., Any]:
    files = {}
    for variant in ("biovil", "biovil_t"):
        files[variant] = tmp_path_factory.mktemp(variant) / f"{variant}.pt"
        torch.save(image_file(variant), files[variant])

    def build(name: str, **given: Any) -> Any:
        checkpoint = given.pop("checkpoint", files[name])
        return registry.create(
            "model", name, {"checkpoint": checkpoint, "text_model": text_folder, "device": "cpu"} | given
        )

    return build


def published_text(model: Any, folder: Path, text: str) -> Tensor:
    """The mean of nothing: one prompt, its class token through the head."""
    from transformers import BertModel

    w = load_file(folder / "model.safetensors")
    encoder = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    encoder.load_state_dict(
        {n.removeprefix("bert."): v for n, v in w.items() if n.startswith("bert.") and "pooler" not in n}
    )
    ids, mask = model.tokenise([text])
    state = encoder(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
    h = "cls_projection_head."
    x = functional.gelu(functional.linear(state, w[f"{h}dense_to_hidden.weight"], w[f"{h}dense_to_hidden.bias"]))
    x = functional.layer_norm(x, (128,), w[f"{h}LayerNorm.weight"], w[f"{h}LayerNorm.bias"], 1e-12)
    return functional.linear(x, w[f"{h}dense_to_output.weight"], w[f"{h}dense_to_output.bias"])[0]


@pytest.mark.parametrize(("variant", "crop"), [("biovil", 480), ("biovil_t", 448)])
def test_scores_and_maps_equal_the_published_steps(
    variant: str, crop: int, model: Callable[..., Any], text_folder: Path, pictures: list[Radiograph]
) -> None:
    own = model(variant)
    assert isinstance(own, Grounder)
    assert isinstance(own, CaptionMatcher)
    pixels = torch.stack([published_pixels(picture, crop) for picture in pictures[:2]])
    assert (own.inputs(pictures[:2])[0] - pixels).abs().max() < 1e-6
    prediction = own.predict(pictures[:2], FINDINGS)
    with torch.no_grad():
        cells = published_cells(pixels, image_file(variant), variant)
        vectors = functional.normalize(cells.mean((2, 3)), dim=-1)
        cells = functional.normalize(cells, dim=1)
        for column, finding in enumerate(FINDINGS):
            text = functional.normalize(published_text(own, text_folder, f"There is {finding.lower()}"), dim=-1)
            assert np.abs(prediction.scores[:, column] - (vectors @ text).numpy()).max() < 1e-5
            for row in range(2):
                plain = torch.einsum("ehw,e->hw", cells[row], text).numpy()
                expected = ndimage.gaussian_filter(plain, sigma=(1.5, 1.5), order=0)
                assert prediction.saliency[row, column].shape == (crop // 32, crop // 32)
                assert np.abs(prediction.saliency[row, column] - expected).max() < 1e-5
    assert np.ptp(prediction.saliency) > 1e-3


def test_several_prompts_are_averaged_before_the_norm(model: Callable[..., Any]) -> None:
    own = model("biovil", template=["There is {label}", "no {label}"])
    texts = own.texts(["Nodule"])
    with torch.no_grad():
        mean = own.embed(["There is nodule", "no nodule"]).mean(0)
    assert torch.allclose(texts[0], mean / mean.norm(), atol=1e-6)


def test_a_flat_picture_is_black_rather_than_nothing(model: Callable[..., Any]) -> None:
    flat = Radiograph(np.full((40, 40), 0.5, np.float32))
    own = model("biovil")
    assert own.inputs([flat])[0].abs().max() == 0
    assert np.isfinite(own.predict([flat], FINDINGS).scores).all()


def test_the_other_variants_file_does_not_load(model: Callable[..., Any], tmp_path: Path) -> None:
    torch.save(image_file("biovil_t"), tmp_path / "t.pt")
    with pytest.raises(CheckpointError, match="backbone_to_vit"):
        model("biovil", checkpoint=tmp_path / "t.pt")
    torch.save(image_file("biovil"), tmp_path / "plain.pt")
    with pytest.raises(CheckpointError, match="backbone_to_vit"):
        model("biovil_t", checkpoint=tmp_path / "plain.pt")


def test_smoothing_is_an_option_with_an_identity(model: Callable[..., Any]) -> None:
    assert model("biovil").fingerprint() != model("biovil", smooth=0.0).fingerprint()
    assert model("biovil").fingerprint() != model("biovil_t").fingerprint()
