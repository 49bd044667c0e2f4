"""Contrastive decoding beside plain decoding, and a batch of questions about one picture beside one by one.

``python perf/bench_chat.py 64`` prints milliseconds a question of every decoding, and its ratio to plain decoding: a
median over rounds in which both run one after the other, with the least and the greatest, in the process's own time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message
from medground.models.chat.decoding import DECODINGS, decoding_of
from medground.models.chat.decoding.base import Plain
from medground.models.chat.engine import Engine
from medground.models.chat.small_chat import SmallChat
from medground.models.networks.reference.vocabulary import ANATOMIES
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.questions import CLOSED
from medground.worlds.phantom.scene import make_scene

ROUNDS = 5


def main(questions: int) -> None:
    model = SmallChat(device="cpu")
    drawing = draw(make_scene(5, 0), 224)
    image = Radiograph(drawing.pixels.astype(np.float32) / np.float32(255))
    asked = [ANATOMIES[i % len(ANATOMIES)] for i in range(questions)]
    talk = [(Message("user", CLOSED[0].format(region=name, finding="mass"), (image,)),) for name in asked]
    regions = [drawing.anatomies[name] for name in asked]
    options = GenerationOptions(max_new_tokens=4)
    plain = Engine(model.backbone, Plain())

    def seconds(engine: Engine, given: Sequence[Any] | None = regions, several: Sequence[Any] = talk) -> float:
        start = time.process_time()
        engine.reply(several, options, given)
        return (time.process_time() - start) / questions

    jobs = {name: (Engine(model.backbone, decoding_of(name)), regions) for name in DECODINGS if name != "plain"}
    jobs["loba, located by itself"] = jobs["loba"][0], None
    seconds(plain)
    for name, (engine, given) in jobs.items():
        seconds(engine, given)
        rounds = [(seconds(plain), seconds(engine, given)) for _ in range(ROUNDS)]
        ratios = sorted(other / base for base, other in rounds)
        each = 1000 * median(other for _, other in rounds)
        span = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        print(f"{name}: {each:.1f} ms a question, {median(ratios):.2f} times plain decoding ({span})", flush=True)
    print(f"plain: {1000 * median(seconds(plain) for _ in range(ROUNDS)):.1f} ms a question")
    start = time.process_time()
    for conversation in talk:
        plain.reply([conversation], options)
    print(f"plain, one by one: {1000 * (time.process_time() - start) / questions:.1f} ms a question")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
