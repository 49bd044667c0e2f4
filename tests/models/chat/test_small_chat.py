"""The shipped small chat model and its twin: what they say, what they refuse, and their known answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from medground.errors import CheckpointError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import ChatModel, Chooser, GenerationOptions, Message, capabilities_of
from medground.models.chat.loba import Loba
from medground.models.chat.small_chat import SmallChat
from medground.models.chat.small_chat_twin import SmallChatTwin
from medground.models.common.highlight import Highlight, highlighted
from medground.models.networks.chat import tokens, weights
from medground.models.networks.chat.tower import distinct
from medground.models.networks.reference.vocabulary import ANATOMIES
from medground.training.chat import trials
from medground.training.chat.figures import Asker
from medground.training.chat.highlighting import _yes
from medground.training.chat.sampling import HOLDS
from medground.training.chat.scenes import region_masks
from medground.worlds.phantom import questions

WORDS = GenerationOptions(max_new_tokens=24)


@pytest.fixture(scope="module")
def cases():
    return trials.unseen(40, 31)


@pytest.fixture(scope="module")
def model():
    return SmallChat(device="cpu")


@pytest.fixture(scope="module")
def twin():
    return SmallChatTwin(device="cpu")


def picture(case):
    return Radiograph(case.drawing.pixels.astype(np.float32) / np.float32(255))


def asked(case, *texts):
    return [(Message("user", text, (picture(case),)),) for text in texts]


def answers(model, cases):
    """Closed questions with the model's answers, and its answers to the anatomy swaps of its true positives."""
    several, asker = trials.closed(cases), Asker(model.backbone.network)
    said = [asker.margins([cases[q.case].drawing.pixels], [[q.text]])[0][0] > 0 for q in several]
    valid = np.stack([case.share for case in cases]).max(axis=0) > HOLDS
    swapped = [
        (cases[q.case].drawing.pixels, text)
        for q, yes in zip(several, said, strict=True)
        if q.gold and yes and (text := trials.swaps(q, cases[q.case], valid).anatomy)
    ]
    flips = [asker.margins([pixels], [[text]])[0][0] <= 0 for pixels, text in swapped]
    return [yes == q.gold for q, yes in zip(several, said, strict=True)], flips


def test_the_model_reads_the_region_and_the_twin_does_not(model, twin, cases):
    right, flips = answers(model, cases)
    assert np.mean(right) > 0.84
    assert np.mean(flips) > 0.85
    right, flips = answers(twin, cases)
    assert np.mean(right) < 0.75
    assert np.mean(flips) < 0.35


def test_highlighting_makes_the_twin_follow_the_region(twin, cases):
    """The known answer of LobA's code: the right region helps, a wrong one does not."""
    several = [q for q in trials.closed(cases) if (q.region < 6 and q.kind == 0) or (q.gold and q.region < 6)][:80]
    rows = [(q.case, q.region, q.text) for q in several]
    gold = np.array([q.gold for q in several])

    def balanced(language, masks):
        engine = Loba(
            backbone="small_chat_twin", vision=0, language=language, alpha=0, grounded=False, device="cpu"
        ).engine
        said = np.array(_yes(engine, cases, rows, masks))
        return (said[gold].mean() + (~said[~gold]).mean()) / 2

    plain, right, wrong = balanced(0, "true"), balanced(6, "true"), balanced(6, "wrong")
    assert right > plain + 0.03
    assert wrong < right - 0.1


def test_no_highlighting_is_the_plain_model_to_the_bit(model, cases):
    talk = asked(cases[0], *(f"Does the {name} have mass?" for name in ANATOMIES[:3]))
    choices = [["yes", "no"]] * 3
    plain = model.choose(talk, choices)
    none = Loba(vision=0, language=0, grounded=False, device="cpu")
    weight = Loba(vision=1, language=1, reading="weight", grounded=False, device="cpu")
    for other in (none, weight):
        for one, two in zip(plain, other.choose(talk, choices), strict=True):
            assert (one == two).all()
    assert [r.text for r in none.reply(talk)] == [r.text for r in model.reply(talk)]
    strong = Loba(language=4, grounded=False, alpha=0, device="cpu").choose(talk, choices)
    assert any((one != two).any() for one, two in zip(plain, strong, strict=True))


