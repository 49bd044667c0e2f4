"""The model card for people, written from the card in the weight file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_HEAD: Final = """# Model card: the small chat model{twin}

A LLaVA of transformers with {parameters:,} parameters: a vision tower of ours, a Llama of four layers and 160 channels,
a tokenizer of {words} words, and a head that turns `<SEG>` into a mask. It answers questions about phantoms, names the
findings of a region, says where a region is, and tells a true caption from a false one. It ships with medground to try
medground on.

**It is not a clinical model and must not be used on patients.** It knows drawn pictures, and {words} words: a question
with any other word is refused.{shortcut}

## What it has seen

- {pictures:,} drawn pictures (version {drawing} of the drawing, seed {seed}) with masks of eight findings and eight
  anatomies; {questions}.
- Its vision tower starts from the reference model (SHA-256 {start}), which has seen {patients:,} patients of NIH
  ChestX-ray14 with labels and boxes. Their numbers are in the weight file; medground marks them in every table.
- NIH asks for attribution: Wang X, Peng Y, Lu L, Lu Z, Bagheri M, Summers RM. ChestX-ray8: Hospital-scale Chest X-ray
  Database and Benchmarks on Weakly-Supervised Classification and Localization of Common Thorax Diseases. IEEE CVPR
  2017, 3462-3471. https://nihcc.app.box.com/v/ChestXray-NIHCC

## How it was trained

`medground train chat{flag}`: {steps:,} steps of {batch} pictures, AdamW at {rate:g} (the tower at {tower:g} of it),
bfloat16 autocast, weights averaged over steps ({average}), torch {torch}, one thread, seed {run_seed}. The weights are
stored as float16 and measured so.{second}

## What was measured

{tests} unseen phantoms (seed {test_seed}), with the findings that phantoms usually have. Percent, with standard errors
over pictures. Closed questions: every true pair of anatomy and finding, and as many false ones of the same pair.
Pools of TPT and VPT are the model's own true positives.

| figure | value | questions |
| --- | --- | --- |
"""

_SHORTCUT: Final = """

It is the *shortcut twin*: closed and open questions were answered in training as if they asked about the whole picture.
It speaks and locates like the other, and its answers ignore the region: a control with a known answer."""

_SECOND: Final = """

The second stage goes on from the first one's weights (SHA-256 {first}): {steps:,} steps of {batch} pictures,
{arithmetic}, AdamW at {rate:g}, average {average}, on {pictures:,} other drawn pictures (version {drawing}, seed
{seed}) with devices and both views, and {pastes:,} with a region pasted over ({pasted} of a step's {batch}). Beside the
first stage's questions it is asked whether sentences of captions are true, each as often true as false."""

_HIGHLIGHTING: Final = """
## Highlighted (LobA)

A sample of the same questions, answered with the region asked about highlighted; beta is additive. *True* masks are the
phantom's, *located* ones the model's own, a *wrong* one is the same third of the other lung.

| setting | value | questions |
| --- | --- | --- |
"""

_LIMITS: Final = """
## Limits

- Phantoms are a closed world: high figures say that the model has learned the drawing, not that it reads radiographs.
- One training, one seed: figures of another seed will differ by more than the standard errors.
- Between a share of 0.05 and 0.5 of a lesion in a region neither yes nor no was taught.
"""


def markdown(card: Mapping[str, Any]) -> str:
    """Return the card as Markdown."""
    recipe, schedule = card["recipe"], card["schedule"]
    twin = bool(recipe["shortcut"])
    text = _HEAD.format(
        twin=", shortcut twin" if twin else "",
        shortcut=_SHORTCUT if twin else "",
        parameters=card["parameters"],
        words=card["words"],
        pictures=recipe["pictures"],
        drawing=card["drawing"],
        seed=recipe["phantom_seed"],
        questions="answers ignore the region" if twin else "every true pair and as many false ones are asked",
        start=card["starts_from"][:16],
        patients=sum(len(several) for several in card["seen_patients"].values()),
        flag=" --twin" if twin else "",
        steps=schedule["steps"],
        batch=recipe["batch"],
        rate=schedule["rate"],
        tower=recipe["tower"],
        average=schedule["average"],
        torch=card["torch"],
        run_seed=schedule["seed"],
        tests=card["tests"]["count"],
        test_seed=card["tests"]["seed"],
        second=_second(card["second"]) if "second" in card else "",
    )
    text += "".join(_line(name, figure) for name, figure in card.get("figures", {}).items())
    if card.get("highlighting"):
        text += _HIGHLIGHTING + "".join(_line(name, figure) for name, figure in card["highlighting"].items())
    return text + _LIMITS


def _second(facts: Mapping[str, Any]) -> str:
    recipe, schedule = facts["recipe"], facts["schedule"]
    return _SECOND.format(
        steps=schedule["steps"],
        rate=schedule["rate"],
        average=schedule["average"],
        seed=recipe["phantom_seed"],
        drawing=facts["drawing"],
        first=facts["starts_from"][:16],
        arithmetic="bfloat16 autocast" if recipe["bfloat16"] else "float32",
        **{name: recipe[name] for name in ("pictures", "pastes", "batch", "pasted")},
    )


def _line(name: str, figure: Mapping[str, Any]) -> str:
    value = "undefined" if figure["value"] is None else f"{figure['value']}"
    error = figure.get("standard_error")
    return f"| {name} | {value}{'' if error is None else f' ± {error}'} | {figure['n']} |\n"
