"""``medground train``: a recipe a model that ships, and those that benchmarks offer by their door ``train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from medground.commands.offers import Offers
from medground.terminal import say


class Trainings(Offers):
    """The recipes below, then those of benchmarks."""

    door = "train"

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names; benchmarks are imported for it."""
        return [*self.commands, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a recipe's command."""
        return self.commands.get(cmd_name) or super().get_command(ctx, cmd_name)


app = typer.Typer(cls=Trainings, no_args_is_help=True, help="Train a model that ships with medground again.")


@app.command("reference")
def train_reference(
    out: Annotated[Path, typer.Option("--out", help="folder for weights, card and log")],
    nih: Annotated[Path | None, typer.Option("--nih", help="NIH ChestX-ray14; half its patients are used")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
) -> None:
    """Train the reference model from scratch."""
    from medground.training.reference import train_reference as train

    say(train(out, nih=nih, seed=seed))


@app.command("chat")
def train_chat(
    out: Annotated[Path, typer.Option("--out", help="folder for weights, card, curve and checkpoint")],
    twin: Annotated[bool, typer.Option("--twin", help="the shortcut twin, whose answers ignore the region")] = False,
    first: Annotated[Path | None, typer.Option("--first", help="weights of the first stage: only the second")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    workers: Annotated[int, typer.Option("--workers", min=1, help="processes that draw")] = 1,
) -> None:
    """Train the small chat model on phantoms, in two stages; a stopped training goes on."""
    from medground.training.chat import train_chat as train

    say(train(out, twin=twin, first=first, seed=seed, workers=workers))


@app.command("loba")
def train_loba(
    llava: Annotated[Path, typer.Option("--llava", help="folder of a LLaVA of transformers")],
    sam: Annotated[Path, typer.Option("--sam", help="folder of a SAM-type model, such as MedSAM")],
    questions: Annotated[Path, typer.Option("--questions", help="JSON lines: image, question, answer, anatomy, mask")],
    out: Annotated[Path, typer.Option("--out", help="folder for adapters, segmenter, curve and checkpoint")],
    steps: Annotated[int, typer.Option("--steps", min=1)] = 1000,
    rate: Annotated[float, typer.Option("--rate", min=0, help="the paper tried 1e-4, 1e-5, 1e-6")] = 1e-4,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
) -> None:
    """Teach a LLaVA folder to locate before it answers (LobA); a stopped training goes on."""
    from medground.training.loba import train_loba as train
    from medground.training.loop import Schedule

    schedule = Schedule(steps=steps, rate=rate, warm_up=min(50, steps), decay=0.0, seed=seed)
    say(train(llava, sam, questions, out, schedule=schedule))


@app.command("instruct")
def train_instruct(
    checkpoint: Annotated[Path, typer.Option("--checkpoint", help="folder of a chat model of transformers")],
    conversations: Annotated[Path, typer.Option("--conversations", help="JSON of `medground export`, LLaVA's layout")],
    images: Annotated[Path, typer.Option("--images", help="folder of the pictures")],
    out: Annotated[Path, typer.Option("--out", help="folder for the tuned model, curve and checkpoint")],
    steps: Annotated[int, typer.Option("--steps", min=1)] = 1000,
    rate: Annotated[float, typer.Option("--rate", min=0)] = 1e-4,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or as torch names it")] = "cpu",
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
) -> None:
    """Tune a chat model on conversations by low-rank adapters; a stopped training goes on."""
    from medground.training.instruct import train_instruct as train
    from medground.training.loop import Schedule

    schedule = Schedule(steps=steps, rate=rate, warm_up=min(50, steps), decay=0.0, seed=seed)
    say(train(checkpoint, conversations, images, out, schedule=schedule, device=device))
