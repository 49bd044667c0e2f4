"""Caption tests on phantoms: mirrored scene pairs, of which no scorer of text alone can pass more than half.

Item 1 shows scene S with caption A true and B false, item 2 the scene S' in which B is true and A false and all else is
equal. Every caption stands once as true and once as false. Both members are kept together: same file, same cluster.
A term is used only if it is true of some phantoms and false of others, with a gap between.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from PIL import Image

from medground.benchmarks.medical_checklist import items as item_files
from medground.benchmarks.medical_checklist.build import GRAMS
from medground.benchmarks.medical_checklist.hashing import number
from medground.benchmarks.medical_checklist.items import ChecklistItem, sides
from medground.benchmarks.medical_checklist.linking import set_similarity, word_grams
from medground.benchmarks.medical_checklist.twin_scenes import KINDS, Twin, twin
from medground.benchmarks.medical_checklist.words import tokens
from medground.errors import ConfigError
from medground.worlds.phantom import statements as language
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.facts import ZONED, Facts, facts
from medground.worlds.phantom.scene import make_scene
from medground.worlds.phantom.statements import Statement

SOURCE = "phantom"
LICENCE = "CC0"
VERSION = 1
NOT_BUILDABLE = {
    "T023": "no body part is true of some phantoms and false of others: all have all",
    "T061": "no treatment leaves a trace in the drawing",
    "T039": "inspiration has no gap between true and false",
    "T037": "no injury is drawn",
    "T030": "a space is never absent",
    "T022": "a system is never absent",
    "T190": "no abnormality of this type is drawn",
    "T038": "no process is drawn",
}
"""Types of the fifteen that phantoms cannot test: listed, never filled with a term that is always false."""

_SPAN = 20
_MOST = 60
"""Cases that are looked at for each pair that is asked for, before the build gives up."""


@dataclass(frozen=True)
class Recipe:
    """What a folder's bytes depend on."""

    pairs: int = 400
    size: int = 224
    seed: int = 0
    version: int = VERSION


