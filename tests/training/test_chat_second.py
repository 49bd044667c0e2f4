"""The small chat model's second stage: sentences that tell nothing, pastes with their truth, growth, exact resume."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
import torch

from medground.models.networks.chat import tokens, weights
from medground.models.networks.chat.network import ChatNet
from medground.models.networks.reference.vocabulary import ANATOMIES, CONCEPTS, FINDINGS
from medground.training import chat as training
from medground.training.chat import FIRST_STAGE, pastes, train_chat
from medground.training.chat.claim_trials import sentences
from medground.training.chat.claims import FALSE, STATEMENTS, TRUE, UNSAYABLE, Claims, chances, false_kinds, held
from medground.training.chat.figures import Asker
from medground.training.chat.learner import Recipe
from medground.training.chat.pastes import one_paste
from medground.training.chat.sampling import HOLDS, TOUCHES
from medground.training.chat.scenes import SIZE, coverage, findings_of, shares
from medground.training.chat.second import KIN, SecondLearner, SecondRecipe, cut, draw_lessons, grown
from medground.training.loop import Schedule, run
from medground.worlds.phantom import questions, statements
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.facts import facts
from medground.worlds.phantom.scene import make_scene

SMALL = SecondRecipe(pictures=12, pastes=4, batch=3, pasted=1, before=60, claims=60)


@pytest.fixture(scope="module")
def lessons():
    return draw_lessons(SMALL)


@pytest.fixture(scope="module")
def first():
    torch.manual_seed(3)
    return ChatNet(tokens.FIRST).eval()


def some(n=3000, seed=0):
    """A table of statements without pictures, true of the phantoms' facts: enough to count questions."""
    rng = np.random.default_rng(seed)
    rows = [held(facts(make_scene(4, case, findings_of(4, case)), 64)) for case in range(60)]
    return np.stack(rows)[rng.integers(0, 60, n)]


def test_the_vocabulary_holds_every_word_of_every_sentence_once():
    words = {
        word
        for texts in statements.wordings().values()
        for text in texts
        for word in re.findall(r"\w+|[^\w\s]", text.lower())
    }
    opening = {w for text in statements.OPENINGS for w in re.findall(r"\w+|[^\w\s]", text.lower())}
    asked = set(re.findall(r"[a-z]+", questions.CLAIM.format(sentence="").lower()))
    assert (words | opening | asked) - set(questions.WORDS) == set(statements.WORDS)
    assert len(set(tokens.VOCABULARY)) == tokens.SIZE == len(tokens.VOCABULARY)
    assert tokens.VOCABULARY.index("-") == tokens.FIRST
    assert tokens.unknown_words("Collapse in the heart", tokens.FIRST) == ["Collapse"]
    assert tokens.unknown_words("Collapse in the heart") == []


def test_sentences_say_what_they_are_listed_for():
    for statement, texts in statements.wordings().items():
        assert len(set(texts)) == len(texts)
        assert all(statements.said(f"{text}.") == [statement] for text in texts)


def test_a_row_says_what_holds(lessons):
    scene = make_scene(8, 2, ["Effusion", "Mass"])
    row, known = held(facts(scene)), facts(scene)
    for value, statement in zip(row, STATEMENTS, strict=True):
        assert {None: UNSAYABLE, True: TRUE, False: FALSE}[statement.holds(known)] == value
    kinds = false_kinds(lessons.table)
    assert (kinds.sum(0) == (lessons.table == FALSE)).all()
    present = [STATEMENTS.index(s) for s in STATEMENTS if s.kind == "present"]
    where = {STATEMENTS[n].finding: lessons.table[:, n] == TRUE for n in present}
    for number, statement in enumerate(STATEMENTS):
        if statement.finding:
            assert (kinds[0, :, number] <= where[statement.finding]).all()
            assert not (kinds[1:, :, number].any(0) & where[statement.finding]).any()


