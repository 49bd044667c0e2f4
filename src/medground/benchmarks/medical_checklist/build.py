"""Captions in, items out: mentions, a pool of terms that the captions themselves use, one negative a term.

The same captions, terminology, settings and seed give the same items in the same order, whatever the order of the input
and the number of workers. Everything that gives no item is counted with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from typing import Any, Literal

from medground.benchmarks.medical_checklist.audit.ngrams import BigramModel
from medground.benchmarks.medical_checklist.hashing import number
from medground.benchmarks.medical_checklist.items import ChecklistItem, sides
from medground.benchmarks.medical_checklist.linking import set_similarity, word_grams
from medground.benchmarks.medical_checklist.mentions.base import Mention, MentionFinder
from medground.benchmarks.medical_checklist.mentions.dictionary import Dictionary
from medground.benchmarks.medical_checklist.sampling import Form, Pool, Sampling, Seen, draw, pool
from medground.benchmarks.medical_checklist.semantic_types import in_benchmark
from medground.benchmarks.medical_checklist.sources.base import Captioned
from medground.benchmarks.medical_checklist.substitution import rules
from medground.benchmarks.medical_checklist.substitution.company import refuse_company, refuse_fit
from medground.benchmarks.medical_checklist.substitution.context import context
from medground.benchmarks.medical_checklist.terminologies.base import Terminology
from medground.benchmarks.medical_checklist.words import tokens

CHUNK = 2000
GRAMS = "3-grams (set cosine)"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Settings:
    """What a build depends on beside captions and terminology.

    Attributes:
        sampling: how the replacement is drawn; ``uniform`` over distinct terms is the paper's.
        placing: ``same``: only forms that the corpus uses in such a place of a sentence, and terms of place on the same
            axis; ``any``: every form (the paper).
        seed: of every draw.
        most_per_caption: at most so many items a caption; None: one a term.
    """

    sampling: Sampling = "frequency"
    placing: Literal["same", "any"] = "same"
    seed: int = 0
    most_per_caption: int | None = None


PAPER = Settings("uniform", "any")


@dataclass
class Report:
    """What became of captions and mentions.

    Attributes:
        captions: read and kept.
        mentions: found in them.
        items: made.
        refused_captions: reason -> captions.
        refused_mentions: reason -> mentions that gave no item.
        refused_candidates: reason -> replacements that were passed over.
        items_per_type: type -> items.
        pool: type -> distinct forms that the captions use.
        settings: of the build.
        terminology: fingerprint.
    """

    captions: int = 0
    mentions: int = 0
    items: int = 0
    refused_captions: Counter[str] = field(default_factory=Counter)
    refused_mentions: Counter[str] = field(default_factory=Counter)
    refused_candidates: Counter[str] = field(default_factory=Counter)
    items_per_type: Counter[str] = field(default_factory=Counter)
    pool: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    terminology: str = ""

    def data(self) -> dict[str, Any]:
        """Return the report as JSON-like data, sorted."""
        return {
            key: dict(sorted(value.items())) if isinstance(value, dict) else value
            for key, value in sorted(vars(self).items())
        }


def build(
    captions: Sequence[Captioned],
    terminology: Terminology,
    settings: Settings | None = None,
    *,
    finder: MentionFinder | None = None,
    frozen: Pool | None = None,
    workers: int = 1,
) -> tuple[list[ChecklistItem], Report]:
    """Return the items of captions and what became of the rest.

    Args:
        captions: selected and in canonical order (``sources.base.select``).
        terminology: names, types and relations.
        settings: sampling, placing and seed.
        finder: another way to find mentions; default: the terminology's names.
        frozen: a pool from elsewhere; default: the terms that these captions use.
        workers: processes; they change nothing but the time.
    """
    settings = settings or Settings()
    held = Context(terminology, settings, finder)
    chunks = [captions[i : i + CHUNK] for i in range(0, len(captions), CHUNK)]
    found = [mentions for part in _spread(held, _find, [(c,) for c in chunks], workers) for mentions in part]
    report = Report(captions=len(captions), settings=asdict(settings), terminology=terminology.fingerprint)
    pools = frozen if frozen is not None else pool(_seen(captions, found))
    report.pool = {tui: len(p.forms) for tui, p in pools.items()}
    model = BigramModel(c.caption for c in captions) if settings.sampling == "nearest" else None
    jobs = [(c, found[i * CHUNK : i * CHUNK + len(c)], pools, model) for i, c in enumerate(chunks)]
    items: list[ChecklistItem] = []
    for made, refused, passed in _spread(held, _substitute, jobs, workers):
        items += made
        report.refused_mentions.update(refused)
        report.refused_candidates.update(passed)
    side = sides((i.item_id for i in items), settings.seed)
    items = sorted((replace(i, side=side[i.item_id]) for i in items), key=lambda i: i.item_id)
    report.mentions, report.items = sum(map(len, found)), len(items)
    report.items_per_type = Counter(i.tui for i in items)
    return items, report


@dataclass
class Context:
    """What every worker holds."""

    terminology: Terminology
    settings: Settings
    given: MentionFinder | None

    def __post_init__(self) -> None:
        self.finder: MentionFinder = self.given or Dictionary(self.terminology)


def _find(held: Context, captions: Sequence[Captioned]) -> list[Sequence[Mention]]:
    return [held.finder.find(c.caption) for c in captions]


def _seen(captions: Sequence[Captioned], found: Sequence[Sequence[Mention]]) -> Iterator[Seen]:
    for entry, mentions in zip(captions, found, strict=True):
        for m in mentions:
            place = context(entry.caption, m.start, m.end)
            yield Seen(Form(m.alias, m.concept_ids, m.tuis), in_benchmark(m.tuis), place)


def _substitute(
    held: Context,
    captions: Sequence[Captioned],
    found: Sequence[Sequence[Mention]],
    pools: Pool,
    model: BigramModel | None,
) -> tuple[list[ChecklistItem], Counter[str], Counter[str]]:
    items: list[ChecklistItem] = []
    refused: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    for entry, mentions in zip(captions, found, strict=True):
        made = []
        for mention in mentions:
            tui = _type(held, entry, mention, pools)
            reason = _refusal(held, entry, mention, mentions, tui)
            item = None if reason or not tui else _item(held, entry, mention, mentions, tui, pools, model, passed)
            if item:
                made.append(item)
            else:
                refused[reason or "no_replacement"] += 1
        most = held.settings.most_per_caption
        if most is not None and len(made) > most:
            refused["more_than_asked"] += len(made) - most
            made = sorted(made, key=lambda i: number(held.settings.seed, i.item_id))[:most]
        items += made
    return items, refused, passed


def _item_id(entry: Captioned, mention: Mention) -> str:
    return f"{entry.source}/{entry.caption_id}:{mention.start}-{mention.end}"


def _type(held: Context, entry: Captioned, mention: Mention, pools: Pool) -> str | None:
    """Return the type under which a mention is exchanged: one of its own that the pool has, by the item's number."""
    types = [t for t in in_benchmark(mention.tuis) if t in pools]
    key = number(held.settings.seed, _item_id(entry, mention), mention.start, mention.end)
    return types[key % len(types)] if types else None


