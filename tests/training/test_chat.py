"""The small chat model's training: questions without tells, packing, exact resume."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.models.chat.test_numerics import FACTS, GOLDEN

from medground.errors import RunError
from medground.models.networks.chat import tokens
from medground.models.networks.chat.network import IMAGE_TOKENS, ChatNet
from medground.training.chat.figures import Asker, balanced, figure
from medground.training.chat.learner import ChatLearner, Recipe
from medground.training.chat.losses import mask_loss, raised, word_loss
from medground.training.chat.packing import blocks, pack
from medground.training.chat.sampling import HOLDS, TOUCHES, Sampler, chances, kinds, turn
from medground.training.chat.scenes import GRID, Scenes, draw_scenes, shares
from medground.training.chat.trials import KINDS, captions, closed, opened, pasted, swaps, unseen
from medground.training.loop import Schedule, run
from medground.worlds.phantom.questions import REGIONS


@pytest.fixture(scope="module")
def scenes():
    return draw_scenes(24, 5)


@pytest.fixture(scope="module")
def cases():
    return unseen(24, 6)


def many(n=4000, seed=0):
    """Truth without pictures: enough to count questions."""
    rng = np.random.default_rng(seed)
    present = rng.random((n, 8)) < 0.3
    share = np.zeros((n, len(REGIONS), 8), np.float32)
    for case, finding in np.argwhere(present):
        share[case, rng.integers(0, 7), finding] = 0.9
    empty = np.zeros((n, 1, 1), np.uint8)
    return Scenes(empty, empty, share, present)


def test_no_pair_of_words_predicts_the_answer():
    drawn = many()
    chance, holds = chances(drawn), drawn.share > HOLDS
    sorts = kinds(drawn.share, drawn.present)
    asked_true = (holds * chance.true).sum(0)[:7]
    by_kind = (sorts * chance.false[:, None]).sum(1)[:, :7]
    np.testing.assert_allclose(by_kind.sum(0), asked_true, rtol=0.15)
    assert (by_kind.sum((1, 2)) / by_kind.sum()).tolist() == pytest.approx([0.35, 0.40, 0.25], abs=0.03)
    assert not (sorts.sum(0) > 1).any()
    assert not (sorts.any(0) & holds).any()


def test_the_twin_is_balanced_for_its_own_truth():
    drawn = many(800)
    sampler, rng = Sampler(drawn, shortcut=True, grounded=0.0), np.random.default_rng(0)
    counts = {"yes": 0, "no": 0}
    for case in range(len(drawn)):
        for one in sampler.turns(case, rng):
            text, answer = tokens.decode(one.prompt), tokens.decode(one.answer)
            if answer in counts and "in the picture" not in text:
                finding = next(f for f in text.replace("?", " ").split() if f in FINDINGS)
                assert (answer == "yes") == bool(drawn.present[case, FINDINGS.index(finding)])
                counts[answer] += 1
    assert counts["yes"] / sum(counts.values()) == pytest.approx(0.5, abs=0.05)


FINDINGS = ["atelectasis", "cardiomegaly", "effusion", "infiltration", "mass", "nodule", "pneumonia", "pneumothorax"]


def test_answers_are_true_of_the_scene(scenes):
    sampler, rng = Sampler(scenes), np.random.default_rng(1)
    asked = 0
    for case in range(len(scenes)):
        for one in sampler.turns(case, rng):
            assert tokens.UNKNOWN not in one.prompt + one.answer
            text, answer = tokens.decode(one.prompt), tokens.decode(one.answer).split(">. ")[-1]
            region = next((i for i, r in enumerate(REGIONS) if f" {r}" in text), None)
            finding = next((i for i, f in enumerate(FINDINGS) if f" {f}" in text), None)
            if answer in ("yes", "no") and region is not None:
                asked += 1
                held = scenes.share[case, region, finding]
                assert held > HOLDS if answer == "yes" else held <= TOUCHES
    assert asked > 50


def test_shares_are_of_single_lesions(cases):
    table = shares(cases[0].drawing)
    assert table.shape == (10, 8)
    absent = ~cases[0].truth.present[0]
    assert (table[:, absent] == 0).all()
    assert table.max() <= 1


def test_packed_questions_do_not_see_each_other():
    torch.manual_seed(0)
    net = ChatNet().eval()
    first, second = (
        turn("Does the heart have mass?", "yes"),
        turn("Where is aorta?", "the location of aorta is at <SEG>.", 15),
    )
    pixels = torch.randn(1, 1, 224, 224)

    def hidden(lists):
        packed = pack(lists)
        with torch.no_grad():
            seen = net.encode(pixels)
            return packed, net.hidden(seen.features, packed.ids, packed.mask, packed.positions)[0]

    together, states = hidden([[[first], [second]]])
    _, state = hidden([[[second]]])
    start = IMAGE_TOKENS + 1
    shift = len(first.prompt) + len(first.answer)
    torch.testing.assert_close(states[start + shift :], state[start:], atol=2e-5, rtol=0)
    assert together.questions == 2
    assert together.seg.tolist() == [[0, together.ids[0].tolist().index(tokens.SEG), 15]]
    assert together.labels[0][together.labels[0] >= 0].tolist() == first.answer + second.answer
    # A conversation does see what was said before.
    _, talk = hidden([[[first, second]]])
    assert (talk[start + shift :] - state[start:]).abs().max() > 1e-3
    assert pack([[[first]] * 50], budget=40).questions == 40 // (len(first.prompt) + len(first.answer))


def test_blocks_are_joined_at_random():
    turns = [turn("Where is aorta?", "yes")] * 200
    grouped = blocks(turns, np.random.default_rng(0), 0.3)
    assert sum(map(len, grouped)) == 200
    assert max(map(len, grouped)) <= 3
    assert len(blocks(turns)) == 200


def test_losses_match_the_golden_numbers():
    numbers = np.load(GOLDEN / "loba_numerics" / "cases.npz")
    logits = torch.from_numpy(numbers["loss/logits"]).requires_grad_()
    target = torch.from_numpy(numbers["loss/target"])
    facts = FACTS["losses"]
    bce, dice = mask_loss(logits, target, 1, 0, 1000), mask_loss(logits, target, 0, 1, 1000)
    assert bce.item() == pytest.approx(facts["bce"], abs=2e-5)
    assert dice.item() == pytest.approx(facts["dice"], abs=2e-5)
    assert mask_loss(logits, target, 0, 1, 1).item() == pytest.approx(facts["dice_scale_1_eps_1"], abs=2e-5)
    total = facts["total"]["text_loss"] + mask_loss(logits, target, 2, 0.5, 1000).item()
    assert total == pytest.approx(facts["total"]["value"], abs=5e-5)
    (gradient,) = torch.autograd.grad(dice, logits)
    np.testing.assert_allclose(gradient.numpy(), numbers["loss/dice_grad"], atol=2e-5)
    assert mask_loss(logits[:0], target[:0]).item() == 0
    assert raised(torch.tensor([[[0.0, 0.2]], [[0.0, 0.0]]])).tolist() == [[[0, 1]], [[0, 0]]]
    two = word_loss(torch.zeros(4, 10), torch.tensor([1, 2, 3, 4]), 2)
    assert two.item() == pytest.approx(4 * np.log(10) / 2)


SMALL = Recipe(pictures=24, batch=2)


def test_a_training_that_was_stopped_ends_alike(scenes, tmp_path):
    schedule = Schedule(steps=4, warm_up=2)
    about = {"recipe": "test"}
    whole = run(ChatLearner(scenes, SMALL), schedule, tmp_path / "a", identity=about, say=lambda _: None, every=2)
    run(ChatLearner(scenes, SMALL), schedule, tmp_path / "b", identity=about, say=lambda _: None, every=2, stop=3)
    lines: list[str] = []
    again = run(ChatLearner(scenes, SMALL), schedule, tmp_path / "b", identity=about, say=lines.append, every=2)
    assert lines[0] == "going on after step 2"
    for (name, one), two in zip(whole.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(one, two), name
    with pytest.raises(RunError, match="another training"):
        run(ChatLearner(scenes, SMALL), replace(schedule, rate=1.0), tmp_path / "b", identity=about, say=lambda _: None)


def test_the_tower_learns_slower_and_keeps_its_statistics(scenes):
    learner = ChatLearner(scenes, SMALL)
    assert learner.pace("llava.model.vision_tower.stem.0.0.weight") == SMALL.tower
    assert learner.pace("llava.model.vision_tower.concepts.weight") == 1
    before = {n: b.clone() for n, b in learner.chat.tower.named_buffers()}
    loss, parts = learner.loss(0)
    assert torch.isfinite(loss)
    assert set(parts) == {"words", "masks", "concepts"}
    assert all(torch.equal(before[n], b) for n, b in learner.chat.tower.named_buffers())


def test_targets_of_whole_lungs_join_their_thirds(scenes):
    learner = ChatLearner(scenes, SMALL)
    where = turn("Where is right lung?", "the location of right lung is at <SEG>.", 8 + REGIONS.index("right lung"))
    target = torch.from_numpy(scenes.masks[:1].astype(np.float32) / 255)
    made = learner._targets(target, pack([[[where]]]))
    assert made.shape == (1, GRID, GRID)
    joined = target[0, 8:11].sum(0).clamp_max(1)
    torch.testing.assert_close(made[0], joined / joined.max())


def test_trials_are_balanced_and_true(cases):
    asked = closed(cases)
    for region, finding in {(q.region, q.finding) for q in asked}:
        golds = [q.gold for q in asked if (q.region, q.finding) == (region, finding)]
        assert sum(golds) >= len(golds) / 2
    assert {q.kind for q in asked} <= set(range(-1, len(KINDS)))
    valid = np.stack([case.share > HOLDS for case in cases]).any(0)
    for q in asked:
        share = cases[q.case].share
        assert (share[q.region, q.finding] > HOLDS) == q.gold
        if q.gold:
            swap = swaps(q, cases[q.case], valid)
            assert swap.anatomy != q.text
            assert swap.paraphrase != q.text
            assert swap == swaps(q, cases[q.case], valid)
    normal = [not q.gold for q in opened(cases)]
    assert sum(normal) == pytest.approx(len(normal) / 2, abs=1)
    for trial in captions(cases):
        assert trial.true not in trial.false.values()


def test_pastes_change_the_region_alone(cases):
    q = next(q for q in closed(cases) if q.gold and q.region < 6)
    made = pasted(q, cases)
    own = cases[q.case].drawing
    inside = own.anatomies[REGIONS[q.region]]
    assert (made[~inside] == own.pixels[~inside]).all()
    assert (made[inside] != own.pixels[inside]).any()


def test_on_quartets_words_and_presence_are_at_chance():
    from medground.training.chat.figures import _quartets
    from medground.training.chat.trials import quartets

    class Scripted:
        """Answers from a rule about the question alone."""

        def __init__(self, rule):
            self.rule = rule

        def margins(self, pictures, texts):
            return [[self.rule(text) for text in several] for several in texts]

    several = quartets(6, 3)
    assert len(several) == 6
    for rule in (lambda text: 1.0, lambda text: -1.0, lambda text: hash(text) % 2 - 0.5):
        right = _quartets(Scripted(rule), several)
        values = [f["value"] for f in right.values()]
        assert values == [50.0, 0.0]


def test_figures_by_hand(cases):
    assert figure([1, 0, 1, 1], [0, 0, 1, 2]) == {"value": 75.0, "standard_error": pytest.approx(15.3, abs=0.1), "n": 4}
    assert figure([], [])["value"] is None
    both = balanced({"value": 80.0, "standard_error": 3.0, "n": 1}, {"value": 60.0, "standard_error": 4.0, "n": 1})
    assert both == {"value": 70.0, "standard_error": 2.5, "n": 2}
    asker = Asker(ChatNet().eval())
    picture = cases[0].drawing.pixels
    texts = ["Does the heart have mass?", "Is there nodule present in the aorta?"]
    both_at_once = asker.margins([picture, picture], [texts, texts[:1]])
    assert both_at_once[0][0] == pytest.approx(both_at_once[1][0], abs=1e-4)
    each = asker.log_probabilities(picture, texts[0], ["yes", "no", "normal"])
    assert each[0] - each[1] == pytest.approx(both_at_once[0][0], abs=0.5)
    assert asker.masks(picture, ["heart", "aorta"]).shape == (2, 224, 224)


def test_a_whole_training_writes_weights_and_card(tmp_path):
    from medground.models.chat.small_chat import SmallChat
    from medground.training.chat import train_chat

    lines: list[str] = []
    schedule = Schedule(steps=2, warm_up=1)
    path = train_chat(tmp_path, twin=True, recipe=SMALL, schedule=schedule, tests=4, say=lines.append)
    assert path.name == "small_chat_twin.safetensors"
    model = SmallChat(checkpoint=path, device="cpu")
    assert model.card["recipe"]["shortcut"] is True
    assert {"closed, balanced accuracy", "TPT, anatomy swapped, flips", "mask Dice"} <= set(model.card["figures"])
    card = (tmp_path / "small_chat_twin.md").read_text()
    assert "shortcut twin" in card
    assert "must not be used on patients" in card
    assert any(line.startswith("closed, balanced accuracy") for line in lines)
