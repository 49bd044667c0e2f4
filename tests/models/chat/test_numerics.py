"""Highlighting, contrast, VCD, CRG, patches and losses, held against golden numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tests.models.chat.conftest import GOLDEN

from medground.errors import ConfigError, RegionError
from medground.models.chat.decoding import DECODINGS, decoding_of
from medground.models.chat.decoding.contrast import contrast
from medground.models.chat.decoding.m3id import M3id, prior_weight
from medground.models.chat.decoding.vcd import Vcd, kept_signal, noised, plausible
from medground.models.common.highlight import (
    Highlight,
    Strength,
    active,
    attention,
    biased_softmax,
    expected_mass,
    highlighted,
)
from medground.models.common.patches import patch_coverage

FACTS = json.loads((GOLDEN / "loba_numerics" / "expected.json").read_text())
READINGS = {
    "beta_0": Strength(0.0),
    "additive_2": Strength(2.0),
    "weight_2": Strength(2.0, "weight"),
    "weight_7": Strength(7.0, "weight"),
    "suppress_minus_1": Strength(-1.0),
}


@pytest.fixture(scope="module")
def numbers():
    loaded = np.load(GOLDEN / "loba_numerics" / "cases.npz", allow_pickle=False)
    return {name: torch.from_numpy(np.asarray(loaded[name])) for name in loaded.files}


@pytest.mark.parametrize("case", FACTS["attention"], ids=lambda case: case["name"])
def test_biased_attention(numbers, case):
    n, q, k, v = case["name"], *(numbers[f"{case['name']}/{x}"] for x in "qkv")
    scores, marked = numbers[f"{n}/scores"], numbers[f"{n}/m"]
    valid = scores.amax(-1) > -1e29
    for reading, strength in READINGS.items():
        assert strength.bias == pytest.approx(case["readings"][reading]["beta"])
        assert strength.record()["odds"] == pytest.approx(case["readings"][reading]["odds_factor"])
        weights = biased_softmax(scores, marked, strength.bias)
        assert weights.isfinite().all()
        torch.testing.assert_close(weights[valid], numbers[f"{n}/{reading}/weights"][valid], atol=1e-9, rtol=0)
        mass = (weights * marked[:, None, None]).sum(-1)
        torch.testing.assert_close(mass[valid], numbers[f"{n}/{reading}/mass"][valid], atol=1e-9, rtol=0)
        plain = numbers[f"{n}/beta_0/mass"]
        torch.testing.assert_close(expected_mass(plain, strength.bias)[valid], mass[valid], atol=1e-9, rtol=0)
        # The function that transformers calls gives the same output.
        module = torch.nn.Module()
        module.is_causal = case["causal"]
        mask = None if scores.min() > -1e29 or scores.shape[0] == 1 else scores > -1e29
        bias = {"language" if case["causal"] else "vision": strength.bias * marked}
        with highlighted(Highlight(**bias)):
            out, _ = attention(module, q, k, v, mask)
        expected = numbers[f"{n}/{reading}/output"]
        torch.testing.assert_close(out.transpose(1, 2)[valid], expected[valid], atol=1e-9, rtol=0)


def test_strength_is_checked_and_nothing_is_left_behind():
    with pytest.raises(ConfigError):
        Strength(0.0, "weight")
    with pytest.raises(ConfigError):
        Strength(float("nan"))
    with pytest.raises(RuntimeError), highlighted(Highlight(vision=torch.ones(1, 1))):
        raise RuntimeError
    assert active() == Highlight()


@pytest.mark.parametrize("row", FACTS["contrast"][0]["rows"], ids=lambda row: f"alpha {row['alpha']}")
def test_contrast(numbers, row):
    hl, bh, alpha = numbers["contrast/hl"][:3], numbers["contrast/bh"][:3], row["alpha"]
    mixed = contrast(hl, bh, alpha)
    log_p = mixed.log_softmax(-1)
    torch.testing.assert_close(log_p, numbers[f"contrast/alpha_{alpha}/log_p"], atol=1e-9, rtol=0)
    if alpha:
        torch.testing.assert_close(mixed, numbers[f"contrast/alpha_{alpha}/unnormalised"], atol=1e-9, rtol=0)
    else:
        assert mixed is hl
    assert mixed.argmax(-1).tolist() == row["argmax"]
    raw = contrast(hl, bh, alpha, log_space=False).log_softmax(-1)
    torch.testing.assert_close(raw, log_p, atol=1e-9, rtol=0)


def test_barred_tokens_stay_barred():
    numbers = np.load(GOLDEN / "loba_numerics" / "cases.npz")
    hl, bh = (torch.from_numpy(numbers[f"contrast/{x}"][3:4]).clone() for x in ("hl", "bh"))
    facts = FACTS["contrast"][0]["minus_infinity"]
    hl[0, facts["token_barred_in_both"]] = bh[0, facts["token_barred_in_both"]] = -torch.inf
    bh[0, facts["token_barred_only_in_bh"]] = -torch.inf
    mixed = contrast(hl, bh, 1.0)
    assert not mixed.isnan().any()
    assert torch.isneginf(mixed[0, facts["token_barred_in_both"]])
    hl[0, facts["token_barred_only_in_bh"]] = -torch.inf
    assert contrast(hl, bh, 0.3).argmax().item() == facts["argmax_with_both_tokens_barred"]


@pytest.mark.parametrize("row", FACTS["contrast"][1]["rows"], ids=lambda row: f"{row['alpha']} {row['beta']}")
def test_vcd(numbers, row):
    vcd = Vcd(alpha=row["alpha"], beta=row["beta"])
    full, other = numbers["vcd/full"], numbers["vcd/other"]
    scores = vcd.combine([full, other], 0)
    expected = numbers[f"vcd/a{row['alpha']}_b{row['beta']}/scores"]
    torch.testing.assert_close(scores, expected, atol=1e-9, rtol=0)
    assert [torch.isfinite(line).nonzero()[:, 0].tolist() for line in scores] == row["kept"]
    assert scores.argmax(-1).tolist() == row["argmax"]
    free = Vcd(alpha=row["alpha"], beta=0).combine([full, other], 0)
    assert free.argmax(-1).tolist() == row["argmax_without_cut"]


def test_vcd_noise(numbers):
    for step, value in FACTS["contrast"][1]["schedule"]["abar"].items():
        assert float(kept_signal()[int(step)]) == pytest.approx(value, abs=1e-9)
    made = noised(numbers["vcd/pixels"], numbers["vcd/noise"], 500)
    torch.testing.assert_close(made, numbers["vcd/noised_500"], atol=1e-9, rtol=0)
    logits = torch.log(torch.tensor([[1.0, 0.5, 0.1, 0.05]], dtype=torch.float64))
    assert torch.isfinite(plausible(logits, logits, 0.5)).tolist() == [[True, True, False, False]]
    with pytest.raises(ConfigError):
        Vcd(noise_step=1000)


@pytest.mark.parametrize("row", FACTS["contrast"][2]["rows"], ids=lambda row: f"alpha {row['alpha']}")
def test_crg(numbers, row):
    crg = decoding_of({"name": "crg", "alpha": row["alpha"]})
    scores = crg.combine([numbers["vcd/full"], numbers["vcd/other"]], 0)
    torch.testing.assert_close(scores, numbers[f"crg/a{row['alpha']}/raw"], atol=1e-9, rtol=0)
    assert scores.argmax(-1).tolist() == row["argmax"]
    cooled = (scores / 0.7).log_softmax(-1)
    expected = numbers[f"crg/a{row['alpha']}/after_temperature_0.7"]
    torch.testing.assert_close(cooled, expected.log_softmax(-1), atol=1e-9, rtol=0)


def test_m3id_by_hand():
    seen, blind = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[1.0, 2.0, 0.0]])
    weight = np.exp(0.1 * 3) - 1
    assert prior_weight(0.1, 2) == pytest.approx(weight)
    mixed = M3id(rate=0.1, threshold=1.0).combine([seen, blind], 2)
    p, q = seen.log_softmax(-1), blind.log_softmax(-1)
    torch.testing.assert_close(mixed, p + weight * (p - q))
    sure = M3id(rate=0.1, threshold=0.5).combine([seen, blind], 2)  # the first token has 67 %
    torch.testing.assert_close(sure, p)


@pytest.mark.parametrize("case", FACTS["patch_grid"], ids=lambda case: case["name"])
def test_patches(numbers, case):
    mask = numbers[f"patch/{case['name']}/mask"].numpy().astype(bool)
    cover = patch_coverage(mask, case["size"], case["patch"])
    np.testing.assert_allclose(cover.share, numbers[f"patch/{case['name']}/coverage"].numpy(), atol=1e-9)
    assert int((cover.share > 1e-12).sum()) == case["any_overlap"]
    assert int(cover.marked(0.5 - 1e-12).sum()) == case["at_least_half"]
    assert int(cover.marked(0.5 + 1e-12).sum()) == case["more_than_half"]
    if mask.any():
        assert cover.visible == pytest.approx(case["visible_share_of_mask"])
    else:
        assert np.isnan(cover.visible)


def test_patches_of_a_squashed_picture_and_of_nonsense():
    mask = np.zeros((100, 50), bool)
    mask[50:] = True
    assert patch_coverage(mask, 4, 2, squash=True).share.tolist() == [[0, 0], [1, 1]]
    with pytest.raises(RegionError):
        patch_coverage(mask, 5, 2)


def test_decodings_are_made_by_name():
    for name in DECODINGS:
        assert decoding_of(name).record()["name"] == name
    assert decoding_of(None).record() == {"name": "plain"}
    with pytest.raises(ConfigError, match="vcd"):
        decoding_of("vdc")
    with pytest.raises(ConfigError, match="alhpa"):
        decoding_of({"name": "vcd", "alhpa": 1})