def _refusal(
    held: Context, entry: Captioned, mention: Mention, mentions: Sequence[Mention], tui: str | None
) -> str | None:
    reason = rules.refuse_mention(entry.caption, mention, mentions, held.terminology)
    if reason or tui is None or held.settings.placing == "any":
        return reason
    return refuse_company(entry.caption, mention, tui)


def _item(
    held: Context,
    entry: Captioned,
    mention: Mention,
    mentions: Sequence[Mention],
    tui: str,
    pools: Pool,
    model: BigramModel | None,
    passed: Counter[str],
) -> ChecklistItem | None:
    """Return the item of one mention, or None where every candidate is refused."""
    caption, settings = entry.caption, held.settings
    item_id = _item_id(entry, mention)
    key = number(settings.seed, item_id, mention.start, mention.end)

    def refuse(form: Form) -> str | None:
        if settings.placing == "same" and (reason := refuse_fit(caption, mention, form.text, tui)):
            return reason
        return rules.refuse_replacement(
            caption, mention, mentions, form.text, form.concept_ids, form.tuis, held.terminology
        )

    def distance(form: Form) -> float:
        assert model is not None
        return abs(
            model.log_probability(rules.substitute(caption, mention, form.text))[0] - model.log_probability(caption)[0]
        )

    place = context(caption, mention.start, mention.end) if settings.placing == "same" else None
    form, reasons = draw(
        pools[tui], key, settings.sampling, refuse, context=place, distance=distance if model else None
    )
    passed.update(reasons)
    if form is None:
        return None
    parts = rules.replaced(caption, mention, form.text)
    return ChecklistItem(
        item_id,
        entry.caption_id,
        entry.image,
        entry.source,
        entry.split,
        entry.paper,
        entry.licence,
        tui,
        caption,
        "".join(parts),
        mention.start,
        mention.end,
        mention.text,
        parts[1],
        mention.concept_ids,
        form.concept_ids,
        mention.alias,
        form.text,
        mention.score,
        len(tokens(caption)),
        round(set_similarity(word_grams(mention.text), word_grams(form.text), "set_cosine"), 6),
        GRAMS,
        "A",
        lexicon=held.terminology.fingerprint[:16],
    )


_HELD: Context | None = None


def _take(held: Context) -> None:
    global _HELD  # noqa: PLW0603  (one context a worker process, given to it once)
    _HELD = held


def _run(job: tuple[Any, tuple[Any, ...]]) -> Any:
    assert _HELD is not None
    return job[0](_HELD, *job[1])


def _spread(held: Context, function: Any, jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Yield results in the order of the jobs, from this process or from several."""
    if workers <= 1 or len(jobs) <= 1:
        for job in jobs:
            yield function(held, *job)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_take, initargs=(held,)) as executor:
        yield from executor.map(_run, [(function, job) for job in jobs])
