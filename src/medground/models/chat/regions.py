"""Where a model with ``<SEG>`` says that the regions of a picture are."""

from __future__ import annotations

from medground.errors import ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Message
from medground.models.chat.backbone import Backbone, Encoded
from medground.models.chat.engine import Engine, Mask
from medground.worlds.phantom.questions import REGIONS, WHERE, location


def region_masks(backbone: Backbone, engine: Engine, image: Radiograph) -> dict[str, Mask]:
    """Return region -> where the model says that it is, ``(height, width)``, for ten regions.

    Args:
        backbone: whose words and encoding are used.
        engine: around it.
        image: one picture.

    Raises:
        ModelError: the picture cannot be asked about, or the backbone has no ``<SEG>``.
    """
    seg = backbone.seg
    if seg is None:
        raise ModelError("this backbone has no <SEG>: it says of no region where it is", fix="medground train loba")
    encoded, sentences = [], []
    for region in REGIONS:
        asked = backbone.encode((Message("user", WHERE.format(thing=region), (image,)),), locate=False)
        if not isinstance(asked, Encoded):
            raise ModelError("a picture cannot be asked about", where=region, got=asked.reason)
        encoded.append(asked)
        ids = backbone.words(location(region))
        sentences.append(ids[: ids.index(seg) + 1])
    masks: dict[str, Mask] = {}
    for length in sorted({len(ids) for ids in sentences}):
        rows = [row for row, ids in enumerate(sentences) if len(ids) == length]
        located = engine.masks_of([encoded[r] for r in rows], [sentences[r] for r in rows])
        masks |= {REGIONS[row]: mask for row, mask in zip(rows, located, strict=True)}
    return {region: masks[region] for region in REGIONS}
