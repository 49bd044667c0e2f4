import numpy as np
import pytest
import torch

from medground.errors import CheckpointError, ModelError
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.answerers.gridvqa_pure import PureNet
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.models.answerers.gridvqa_spur import SpuriousNet
from medground.models.base import QuestionAnswerer
from medground.models.networks.gridvqa.analytic import ANSWERS
from medground.models.networks.gridvqa.modules import ModuleNet
from medground.models.networks.gridvqa.network import ANSWERS as NET_ANSWERS, GridNet
from medground.worlds.gridvqa.drawing import EMPTY, class_of, paint
from medground.worlds.gridvqa.sight import classes, evidence

TEXT = "How many red circles are left of blue square?"


@pytest.fixture(scope="module")
def board():
    """Red circles at columns 0, 1 and 4, a blue square at column 2 between them."""
    cells = np.full((5, 5), EMPTY)
    cells[1, 0] = cells[3, 1] = cells[0, 4] = class_of("red", "circle")
    cells[2, 2] = class_of("blue", "square")
    return cells


@pytest.fixture(scope="module")
def picture(board):
    return (paint(board, 16) / 255).astype(np.float32)


def said(model, picture, text):
    return model.answers[int(model.logits(picture[None], [text])[0].argmax())]


def test_both_lists_of_answers_are_one():
    assert ANSWERS == NET_ANSWERS
    assert len(ANSWERS) == 20


@pytest.mark.parametrize("cell", [16, 32, 64, 128])
def test_cells_are_recognised_at_any_size(board, cell):
    image = paint(board, cell)[None] / 255
    assert np.array_equal(classes(image, 5)[0], board)
    seen = evidence(image, 5)[0]
    assert seen.max(-1) == pytest.approx((board != EMPTY).astype(float), abs=0.05)


def test_hidden_cells_hold_no_evidence(picture):
    hidden = picture.copy()
    hidden[16:32, :16] = 0.5
    hidden[48:64, 16:32] = 0.0
    seen = evidence(hidden[None], 5)[0]
    assert seen[1, 0].sum() == seen[3, 1].sum() == 0
    assert seen[0, 4].sum() == pytest.approx(1)


def test_odd_sizes_are_averaged_and_small_ones_refused(board):
    image = paint(board, 64)[:319, :317] / 255
    assert np.array_equal(classes(image[None], 5)[0], board)
    with pytest.raises(ModelError, match="do not fit the board"):
        evidence(np.zeros((1, 40, 40, 3)), 5)


def test_the_executor_obeys_relations_and_the_counter_does_not(picture):
    assert said(RuleExecutor(), picture, TEXT) == "2"
    assert said(WordCounter(), picture, TEXT) == "3"
    assert said(RuleExecutor(), picture, "Is there any red circle that is below blue square?") == "yes"
    assert said(RuleExecutor(), picture, "Is there any blue square that is left of blue square?") == "no"
    more = "Are there more red circles right of blue square than red circles left of blue square?"
    assert said(RuleExecutor(), picture, more) == "no"
    assert said(WordCounter(), picture, "Are there more red circles than blue squares?") == "yes"


def test_the_counter_depends_on_no_direction_and_no_anchor(picture):
    counter = WordCounter()
    plain = counter.logits(picture[None], [TEXT])
    for other in (
        TEXT.replace("left", "right"),
        TEXT.replace("left of ", ""),
        TEXT.replace("blue", "green"),
        TEXT[:31],
    ):
        assert np.array_equal(counter.logits(picture[None], [other]), plain)
    hidden = picture.copy()
    hidden[32:48, 32:48] = 0.5
    assert counter.logits(hidden[None], [TEXT]) == pytest.approx(plain)
    assert not np.allclose(RuleExecutor().logits(hidden[None], [TEXT]), RuleExecutor().logits(picture[None], [TEXT]))


