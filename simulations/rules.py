"""The rules of decision that ``make mutations`` breaks, one a line of code, and the tests that should notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One rule broken.

    Attributes:
        rule: what is broken, in words.
        file: below ``src/medground``: a file, or a folder in one of whose files it stands.
        old: the line or part of it, which stands there once.
        new: what takes its place.
        tests: below ``tests``: files that should notice.
    """

    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


DECIDE, VERDICTS, XBENCH = "metrics/decide.py", "benchmarks/gridvqa_x/verdicts.py", "benchmarks/xbench"
T_DECIDE = ("metrics/test_decide.py",)
T_INFERENCE = ("metrics/test_permutation.py", "metrics/test_inference.py")
T_GRID = ("benchmarks/gridvqa_x/test_verdicts.py",)
T_CLAIMS = tuple(f"benchmarks/xbench/test_{name}.py" for name in ("claims", "prior", "verdicts"))
T_PAIRS = ("benchmarks/xbench/test_pairs.py",)
T_SUMMARY = ("benchmarks/xbench/test_summarise.py",)
T_COMPARING = ("benchmarks/test_comparing.py",)
T_LIMITS = ("benchmarks/test_limits.py",)
T_RESULTS = ("benchmarks/test_results.py",)

MUTATIONS = (
    # The interval decides, not the value.
    Mutation(
        "a floor is beaten by the interval",
        DECIDE,
        "beyond = estimate.low > floor + margin or estimate.high",
        "beyond = (estimate.value or 0) > floor + margin or estimate.high",
        T_DECIDE,
    ),
    Mutation(
        "worse than a floor needs the interval",
        DECIDE,
        "or estimate.high < floor - margin",
        "or (estimate.value or 0) < floor - margin",
        T_DECIDE,
    ),
    Mutation(
        "a difference is beyond its margin with its interval",
        DECIDE,
        "beyond = difference.low > margin or",
        "beyond = difference.value > margin or",
        T_DECIDE,
    ),
    Mutation(
        "a direction needs the interval beyond zero",
        DECIDE,
        "sign = 1 if difference.low > 0 else",
        "sign = 1 if difference.value > 0 else",
        T_DECIDE,
    ),
    Mutation(
        "a claim needs the family's p",
        DECIDE,
        "p = difference.p_claim\n    margin",
        "p = difference.p\n    margin",
        T_DECIDE,
    ),
    Mutation(
        "a claim needs p at most .05", DECIDE, "shown = p is not None and p <= ALPHA", "shown = p is not None", T_DECIDE
    ),
    Mutation(
        "a claim needs the margin",
        DECIDE,
        'if direction and beyond:\n        word: Word = "better" if direction '
        '> 0 else "worse"\n        return Decision(word, f"{figures}, beyond the margin of {_margin(spec, rule)}'
        '", rule.margin, direction)\n    if _inside(difference',
        'if direction:\n        word: Word = "better" '
        'if direction > 0 else "worse"\n        return Decision(word, f"{figures}, beyond the margin of '
        '{_margin(spec, rule)}", rule.margin, direction)\n    if _inside(difference',
        T_DECIDE,
    ),
    Mutation(
        "lower may be better",
        DECIDE,
        'direction = (sign if spec.direction == "higher" else -sign) if shown else 0',
        "direction = sign if shown else 0",
        T_DECIDE,
    ),
    Mutation(
        "equivalence needs the narrower interval inside the margin",
        DECIDE,
        "centre - rule.margin < estimate.inner_low and estimate.inner_high < centre + rule.margin",
        "centre - rule.margin < (estimate.value or 0.0) < centre + rule.margin",
        T_DECIDE,
    ),
    Mutation(
        "equivalence is two-sided",
        DECIDE,
        "centre - rule.margin < estimate.inner_low and estimate.inner_high",
        "estimate.inner_high",
        T_DECIDE,
    ),
    Mutation("nothing is claimed below the minimum", DECIDE, "evidence[0] >= least", "evidence[0] >= 1", T_DECIDE),
    Mutation("the minimum itself suffices", DECIDE, "evidence[0] >= least", "evidence[0] > least", T_DECIDE),
    Mutation(
        "half of the classes need the minimum",
        DECIDE,
        "2 * sum(n >= least for n in evidence) >= len(evidence)",
        "any(n >= least for n in evidence)",
        T_DECIDE,
    ),
    Mutation("every class needs two patients", DECIDE, "min(evidence) >= FEWEST_IN_A_CLASS and", "True and", T_DECIDE),
    Mutation(
        "a method that does not repeat itself says nothing",
        DECIDE,
        "if reliability < rule.reliability:",
        "if reliability < 0:",
        T_DECIDE,
    ),
    Mutation(
        "in part is neither yes nor no",
        DECIDE,
        'return "in part" if "yes" in answers',
        'return "yes" if "yes" in answers',
        T_DECIDE,
    ),
    # Tests and families.
    Mutation(
        "a drawn p is never 0 (flips)",
        "metrics/permutation.py",
        "one = 0 if differs.size <= ENUMERATED else 1",
        "one = 0",
        T_INFERENCE,
    ),
    Mutation(
        "a drawn p is never 0 (swaps)",
        "metrics/permutation.py",
        "one = 0 if differing <= ENUMERATED else 1",
        "one = 0",
        T_INFERENCE,
    ),
    Mutation(
        "a ranking needs the plain and the studentised difference",
        "metrics/permutation.py",
        "return float(kept.max())",
        "return float(kept.min())",
        ("metrics/test_permutation.py",),
    ),
    Mutation(
        "sums that differ in the last bit are equal",
        "metrics/permutation.py",
        "return observed * (1 - TOLERANCE) - ROUNDING",
        "return observed * (1 + TOLERANCE)",
        T_INFERENCE,
    ),
    Mutation(
        "max-T steps down",
        "metrics/permutation.py",
        "stepped[order] = np.maximum.accumulate(stepped[order])",
        "pass",
        T_INFERENCE,
    ),
    Mutation(
        "a family is corrected by its largest statistic",
        "metrics/permutation.py",
        "largest = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]",
        "largest = flipped[:, order]",
        T_INFERENCE,
    ),
    Mutation(
        "Holm multiplies by what is left",
        "metrics/permutation.py",
        "np.arange(p.size, 0, -1)",
        "np.ones(p.size)",
        T_INFERENCE,
    ),
    Mutation(
        "the family's p is carried by every member",
        "metrics/differences.py",
        "return self.p if self.family is None else self.p_family",
        "return self.p",
        (*T_INFERENCE, *T_DECIDE),
    ),
    Mutation(
        "one patient has no interval",
        "metrics/inference.py",
        "if part.patients < 2:\n        return _with_limits(part, None, None, level, ONE_PATIENT)",
        "if part.patients < 1:\n        return _with_limits(part, None, None, level, ONE_PATIENT)",
        T_INFERENCE,
    ),
    Mutation(
        "an interval cannot collapse",
        "metrics/inference.py",
        "shrunk = (patients * variance + c * t * (1 - t) / effective) / (patients + c)",
        "shrunk = variance + 1e-300",
        T_INFERENCE,
    ),
    Mutation(
        "gain and loss are joined with their correlation",
        "metrics/differences.py",
        "a * a + b * b - 2 * r * a * b",
        "a * a + b * b",
        T_INFERENCE,
    ),
    # XBench: claims, floors, thresholds, support.
    Mutation(
        "of several floors the hardest decides",
        DECIDE,
        "return min(decisions",
        "return max(decisions",
        T_DECIDE,
    ),
    Mutation(
        "a finding that fails makes it in part",
        f"{XBENCH}/claims.py",
        'if decision.answer == "no"]',
        'if decision.answer == "not asked"]',
        T_CLAIMS,
    ),
    Mutation(
        "a threshold that nobody searched is its companion",
        f"{XBENCH}/claims.py",
        'self.unsearched is not None and self.unsearched.answer != "yes"',
        "False",
        T_CLAIMS,
    ),
    Mutation(
        "overlap is decided on the cross-fitted threshold",
        f"{XBENCH}/claims.py",
        'overlap = "dice@crossfit" if "dice@crossfit" in values else "dice@best"',
        'overlap = "dice@best"',
        T_CLAIMS,
    ),
    Mutation(
        "pointing is held against the class prior",
        f"{XBENCH}/claims.py",
        'against("pointing", "pointing_prior")',
        'against("pointing", "dice_floor")',
        T_CLAIMS,
    ),
    Mutation(
        "a searched threshold maximises the printed mean",
        f"{XBENCH}/pairs.py",
        'by = finding[source] if protocol.searched_mean == "macro" else',
        "by =",
        T_PAIRS,
    ),
    Mutation(
        "a cross-fitted threshold comes from the other half",
        f"{XBENCH}/pairs.py",
        "(fold != f) | (protocol",
        "(fold == f) | (protocol",
        T_PAIRS,
    ),
    Mutation(
        "pointing and AUC stand on shared support",
        f"{XBENCH}/relation.py",
        'everywhere = every.filter(pl.col("models") == len(models))',
        'everywhere = every.filter(pl.col("models") > 0)',
        T_SUMMARY,
    ),
    Mutation(
        "what a model has seen is left out",
        f"{XBENCH}/summarise.py",
        'yield "main", rows.filter(~pl.col("seen"))',
        'yield "main", rows',
        T_SUMMARY,
    ),
    # Comparisons, limits, results.
    Mutation(
        "groups and wholes are families of their own",
        "benchmarks/comparing.py",
        "(c.sample.spec.name, c.scope) == (name, scope)]",
        "c.sample.spec.name == name]",
        T_COMPARING,
    ),
    Mutation(
        "another truth about an item is refused",
        "benchmarks/comparing.py",
        "if name in columns and not (joined",
        'if name == "about" and not (joined',
        T_COMPARING,
    ),
    Mutation(
        "McNemar needs one item a patient",
        "benchmarks/comparing.py",
        "if not alone or not a.size",
        "if not a.size",
        T_COMPARING,
    ),
    Mutation(
        "a limit is passed by the whole interval",
        DECIDE,
        'return "yes" if low > edge',
        'return "yes" if high > edge',
        T_LIMITS,
    ),
    Mutation(
        "a limit that lies in the interval cannot be told",
        DECIDE,
        '"no" if high <= edge else "cannot be told"',
        '"no"',
        T_LIMITS,
    ),
    Mutation(
        "a failed limit outweighs the others",
        "benchmarks/limits.py",
        'order: tuple[Outcome, ...] = ("failed", "cannot be told")',
        'order: tuple[Outcome, ...] = ("cannot be told", "failed")',
        T_LIMITS,
    ),
    Mutation(
        "an undefined figure has no floor beside it",
        "benchmarks/cells.py",
        "if own is not None or cell.value is None:",
        "if own is not None:",
        T_RESULTS,
    ),
    # GridVQA-X.
    Mutation(
        "without a shortcut model nothing is asked",
        VERDICTS,
        'if "cross" not in regimes:',
        "if False:",
        T_GRID,
    ),
    Mutation(
        "comparisons of depth 1 hold no relation",
        VERDICTS,
        ' & ~((pl.col("type") == "CMP") & (pl.col("depth") == 1))',
        "",
        T_GRID,
    ),
    Mutation(
        "ties count half in the right order", VERDICTS, "((a > b) + 0.5 * (a == b)).mean()", "(a > b).mean()", T_GRID
    ),
    Mutation(
        "an explanation must repeat itself",
        VERDICTS,
        'decide_difference(difference, _MASS, rule, reliability=check["reliability"])',
        "decide_difference(difference, _MASS, rule, reliability=1.0)",
        T_GRID,
    ),
    # The engine and the pictures, as far as they decide numbers.
    Mutation(
        "a map without a positive value is not turned round",
        "metrics/saliency.py",
        "high if high > 0 else 1.0, uncovered)",
        "high or 1.0, uncovered)",
        ("metrics/test_saliency.py",),
    ),
    Mutation(
        "files made of old numbers go",
        "running/store.py",
        "self._remove_summary_files()\n        derived",
        "derived",
        ("running/test_store.py",),
    ),
    Mutation(
        "the least recently used picture goes first",
        "imaging/cache.py",
        "if entry.stat().st_mtime_ns == used:",
        "if True:",
        ("imaging/test_cache.py",),
    ),
    Mutation(
        "an offset that is not whole is refused",
        "imaging/geometry.py",
        "if any(place != round(place) for place in geometry.offset):",
        "if False:",
        ("imaging/test_geometry.py",),
    ),
    Mutation(
        "the first item's error is raised",
        "running",
        "raise min(self._errors, key=lambda entry: entry[0])[1]",
        "raise max(self._errors, key=lambda entry: entry[0])[1]",
        ("running/test_measuring.py",),
    ),
    Mutation(
        "chunks that wait for the disk are bounded",
        "running",
        "threading.BoundedSemaphore(_UNWRITTEN_CHUNKS)",
        "threading.BoundedSemaphore(10**9)",
        ("running/test_measuring.py",),
    ),
)
