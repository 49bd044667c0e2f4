import json

import numpy as np
import pytest
import torch

from medground.models.networks.gridvqa.network import ANSWERS, ROLES, GridNet
from medground.training.gridvqa import Recipe, answer, pictures, train
from medground.training.gridvqa_curriculum import answer_weights, batch, draw, mixture
from medground.worlds.gridvqa.drawing import EMPTY
from medground.worlds.gridvqa.generate import scene
from medground.worlds.gridvqa.world import buckets


def test_roles_and_answers_are_those_of_the_scene():
    (bucket,) = [b for b in buckets([0.7]) if b.key == "D3-CMP-compare-d07"]
    made = scene("pure", bucket, 0)
    data = batch([made])
    assert ANSWERS[int(data.answers[0])] == made.answer
    assert int((data.classes != EMPTY).sum()) == len(made.things)
    for thing in made.things:
        role = ROLES[int(data.roles[0, thing.y * 5 + thing.x])]
        if thing.role == "anchor":
            named = made.question.anchors[int(role.split()[1]) - 1]
            assert named.matches(thing.colour, thing.shape)
        elif thing.role == "target":
            side = made.question.clauses[role == "second target"]
            assert side.target.matches(thing.colour, thing.shape)
        else:
            assert role == "none"


def test_the_curriculum_goes_deeper_and_ends_with_depth_three():
    depths = [{b.depth for b, _ in mixture(p)} for p in (0.0, 0.2, 0.5)]
    assert depths == [{1}, {1, 2}, {1, 2, 3}]
    made = draw("pure", mixture(0.9), 400, "x")
    assert 0.55 < np.mean([s.bucket.depth == 3 for s in made]) < 0.75


@pytest.mark.parametrize("variant", ["pure", "spurious"])
def test_rare_answers_weigh_more_and_the_mean_weight_is_one(variant):
    weights = answer_weights(variant, 0, 1500)
    seen = batch(draw(variant, mixture(1.0), 1500, f"weights/0/{variant}")).answers.numpy()
    counts = seen[seen < 18]
    assert weights[counts].mean() == pytest.approx(1, abs=1e-5)
    assert weights[seen[seen >= 18]].mean() == pytest.approx(1, abs=1e-5)
    assert weights[12] > weights[1]


def test_the_stem_of_pictures_equals_the_stem_of_drawings():
    net = GridNet().eval()
    data = batch([scene("pure", bucket, 0) for bucket in buckets([0.7])])
    images = pictures()[data.classes].view(-1, 5, 5, 3, 16, 16).permute(0, 3, 1, 4, 2, 5).reshape(-1, 3, 80, 80)
    with torch.inference_mode():
        whole = net(net.see(images), net.read(data.codes), data.codes[..., 0] != 0)
        short = answer(net, pictures(), data)
    assert torch.allclose(whole.answers, short.answers, atol=1e-4)
    assert torch.allclose(whole.answers.exp().sum(1), torch.ones(len(images)), atol=1e-5)


def test_training_learns_and_repeats(tmp_path, monkeypatch):
    monkeypatch.setattr("medground.training.gridvqa.EVERY", 10)
    lines: list[str] = []
    recipe = Recipe(steps=30, batch=8, warm=5)
    card = train("spurious", tmp_path / "a.safetensors", recipe, report=lines.append, scenes_each=1)
    train("spurious", tmp_path / "b.safetensors", recipe, report=lambda _: None, scenes_each=1)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    held = json.loads((tmp_path / "a.json").read_text())
    assert held["accuracy"] == card["accuracy"]
    assert len(card["accuracy"]["pure"]) == 38
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in lines if "loss" in line]
    assert losses[-1] < losses[0] - 0.5
