"""What a trained chat model reaches on pictures that it has not seen, with standard errors over pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from medground.metrics.classification import auc
from medground.models.networks.chat import tokens
from medground.models.networks.chat.network import ChatNet
from medground.models.networks.reference.vocabulary import ANATOMIES, FINDINGS
from medground.training.chat import trials
from medground.training.chat.packing import pack
from medground.training.chat.sampling import HOLDS, Turn, turn
from medground.training.chat.scenes import SIZE, region_masks
from medground.training.chat.trials import Case, Closed
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.questions import WHERE, location
from medground.worlds.phantom.twins import Quartet

Pixels = NDArray[np.uint8]
Figure = dict[str, Any]


def figure(hits: Sequence[float], cases: Sequence[int]) -> Figure:
    """Return a share in percent with its standard error over pictures (linearised, pictures as clusters)."""
    if not len(hits):
        return {"value": None, "standard_error": None, "n": 0, "reason": "nothing to measure"}
    values, owner = np.asarray(hits, float), np.asarray(cases)
    share = values.mean()
    clusters = np.unique(owner, return_inverse=True)[1]
    error = float(np.sqrt((np.bincount(clusters, weights=values - share) ** 2).sum())) / len(values)
    if error == 0:  # all alike: not sure, only never seen otherwise (a success and a failure more, by picture)
        count = clusters.max() + 3
        error = float(np.sqrt((1 / count) * (1 - 1 / count) / count))
    return {"value": round(100 * float(share), 1), "standard_error": round(100 * error, 1), "n": len(values)}


def balanced(yes: Figure, no: Figure) -> Figure:
    """Return the mean of two shares, their errors taken as independent."""
    if yes["value"] is None or no["value"] is None:
        return {"value": None, "standard_error": None, "n": yes["n"] + no["n"], "reason": "one side is empty"}
    error = 0.5 * (yes["standard_error"] ** 2 + no["standard_error"] ** 2) ** 0.5
    return {
        "value": round((yes["value"] + no["value"]) / 2, 1),
        "standard_error": round(error, 1),
        "n": yes["n"] + no["n"],
    }


class Asker:
    """Asks a network many questions about many pictures, packed by picture: each picture is seen once a call.

    Args:
        network: in evaluation mode.
        batch: pictures at a time.
    """

    def __init__(self, network: ChatNet, batch: int = 16) -> None:
        self.network, self.batch = network, batch

    def margins(
        self, pictures: Sequence[Pixels], texts: Sequence[Sequence[str]], *, locate: bool = False
    ) -> list[list[float]]:
        """Return log odds of "yes" for every question of every picture.

        With ``locate`` the right location sentence stands before the answer, as if the model had written it.
        """
        turns = [[_turn(text, locate) for text in several] for several in texts]
        out: list[list[float]] = []
        for start in range(0, len(pictures), self.batch):
            out += self._margins(pictures[start : start + self.batch], turns[start : start + self.batch])
        return out

    @torch.no_grad()
    def _margins(self, pictures: Sequence[Pixels], turns: Sequence[Sequence[Turn]]) -> list[list[float]]:
        logits, rows = self._logits(pictures, turns)
        sure = logits.log_softmax(-1)
        yes, no = (sure[:, tokens.encode(word)[0]] for word in ("yes", "no"))
        margins: list[list[float]] = [[] for _ in pictures]
        for row, value in zip(rows, (yes - no).tolist(), strict=True):
            margins[row].append(value)
        return margins

    def _logits(self, pictures: Sequence[Pixels], turns: Sequence[Sequence[Turn]]) -> tuple[torch.Tensor, list[int]]:
        """Return the logits that predict each answer's last word but the end, and the picture of each."""
        packed = pack([[[one] for one in several] for several in turns], budget=10_000)
        grey = (torch.from_numpy(np.stack(pictures)).unsqueeze(1).float() / 255 - 0.5) / 0.25
        seen = self.network.encode(grey)
        hidden = self.network.hidden(seen.features, packed.ids, packed.mask, packed.positions)
        # The end token follows the word that is asked for; the state before that word predicts it.
        row, place = torch.nonzero(packed.labels == tokens.EOS, as_tuple=True)
        return self.network.words(hidden[row, place - 2]), row.tolist()

    @torch.no_grad()
    def log_probabilities(self, picture: Pixels, text: str, answers: Sequence[str]) -> list[float]:
        """Return the log-probability of each answer as a whole."""
        packed = pack([[[turn(text, answer)] for answer in answers]], budget=10_000)
        grey = (torch.from_numpy(picture.copy())[None, None].float() / 255 - 0.5) / 0.25
        seen = self.network.encode(grey)
        hidden = self.network.hidden(seen.features, packed.ids, packed.mask, packed.positions)
        place = torch.nonzero(packed.labels[0] >= 0)[:, 0]
        sure = self.network.words(hidden[0, place - 1]).log_softmax(-1)
        each = sure.gather(1, packed.labels[0, place, None])[:, 0]
        ends = packed.labels[0, place] == tokens.EOS
        owner = ends.cumsum(0) - ends.long()
        return [float(each[owner == number].sum()) for number in range(len(answers))]

    @torch.no_grad()
    def masks(self, picture: Pixels, things: Sequence[str]) -> NDArray[np.bool_]:
        """Return where the network says that things are, ``(T, 224, 224)``."""
        packed = pack([[[turn(WHERE.format(thing=thing), location(thing), 0)] for thing in things]], budget=10_000)
        grey = (torch.from_numpy(picture.copy())[None, None].float() / 255 - 0.5) / 0.25
        seen = self.network.encode(grey)
        hidden = self.network.hidden(seen.features, packed.ids, packed.mask, packed.positions)
        at = packed.seg[:, 1]
        logits = self.network.masks(hidden[0, at], seen.cells.expand(len(at), -1, -1, -1))
        wide = torch.nn.functional.interpolate(logits[:, None], (SIZE, SIZE), mode="bilinear", align_corners=False)
        return (wide[:, 0] > 0).numpy()