@pytest.mark.parametrize("model", [RuleExecutor(), WordCounter()])
def test_analytic_logits_are_log_probabilities_and_pairs_agree(model, picture):
    images = np.stack([picture, picture[::-1], np.ones_like(picture)])
    texts = [TEXT, "Is there any red circle?", "Are there more red circles than blue squares?", ""]
    pairs = np.array([[0, 0], [1, 2], [2, 1], [1, 3], [0, 0]])
    found = model.pair_logits(images, texts, pairs)
    assert found == pytest.approx(model.logits(images[pairs[:, 0]], [texts[j] for j in pairs[:, 1]]))
    assert np.exp(found).sum(1) == pytest.approx(np.ones(5), abs=1e-6)
    assert isinstance(model, QuestionAnswerer)


NETS = [(PureNet, "second"), (SpuriousNet, "second"), (PureNet, "first"), (SpuriousNet, "first")]


@pytest.fixture(scope="module", params=NETS, ids=lambda param: f"{param[0].name}-{param[1]}")
def net(request):
    cls, edition = request.param
    return cls(edition=edition)


def test_a_network_gives_the_same_alone_in_batches_and_in_pairs(net, picture):
    images = np.stack([picture, picture[::-1].copy(), np.full_like(picture, 0.5)])
    texts = [TEXT, "Is there any red circle?", "red", ""]
    pairs = np.stack(np.divmod(np.arange(12), 4), 1)
    together = net.pair_logits(images, texts, pairs)
    for (i, j), row in zip(pairs, together, strict=True):
        assert net.logits(images[i : i + 1], [texts[j]])[0] == pytest.approx(row, abs=1e-4)
    assert np.exp(together).sum(1) == pytest.approx(np.ones(12), abs=1e-4)
    assert isinstance(net, QuestionAnswerer)


def test_the_number_of_threads_changes_nothing(net, picture):
    images, texts = np.stack([picture, 1 - picture]), [TEXT, "red circles", "Is there any red circle?"]
    pairs = np.stack(np.divmod(np.arange(120) % 6, 3), 1)
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(net.pair_logits(images, texts, pairs))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*found)


def test_a_network_sees_large_pictures_as_their_means(net, board, picture):
    large = (paint(board, 64) / 255).astype(np.float32)
    assert net.logits(large[None], [TEXT]) == pytest.approx(net.logits(picture[None], [TEXT]), abs=1e-3)


def test_a_network_can_be_differentiated_twice(net, picture):
    image = torch.from_numpy(picture).requires_grad_(True)
    words = net.embed(TEXT).detach().requires_grad_(True)
    logits = net.answer_embedded(image, TEXT, words)
    assert logits.detach().numpy() == pytest.approx(net.logits(picture[None], [TEXT])[0], abs=1e-4)
    (first,) = torch.autograd.grad(logits[2], words, create_graph=True)
    (second,) = torch.autograd.grad((words * first).sum(1).abs().sum(), image)
    assert second.abs().sum() > 0


@pytest.mark.parametrize("edition", ["second", "first"])
def test_the_pair_answers_as_it_was_trained_to(picture, edition):
    assert said(PureNet(edition=edition), picture, TEXT) == "2"
    assert said(SpuriousNet(edition=edition), picture, TEXT) == "3"


def test_other_weights_must_fit_and_exist(tmp_path, picture):
    from safetensors.torch import save_file

    with pytest.raises(CheckpointError, match="no weights"):
        PureNet(weights=tmp_path / "none.safetensors")
    held = ModuleNet().state_dict()
    save_file(held, tmp_path / "new.safetensors")
    assert PureNet(weights=tmp_path / "new.safetensors").fingerprint() != PureNet().fingerprint()
    held.pop("sharp")
    save_file(held, tmp_path / "short.safetensors")
    with pytest.raises(CheckpointError, match="sharp"):
        PureNet(weights=tmp_path / "short.safetensors")
    save_file(GridNet().state_dict(), tmp_path / "other.safetensors")
    with pytest.raises(CheckpointError):
        PureNet(weights=tmp_path / "other.safetensors")
    assert PureNet(weights=tmp_path / "other.safetensors", edition="first").answers == NET_ANSWERS
    with pytest.raises(ModelError, match="one question an image"):
        PureNet().logits(picture[None], [TEXT, TEXT])
    with pytest.raises(ModelError, match="pictures are"):
        PureNet().logits(picture[..., 0][None], [TEXT])
