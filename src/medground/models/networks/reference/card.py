"""The model card for people, written from the card in the weight file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_HEAD = """# Model card: the reference model

A small image-text network with cross-attention over image tokens, {parameters:,} parameters, that scores any finding by
its name and says where it is on a 28 by 28 grid. It ships with medground to try medground on.

**It is not a clinical model and must not be used on patients.** It was trained *with labels and boxes* of the very
task, so its results must never be ranked among those of zero-shot models.

## What it has seen

- {phantoms:,} drawn pictures (phantoms of seed {seed}) with masks of eight findings and eight anatomies.
"""

_NIH = """- {pictures} pictures of {patients} patients of NIH ChestX-ray14, with image labels and {boxes} boxes:
  half of the patients with boxes. Their numbers are in the weight file; medground marks these patients in every
  table and leaves them out of this model's aggregates. Collections made from the same pictures (RSNA Pneumonia,
  SIIM-ACR, ChestX-Det) can hold them too.
- NIH asks for attribution: Wang X, Peng Y, Lu L, Lu Z, Bagheri M, Summers RM. ChestX-ray8: Hospital-scale Chest X-ray
  Database and Benchmarks on Weakly-Supervised Classification and Localization of Common Thorax Diseases. IEEE CVPR
  2017, 3462-3471. https://nihcc.app.box.com/v/ChestXray-NIHCC
"""

_TRAINING = """
## How it was trained

`medground train reference`: {steps:,} steps of {batch} pictures, {share}, AdamW at {rate:g}, weights averaged over
steps ({average}), torch {torch}, {threads} threads, seed {run_seed}. The weights are stored as float16 and measured so.

## What was measured

Macro averages over the eight findings in percent, standard errors by a bootstrap over patients. Maps are enlarged to
224 by 224; the threshold of Dice comes from other pictures than those measured ({threshold_from}).

| pictures | AUC | pointing | Dice | threshold |
| --- | --- | --- | --- | --- |
"""

_LIMITS = """
## Limits

- Every held-out real picture is abnormal, so AUC there separates one disease from others, not disease from health.
- A few hundred real pictures from one hospital are few: pneumonia and infiltration are little better than chance in
  AUC, and small nodules are seldom found on real pictures.
- Pointing and Dice on real pictures owe much to where a finding usually lies: read them beside the class prior, which
  medground prints. Phantoms are a closed world that it was trained on: high figures there say that the model has
  learned the drawing, not that it can read radiographs.
- Names outside the training list (the eight findings, eight anatomies and their synonyms) get an answer by their
  letters; it has not been measured and means little.
"""


def markdown(card: Mapping[str, Any]) -> str:
    """Return the card as Markdown."""
    recipe, real = card["recipe"], card.get("real")
    first, last = recipe["real_share"]
    text = _HEAD.format(
        parameters=card["parameters"], phantoms=card["phantoms"]["count"], seed=card["phantoms"]["seed"]
    )
    text += _NIH.format(**real) if real else "- No real picture.\n"
    text += _TRAINING.format(
        steps=recipe["steps"],
        batch=recipe["batch"],
        rate=recipe["rate"],
        average=recipe["average"],
        share=f"{first:.0%} rising to {last:.0%} of them real" if real else "all of them drawn",
        torch=card["torch"],
        threads=card["threads"],
        run_seed=recipe["seed"],
        threshold_from="the training half, and for phantoms other phantoms" if real else "other phantoms",
    )
    for name, found in card["figures"].items():
        cells = [found["macro"][metric] for metric in ("auc", "pointing", "dice")]
        text += f"| {name}, {found['pictures']} | "
        text += " | ".join(f"{cell['value']} ± {cell['standard_error']}" for cell in cells)
        text += f" | {found['threshold']:.2f} |\n"
    for name, found in card["figures"].items():
        text += f"\n{name[0].upper()}{name[1:]}, by finding:\n\n| finding | pairs | AUC | pointing | Dice |\n"
        text += "| --- | --- | --- | --- | --- |\n"
        for finding, row in found["findings"].items():
            text += f"| {finding} | {row['pairs']} | {row['auc']} | {row['pointing']} | {row['dice']} |\n"
    return text + _LIMITS