def _turn(text: str, locate: bool) -> Turn:
    if not locate:
        return turn(text, "yes")
    region = next(name for name in ANATOMIES if name in text)
    return turn(text, f"{location(region)} yes", 0, locate=True)


def measure(
    network: ChatNet,
    cases: Sequence[Case],
    *,
    quartets: Sequence[Quartet] = (),
    reply: Callable[[Sequence[tuple[Pixels, str]]], list[str]] | None = None,
) -> dict[str, Figure]:
    """Return the figures of the card.

    Args:
        network: in evaluation mode.
        cases: unseen phantoms.
        quartets: unseen pairs of scenes in which two findings exchange their regions.
        reply: answers (picture, question) pairs in words, for the open questions.
    """
    asker, asked = Asker(network), trials.closed(cases)
    out, answers = _closed(asker, cases, asked)
    positives = [q for q, yes in zip(asked, answers, strict=True) if q.gold and yes]
    out |= _swapped(asker, cases, positives)
    out |= _redrawn(asker, cases, positives)
    out |= _quartets(asker, quartets)
    out |= _masks(asker, cases)
    out |= _captions(asker, cases)
    if reply is not None:
        out |= _open(cases, reply)
    return out


def _grouped(
    asker: Asker, pictures: Mapping[int, Pixels], wanted: Sequence[tuple[int, str]], **how: bool
) -> list[float]:
    """Return margins of (case, question) pairs in their order."""
    owners = sorted({case for case, _ in wanted})
    lists = {case: [i for i, (owner, _) in enumerate(wanted) if owner == case] for case in owners}
    margins = asker.margins([pictures[c] for c in owners], [[wanted[i][1] for i in lists[c]] for c in owners], **how)
    out = [0.0] * len(wanted)
    for case, values in zip(owners, margins, strict=True):
        for index, value in zip(lists[case], values, strict=True):
            out[index] = value
    return out


