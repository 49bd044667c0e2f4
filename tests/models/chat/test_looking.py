"""Where a chat model looks: its maps against attention that is recorded, and changed, from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medground.errors import ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Message
from medground.models.chat.chat_grounder import ChatGrounder
from medground.models.chat.hf_chat import HfChat

TALK = "edema ?"


@pytest.fixture(scope="module")
def model(seeing_folder: Path) -> HfChat:
    return HfChat(checkpoint=seeing_folder, device="cpu", attention="eager")


@pytest.fixture(scope="module")
def image() -> Radiograph:
    return Radiograph(np.random.default_rng(0).random((30, 44), np.float32), case_id="a")


def asked(image: Radiograph) -> list[Message]:
    return [Message("user", TALK, (image,))]


class Recorder:
    """Reads the attention of every layer of the language model, and may add to one weight of it."""

    def __init__(self, network: Any) -> None:
        self.layers = network.model.language_model.layers
        self.weights: list[torch.Tensor] = []
        self.change: tuple[int, int, int, int, float] | None = None

    def margin(self, model: HfChat, image: Radiograph) -> float:
        """Run the prompt and return logit(yes) - logit(no), by a softmax and product written out here."""
        self.weights = []
        plain = [layer.self_attn.forward for layer in self.layers]
        for index, layer in enumerate(self.layers):
            layer.self_attn.forward = self._forward(index, layer.self_attn)
        try:
            inputs = model._inputs([asked(image)], model.defaults)
            with torch.no_grad():
                logits = model._loaded.network(**inputs).logits[0, -1]
        finally:
            for layer, forward in zip(self.layers, plain, strict=True):
                layer.self_attn.forward = forward
        yes, no = (model._loaded.tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
        return float(logits[yes] - logits[no])

    def _forward(self, index: int, attention: Any) -> Any:
        def forward(hidden_states: Any, position_embeddings: Any, **_: Any) -> Any:
            from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

            rows, tokens, _ = hidden_states.shape
            q, k, v = (
                p(hidden_states).view(rows, tokens, -1, attention.head_dim).transpose(1, 2)
                for p in (attention.q_proj, attention.k_proj, attention.v_proj)
            )
            q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
            scores = q @ k.transpose(2, 3) / attention.head_dim**0.5
            weights = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf).softmax(-1)
            if self.change is not None and self.change[0] == index:
                _, head, row, column, much = self.change
                weights[0, head, row, column] += much
            self.weights.append(weights)
            return attention.o_proj((weights @ v).transpose(1, 2).reshape(rows, tokens, -1)), weights

        return forward


def test_the_attention_map_is_the_mean_over_layers_and_heads(model: HfChat, image: Radiograph) -> None:
    (look,) = model.look([asked(image)], [("yes", "no")], "attention")
    recorder = Recorder(model._loaded.network)
    recorder.margin(model, image)
    ids = model._inputs([asked(image)], model.defaults)["input_ids"][0]
    places = [i for i, token in enumerate(ids.tolist()) if token == 4]
    rows = np.stack([weights[0, :, -1].numpy() for weights in recorder.weights])
    expected = rows.reshape(-1, rows.shape[-1]).mean(0)[places].reshape(4, 4)
    assert look.map == pytest.approx(expected, abs=1e-6)
    assert (look.geometry.source, look.geometry.input) == ((44, 30), (28, 28))


def test_the_gradient_map_equals_relevance_by_finite_differences(seeing_folder: Path, image: Radiograph) -> None:
    model = HfChat(checkpoint=seeing_folder, device="cpu", attention="eager")
    model._loaded.network.double()
    (look,) = model.look([asked(image)], [("yes", "no")], "gradient")
    recorder = Recorder(model._loaded.network)
    recorder.margin(model, image)
    attention = [weights[0].double().numpy().copy() for weights in recorder.weights]
    gradients = [np.zeros_like(weights) for weights in attention]
    heads, tokens, _ = attention[0].shape
    step = 3e-3  # norms and softmax work in float32, so that a smaller one would measure their rounding
    # Weights above the diagonal are 0, and in the last layer only the last row reaches the answer.
    last = len(attention) - 1
    for layer in range(len(attention)):
        for head in range(heads):
            for row in range(tokens) if layer < last else (tokens - 1,):
                for column in range(row + 1):
                    told = []
                    for sign in (1, -1):
                        recorder.change = (layer, head, row, column, sign * step)
                        told.append(recorder.margin(model, image))
                    gradients[layer][head, row, column] = (told[0] - told[1]) / (2 * step)
    relevance = np.eye(tokens)
    for weights, gradient in zip(attention, gradients, strict=True):
        relevance = relevance + np.maximum(weights * gradient, 0).mean(0) @ relevance
    places = (model._inputs([asked(image)], model.defaults)["input_ids"][0] == 4).numpy()
    assert look.map.reshape(-1) == pytest.approx(relevance[-1][places], rel=1e-3, abs=1e-6)
    assert look.map.max() > 1e-4


def test_gradients_leave_nothing_behind(model: HfChat, image: Radiograph) -> None:
    before = model.reply([asked(image)])
    model.look([asked(image)], [("yes", "no")], "gradient")
    assert model.reply([asked(image)]) == before
    assert not model._loaded.network.get_input_embeddings()._forward_hooks
    assert all(weight.grad is None for weight in model._loaded.network.parameters())


def test_a_grounder_shows_both_maps(model: HfChat, image: Radiograph) -> None:
    words = {"question": "is there {label} ?", "answers": ("yes", "no")}
    for place in ("attention", "gradient"):
        grounder = ChatGrounder(of=model, place=place, **words)
        prediction = grounder.predict([image, image], ["edema", "lung"])
        saliency = np.asarray(prediction.saliency)
        assert saliency.shape == (2, 2, 4, 4)
        assert (saliency[0] == saliency[1]).all()
        talk = [Message("user", "is there lung ?", (image,))]
        (look,) = model.look([talk], [("yes", "no")], place)
        assert (saliency[0, 1] == look.map).all()


def test_what_cannot_be_shown_is_refused(seeing_folder: Path, model: HfChat, image: Radiograph) -> None:
    fast = HfChat(checkpoint=seeing_folder, device="cpu")
    with pytest.raises(ModelError, match="say where it looks"):
        fast.look([asked(image)], [("yes", "no")], "attention")
    with pytest.raises(ModelError, match="begin with the same token"):
        model.look([asked(image)], [("yes", "yes no")], "gradient")
    with pytest.raises(ModelError, match="one picture in one piece"):
        model.look([[Message("user", TALK, (image, image))]], [("yes", "no")], "attention")