def build(out: Path, recipe: Recipe, *, workers: int = 1) -> Path:
    """Draw pairs into a folder: ``items.jsonl``, ``images/``, ``reference.jsonl``, ``build.json``; return it.

    Raises:
        ConfigError: the folder holds something, or so many pairs cannot be found.
    """
    if out.exists() and any(out.iterdir()):
        raise ConfigError("the folder is not empty", where=out, fix="name another folder, or remove this one")
    (out / "images").mkdir(parents=True, exist_ok=True)
    made: list[list[ChecklistItem]] = []
    failed: Counter[str] = Counter()
    for pair, reasons in _mapped(partial(draw_case, out, recipe), recipe, workers):
        failed.update(reasons)
        if pair and len(made) < recipe.pairs:
            made.append(pair)
        elif pair:
            for item in pair:
                (out / str(item.image)).unlink()
        if len(made) == recipe.pairs:
            break
    if len(made) < recipe.pairs:
        raise ConfigError("so many pairs were not found", expected=recipe.pairs, got=len(made))
    held = [item for pair in made for item in pair]
    side = sides((i.item_id for i in held), recipe.seed)
    held = [replace(i, side=side[i.item_id]) for i in held]
    item_files.write(out / "items.jsonl", held)
    kept = {i.image for i in held}
    for picture in (out / "images").iterdir():
        if f"images/{picture.name}" not in kept:
            picture.unlink()
    texts = [{"paper": i.cluster, "caption": i.positive} for i in sorted(held, key=lambda i: i.item_id)]
    (out / "reference.jsonl").write_text("".join(json.dumps(t) + "\n" for t in texts), encoding="utf-8")
    report = {
        "recipe": vars(recipe),
        "items": len(held),
        "items_per_type": dict(sorted(Counter(i.tui for i in held).items())),
        "no_twin": dict(sorted(failed.items())),
        "not_buildable": NOT_BUILDABLE,
    }
    (out / "build.json").write_text(json.dumps(report, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return out


def build_into(folder: Path, recipe: Recipe) -> None:
    """Build into a folder that appears at once when it is complete; one that another process finished is taken."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        build(draft / "made", recipe)
        try:
            (draft / "made").rename(folder)
        except OSError:
            if not (folder / "build.json").is_file():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def draw_case(out: Path, recipe: Recipe, case: int) -> tuple[list[ChecklistItem], Counter[str]]:
    """Return the two items of one case with their pictures drawn, or none; and which kinds found no twin."""
    failed: Counter[str] = Counter()
    rng = random.Random(number(recipe.seed, "case", case))  # noqa: S311  (drawing, not cryptography)
    first = case % len(KINDS)
    for kind in (*KINDS[first:], *KINDS[:first]):
        found = twin(kind, make_scene(recipe.seed, case), rng)
        if found is not None:
            return _items(out, recipe, case, found, rng), failed
        failed[kind] += 1
    return [], failed


def _items(out: Path, recipe: Recipe, case: int, found: Twin, rng: random.Random) -> list[ChecklistItem]:
    context = _context(found, rng)
    order = list(range(len(context) + 1))
    rng.shuffle(order)
    opening = rng.choice(language.OPENINGS) if found.kind != "view" else None
    texts = [_caption(opening, context, order, part) for part in (found.first, found.second)]
    pair = f"phantom_{recipe.seed}_{case:06d}"
    made = []
    for member, scene in enumerate((found.scene, found.other)):
        (positive, start, term), (negative, _, wrong) = texts[member], texts[1 - member]
        name = hashlib.sha256(f"{recipe.seed}:{case}:{member}".encode()).hexdigest()[:16]
        Image.fromarray(draw(scene, recipe.size).pixels).save(out / "images" / f"{name}.png", compress_level=6)
        concepts = found.concepts if member == 0 else found.concepts[::-1]
        made.append(
            ChecklistItem(
                f"{pair}:{member}", f"{pair}:{member}", f"images/{name}.png", SOURCE, "", pair, LICENCE, found.tui,
                positive, negative, start, start + len(term), term, wrong, (concepts[0],), (concepts[1],),
                term.lower() if not term.isupper() else term, wrong.lower() if not wrong.isupper() else wrong, 1.0,
                len(tokens(positive)), round(set_similarity(word_grams(term), word_grams(wrong), "set_cosine"), 6),
                GRAMS, "A", pair=pair, lexicon="phantom",
            )
        )  # fmt: skip
    return made


def _context(found: Twin, rng: random.Random) -> list[str]:
    """Return further sentences, true of both scenes, about nothing that the pair is about."""
    both = facts(found.scene), facts(found.other)
    about = set(found.findings)
    options = [s for s in _statements(both[0]) if s.finding not in about]
    kept: list[str] = []
    told: set[str] = set()
    rng.shuffle(options)
    for statement in options:
        if statement.finding in told or (statement.kind == "absent" and rng.random() < 0.75):
            continue
        if all(statement.holds(f) is True for f in both):
            kept.append(_sentence(statement, rng))
            told.add(statement.finding)
        if len(kept) == 3:
            break
    return kept


def _statements(f: Facts) -> Iterator[Statement]:
    for finding in f.present:
        fact = f.findings[finding]
        if fact.side in ("right", "left"):
            yield Statement("side", finding, fact.side)
            if fact.third and finding in ZONED:
                yield Statement("third", finding, fact.side, fact.third)
        else:
            yield Statement("present", finding)
    for finding in sorted({x for held in language.TERMS.values() for x in held}):
        if not f.has(finding):
            yield Statement("absent", finding)


def _sentence(s: Statement, rng: random.Random) -> str:
    name = rng.choice(language.names(s.finding))
    words = {"f": name, "s": s.value, "t": rng.choice(language.THIRDS[s.third]) if s.third else ""}
    return language.capital(rng.choice(language.PATTERNS[s.kind]).format_map(words))


def _caption(
    opening: str | None, context: Sequence[str], order: Sequence[int], part: tuple[str, str, str]
) -> tuple[str, int, str]:
    """Return a caption, where its changeable term starts, and the term as written."""
    left, term, right = part
    if not left:
        term = language.capital(term)
    else:
        left = language.capital(left)
    sentences: list[tuple[str, str, str]] = [(left, term, right) if i == 0 else (context[i - 1], "", "") for i in order]
    if opening is not None:
        sentences.insert(0, (opening, "", ""))
    text, start = "", 0
    for sentence in sentences:
        text += " " if text else ""
        if sentence[1]:
            start = len(text) + len(sentence[0])
        text += "".join(sentence) + "."
    return text, start, term


def _mapped(work: Any, recipe: Recipe, workers: int) -> Iterator[tuple[list[ChecklistItem], Counter[str]]]:
    """Yield the results of every case in order, made here or by processes of their own."""
    cases = range(recipe.pairs * _MOST)
    if workers == 1:
        yield from map(work, cases)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for first in range(0, len(cases), _SPAN * workers):
            yield from pool.map(work, cases[first : first + _SPAN * workers], chunksize=_SPAN // 4)