def _closed(asker: Asker, cases: Sequence[Case], asked: Sequence[Closed]) -> tuple[dict[str, Figure], list[bool]]:
    pictures = {i: case.drawing.pixels for i, case in enumerate(cases)}
    wanted = [(q.case, q.text) for q in asked]
    margins = _grouped(asker, pictures, wanted)
    answers = [margin > 0 for margin in margins]
    out = _rates("closed", asked, answers)
    area = auc([q.gold for q in asked], margins).value
    out["closed, AUC"] = {"value": None if area is None else round(100 * area, 1), "n": len(asked)}
    for number, kind in enumerate(trials.KINDS):
        rows = [(not yes, q.case) for q, yes in zip(asked, answers, strict=True) if q.kind == number]
        out[f"closed, no where {kind}"] = figure([r[0] for r in rows], [r[1] for r in rows])
    for number, finding in enumerate(FINDINGS):
        rows = [(yes == q.gold, q.case) for q, yes in zip(asked, answers, strict=True) if q.finding == number]
        out[f"closed, {finding}"] = figure([r[0] for r in rows], [r[1] for r in rows])
    located = [margin > 0 for margin in _grouped(asker, pictures, wanted, locate=True)]
    out["closed after its place"] = _rates("x", asked, located)["x, balanced accuracy"]
    grey = {i: np.full((SIZE, SIZE), 128, np.uint8) for i in range(len(cases))}
    blind = [margin > 0 for margin in _grouped(asker, grey, wanted)]
    out["closed, grey picture"] = _rates("x", asked, blind)["x, balanced accuracy"]
    anywhere = [bool(cases[q.case].truth.present[0, q.finding]) for q in asked]
    out["closed, floor: the finding anywhere"] = _rates("x", asked, anywhere)["x, balanced accuracy"]
    return out, answers


def _rates(name: str, asked: Sequence[Closed], answers: Sequence[bool]) -> dict[str, Figure]:
    pairs = list(zip(asked, answers, strict=True))
    yes = figure([s for q, s in pairs if q.gold], [q.case for q, _ in pairs if q.gold])
    no = figure([not s for q, s in pairs if not q.gold], [q.case for q, _ in pairs if not q.gold])
    return {
        f"{name}, balanced accuracy": balanced(yes, no),
        f"{name}, yes rightly": yes,
        f"{name}, no rightly": no,
        f"{name}, says yes": figure(list(answers), [q.case for q in asked]),
    }


def _swapped(asker: Asker, cases: Sequence[Case], positives: Sequence[Closed]) -> dict[str, Figure]:
    """Return how often a yes turns into a no when words change, and when they should not matter."""
    valid = np.stack([case.share for case in cases]).max(axis=0) > HOLDS
    pictures = {i: case.drawing.pixels for i, case in enumerate(cases)}
    swapped = [trials.swaps(q, cases[q.case], valid) for q in positives]
    out: dict[str, Figure] = {}
    for name, field in (
        ("TPT, anatomy swapped", "anatomy"),
        ("TPT, disease swapped", "disease"),
        ("control, paraphrase", "paraphrase"),
        ("control, another true pair", "other"),
    ):
        wanted = [
            (q.case, text)
            for q, swap in zip(positives, swapped, strict=True)
            if (text := getattr(swap, field)) is not None
        ]
        out[f"{name}, flips"] = figure([m <= 0 for m in _grouped(asker, pictures, wanted)], [c for c, _ in wanted])
    return out


def _redrawn(
    asker: Asker,
    cases: Sequence[Case],
    positives: Sequence[Closed],
) -> dict[str, Figure]:
    """Return how often a yes turns into a no when the finding leaves the picture: redrawn, or pasted over."""
    without: dict[tuple[int, int], Pixels] = {}
    for q in positives:
        if (q.case, q.finding) not in without:
            scene = cases[q.case].drawing.scene.without(FINDINGS[q.finding])
            without[q.case, q.finding] = draw(scene, SIZE).pixels
    pasted = [(q, picture) for q in positives if (picture := trials.pasted(q, cases)) is not None]
    jobs: dict[str, list[tuple[Closed, Pixels]]] = {
        "VPT, redrawn without the finding": [(q, without[q.case, q.finding]) for q in positives],
        "VPT, pasted": pasted,
        # An enlarged heart stays enlarged under any heart that is stretched into its outline.
        "VPT, pasted, without cardiomegaly": [(q, p) for q, p in pasted if FINDINGS[q.finding] != "Cardiomegaly"],
    }
    out = {}
    for name, rows in jobs.items():
        margins = asker.margins([picture for _, picture in rows], [[q.text] for q, _ in rows])
        out[f"{name}, flips"] = figure([m[0] <= 0 for m in margins], [q.case for q, _ in rows])
    return out


