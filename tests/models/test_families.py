"""What is special about each model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig

from medground.errors import CheckpointError, ConfigError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.common.text import Tokenizer
from medground.models.radiology import carzero, kad, m3ae, mavl, medclip, medklip, pmc_clip
from medground.models.radiology.carzero import clean

FINDINGS = ["Cardiomegaly", "Effusion", "Nodule", "Pneumonia"]


def counted(network: torch.nn.Module) -> int:
    return sum(1 for _ in network.state_dict())


def test_entry_counts_are_the_published_ones() -> None:
    with torch.device("meta"):
        assert counted(medklip.MedklipNetwork()) + 2 == 342  # and the unused location head
        assert counted(mavl.MavlNetwork()) + 2 == 352
        fusion = carzero.FusionModule()
        # The file has self-attention and a first norm beside, a temperature, and its norm twice.
        assert counted(fusion) + 4 * (4 + 2) + 1 + 2 == 85
        config = BertConfig(num_hidden_layers=1)
        assert counted(kad.ImageEncoder(4)) == 642 - 320
        assert counted(kad.ImageEncoder(3)) == 582 - 320
        assert counted(kad.Decoder()) + 1 + 2 == 79
        pmc = pmc_clip.PmcClipNetwork(config)
        assert counted(pmc.visual) == 339
        network = m3ae.M3aeNetwork(BertConfig(num_hidden_layers=1))
        assert len(network.vision_encoder.visual.encoder.layers) == 11


def test_medklip_asks_the_whole_book_and_appended_findings_are_felt(zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build("medklip")
    alone = model.predict(pictures[:1], ["Nodule"])
    worded = zoo.build("medklip", prompts={"Mass": "a large mass in the lung", "Cyst": "opacity in the base"})
    same = worded.predict(pictures[:1], ["Nodule"])
    assert np.abs(same.scores - alone.scores).max() < 1e-6
    company = worded.predict(pictures[:1], ["Nodule", "Mass", "Cyst"])
    assert np.abs(company.scores[:, :1] - alone.scores).max() > 1e-4
    with pytest.raises(ModelError, match="no observation for 'Cyst'"):
        model.predict(pictures, ["Cyst"])


def test_mavl_modes_and_reductions(zoo: Any, pictures: list[Radiograph]) -> None:
    average = zoo.build("mavl").predict(pictures[:1], FINDINGS)
    largest = zoo.build("mavl", reduce="max").predict(pictures[:1], FINDINGS)
    alone = zoo.build("mavl", reduce="global").predict(pictures[:1], FINDINGS)
    assert (largest.saliency >= average.saliency - 1e-7).all()
    assert np.abs(alone.saliency - average.saliency).max() > 0
    text = zoo.build("mavl", mode="text").predict(pictures[:1], FINDINGS)
    assert np.array_equal(text.scores, text.probabilities)
    assert np.abs(text.probabilities - average.probabilities).max() > 1e-3
    assert np.array_equal(text.saliency, average.saliency)
    with pytest.raises(ConfigError, match="no such concept"):
        zoo.build("mavl", concepts=[0, 9])


def test_mavl_map_is_the_mean_of_four_concepts() -> None:
    attention = torch.zeros(4, 1, 18, 4)
    for query in range(18):
        attention[:, :, query] = query
    maps = mavl.reduced(attention, (2, 2), mavl.MAP_CONCEPTS, "avg")
    assert maps[0, :, 0, 0].tolist() == [(0 + 6 + 7 + 8) / 4, 9 + (0 + 6 + 7 + 8) / 4]
    assert mavl.reduced(attention, (2, 2), mavl.MAP_CONCEPTS, "max")[0, :, 0, 0].tolist() == [8, 17]
    assert mavl.reduced(attention, (2, 2), mavl.MAP_CONCEPTS, "global")[0, :, 0, 0].tolist() == [0, 9]


def test_mavl_aspects_are_alphabetical_and_complete() -> None:
    names = ["texture", "border", "fluid", "location", "opacity", "other", "patterns", "shape"]
    book = {"effusion": {name: [name, "x"] for name in names}, "odd": {"border": "x"}, "listed": list("abcdefgh")}
    assert mavl.aspects_of(book, "Effusion", None)[0] == "border x"
    assert mavl.aspects_of(book, "Effusion", None)[-1] == "texture x"
    assert mavl.aspects_of(book, "unnamed", 2) == list("abcdefgh")
    for name in ("odd", "missing"):
        with pytest.raises(ModelError, match="no eight aspects"):
            mavl.aspects_of(book, name, None)


def test_kad_tells_its_variants_apart_and_takes_any_resolution(
    zoo: Any, pictures: list[Radiograph], tmp_path: Path
) -> None:
    config = zoo._config("kad")
    with zoo._smaller("kad"):
        small = {name: torch.randn(t.shape) * 0.02 for name, t in kad.KadNetwork(3, config).state_dict().items()}
    content = {kad.published(name): value for name, value in small.items()}
    copies = {f"image_encoder.resnet.{n}": torch.ones(1) for n in ("conv1.weight", "fc.weight")}
    shared = {"model.decoder_norm.weight": content["model.decoder.norm.weight"], "model.logit_scale": torch.ones(())}
    file = zoo.laid_out("kad", content | copies | shared)
    model = zoo.open("kad", file, tmp_path / "kad.pt", resolution=64)
    assert model.predict(pictures, FINDINGS).saliency.shape == (3, 4, 4, 4)
    large = zoo.build("kad", resolution=192, layers="mean").predict(pictures[:1], FINDINGS)
    assert large.saliency.shape == (1, 4, 6, 6)


def test_kad_words_findings_as_its_authors_do(zoo: Any) -> None:
    prompts = zoo.build("kad").wording
    assert [prompts.of(f)[0] for f in ("Effusion", "Mass", "Nodule", "Pleural_Thickening", "Edema")] == [
        "pleural effusion",
        "lung mass",
        "lung nodule",
        "pleural thicken",
        "edema",
    ]


def test_carzero_refuses_a_prompt_of_one_word(zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build("carzero", prompts={"Nodule": "Nodule"})
    with pytest.raises(ModelError, match="sentences of one word") as caught:
        model.predict(pictures, ["Nodule"])
    assert "There is nodule" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("There is cardiomegaly", "there is cardiomegaly"),
        ("Atelectasis", ""),
        ("No pneumothorax. Atelectasis. 2. Mild edema", "no pneumothorax mild edema"),
        ("Œdème léger\nà gauche", "dme lger  gauche".replace("  ", " ")),
    ],
)
def test_carzero_cleaning(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_carzero_sums_pieces_into_words(bert_folder: Path) -> None:
    tokenizer = Tokenizer(bert_folder, 10, pad_to_length=True)
    ids = torch.tensor(
        [tokenizer.inner.convert_tokens_to_ids(["[CLS]", "lung", "##s", "##ly", "left", "[SEP]"]) + [0] * 4]
    )
    hidden = torch.arange(10.0).reshape(1, 1, 10, 1) + 1
    sentence, rows = carzero.aggregate(hidden, carzero.word_weights(tokenizer.inner, ids))
    assert rows[0, :, 0].tolist() == [1, 2 + 3 + 4, 5, 6, 0, 0, 0, 0, 0, 0]
    assert float(sentence) == pytest.approx((1 + 9 + 5 + 6) / 10)


def test_carzero_ignores_what_the_authors_never_use(zoo: Any, tmp_path: Path, pictures: list[Radiograph]) -> None:
    content = zoo.content("carzero")
    unused = {
        "fusion_module.decoder.layers.0.self_attn.in_proj_weight": torch.randn(2304, 768),
        "fusion_module.decoder.layers.0.norm1.weight": torch.randn(768),
        "fusion_module.decoder_norm.weight": content["fusion_module.decoder.norm.weight"],
        "text_encoder.model.embeddings.position_ids": torch.arange(5),
    }
    model = zoo.open("carzero", zoo.laid_out("carzero", content | unused), tmp_path / "file.ckpt")
    first, second = model.predict(pictures[:1], FINDINGS), zoo.build("carzero").predict(pictures[:1], FINDINGS)
    assert np.array_equal(first.scores, second.scores)
    with pytest.raises(CheckpointError, match=r"unexpected head\.weight"):
        zoo.open("carzero", zoo.laid_out("carzero", content | {"head.weight": torch.ones(2)}), tmp_path / "file.ckpt")


def test_medclip_map_is_lossless(zoo: Any, pictures: list[Radiograph]) -> None:
    prediction = zoo.build("medclip").predict(pictures, FINDINGS)
    assert np.abs(prediction.saliency.mean((-1, -2)) - prediction.scores).max() < 1e-5


def test_medclip_text_depends_on_its_batch_unless_padding_is_masked(zoo: Any) -> None:
    texts = ["effusion", "pleural effusion in the left lung base"]
    model = zoo.build("medclip")
    assert (model.embed(texts)[0] - model.embed(texts[:1])[0]).abs().max() > 1e-3
    masked = zoo.build("medclip", mask_padding=True)
    assert (masked.embed(texts)[0] - masked.embed(texts[:1])[0]).abs().max() < 1e-5


def test_medclip_ensembles(zoo: Any, pictures: list[Radiograph]) -> None:
    prompts = {"Nodule": ["nodule in the left lung", "opacity", "mass in the base"]}
    mean = zoo.build("medclip", prompts=prompts)
    highest = zoo.build("medclip", prompts=prompts, ensemble="max")
    own = mean.texts(["Nodule"])[0]
    pixels, _ = mean.inputs(pictures)
    with torch.no_grad():
        image = torch.nn.functional.normalize(mean.image_features(pixels)[0], dim=-1)
    cosines = (image @ own.T).numpy()
    assert np.abs(mean.predict(pictures, ["Nodule"]).scores[:, 0] - cosines.mean(1)).max() < 1e-6
    best = highest.predict(pictures, ["Nodule"])
    assert np.abs(best.scores[:, 0] - cosines.max(1)).max() < 1e-6
    # The map belongs to the prompt that gave the score.
    assert np.abs(best.saliency.mean((-1, -2)) - best.scores).max() < 1e-5


def test_medclip_opens_both_towers(zoo: Any, tmp_path: Path, pictures: list[Radiograph]) -> None:
    from medground.models.radiology import medclip as module

    with zoo._smaller("medclip"):
        network = module.MedclipNetwork("resnet", zoo._config("medclip"))
    content = {name: torch.randn(t.shape) * 0.05 for name, t in network.state_dict().items()}
    buffers = {"text_model.model.embeddings.position_ids": torch.arange(5)}
    model = zoo.open("medclip", content | buffers, tmp_path / "resnet.bin")
    assert isinstance(model.network.vision_model, module.ResNetTower)
    assert model.predict(pictures[:1], FINDINGS).saliency.shape == (1, 4, 7, 7)
    assert float(module.temperature(torch.tensor(6.0))) == pytest.approx(100, rel=1e-4)


def test_swin_names_are_the_published_table(golden: Path) -> None:
    table = json.loads((golden / "models/medclip/swin_rename.json").read_text())
    for old, new in table["entries"].items():
        assert medclip.published(new) == old


def test_pmc_clip_takes_one_text_and_no_mask(zoo: Any) -> None:
    model = zoo.build("pmc_clip")
    texts = ["effusion", "nodule in the left lung"]
    together, alone = model.embed(texts), model.embed(texts[:1])
    assert (together[0] - alone[0]).abs().max() < 1e-5
    ids, mask = model.tokenise(texts)
    with torch.no_grad():
        masked = model.network.text(ids, model.tokenise.inner.cls_token_id, mask)
    assert (masked - together).abs().max() > 1e-3


def test_m3ae_scores_are_logit_margins_of_the_matching_head(zoo: Any, pictures: list[Radiograph]) -> None:
    model = zoo.build("m3ae")
    prediction = model.predict(pictures, ["Nodule", "Effusion"])
    captions = [model.wording.of(f)[0] for f in ("Nodule", "Effusion")]
    scores = model.match(pictures, [captions] * 3)
    assert np.abs(scores.raw - prediction.scores).max() < 1e-5
    assert np.abs(prediction.probabilities - 1 / (1 + np.exp(-prediction.scores))).max() < 1e-6


def test_m3ae_map_leaves_out_special_tokens_and_padding() -> None:
    weights = torch.zeros(1, 2, 5, 5)
    weights[:, :, 1] = torch.tensor([0.2, 0.1, 0.3, 0.2, 0.2])
    weights[:, :, 2] = torch.tensor([0.0, 0.3, 0.1, 0.4, 0.2])
    weights[:, :, 0] = weights[:, :, 3] = weights[:, :, 4] = 9.0
    mask = torch.tensor([[1, 1, 1, 1, 0]])
    assert torch.allclose(m3ae.caption_map([weights], mask), torch.tensor([[[0.2, 0.2], [0.3, 0.2]]]))


def test_m3ae_resizes_positions_for_another_resolution(zoo: Any, tmp_path: Path, pictures: list[Radiograph]) -> None:
    file = zoo.laid_out("m3ae", zoo.content("m3ae"))
    model = zoo.open("m3ae", file, tmp_path / "file.ckpt", resolution=96)
    assert model.predict(pictures[:1], FINDINGS).saliency.shape == (1, 4, 6, 6)
    first = model.network.vision_encoder.visual.embeddings.position_embedding.weight[0]
    assert torch.equal(first, zoo.content("m3ae")[m3ae.POSITIONS][0])
    odd = zoo.content("m3ae") | {m3ae.POSITIONS: torch.zeros(16, 768)}
    with pytest.raises(CheckpointError, match="wrong shape"):
        zoo.open("m3ae", zoo.laid_out("m3ae", odd), tmp_path / "file.ckpt")


def test_devide_refuses_without_a_table_of_names(zoo: Any, tmp_path: Path) -> None:
    file = zoo.laid_out("devide", zoo.content("devide"))
    with pytest.raises(ConfigError, match="your own table of names"):
        zoo.open("devide", file, tmp_path / "file.pt", key_map=None)
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(CheckpointError, match="missing"):
        zoo.open("devide", file, tmp_path / "file.pt", key_map=wrong)
    wrong.write_text("[1]")
    with pytest.raises(ConfigError, match="JSON object"):
        zoo.open("devide", file, tmp_path / "file.pt", key_map=wrong)
    assert zoo.build("devide").info.unverified
