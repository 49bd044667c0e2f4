"""The one training loop: a schedule in steps, a running average, checkpoints, and an exact resume.

Everything random in a step must come from the step's own number, so that a training that was killed ends with the
weights of one that was not.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from torch import Tensor, nn

from medground.errors import RunError

Say = Callable[[str], None]

CHECKPOINT: Final = "checkpoint.pt"
CURVE: Final = "curve.jsonl"


@dataclass(frozen=True)
class Schedule:
    """Steps and rates; in steps, not in minutes, so that it can be repeated.

    Attributes:
        steps: in all.
        rate: peak learning rate.
        warm_up: steps until the peak.
        floor: last rate as a share of the peak, reached along a cosine.
        decay: weight decay of matrices.
        betas: of AdamW.
        average: what the running average keeps of itself a step.
        clip: largest norm of the gradient.
        seed: of everything random.
    """

    steps: int
    rate: float = 1.5e-3
    warm_up: int = 150
    floor: float = 0.02
    decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.98)
    average: float = 0.995
    clip: float = 1.0
    seed: int = 0

    def share(self, step: int) -> float:
        """Return the share of the peak rate at a step."""
        if step < self.warm_up:
            return (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(1, self.steps - self.warm_up)
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


class Learner(Protocol):
    """What is trained."""

    network: nn.Module

    def loss(self, step: int) -> tuple[Tensor, Mapping[str, float]]:
        """Return the loss of a step and its parts; a function of the step's number and the weights alone."""

    def pace(self, name: str) -> float:
        """Return the factor of a parameter's learning rate; 0: it stays as it is."""


class Average:
    """A running average of the weights that learn; early on it follows fast."""

    def __init__(self, network: nn.Module, keep: float) -> None:
        self.keep, self.steps = keep, 0
        self._learning = {name: p for name, p in network.named_parameters() if p.requires_grad}
        self.weights = {name: p.detach().clone() for name, p in self._learning.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the present weights."""
        self.steps += 1
        keep = min(self.keep, (1 + self.steps) / (10 + self.steps))
        for name, present in self._learning.items():
            self.weights[name].lerp_(present, 1 - keep)


def optimiser(learner: Learner, schedule: Schedule) -> torch.optim.AdamW:
    """Return AdamW with decay on matrices alone, one group a pace; parameters of pace 0 are frozen."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in learner.network.named_parameters():
        pace = learner.pace(name)
        parameter.requires_grad_(pace > 0)
        if pace > 0:
            groups.setdefault((pace, schedule.decay if parameter.ndim > 1 else 0.0), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": params, "weight_decay": decay, "pace": pace} for (pace, decay), params in groups.items()],
        lr=schedule.rate,
        betas=schedule.betas,
    )


def run(
    learner: Learner,
    schedule: Schedule,
    folder: Path,
    *,
    identity: Mapping[str, Any],
    say: Say = print,
    every: int = 100,
    stop: int | None = None,
) -> nn.Module:
    """Train, going on from the folder's checkpoint where there is one, and return the network with averaged weights.

    Only what learns is averaged and kept in checkpoints: a frozen backbone of billions of weights is neither.

    Args:
        learner: what is trained.
        schedule: steps and rates.
        folder: for the checkpoint and the curve.
        identity: what the result depends on beside the schedule; a checkpoint of another one is refused.
        say: takes one line of progress.
        every: steps between two checkpoints and lines.
        stop: end after this step though the schedule goes on (for tests of the resume).

    Raises:
        RunError: the folder holds a checkpoint of another training.
    """
    folder.mkdir(parents=True, exist_ok=True)
    about = {**identity, "schedule": asdict(schedule)}
    steps = optimiser(learner, schedule)
    average = Average(learner.network, schedule.average)
    first = _resume(folder, about, learner.network, average, steps)
    if first:
        say(f"going on after step {first:,}")
    began, means = time.monotonic(), dict[str, float]()
    for step in range(first, min(schedule.steps, stop or schedule.steps)):
        for group in steps.param_groups:
            group["lr"] = schedule.rate * schedule.share(step) * group["pace"]
        torch.manual_seed(schedule.seed * 1_000_003 + step)
        loss, parts = learner.loss(step)
        steps.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch's stubs lack it
        nn.utils.clip_grad_norm_(learner.network.parameters(), schedule.clip)
        steps.step()
        average.update()
        for name, value in parts.items():
            means[name] = means.get(name, value) + (value - means.get(name, value)) * 0.02
        if (step + 1) % every == 0 or step + 1 == schedule.steps:
            seconds = time.monotonic() - began
            left = seconds / (step + 1 - first) * (schedule.steps - step - 1)
            line = {"step": step + 1, **{name: round(value, 4) for name, value in means.items()}}
            _save(folder, about, step + 1, learner.network, average, steps)
            _log(folder, {**line, "seconds": round(seconds, 1), "cpu_seconds": round(time.process_time(), 1)})
            say(", ".join(f"{name} {value}" for name, value in line.items()) + f", {left / 60:.1f} min left")
    learner.network.load_state_dict(average.weights, strict=False)
    return learner.network.eval()


def _log(folder: Path, line: Mapping[str, Any]) -> None:
    with (folder / CURVE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _save(
    folder: Path,
    about: Mapping[str, Any],
    step: int,
    network: nn.Module,
    average: Average,
    steps: torch.optim.Optimizer,
) -> None:
    state = {
        "about": json.dumps(about, sort_keys=True),
        "step": step,
        "network": {name: p.detach() for name, p in network.named_parameters() if p.requires_grad},
        "average": average.weights,
        "averaged": average.steps,
        "optimiser": steps.state_dict(),
    }
    part = folder / f"{CHECKPOINT}.part"
    torch.save(state, part)
    part.replace(folder / CHECKPOINT)  # a kill leaves the old checkpoint or the new one


def _resume(
    folder: Path, about: Mapping[str, Any], network: nn.Module, average: Average, steps: torch.optim.Optimizer
) -> int:
    """Load the folder's checkpoint and return the number of steps that it has behind it, or 0."""
    path = folder / CHECKPOINT
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    if state["about"] != json.dumps(about, sort_keys=True):
        raise RunError(
            "the folder holds another training",
            where=path,
            expected=json.dumps(about, sort_keys=True)[:300],
            got=str(state["about"])[:300],
            fix="name another folder, or remove this one",
        )
    network.load_state_dict(state["network"], strict=False)
    for name, weights in average.weights.items():
        weights.copy_(state["average"][name])
    average.steps = state["averaged"]
    steps.load_state_dict(state["optimiser"])
    return int(state["step"])
