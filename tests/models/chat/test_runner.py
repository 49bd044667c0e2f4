"""Passes, biases and contrasts of a real LLaVA class, held against golden logits and tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from medground.errors import ModelError
from medground.models.chat.decoding.base import Branch, Plain, Prompt
from medground.models.chat.decoding.crg import Crg
from medground.models.chat.decoding.loba import LobaDecoding
from medground.models.chat.decoding.m3id import M3id
from medground.models.chat.decoding.prompt_highlighter import PromptHighlighter
from medground.models.chat.decoding.runner import Runner, generate, score
from medground.models.chat.decoding.vcd import Vcd
from medground.models.common.highlight import Highlight, Strength, active, expected_mass, recording
from medground.models.standin import tensor

CASES = ("a", "b", "c")
BARRED = (0, 1, 2, 3)


def prompt_of(facts, *names, pad=True):
    cases = [facts["cases"][name] for name in names]
    length = max(len(case["input_ids"]) for case in cases)
    ids = torch.zeros(len(cases), length, dtype=torch.long)
    mask, marks = torch.zeros_like(ids), torch.zeros(len(cases), 16)
    for row, case in enumerate(cases):
        count = len(case["input_ids"])
        ids[row, length - count :], mask[row, length - count :] = torch.tensor(case["input_ids"]), 1
        marks[row, case["patch_mask"]] = 1
    pixels = torch.cat([torch.from_numpy(tensor(case["pixel_key"], (1, 3, 28, 28))) for case in cases])
    return Prompt(ids, mask, pixels, image_token=3, marks=marks)


def logits_of(runner, prompt, branch):
    with torch.no_grad():
        return runner.model.lm_head(runner.start(prompt, branch).hidden)[0].numpy()


def highlight_of(prompt, variant, span):
    strength = Strength(2.0 if "_2" in variant else 0.0, "weight" if "weight" in variant else "additive")
    marks = torch.ones_like(prompt.marks) if "all_patches" in variant else prompt.marks
    vision = marks * strength.bias if variant.startswith(("vision", "both")) else None
    language = prompt.spread(marks) if variant.startswith(("language", "both")) else None
    if language is not None and "text_span" in variant:
        language[0, span[0] : span[1]] = 1
    rows = (0,) if "class_row_free" in variant else ()
    return Highlight(vision, None if language is None else language * strength.bias, rows)


@pytest.mark.parametrize("name", CASES)
def test_logits_under_every_bias(tiny, tiny_facts, tiny_numbers, name):
    runner, prompt = Runner(tiny), prompt_of(tiny_facts, name)
    variants = tiny_facts["cases"][name]["distance_from_no_bias"]
    assert len(variants) >= 10
    for variant in variants:
        highlight = highlight_of(prompt, variant, tiny_facts["cases"][name]["text_span"])
        logits = logits_of(runner, prompt, Branch(prompt.pixels, highlight))
        np.testing.assert_allclose(logits, tiny_numbers[f"{name}/{variant}"], atol=1e-4, err_msg=variant)
    assert active().vision is None
    assert active().language is None


@pytest.mark.parametrize("name", CASES)
def test_image_tokens_and_a_zero_bias(tiny, tiny_facts, tiny_numbers, name):
    runner, prompt = Runner(tiny), prompt_of(tiny_facts, name)
    with torch.no_grad():
        plain = runner.features(prompt.pixels)
        marked = runner.features(prompt.pixels, Highlight(vision=2 * prompt.marks))
    if name == "a":
        np.testing.assert_allclose(plain[0].numpy(), tiny_numbers["a/image_tokens_none"], atol=1e-4)
        np.testing.assert_allclose(marked[0].numpy(), tiny_numbers["a/image_tokens_vision_additive_2"], atol=1e-4)
    none = LobaDecoding(vision=0, language=0, alpha=0.3).branches(prompt)
    assert len(none) == 1  # without a bias there is nothing to contrast with
    zero, base = logits_of(runner, prompt, none[0]), logits_of(runner, prompt, Branch(prompt.pixels))
    assert (zero == base).all()


def decoding_of_run(run):
    if run == "none":
        return Plain()
    reading = "weight" if "weight" in run else "additive"
    alpha = float(run.rpartition("alpha_")[2]) if "alpha" in run else 0.0
    vision, language = (2.0 if not run.startswith(f"{other}_only") else 0.0 for other in ("language", "vision"))
    return LobaDecoding(vision=vision, language=language, reading=reading, alpha=alpha)


@pytest.mark.parametrize("name", CASES)
def test_cached_contrast_equals_recomputation(tiny, tiny_facts, tiny_numbers, name):
    runner, prompt = Runner(tiny), prompt_of(tiny_facts, name)
    for run, facts in tiny_facts["cases"][name]["greedy"].items():
        decoding = decoding_of_run(run)
        made = generate(runner, prompt, decoding, limit=8, ends=(), barred=BARRED)[0]
        assert made.tokens == facts["tokens"], run
        more = torch.tensor([facts["tokens"]])
        with torch.no_grad():
            passes = [runner.all_logits(prompt, branch, more)[0] for branch in decoding.branches(prompt)]
        scores = np.stack([decoding.combine([p[i : i + 1] for p in passes], i)[0].numpy() for i in range(8)])
        expected = tiny_numbers[f"{name}/greedy/{run}"]
        centred = [x - x.max(1, keepdims=True) for x in (scores, expected)]  # logits or log-probabilities
        np.testing.assert_allclose(*centred, atol=2e-4, err_msg=run)


def test_a_left_padded_batch_and_runs_in_a_row(tiny, tiny_facts):
    runner = Runner(tiny)
    decoding = LobaDecoding(alpha=1.0)
    together = generate(runner, prompt_of(tiny_facts, *CASES), decoding, limit=8, ends=(), barred=BARRED)
    for name, made in zip(CASES, together, strict=True):
        expected = tiny_facts["cases"][name]["greedy"]
        assert made.tokens == expected["loba_additive_2_alpha_1"]["tokens"]
        plain = generate(runner, prompt_of(tiny_facts, name), Plain(), limit=8, ends=(), barred=BARRED)[0]
        assert plain.tokens == expected["none"]["tokens"]


def test_scores_of_continuations_are_those_of_generation(tiny, tiny_facts):
    runner, prompt = Runner(tiny), prompt_of(tiny_facts, "a", "c")
    for decoding in (Plain(), LobaDecoding(alpha=0.3), Vcd(beta=0.0), M3id(rate=0.5, threshold=1.0)):
        made = generate(runner, prompt, decoding, limit=4, ends=())
        total = score(runner, prompt, decoding, torch.tensor([m.tokens for m in made]), [4, 2])
        assert total[0].item() == pytest.approx(sum(made[0].log_probabilities), abs=1e-4)
        assert total[1].item() == pytest.approx(sum(made[1].log_probabilities[:2]), abs=1e-4)


def test_equal_pictures_are_encoded_once(tiny, tiny_facts):
    runner, prompt = Runner(tiny), prompt_of(tiny_facts, "a", "a", "b")
    seen = []
    tiny.model.vision_tower.register_forward_pre_hook(
        lambda module, args, kw: seen.append(len(args[0])), with_kwargs=True
    )
    runner.features(prompt.pixels)
    assert seen == [2]
    runner.features(prompt.pixels, Highlight(vision=torch.tensor([[0.0] * 16, [1.0] * 16, [0.0] * 16])))
    assert seen == [2, 3]  # one picture under two biases is two


def test_comparators_change_what_they_should(tiny, tiny_facts):
    runner, prompt = Runner(tiny), prompt_of(tiny_facts, "a")
    region = torch.zeros(1, 28, 28)
    region[:, 7:14] = 1
    prompt = Prompt(prompt.ids, prompt.mask, prompt.pixels, 3, black=(-2.0,), marks=prompt.marks, region=region)
    whole, black = Crg().branches(prompt)
    assert (black.pixels[0, :, 7:14] == -2).all()
    assert (black.pixels[0, :, 14:] == whole.pixels[0, :, 14:]).all()
    noisy = Vcd(seed=1).branches(prompt)[1].pixels
    assert torch.equal(noisy, Vcd(seed=1).branches(prompt)[1].pixels)
    assert not torch.equal(noisy, Vcd(seed=2).branches(prompt)[1].pixels)
    without = logits_of(runner, prompt, M3id().branches(prompt)[1])[-1]
    text = [i for i in tiny_facts["cases"]["a"]["input_ids"] if i != 3]
    with torch.no_grad():
        alone = tiny.lm_head(tiny.model.language_model(input_ids=torch.tensor([text])).last_hidden_state)[0, -1]
    np.testing.assert_allclose(without, alone.numpy(), atol=1e-5)  # the words alone, without a picture
    up, down = PromptHighlighter().branches(prompt)
    assert up.highlight.language.max() == pytest.approx(np.log(2))
    assert down.highlight.language.min() == pytest.approx(-2 - np.log(2))
    assert sorted(set(down.scale[0].tolist())) == pytest.approx([0.01, 1.0])
    for decoding in (Crg(), Vcd(), M3id(), PromptHighlighter()):
        assert len(generate(runner, prompt, decoding, limit=3, ends=())[0].tokens) == 3
        assert decoding.record()["name"]


def test_no_region_and_flash_attention_are_refused(tiny, tiny_facts):
    prompt = prompt_of(tiny_facts, "a")
    bare = Prompt(prompt.ids, prompt.mask, prompt.pixels, 3)
    for decoding in (LobaDecoding(), Crg(), PromptHighlighter()):
        with pytest.raises(ModelError, match="none was located"):
            decoding.branches(bare)
    tiny.config.text_config._attn_implementation = "flash_attention_2"
    with pytest.raises(ModelError, match="flash attention"):
        Runner(tiny)


def test_sampling_is_seeded_by_row(tiny, tiny_facts):
    runner = Runner(tiny)
    options = {"limit": 6, "ends": (), "temperature": 2.0, "top_p": 0.9}
    both = generate(runner, prompt_of(tiny_facts, "a", "c"), Plain(), seeds=(5, 6), **options)
    alone = generate(runner, prompt_of(tiny_facts, "c"), Plain(), seeds=(6,), **options)
    assert both[1].tokens == alone[0].tokens
    other = generate(runner, prompt_of(tiny_facts, "c"), Plain(), seeds=(7,), **options)
    assert other[0].tokens != alone[0].tokens


def test_attention_on_the_region_rises_by_the_closed_form(tiny, tiny_facts):
    runner, prompt = Runner(tiny), prompt_of(tiny_facts, "a", "c")
    marks = prompt.spread(prompt.marks)
    masses = []
    for bias in (0.0, 2.0):
        with torch.no_grad(), recording() as rows:
            runner.start(prompt, Branch(prompt.pixels, Highlight(language=marks * bias if bias else None)))
        assert len(rows) == 3
        assert rows[0].sum(-1) == pytest.approx(torch.ones(2, 4).numpy(), abs=1e-5)
        masses.append((rows[0] * marks[:, None]).sum(-1))
    # In the first layer queries and keys are alike with and without the bias.
    torch.testing.assert_close(masses[1], expected_mass(masses[0], 2.0), atol=1e-5, rtol=0)


@torch.no_grad()
def test_the_state_of_the_token_that_ends_an_answer_equals_a_recomputation(tiny, tiny_facts):
    runner, prompt = Runner(tiny), prompt_of(tiny_facts, *CASES)
    free = generate(runner, prompt, Plain(), limit=6, ends=())
    end = free[0].tokens[2]
    made = generate(runner, prompt, Plain(), limit=6, ends=(end,), follow=True)
    assert [m.tokens for m in made] == [m.tokens for m in generate(runner, prompt, Plain(), limit=6, ends=(end,))]
    ended = [row for row, one in enumerate(made) if one.ended == end]
    assert ended
    for row, one in enumerate(made):
        assert (one.hidden is None) == (row not in ended)
    for row in ended:
        alone = prompt_of(tiny_facts, CASES[row])
        state = runner.start(alone, Branch(alone.pixels), torch.tensor([[*made[row].tokens, end]]))
        torch.testing.assert_close(made[row].hidden, state.hidden[0, -1], atol=1e-4, rtol=0)
    last = generate(runner, prompt_of(tiny_facts, "a"), Plain(), limit=3, ends=(end,), follow=True)[0]
    assert (last.ended, last.hidden is None) == (end, False)  # also where the limit falls on that very token


def test_layers_that_are_alike_share_one_mask_and_others_do_not():
    highlight = Highlight(vision=torch.tensor([[0.0, 2.0, 0.0]]), language=torch.tensor([[0.0, 1.0]]), free_rows=(0,))
    query = torch.zeros(1, 2, 3, 4)
    one = highlight.mask(None, query, 3, causal=False)
    assert highlight.mask(None, query, 3, causal=False) is one
    assert one[0, 0].tolist() == [[0, 0, 0], [0, 2, 0], [0, 2, 0]]
    given = torch.ones(1, 1, 3, 4, dtype=torch.bool)
    other = highlight.mask(given, query, 4, causal=True)
    assert other[0, 0].tolist() == [[0, 1, 0, 0]] * 3  # what was generated since has no bias
    assert highlight.mask(given.clone(), query, 4, causal=True) is not other