def test_no_sentence_predicts_its_answer():
    table = some()
    chance, kinds = chances(table), false_kinds(table)
    true = ((table == TRUE) * chance.true).sum(0)
    false = (kinds * chance.false[:, None]).sum((0, 1))
    np.testing.assert_allclose(true, false, rtol=1e-6)
    both = ((table == TRUE).any(0) & (table == FALSE).any(0)).sum()
    assert (true > 0).sum() == both > 60
    assert chance.true.max() <= 1
    assert chance.false.max() <= 1


def test_turns_are_true_sentences_and_false_ones(lessons):
    claims, counted = Claims(lessons.table), 0
    for case in range(len(lessons.scenes)):
        for one in claims.turns(case, np.random.default_rng(case)):
            text = tokens.decode(one.prompt).removeprefix("true: ").removesuffix("? answer:")
            text = text.replace(" - ", "-").replace("x-ray", "X-ray")
            (said,) = statements.said(text + ".")
            wanted = TRUE if tokens.decode(one.answer) == "yes" else FALSE
            assert lessons.table[case, STATEMENTS.index(said)] == wanted
            counted += 1
    assert counted > 60


def test_a_paste_shows_what_its_donor_shows():
    made = [one_paste(5, case) for case in range(6)]
    for case, one in enumerate(made):
        region, golds = int(one.region[0]), one.golds[0]
        assert one.images.shape == (1, SIZE, SIZE)
        first = case * 7
        views = [make_scene(5, first, findings_of(5, first), view=view) for view in ("PA", "AP")]
        owns = [draw(scene, SIZE) for scene in views]
        outside = [own for own in owns if _alike(own, one.images[0], ANATOMIES[region])]
        assert len(outside) == 1  # untouched outside the region, and of one view
        own, share = outside[0], shares(outside[0])[: len(ANATOMIES)]
        for place in set(range(len(ANATOMIES))) - {region}:
            assert ((golds[place] == 1) == (share[place] > HOLDS)).all()
            assert ((golds[place] == 0) == (share[place] <= TOUCHES)).all()
        for name in ANATOMIES:
            assert (one.masks[0, CONCEPTS.index(name)] == coverage(own.anatomies[name])).all()
        texts = [
            (tokens.decode(t.prompt), tokens.decode(t.answer)) for t in pastes.turns(one, 0, np.random.default_rng(1))
        ]
        for text, answer in texts:
            if answer in ("yes", "no"):
                place = next(i for i, name in enumerate(ANATOMIES) if f" {name}" in text)
                finding = next(i for i, name in enumerate(FINDINGS) if f" {name.lower()}" in text)
                assert golds[place, finding] == (answer == "yes")
    assert any((one.golds[0, one.region[0]] == 1).any() for one in made + [one_paste(5, c) for c in range(6, 14)])


def _alike(own, image, anatomy):
    return bool((own.pixels == image)[~own.anatomies[anatomy]].all())


def test_a_heart_that_was_pasted_is_not_called_enlarged_or_not():
    share = np.zeros((8, 8), np.float32)
    golds, known = pastes._golds(share, share[0], ANATOMIES.index("heart"))
    assert golds[ANATOMIES.index("heart"), FINDINGS.index("Cardiomegaly")] == pastes.NOT_ASKED
    assert not known
    theirs = np.zeros(8, np.float32)
    theirs[2], theirs[3] = 0.9, 0.3
    golds, known = pastes._golds(share, theirs, 0)
    assert golds[0].tolist() == [0, 0, 1, -1, 0, 0, 0, 0]
    assert not known


