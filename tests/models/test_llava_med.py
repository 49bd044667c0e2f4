"""LLaVA-Med: conversations, choices, replies, and findings by yes and no."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medground.errors import CheckpointError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import ChatModel, Grounder, Message
from medground.models.common.llava_config import read_llava_config
from medground.models.radiology.llava_med import (
    IMAGE,
    PAD_COLOUR,
    LlavaMed,
    embed,
    layout_of,
    published,
    score_options,
)


@pytest.fixture(scope="module")
def llava(llava_folder: Path) -> LlavaMed:
    return LlavaMed(checkpoint=llava_folder, device="cpu", max_new_tokens=5)


def test_is_a_chat_model_and_a_grounder(llava: LlavaMed) -> None:
    assert isinstance(llava, ChatModel)
    assert isinstance(llava, Grounder)


def test_key_table_is_the_published_one(golden: Path) -> None:
    table = json.loads((golden / "models/llava_med/key_map.json").read_text())
    for theirs, ours in table["entries_of_the_tiny_configuration"].items():
        assert published(ours) == theirs
    names = list(table["entries_of_the_tiny_configuration"])
    assert layout_of(names) == "published"
    converted = [published(ours, "converted") for ours in table["entries_of_the_tiny_configuration"].values()]
    assert layout_of(converted) == "converted"
    assert "language_model.lm_head.weight" in converted
    assert layout_of(list(table["entries_of_the_tiny_configuration"].values())) == "transformers"


def test_conversation_becomes_the_published_prompt(llava: LlavaMed, picture: Any) -> None:
    inner = llava.tokenise.inner
    conversation = [
        Message("system", "a clear answer"),
        Message("user", "is there edema?", (picture(),)),
        Message("assistant", "yes"),
        Message("user", "in the base?"),
    ]
    ids = llava._ids(conversation)
    assert ids.count(IMAGE) == 1
    assert ids[0] == inner.bos_token_id
    assert ids.count(inner.bos_token_id) == 1
    place = ids.index(IMAGE)

    def tokens(text: str) -> list[int]:
        return inner(text, add_special_tokens=False)["input_ids"]

    assert ids[1:place] == tokens("[INST] <<SYS>>\na clear answer\n<</SYS>>\n\n")
    rest = tokens("\nis there edema? [/INST]") + tokens(" yes </s>") + tokens("[INST] in the base? [/INST]")
    assert ids[place + 1 :] == rest


def test_words_of_a_text_never_stand_for_an_image(llava: LlavaMed) -> None:
    assert IMAGE not in llava._ids([Message("user", "<image> is there edema?")])


def test_choices_are_log_likelihoods_of_their_tokens(llava: LlavaMed, pictures: list[Radiograph]) -> None:
    conversation = [Message("user", "is there edema?", (pictures[0],))]
    choices = ["caption a", "yes", "no effusion in the lung"]
    scores = llava.choose([conversation, conversation], [choices, choices[::-1]])
    assert [len(row) for row in scores] == [3, 3]
    assert np.abs(scores[0] - scores[1][::-1]).max() < 1e-5
    network: Any = llava.network
    with torch.no_grad():
        prompt = llava._prompt(conversation)
        for choice, expected in zip(choices, scores[0], strict=True):
            ids = llava._plain_ids(choice)
            total, fed = 0.0, prompt
            for token in ids:
                logits = network(inputs_embeds=fed[None]).logits[0, -1]
                total += float(torch.log_softmax(logits, -1)[token])
                fed = torch.cat([fed, network.get_input_embeddings()(torch.tensor([token]))])
            assert total == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ModelError, match="no tokens"):
        llava.choose([conversation], [["yes", ""]])


def test_reply_takes_the_likeliest_token_each_time(llava: LlavaMed, pictures: list[Radiograph]) -> None:
    conversation = [Message("user", "is there edema?", (pictures[0],))]
    (reply,) = llava.reply([conversation])
    network: Any = llava.network
    ids: list[int] = []
    with torch.no_grad():
        fed = llava._prompt(conversation)
        start = len(fed)
        while len(ids) < 5:
            token = int(network(inputs_embeds=fed[None]).logits[0, -1].argmax())
            if token == llava.tokenise.inner.eos_token_id:
                break
            ids.append(token)
            fed = torch.cat([fed, network.get_input_embeddings()(torch.tensor([token]))])
    assert reply.text == llava.tokenise.inner.decode(ids, skip_special_tokens=True).strip()
    assert reply.finish == ("length" if len(ids) == 5 else "stop")
    assert reply.usage == {"prompt_tokens": start, "completion_tokens": len(ids)}


def test_text_without_a_picture(llava: LlavaMed) -> None:
    assert llava.choose([[Message("user", "is there edema?")]], [["yes", "no"]])[0].shape == (2,)


def test_findings_are_scored_by_yes_against_no(llava: LlavaMed, pictures: list[Radiograph]) -> None:
    findings = ["Edema", "Effusion", "Nodule"]
    prediction = llava.predict(pictures, findings)
    assert prediction.saliency is not None
    assert prediction.saliency.shape == (3, 3, 4, 4)
    assert (prediction.saliency >= 0).all()
    assert (prediction.saliency.sum((-1, -2)) < 1).all()
    questions = [[Message("user", llava.wording.of(f)[0], (pictures[1],))] for f in findings]
    both = np.stack(llava.choose(questions, [["Yes", "No"]] * 3))
    assert np.abs(prediction.scores[1] - (both[:, 0] - both[:, 1])).max() < 1e-4
    part = llava.predict(pictures[1:2], findings[::-1])
    assert np.abs(part.scores[0][::-1] - prediction.scores[1]).max() < 1e-5


def test_option_scores_do_not_depend_on_longer_ones(llava: LlavaMed) -> None:
    with torch.no_grad():
        prompt = llava._prompt([Message("user", "is there edema?")])
        alone = score_options(llava.network, prompt, [[4, 5]])
        company = score_options(llava.network, prompt, [[4, 5], [6, 7, 8, 9, 10]])
    assert abs(float(alone.total[0] - company.total[0])) < 1e-5
    assert float(company.mean[1]) == pytest.approx(float(company.total[1]) / 5)


def test_images_are_put_where_their_places_are(llava: LlavaMed) -> None:
    first, second = torch.ones(2, 32), torch.zeros(3, 32)
    whole, starts = embed(llava.network, [4, IMAGE, IMAGE, 5, 6], [first, second])
    assert starts == [1, 3]
    assert torch.equal(whole[1:3], first)
    assert torch.equal(whole[3:6], second)
    assert len(whole) == 8


def test_configurations_of_authors_and_conversions(llava_folder: Path, tmp_path: Path) -> None:
    official = {
        "hidden_size": 64,
        "num_hidden_layers": 3,
        "mm_vision_select_layer": -2,
        "image_aspect_ratio": "pad",
        "mm_vision_tower": "openai/clip-vit-large-patch14-336",
        "model_type": "llava_mistral",
    }
    (tmp_path / "config.json").write_text(json.dumps(official))
    config, padded = read_llava_config(tmp_path)
    assert padded
    assert config.text_config.hidden_size == 64
    assert config.vision_config.image_size == 336
    assert config.vision_feature_layer == -2
    assert PAD_COLOUR == (122, 116, 104)
    with pytest.raises(ModelError, match="no configuration"):
        read_llava_config(tmp_path / "nowhere")


def test_a_renamed_entry_is_refused(llava_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(llava_folder, folder)
    state = torch.load(folder / "pytorch_model.bin", weights_only=True)
    state["model.mm_projector.0.kernel"] = state.pop("model.mm_projector.0.weight")
    torch.save(state, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"missing model\.mm_projector\.0\.weight .*mm_projector\.0\.kernel"):
        LlavaMed(checkpoint=folder, device="cpu")