def _quartets(asker: Asker, quartets: Sequence[Quartet]) -> dict[str, Figure]:
    """Return the share of right answers to four questions about both scenes, and how often all eight are right."""
    hits: list[list[bool]] = []
    for one in quartets:
        pairs = [(one.first_region, one.first), (one.second_region, one.second)]
        crossed = [(one.second_region, one.first), (one.first_region, one.second)]
        texts = [trials.ask(ANATOMIES.index(region), FINDINGS.index(f)) for region, f in (*pairs, *crossed)]
        pictures = [draw(scene, SIZE).pixels for scene in (one.one, one.two)]
        first, second = asker.margins(pictures, [texts, texts])
        gold = [True, True, False, False]
        answers = [*(m > 0 for m in first), *(m <= 0 for m in second)]
        hits.append([yes == right for yes, right in zip(answers, gold + gold, strict=True)])
    owner = [index for index, row in enumerate(hits) for _ in row]
    return {
        "quartets, right (chance, words, and anywhere in the picture: 50)": figure([h for r in hits for h in r], owner),
        "quartets, all eight right": figure([all(row) for row in hits], range(len(hits))),
    }


def _masks(asker: Asker, cases: Sequence[Case]) -> dict[str, Figure]:
    """Return Dice and IoU of the eight anatomies at 224 pixels."""
    several = cases[:100]
    dice, union = np.empty((len(several), len(ANATOMIES))), np.empty((len(several), len(ANATOMIES)))
    for index, case in enumerate(several):
        masks = region_masks(case.drawing)
        truth = np.stack([masks[name] for name in ANATOMIES])
        drawn = asker.masks(case.drawing.pixels, ANATOMIES)
        both, either = (truth & drawn).sum((1, 2)), (truth | drawn).sum((1, 2))
        dice[index], union[index] = 2 * both / np.maximum(1, both + either), both / np.maximum(1, either)
    owner = list(range(len(several)))
    out = {"mask Dice": figure(dice.mean(1).tolist(), owner), "mask IoU": figure(union.mean(1).tolist(), owner)}
    return out | {f"mask Dice, {name}": figure(dice[:, i].tolist(), owner) for i, name in enumerate(ANATOMIES)}


def _captions(asker: Asker, cases: Sequence[Case]) -> dict[str, Figure]:
    """Return how often the true caption is likelier than a false one, with the picture and with a grey one."""
    from medground.worlds.phantom.questions import DESCRIBE

    grey = np.full((SIZE, SIZE), 128, np.uint8)
    hits: dict[str, list[tuple[bool, int]]] = {}
    for trial in trials.captions(cases):
        several = [trial.true, *trial.false.values()]
        seen = asker.log_probabilities(cases[trial.case].drawing.pixels, DESCRIBE, several)
        blind = asker.log_probabilities(grey, DESCRIBE, several)
        for number, kind in enumerate(trial.false, start=1):
            hits.setdefault(f"captions, {kind}", []).append((seen[0] > seen[number], trial.case))
            hits.setdefault(f"captions, {kind}, grey picture", []).append((blind[0] > blind[number], trial.case))
            gained = seen[0] - blind[0] > seen[number] - blind[number]
            hits.setdefault(f"captions, {kind}, less the grey picture's", []).append((gained, trial.case))
    return {name: figure([h for h, _ in rows], [c for _, c in rows]) for name, rows in hits.items()}


def _open(cases: Sequence[Case], reply: Callable[[Sequence[tuple[Pixels, str]]], list[str]]) -> dict[str, Figure]:
    """Return micro precision, recall and F1 of open answers, and how often "normal" is said rightly."""
    asked = trials.opened(cases)
    texts = reply([(cases[q.case].drawing.pixels, q.text) for q in asked])
    named = [frozenset(f.lower() for f in FINDINGS if f.lower() in text.split(" at ")[-1]) for text in texts]
    hit = sum(len(n & q.gold) for n, q in zip(named, asked, strict=True))
    said, gold = sum(map(len, named)), sum(len(q.gold) for q in asked)
    precision, recall = (hit / said if said else None), hit / gold if gold else None
    f1 = 2 * hit / (said + gold) if said + gold else None
    normal = [(not n, q.case) for n, q in zip(named, asked, strict=True) if not q.gold]
    plain = {
        name: {"value": None if value is None else round(100 * value, 1), "n": len(asked)}
        for name, value in (("precision", precision), ("recall", recall), ("F1", f1))
    }
    return {f"open, micro {name}": value for name, value in plain.items()} | {
        "open, normal rightly": figure([h for h, _ in normal], [c for _, c in normal])
    }
