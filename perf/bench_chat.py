"""Contrastive decoding beside plain decoding, and a batch of questions about one picture beside one by one.

``python perf/bench_chat.py 64`` prints milliseconds a question of every decoding, and its ratio to plain decoding.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message
from medground.models.chat.decoding import DECODINGS, decoding_of
from medground.models.chat.engine import Engine
from medground.models.chat.small_chat import SmallChat
from medground.models.networks.reference.vocabulary import ANATOMIES
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.questions import CLOSED
from medground.worlds.phantom.scene import make_scene


def main(questions: int) -> None:
    model = SmallChat(device="cpu")
    drawing = draw(make_scene(5, 0), 224)
    image = Radiograph(drawing.pixels.astype(np.float32) / np.float32(255))
    asked = [ANATOMIES[i % len(ANATOMIES)] for i in range(questions)]
    talk = [(Message("user", CLOSED[0].format(region=name, finding="mass"), (image,)),) for name in asked]
    regions = [drawing.anatomies[name] for name in asked]
    options = GenerationOptions(max_new_tokens=4)
    plain = 0.0
    for name in DECODINGS:
        engine = Engine(model.backbone, decoding_of(name))
        engine.reply(talk[:8], options, regions[:8])
        start = time.process_time()
        engine.reply(talk, options, regions)
        each = (time.process_time() - start) / questions
        plain = plain or each
        print(f"{name}: {1000 * each:.1f} ms a question, {each / plain:.2f} times plain decoding")
    start = time.process_time()
    for conversation in talk:
        Engine(model.backbone, decoding_of(None)).reply([conversation], options)
    print(f"plain, one by one: {1000 * (time.process_time() - start) / questions:.1f} ms a question")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