def test_more_words_leave_what_was_known(first):
    big, again = grown(first), grown(first)
    assert big.size == tokens.SIZE
    for (name, one), two in zip(big.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(one, two), name
    texts = ["Does the heart have mass?", "Where is aorta?"]
    picture = np.random.default_rng(0).integers(0, 255, (SIZE, SIZE)).astype(np.uint8)
    small, large = Asker(first).margins([picture], [texts]), Asker(big).margins([picture], [texts])
    np.testing.assert_allclose(small, large, atol=1e-5)
    table = big.llava.get_input_embeddings().weight
    for word, kin in KIN.items():
        assert torch.equal(table[tokens.encode(word)[0]], table[tokens.encode(kin)[0]])


def test_only_whole_blocks_are_kept():
    from medground.training.chat.sampling import turn

    blocks = [[turn("Where is aorta?", "yes")], [turn("Where is aorta?", "yes")] * 2, [turn("Where is heart?", "no")]]
    size = len(blocks[0][0].prompt) + len(blocks[0][0].answer)
    assert cut(blocks, size) == blocks[:1]
    assert cut(blocks, 2 * size) == [blocks[0], blocks[2]]
    assert cut(blocks, 10 * size) == blocks


def test_a_step_holds_both_kinds_of_pictures(lessons, first):
    learner = SecondLearner(lessons, SMALL, first)
    given = learner._material(0, np.random.default_rng(0))
    assert given.images.shape == (3, SIZE, SIZE)
    assert any((given.images[2] == image).all() for image in lessons.pasted.images)
    words = [[tokens.decode(t.prompt) for block in blocks for t in block] for blocks in given.lists]
    assert all(any(text.startswith("true:") for text in several) for several in words[:2])
    assert not any(text.startswith("true:") for text in words[2])
    assert given.budget == 120
    loss, parts = learner.loss(0)
    assert torch.isfinite(loss)
    assert set(parts) == {"words", "masks", "concepts"}


def test_lessons_do_not_hang_on_the_number_of_workers(lessons):
    again = draw_lessons(SMALL, workers=2)
    assert (again.table == lessons.table).all()
    assert (again.pasted.images == lessons.pasted.images).all()
    assert (again.scenes.images == lessons.scenes.images).all()


def test_a_second_stage_that_was_stopped_ends_alike(lessons, first, tmp_path):
    schedule, about = Schedule(steps=3, warm_up=1), {"recipe": "test"}

    def go(folder, stop=None):
        learner = SecondLearner(lessons, SMALL, first)
        return run(learner, schedule, folder, identity=about, say=lambda _: None, every=1, stop=stop)

    whole = go(tmp_path / "a")
    go(tmp_path / "b", stop=2)
    again = go(tmp_path / "b")
    for (name, one), two in zip(whole.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(one, two), name


def test_both_stages_write_weights_and_a_card_that_carries_what_was_seen(tmp_path, monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(training, "highlighting", lambda *_: {})
    monkeypatch.setattr(training, "quartets", lambda *_: [])
    steps = Schedule(steps=1, warm_up=1)
    small = {"recipe": Recipe(pictures=6, batch=2), "schedule": steps, "second": SMALL, "second_schedule": steps}
    path = train_chat(tmp_path / "a", tests=3, say=lines.append, **small)
    held_ = weights.load(path)
    before = weights.load(tmp_path / "a" / "first" / FIRST_STAGE)
    assert (before.network.size, held_.network.size) == (tokens.FIRST, tokens.SIZE)
    assert held_.card["second"]["starts_from"] == before.sha256
    assert held_.card["seen_patients"] == before.card["seen_patients"]
    assert {"sentences, all", "sentences, device", "closed, balanced accuracy"} <= set(held_.card["figures"])
    card = path.with_suffix(".md").read_text()
    assert "The second stage goes on" in card
    assert f"{tokens.SIZE} words" in card
    monkeypatch.setattr(training, "measure", lambda *_, **__: held_.card["figures"])
    again = train_chat(tmp_path / "b", first=tmp_path / "a" / "first" / FIRST_STAGE, tests=3, say=lines.append, **small)
    assert again.read_bytes() == path.read_bytes()


def test_sentences_are_not_measured_of_a_model_without_their_words(first):
    assert sentences(Asker(first), 2, 1) == {}
    order = [one < two for one, two in pairwise(STATEMENTS)]
    assert all(order)