def test_both_readings_of_beta_stand_in_the_record():
    additive, weight = Loba(device="cpu"), Loba(reading="weight", device="cpu")
    assert additive.engine.record()["decoding"]["language"]["odds"] == pytest.approx(np.exp(2))
    assert weight.engine.record()["decoding"]["language"]["odds"] == pytest.approx(2)
    assert additive.fingerprint() != weight.fingerprint()


def test_packed_generated_and_chosen_answers_agree(model, cases):
    asker = Asker(model.backbone.network)
    case = next(c for c in cases if (c.share > HOLDS).any())
    texts = [trials.ask(region, finding) for region in range(4) for finding in range(3)]
    margins = asker.margins([case.drawing.pixels], [texts])[0]
    talk = asked(case, *texts)
    chosen, replies = model.choose(talk, [["yes", "no"]] * len(texts)), model.reply(talk)
    for row, reply, margin in zip(chosen, replies, margins, strict=True):
        assert reply.text == ("yes" if margin > 0 else "no")
        # The end of the answer counts in a choice; after yes or no it is nearly sure.
        assert row[0] - row[1] == pytest.approx(margin, abs=0.2)


def test_replies_do_not_hang_on_the_batch(model, cases):
    texts = ["Are there any abnormalities in the heart?", "Where is aorta?", questions.DESCRIBE]
    talk = [conversation for case in cases[:3] for conversation in asked(case, *texts)]
    together = model.reply(talk, WORDS)
    alone = [model.reply([conversation], WORDS)[0] for conversation in talk]
    assert [r.text for r in together] == [r.text for r in alone]
    assert all(r.outcome == "ok" and r.finish == "stop" for r in together)
    sampled = GenerationOptions(max_new_tokens=24, temperature=2.0, seed=1)
    assert [r.text for r in model.reply(talk, sampled)] == [model.reply([c], sampled)[0].text for c in talk]


def test_it_says_where_and_draws_it(model, cases):
    case = cases[0]
    reply = SmallChat(locate=True, device="cpu").reply(asked(case, "Does the heart have mass?"), WORDS)[0]
    assert reply.text.startswith("the location of heart is at <SEG>. ")
    drawn, truth = model.masks(picture(case)), region_masks(case.drawing)
    assert list(drawn) == list(questions.REGIONS)
    for name, mask in truth.items():
        assert 2 * (mask & drawn[name]).sum() / (mask.sum() + drawn[name].sum()) > 0.75, name
    wide = Radiograph(np.repeat(picture(case).pixels, 2, axis=1))
    assert model.masks(wide)["heart"].shape == (224, 448)


