"""One item on its way: pictures loaded, the base question and every variant asked in one round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from medground.benchmarks.heal_medvqa.gallery import Gallery, GalleryPicture
from medground.benchmarks.heal_medvqa.lesions import touching
from medground.benchmarks.heal_medvqa.masks import Mask
from medground.benchmarks.heal_medvqa.pastes import PasteRule, paste
from medground.benchmarks.heal_medvqa.plan import Asked
from medground.benchmarks.heal_medvqa.questions import worded, worded_open
from medground.benchmarks.heal_medvqa.released import reworded
from medground.benchmarks.heal_medvqa.variants import Variant
from medground.benchmarks.requests import Ask
from medground.imaging.reading import Radiograph
from medground.models.messages import GenerationOptions, Message, picture_hash

BASE = "base"


@dataclass(frozen=True)
class Shown:
    """A picture that a question is asked of.

    Attributes:
        radiograph: what the model sees.
        notes: what was done to it: residues, donor, share of pixels clipped.
    """

    radiograph: Radiograph
    notes: Mapping[str, Any]


@dataclass(frozen=True)
class LoadedPictures:
    """The pictures of one item.

    Attributes:
        pictures: name of the variant (or ``base``) -> picture; unchanged ones share the base's.
        masks: anatomy -> where it truly is, of the pictures' size.
    """

    pictures: Mapping[str, Shown]
    masks: Mapping[str, Mask]


def load(asked: Asked, gallery: Gallery, rule: PasteRule) -> LoadedPictures:
    """Return the pictures of an item, perturbed ones made.

    Raises:
        DataError: a picture or a mask cannot be read.
    """
    target = gallery.picture(asked.question.image_id)
    base = Shown(target.radiograph, {})
    pictures = {BASE: base}
    for variant in asked.planned.variants:
        if variant.name == "vpt_redrawn":
            drawn = gallery.without(asked.question.image_id, variant.finding)
            pictures[variant.name] = Shown(drawn, {"residue_hard": 0.0, "residue_soft": 0.0})
        elif variant.region:
            pictures[variant.name] = _pasted(variant, asked.question.anatomy, target, gallery, rule)
        else:
            pictures[variant.name] = base
    return LoadedPictures(pictures, target.masks)


def _pasted(variant: Variant, anatomy: str, target: GalleryPicture, gallery: Gallery, rule: PasteRule) -> Shown:
    region, lesion = target.masks[variant.region], target.lesions.get(variant.finding)
    here = None if lesion is None else touching(lesion, target.masks[anatomy])
    donor = target if variant.donor == target.radiograph.case_id else gallery.picture(variant.donor)
    pasted = paste(
        target.radiograph.pixels,
        region,
        donor.radiograph.pixels,
        donor.masks[variant.region],
        rule,
        here,
    )
    step = f"{variant.region} replaced ({rule.in_words()})"
    radiograph = replace(target.radiograph, pixels=pasted.pixels, steps=(*target.radiograph.steps, step))
    notes = {
        "region": variant.region,
        "donor": variant.donor,
        "residue_hard": pasted.residue_hard,
        "residue_soft": pasted.residue_soft,
        "cover": None if here is None else float((here & region).sum() / region.sum()),
        "clipped": pasted.clipped,
    }
    return Shown(radiograph, notes)


def asks(
    asked: Asked, loaded: LoadedPictures, words: Mapping[str, str], instruction: str, options: GenerationOptions
) -> list[Ask]:
    """Return the one round of an item: the base question, then its variants in their order.

    Args:
        asked: what is asked.
        loaded: its pictures.
        words: finding -> how it is written.
        instruction: appended to every question; empty: nothing is.
        options: of the generation.
    """
    question = asked.question
    if question.is_open:
        texts = [(BASE, question.text or worded_open(question.anatomy, question.wording), question.anatomy, "")]
    else:
        texts = [(BASE, question.text or worded(*question.pair, question.wording % 2, words), *question.pair)]
    for variant in asked.planned.variants:
        pair = (variant.anatomy, variant.finding)
        wording = question.wording % 2 if variant.name != "paraphrase" else (question.wording + 1) % 2
        text = worded(*pair, wording, words)
        if question.text and variant.name != "paraphrase":  # no other word changes than the one that is swapped
            text = question.text if pair == question.pair else reworded(question.text, *pair)
        texts.append((variant.name, text, *pair))
    return [
        Ask(
            "model",
            "reply",
            {
                "conversation": (
                    Message("user", f"{text} {instruction}".strip(), (loaded.pictures[name].radiograph,)),
                ),
                "options": options,
            },
            {"variant": name, "text": text, "anatomy": anatomy, "finding": finding},
        )
        for name, text, anatomy, finding in texts
    ]


MASKS = Ask("model", "masks", {}, {"variant": "masks"})
"""Where the model says that the regions are; the picture is added."""


def highlighted(round_: Sequence[Ask], loaded: LoadedPictures) -> list[Ask]:
    """Return the same questions once more, each with the true region of what it asks about given to the model."""
    return [
        Ask(
            "model",
            "highlighted",
            {**ask.arguments, "region": loaded.masks.get(str(ask.key["anatomy"]))},
            {**ask.key, "region": "true"},
        )
        for ask in round_
    ]


def notes_of(loaded: LoadedPictures) -> dict[str, Any]:
    """Return what to keep beside the answers: for each picture its hash and what was done to it."""
    seen: dict[int, str] = {}
    notes = {}
    for name, shown in loaded.pictures.items():
        known = seen.setdefault(id(shown.radiograph), picture_hash(shown.radiograph)[-16:])
        notes[name] = {"picture": known, **shown.notes}
    return notes


def files_of(asked: Asked, gallery: Gallery) -> tuple[Any, ...]:
    """Return the files that an item reads: its own picture and its donors'."""
    images: Sequence[str] = [asked.question.image_id, *(v.donor for v in asked.planned.variants if v.donor)]
    return tuple(dict.fromkeys(file for image in images for file in gallery.files(image)))
