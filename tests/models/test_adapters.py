"""What every published model promises: company, counters, geometry, checkpoints, fingerprints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medground.errors import CheckpointError, ConfigError
from medground.imaging.geometry import resample_map
from medground.imaging.reading import Radiograph
from medground.models.base import CaptionMatcher, Grounder, ModelInfo

NAMES = ["biomedclip", "carzero", "devide", "kad", "m3ae", "mavl", "medclip", "medklip", "pmc_clip"]
GRIDS = {
    "biomedclip": 14,
    "carzero": 14,
    "devide": 4,
    "kad": 4,
    "m3ae": 4,
    "mavl": 14,
    "medclip": 7,
    "medklip": 4,
    "pmc_clip": 7,
    "clip": 7,
    "llava_med": 4,
}
MATCHERS = {"biomedclip", "kad", "m3ae", "medclip", "pmc_clip"}
ATTENTION = {"carzero", "devide", "kad", "m3ae", "mavl", "medklip"}
FINDINGS = ["Cardiomegaly", "Effusion", "Nodule", "Pneumonia"]
CLOSE = 5e-5
"""Batches of other sizes go through other kernels, whose sums differ in the last digits of float32."""


class Trap:
    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.flag}",)


@pytest.mark.parametrize("name", NAMES)
def test_prediction_has_the_promised_shapes(name: str, zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build(name)
    assert isinstance(model, Grounder)
    assert isinstance(model.info, ModelInfo)
    assert isinstance(model, CaptionMatcher) == (name in MATCHERS)
    prediction = model.predict(pictures, FINDINGS)
    assert prediction.scores.shape == prediction.probabilities.shape == (3, 4)
    assert np.isfinite(prediction.scores).all()
    assert ((prediction.probabilities >= 0) & (prediction.probabilities <= 1)).all()
    assert prediction.saliency.shape == (3, 4, GRIDS[name], GRIDS[name])
    assert prediction.saliency.dtype == np.float32
    assert np.isfinite(prediction.saliency).all()
    assert [g.source for g in prediction.geometry] == [image.size for image in pictures]
    # Different findings and different pictures are told apart.
    assert np.ptp(prediction.scores, axis=1).min() > 0
    assert np.ptp(prediction.scores, axis=0).min() > 0
    assert np.ptp(prediction.saliency, axis=1).max() > 0
    if name in ATTENTION:
        assert (prediction.saliency >= 0).all()
        total = prediction.saliency.sum((-1, -2))
        # Where a class token or none is left out of the map, less than all attention is on the cells.
        assert (total < 1 + 1e-5).all()
        if name not in ("carzero", "m3ae"):
            assert np.abs(total - 1).max() < 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_company_of_images_and_findings(name: str, zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build(name)
    whole = model.predict(pictures, FINDINGS)
    alone = model.predict([pictures[1]], FINDINGS)
    assert np.abs(alone.scores[0] - whole.scores[1]).max() < CLOSE
    assert np.abs(alone.saliency[0] - whole.saliency[1]).max() < CLOSE
    order = [2, 0, 3, 1]
    permuted = model.predict(pictures, [FINDINGS[i] for i in order])
    assert np.abs(permuted.scores - whole.scores[:, order]).max() < CLOSE
    assert np.abs(permuted.saliency - whole.saliency[:, order]).max() < CLOSE
    dropped = model.predict(pictures, FINDINGS[:2])
    changed = np.abs(dropped.scores - whole.scores[:, :2]).max()
    if name in ("kad", "devide"):
        assert changed > 1e-4
        assert model.info.query_dependent
    else:
        # MedKLIP and MAVL always ask the whole book, so only appended findings are felt by the others.
        assert changed < CLOSE
        assert model.info.query_dependent == (name in ("medklip", "mavl"))


@pytest.mark.parametrize("name", NAMES)
def test_images_are_encoded_once_and_texts_once_a_run(name: str, zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build(name)
    model.predict(pictures, FINDINGS)
    images, texts = model.encoded_images, model.encoded_texts
    model.predict(pictures, FINDINGS)
    assert model.encoded_images == images + 3
    assert model.encoded_texts == texts


@pytest.mark.parametrize("name", [*NAMES, "clip", "llava_med"])
@pytest.mark.parametrize("size", [(60, 40), (40, 60), (48, 48)], ids=["landscape", "portrait", "square"])
def test_a_cell_of_the_grid_lies_on_the_right_pixels(
    name: str, size: tuple[int, int], zoo: Any, clip_folder: Path, llava_folder: Path
) -> None:
    folders = {"clip": clip_folder, "llava_med": llava_folder}
    model = zoo.build_folder(name, folders[name]) if name in folders else zoo.build(name)
    side, grid = model.preprocess.size, GRIDS[name]
    geometry = model.preprocess.geometry(size)
    for row, column in ((grid // 2, grid // 2 - 1), (grid // 2 - 1, grid // 2)):
        cell = np.array([column, row, column + 1, row + 1]) * side / grid
        x0, y0, x1, y1 = geometry.boxes_to_source(cell)[0]
        # One way: the map's hot cell, laid on the picture.
        hot = np.zeros((grid, grid))
        hot[row, column] = 1
        rows, columns = np.nonzero(resample_map(hot, geometry, rule="nearest") == 1)
        found = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        assert np.abs(found - [x0, y0, x1, y1]).max() <= 1
        # The other way: those pixels, through the model's own preprocessing.
        pixels = np.zeros((size[1], size[0]), np.float32)
        pixels[round(y0) : round(y1), round(x0) : round(x1)] = 1
        lit = model.preprocess.normalise(pixels)[0] - model.preprocess.normalise(np.zeros_like(pixels))[0]
        bright = lit > lit.max() / 2
        rows, columns = np.nonzero(bright)
        found = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        # Painted edges are rounded to whole source pixels, so half of one is allowed, in input pixels.
        slack = 0.5 * max(geometry.scale) + 1
        assert np.abs(found - cell).max() <= slack


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_load_completely_or_not_at_all(name: str, zoo: Any, tmp_path: Path) -> None:
    content = zoo.content(name)
    victim = next(entry for entry in content if entry.endswith("weight") and content[entry].dim() == 2)
    renamed = {(entry + "_renamed" if entry == victim else entry): value for entry, value in content.items()}
    with pytest.raises(CheckpointError) as caught:
        zoo.open(name, zoo.laid_out(name, renamed), tmp_path / "renamed.pt")
    assert f"missing {victim}" in str(caught.value)
    assert f"nearest: {victim}_renamed" in str(caught.value)
    mis_shaped = content | {victim: content[victim][:-1]}
    with pytest.raises(CheckpointError, match="wrong shape") as caught:
        zoo.open(name, zoo.laid_out(name, mis_shaped), tmp_path / "shape.pt")
    assert victim in str(caught.value)
    accepted = zoo.open(name, zoo.laid_out(name, content, prefix="module."), tmp_path / "module.pt")
    assert accepted.name == name
    flag = tmp_path / "ran"
    with pytest.raises(CheckpointError, match="objects where only weights may be"):
        zoo.open(name, zoo.laid_out(name, content) | {"surprise": Trap(flag)}, tmp_path / "trap.pt")
    assert not flag.exists()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("carzero", "hyper_parameters"),
        ("m3ae", "hyper_parameters"),
        ("medklip", "config"),
        ("kad", "config"),
        ("mavl", "optimizer"),
        ("pmc_clip", "optimizer"),
    ],
)
def test_object_under_an_unused_key_is_dropped_without_being_run(name: str, key: str, zoo: Any, tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    file = zoo.laid_out(name, zoo.content(name)) | {key: Trap(flag)}
    assert zoo.open(name, file, tmp_path / "file.pt").name == name
    assert not flag.exists()


@pytest.mark.parametrize("name", NAMES)
def test_fingerprint_follows_prompts_and_weights(name: str, zoo: Any, tmp_path: Path) -> None:
    model = zoo.build(name)
    content = zoo.content(name)
    file = zoo.laid_out(name, content)
    # torch puts a file's stem into it, so only files of one name have one hash.
    path = tmp_path / f"{name}.pt"
    again = zoo.open(name, file, path)
    assert again.fingerprint() == model.fingerprint()
    worded = zoo.open(name, file, path, prompts={"Mass": "there is a mass in the lung"})
    assert worded.fingerprint() != model.fingerprint()
    victim = next(iter(content))
    other = zoo.open(name, zoo.laid_out(name, content | {victim: content[victim] + 1}), path)
    assert other.fingerprint() != model.fingerprint()


@pytest.mark.parametrize("name", sorted(MATCHERS))
def test_captions_of_one_image_are_independent_of_other_images(name: str, zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build(name)
    captions = [["effusion in the left lung", "nodule"], ["there is edema", "no edema"], ["a photo", "opacity"]]
    scores = model.match(pictures, captions)
    assert scores.raw.shape == (3, 2)
    assert scores.kind == ("itm" if name == "m3ae" else "contrastive")
    assert scores.scale > 0
    for index in range(3):
        alone = model.match([pictures[index]], [captions[index]])
        assert np.allclose(alone.raw[0], scores.raw[index], rtol=1e-5, atol=1e-5)
    if name == "m3ae":
        assert scores.scale == 1
    elif name != "kad":
        assert (np.abs(scores.raw) <= 1 + 1e-6).all()


@pytest.mark.parametrize("name", sorted(MATCHERS))
def test_captions_are_told_apart_up_to_the_token_limit(
    name: str, zoo: Any, pictures: list[Radiograph], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = zoo.build(name)
    long = "effusion " * model.tokenise.length
    captions = [long + "nodule", "nodule " + long, long + "edema"]
    scores = model.match(pictures[:1], [captions])
    assert scores.texts.tolist() == [[0, 1, 0]]
    monkeypatch.setattr(model.tokenise, "length", model.tokenise.length + 2000)
    assert model.tokenise.alike(captions) == [0, 1, 2]


@pytest.mark.parametrize("name", sorted(MATCHERS))
def test_equal_pictures_are_encoded_once(name: str, zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build(name)
    before = model.encoded_images
    scores = model.match([pictures[0], pictures[1], pictures[0]], [["a nodule", "an effusion"]] * 3)
    assert model.encoded_images == before + 2
    assert (scores.raw[0] == scores.raw[2]).all()
    turned = model.match([pictures[0]], [["an effusion", "a nodule"]])
    # Raw scores of some models are in the hundreds: float32 holds seven digits of them.
    np.testing.assert_allclose(turned.raw[0, ::-1], scores.raw[0], rtol=1e-5, atol=1e-5)


def test_kad_matches_by_its_own_loss(zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build("kad")
    scores = model.match(pictures[:1], [["edema", "nodule"]])
    pixels, _ = model.inputs(pictures[:1])
    with torch.no_grad():
        pooled = model.network.image_encoder(pixels).mean(1)[0]
        ids, mask = model.tokenise(["edema", "nodule"])
        texts = model.network.text_encoder(ids, mask)
    assert np.allclose(scores.raw[0], (texts @ pooled).numpy(), atol=1e-4)
    assert scores.scale == pytest.approx(2.6593, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "saliency"),
    [
        ("biomedclip", "surgery"),
        ("biomedclip", "gradcam"),
        ("biomedclip", "chefer"),
        ("medclip", "gradcam"),
        ("pmc_clip", "gradcam"),
        ("pmc_clip", "attention"),
    ],
)
def test_other_saliency_rules(name: str, saliency: str, zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build(name, saliency=saliency)
    prediction = model.predict(pictures, FINDINGS)
    assert prediction.saliency.shape == (3, 4, GRIDS[name], GRIDS[name])
    assert np.isfinite(prediction.saliency).all()
    if saliency == "attention":
        assert np.ptp(prediction.saliency, axis=1).max() == 0
    else:
        assert np.ptp(prediction.saliency, axis=1).max() > 0
    if saliency != "surgery":
        assert (prediction.saliency >= 0).all()
        plain = zoo.build(name).predict(pictures, FINDINGS)
        assert np.abs(plain.scores - prediction.scores).max() < 1e-6
    assert model.info.query_dependent == (saliency == "surgery")


def test_every_model_says_what_it_needs_and_under_which_terms(zoo: Any) -> None:
    from medground import registry

    for name in [*NAMES, "clip", "llava_med"]:
        info = registry.load("model", name).info
        assert info.title
        assert info.licence
        assert info.citation
        assert info.obtain
        assert (info.unverified is not None) == (name == "devide")
        cls = registry.load("model", name)
        needed = {p.name: "x" for p in registry.parameters(cls) if p.required}
        checked = registry.check(cls, needed | {"prompts": {"Mass": "a mass"}, "dtype": "bfloat16"}, where="models[0]")
        assert isinstance(checked["checkpoint"], Path)
        with pytest.raises(ConfigError):
            registry.check(cls, needed | {"dtype": "float8"}, where="models[0]")


@pytest.mark.parametrize("saliency", ["similarity", "gradcam"])
def test_pairs_of_prompts_count_in_medclip_too(saliency: str, zoo: Any, pictures: list[Radiograph]) -> None:
    findings = ["Effusion", "Nodule"]
    with_pair, alone = (
        zoo.build("medclip", saliency=saliency, against="no {label}"),
        zoo.build("medclip", saliency=saliency),
    )
    contrary = zoo.build("medclip", saliency=saliency, template="no {label}")
    expected = alone.predict(pictures, findings).scores - contrary.predict(pictures, findings).scores
    assert np.abs(with_pair.predict(pictures, findings).scores - expected).max() < 1e-5