def test_one_picture_under_several_biases_is_as_each_alone(model, cases):
    tower = model.backbone.network.tower
    one, other = (torch.randn(1, 1, 224, 224, generator=torch.Generator().manual_seed(n)) for n in (1, 2))
    pixels = torch.cat([one, other, one])
    assert distinct(pixels) == ([0, 1], [0, 1, 0])
    bias = torch.rand(3, 196, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        with highlighted(Highlight(vision=bias)):
            together = tower(pixels).last_hidden_state
        for row in range(3):
            with highlighted(Highlight(vision=bias[row : row + 1])):
                torch.testing.assert_close(
                    together[row], tower(pixels[row : row + 1]).last_hidden_state[0], atol=1e-4, rtol=0
                )
    assert (together[0] - together[2]).abs().max() > 1e-3


def test_highlighting_moves_the_attention_into_the_region(model, cases):
    case = cases[0]
    talk, region = asked(case, "Does the left upper lung have mass?")[0], case.drawing.anatomies["left upper lung"]
    inside = model.backbone.marks(region).reshape(14, 14)
    before = model.engine.attention(talk)
    after = Loba(vision=0, language=4, grounded=False, device="cpu").engine.attention(talk, region)
    assert before.shape == (14, 14)
    assert 0 < before.sum() < 1
    assert after[inside].sum() > 2 * before[inside].sum()
    with pytest.raises(ModelError, match="no answer"):
        model.engine.attention((Message("user", "Where is aorta?"),))


def test_conversations_go_on(model, cases):
    first = Message("user", "Where is aorta?", (picture(cases[0]),))
    talk = (first, Message("assistant", "the location of aorta is at <SEG>."), Message("user", "Where is heart?"))
    assert model.reply([talk], WORDS)[0].text == "the location of heart is at <SEG>."


def test_what_it_declines(model, cases):
    image = picture(cases[0])
    other = Radiograph(np.zeros((8, 8), np.float32))
    conversations = [
        (Message("user", "Is there a tumour?", (image,)),),
        (Message("user", "Where is aorta?"),),
        (Message("user", "Where is aorta?", (image, other)),),
        (Message("user", "Where is aorta?", (image,)),),
    ]
    replies = model.reply(conversations, WORDS)
    assert [r.outcome for r in replies] == ["refusal", "refusal", "refusal", "ok"]
    assert "tumour" in replies[0].reason
    assert np.isnan(model.choose(conversations[:1], [["yes", "no"]])[0]).all()
    structured = model.reply(conversations[3:], GenerationOptions(schema={"type": "object"}))[0]
    assert structured.outcome == "error"
    assert model.reply([]) == []


def test_it_declares_what_it_can(model):
    assert isinstance(model, ChatModel)
    assert isinstance(model, Chooser)
    assert capabilities_of(SmallChat) >= {"reply", "choose", "masks", "attention_bias"}
    assert model.seen_patients("nih_chestxray14")
    assert not model.seen_patients("vindr_cxr")
    assert (
        len({m.fingerprint() for m in (model, SmallChatTwin(device="cpu"), SmallChat(locate=True, device="cpu"))}) == 3
    )


def test_the_shipped_files_are_small_and_fit(tmp_path):
    sizes = [path.stat().st_size for path in weights.FOLDER.glob("*.safetensors")]
    assert len(sizes) == 2
    assert sum(sizes) < 16e6
    with pytest.raises(CheckpointError):
        SmallChat(checkpoint=tmp_path / "none.safetensors")
    card = weights.load().card
    network = weights.load().network
    weights.save(network, card, tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == weights.SHIPPED.read_bytes()
    weights.save(network, {**card}, tmp_path / "other.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "VOCABULARY", ("other",))
        with pytest.raises(CheckpointError, match="other words"):
            weights.load(tmp_path / "other.safetensors")


def test_the_fast_tokenizer_reads_alike_and_a_folder_comes_back(model, tmp_path):
    from transformers import LlavaForConditionalGeneration

    fast, text = tokens.tokenizer(), "Does the right lower lung have effusion? locate and answer: <SEG>. yes <image>"
    assert fast(text)["input_ids"] == tokens.encode(text)
    model.backbone.network.llava.save_pretrained(tmp_path)
    again = LlavaForConditionalGeneration.from_pretrained(tmp_path, attn_implementation="sdpa").eval()
    ids = torch.tensor([[tokens.BOS, *[tokens.IMAGE] * 196, *tokens.encode("where is aorta? answer:")]])
    pixels = torch.randn(1, 1, 224, 224)
    with torch.no_grad():
        one = model.backbone.network.llava(input_ids=ids, pixel_values=pixels).logits
        two = again(input_ids=ids, pixel_values=pixels).logits
    torch.testing.assert_close(one, two, atol=1e-4, rtol=0)
