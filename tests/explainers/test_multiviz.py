import numpy as np
import pytest
import torch

from medground.explainers.base import Asker, Example, Pool
from medground.explainers.multiviz import MultiViz, second_order


def networks(arrays):
    """The four golden functions of image and words to three outputs, as their definitions say."""
    t = {name: torch.from_numpy(value) for name, value in arrays.items()}
    B, a, b, U, V, R = (t[name] for name in ["B", "a", "b", "U", "V", "R"])

    def bilinear(x, w):
        x = x.reshape(-1)
        return torch.einsum("td,cdp,p->c", w, B, x) + (w @ a.T).sum(0) + b @ x

    def gated(x, w):
        return R @ (torch.tanh(w @ U.T) * torch.sigmoid(V @ x.reshape(-1))).sum(0)

    def late_fusion(x, w):
        return R @ (torch.relu(U @ w.sum(0)) + torch.relu(V @ x.reshape(-1)))

    def attention(x, w):
        k = x.reshape(3, 25).T @ V[:, :3].T
        q = w @ U.T
        return R @ (torch.softmax(q @ k.T / 8**0.5, -1) @ k).sum(0)

    return {"bilinear": bilinear, "gated": gated, "late_fusion": late_fusion, "attention": attention}


@pytest.mark.parametrize("name", ["bilinear", "gated", "late_fusion", "attention"])
def test_golden_networks(explainer_golden, name):
    expected, arrays = explainer_golden("second_order_gradient")
    network, truth = networks(arrays)[name], expected["expected"][name]
    image = torch.from_numpy(arrays["image"]).requires_grad_(True)
    words = torch.from_numpy(arrays["words"]).requires_grad_(True)
    assert network(image, words).detach().numpy() == pytest.approx(truth["logits"], abs=1e-9)
    outputs = {"output_sum": lambda out: out.sum(), "output_0": lambda out: out[0], "output_2": lambda out: out[2]}
    for key, choose in outputs.items():
        scores, gradient = second_order(lambda x, w, choose=choose: choose(network(x, w)), image, words)
        assert scores == pytest.approx(truth[key]["word_scores"], abs=1e-9)
        assert gradient == pytest.approx(np.array(truth[key]["second_order_gradient"]), abs=1e-9)
        assert np.abs(gradient).sum(0) == pytest.approx(np.array(truth[key]["heat"]), abs=1e-9)
    _, alone = second_order(lambda x, w: network(x, w)[0], image, words, (1,))
    assert np.abs(alone).sum(0) == pytest.approx(np.array(truth["output_0_word_1_only"]["heat"]), abs=1e-9)


class Net:
    """Brightness of the left half times the first word, plus brightness of the right half."""

    name, answers = "net", ["a", "b"]

    def logits(self, images, questions):
        rows = [
            self.answer_embedded(torch.from_numpy(i), q, self.embed(q)) for i, q in zip(images, questions, strict=True)
        ]
        return torch.stack(rows).detach().numpy()

    def embed(self, question):
        return torch.arange(1.0, 1 + len(question.split()))[:, None]

    def answer_embedded(self, image, question, words):
        half = image.shape[1] // 2
        first = image[:, :half].sum() * words[0, 0] + image[:, half:].sum()
        return torch.stack([first, words.sum() * 0.1])


def test_only_what_multiplies_image_and_words_is_warm():
    pool = Pool([Example("e", np.full((4, 4, 3), 0.5, np.float32), "one two three")], Asker(Net()), grid=2)
    found = MultiViz().explain(pool, 0)
    assert found.image.shape == (4, 4)
    assert (found.image[:, :2] > 0).all()
    assert (found.image[:, 2:] == 0).all()
    assert found.text[0] > found.text[1] > 0
    cells = MultiViz(pool_cells=True).explain(pool, 0)
    assert cells.image == pytest.approx(found.image.reshape(2, 2, 2, 2).sum((1, 3)))
    chosen = MultiViz(output="chosen").explain(pool, 0)
    assert chosen.target == 0
    assert chosen.text[1] == 0
    other = MultiViz(words=(1, 2)).explain(pool, 0)
    assert (other.image == 0).all()
    assert found.calls == MultiViz().calls(3, 4, 1) == 3
