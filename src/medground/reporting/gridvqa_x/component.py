"""The report of GridVQA-X: verdicts on explainers, tables with the published figures, pictures of both models' maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from medground.benchmarks.gridvqa_x.cells import REGIMES
from medground.benchmarks.gridvqa_x.verdicts import ALIKE, CANNOT, TELLS, WRONG
from medground.reporting.composition import Composition, Section
from medground.reporting.gridvqa_x.pictures import drawings
from medground.reporting.gridvqa_x.tables import Regimes, folded_tables, results_tables
from medground.reporting.runs import Run, unique_names
from medground.reporting.sources import Images
from medground.reporting.words import count, listed

MANY = 6
"""Explainers with a line each in the page's head; where there are more, they are counted."""

_SIGNS = {TELLS: "yes", ALIKE: "no", CANNOT: "undecided", WRONG: "no"}
_BY = {"image": "by the image", "text": "by the words"}
_SPOTS = {"image": "on anchors", "text": "on directions and anchors"}


def compose(runs: Sequence[Run], images: Images) -> Composition:  # noqa: ARG001  (the scenes are drawn: all may be shown)
    """Return verdicts, tables and pictures, one set of sections a run."""
    parts = [_Part(run, name, number) for number, (run, name) in enumerate(zip(runs, unique_names(runs), strict=True))]
    several = len(parts) > 1
    return Composition(
        "; ".join(dict.fromkeys(part.subject for part in parts)),
        [(sign, f"{part.name}: {line}" if several else line) for part in parts for sign, line in part.summary()],
        [fact for part in parts for fact in part.facts()],
        [section for part in parts for section in part.sections(named=several)],
    )


class _Part:
    """Everything of one run."""

    def __init__(self, run: Run, name: str, number: int) -> None:
        self.run, self.name, self.anchor = run, name, f"gridvqa-{number}"
        self.data = run.data
        held: Mapping[str, Mapping[str, str]] = run.data["regimes"]
        # A summary sorts its keys; models stand in the order of the paper.
        self.regimes = {regime: held[regime] for regime in REGIMES if regime in held}
        self.cells = Regimes(run.summary.cells, self.regimes)

    @property
    def models(self) -> list[str]:
        """Labels of the models: the one that reasons first."""
        return list(dict.fromkeys(regime["model"] for regime in self.regimes.values()))

    @property
    def explainers(self) -> list[str]:
        """Labels of the explainers, local ones first."""
        named = [entry["method"] for key in ("calls", "additive_fallacy") for entry in self.data[key]]
        return list(dict.fromkeys(named))

    @property
    def subject(self) -> str:
        """Explainers on models."""
        shown = listed(self.explainers) if len(self.explainers) <= MANY else count(len(self.explainers), "explainer")
        return f"{shown or 'Accuracy'} on {listed(self.models)} (GridVQA-X)"

    def summary(self) -> list[tuple[str, str]]:
        """The answers in brief: by explainer where there are few, else counted."""
        if len(self.models) < 2:
            return [("undecided", "One model: without a pair, no explainer can be asked to tell two models apart.")]
        brief = [_brief(method, list(group)) for method, group in groupby(self.data["local"], lambda v: v["method"])]
        brief += [
            (_sign_of(check), f"{check['method']}, additive fallacy check: {check['verdict'].split(':')[0]}.")
            for check in self.data["additive_fallacy"]
            if check["subset"] == "mixed"
        ]
        if len(brief) <= MANY:
            return brief
        words = {"yes": "yes", "partly": "in part", "no": "no", "undecided": "cannot be told"}
        counted = {sign: sum(s == sign for s, _ in brief) for sign in words}
        return [
            (sign, f"Fit to tell the two models apart, {words[sign]}: {n} of {count(len(brief), 'explainer')}.")
            for sign, n in counted.items()
            if n
        ]

    def facts(self) -> list[tuple[str, str]]:
        """Return the lines of the page's head."""
        scenes = [
            f"{self._who(regime)}: {count(self.data['scenes'].get(regime, 0), 'scene')}" for regime in self.regimes
        ]
        level, replicates = self.data["intervals"]["level"], self.data["intervals"]["replicates"]
        how = f"{100 * level:g} %, bootstrap over scenes, {replicates:,} replicates" if replicates else "none"
        return [
            ("Models", listed(self.models)),
            ("Explainers", listed(self.explainers) or "none"),
            ("Scenes", "; ".join(scenes)),
            ("Answers", self.data["filter"]),
            *([("Attributions", self.data["protocol"])] if "protocol" in self.data else []),
            ("Intervals", how),
        ]

    def sections(self, *, named: bool) -> Iterator[Section]:
        """Yield the sections in order; ``named`` adds the run's name to their titles."""
        suffix = f" ({self.name})" if named else ""
        content = {
            "accuracy": list(self._accuracy()),
            "verdicts": [_sentence(verdict, self.models) for verdict in self.data["local"]],
            "checks": [
                _check(check, self.models) for check in self.data["additive_fallacy"] if check["subset"] == "mixed"
            ],
            "single": len(self.models) < 2,
            "warnings": list(self._warnings()),
            "findings": [_finding(finding) for finding in self.data["findings"]],
        }
        title = f"Do the explainers tell reasoning from a shortcut?{suffix}"
        yield Section(f"{self.anchor}-verdict", title, "gridvqa_x/verdict.html", content)
        who = {regime: self._who(regime) for regime in self.regimes}
        printed = self.run.tables.get("published")
        tables = results_tables(self.cells, self.data, who, printed)
        content = {"source": self.data["published_source"], "printed": printed is not None, "folded": ""}
        yield Section(f"{self.anchor}-results", f"Tables{suffix}", "gridvqa_x/tables.html", content, tables)
        folded = folded_tables(self.cells, who)
        if folded:
            content = {"source": "", "printed": False, "folded": f"{count(len(folded), 'long table')}: open"}
            title = f"By type, form and bucket{suffix}"
            yield Section(f"{self.anchor}-groups", title, "gridvqa_x/tables.html", content, folded)
        drawn = drawings(self.data["pictures"], {regime: of["model"] for regime, of in self.regimes.items()})
        yield Section(f"{self.anchor}-pictures", f"Pictures{suffix}", "gridvqa_x/pictures.html", {"drawn": drawn})

    def _who(self, regime: str) -> str:
        return f"{self.regimes[regime]['model']} on {self.regimes[regime]['data']}"

    def _accuracy(self) -> Iterator[str]:
        for regime in self.regimes:
            cell = self.cells.get(regime, "", "accuracy")
            if cell is not None and cell.value is not None:
                interval = f" {_interval(cell.low, cell.high)}".rstrip()
                yield f"{self._who(regime)}: {100 * cell.value:.1f} % right{interval}, {count(cell.n, 'scene')}."

    def _warnings(self) -> Iterator[str]:
        """Yield what must be known before a verdict is quoted."""
        pure, cross = (self.cells.get(regime, "", "accuracy") for regime in ("pure", "cross"))
        if pure and cross and pure.value is not None and cross.value is not None and cross.value >= pure.value:
            yield (
                "On D_pure the shortcut model answers at least as often right as the other: the pair need not differ, "
                "and an explainer that shows no difference may be right."
            )
        if failed := self.data["failed"]:
            yield f"{count(len(failed), 'bucket')} could not be measured: {failed[0]['reason']}"


def _brief(method: str, verdicts: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the sign and one sentence of a local explainer."""
    signs = [_sign(verdict) for verdict in verdicts]
    words = "; ".join(f"{_answer(verdict)} {_BY[verdict['modality']]}" for verdict in verdicts)
    sign = signs[0] if len(set(signs)) == 1 else "partly" if {"yes", "partly"} & set(signs) else signs[0]
    if len({_answer(verdict) for verdict in verdicts}) == 1:
        words = f"{_answer(verdicts[0])} {' and '.join(_BY[v['modality']] for v in verdicts)}"
    return sign, f"{method} {words}."


def _answer(verdict: Mapping[str, Any]) -> str:
    """Return the verdict as it follows the explainer's name."""
    return str(verdict["verdict"]).replace("them", "the two models").replace("undefined", "is undefined")


def _sign(verdict: Mapping[str, Any]) -> str:
    return _SIGNS.get(verdict["verdict"], "undecided")


def _sentence(verdict: Mapping[str, Any], models: Sequence[str]) -> dict[str, Any]:
    """Return what the template says of one local explainer and modality."""
    grounds = []
    if verdict["difference"] is not None:
        first, second = (100 * verdict[key] for key in ("reasoning", "shortcut"))
        gap = f"{100 * verdict['difference']:+.1f} points {_interval(verdict['low'], verdict['high'])}".rstrip()
        spot = _SPOTS[verdict["modality"]]
        grounds.append(f"Mass {spot}: {models[0]} {first:.1f} %, {models[-1]} {second:.1f} %; difference {gap}.")
        grounds.append(
            f"{count(verdict['n'], 'scene')} with relations under both models"
            + (f", {verdict['undefined']} undefined and left out" if verdict["undefined"] else "")
            + f"; in the right order in {100 * verdict['right_order']:.0f} %."
        )
    if verdict["p"] is not None:
        family = f", {verdict['p_family']:.3g} in its family ({verdict['family']})" if verdict["family"] else ""
        grounds.append(f"p = {verdict['p']:.3g}{family}; margin {100 * verdict['margin']:g} points.")
    if verdict["reliability"] is None:
        grounds.append("It was not measured whether the explainer repeats itself.")
    else:
        grounds.append(f"Same scene, other seed: its maps correlate {verdict['reliability']:.2f}.")
    if verdict["distance"] is not None:
        grounds.append(f"The two models' maps differ by {verdict['distance']:.2f} (total variation: 0 alike, 1 apart).")
    if verdict["reason"]:
        grounds.append(f"Undefined: {verdict['reason']}")
    return {
        "sign": _sign(verdict),
        "who": verdict["method"],
        "by": _BY[verdict["modality"]],
        "answer": _capital(_answer(verdict)),
        "grounds": grounds,
    }


def _sign_of(check: Mapping[str, Any]) -> str:
    word = check["verdict"]
    if word.startswith("passes by means"):
        return "partly"
    return "yes" if word.startswith("passes") else "no" if word.startswith("fails") else "undecided"


def _check(check: Mapping[str, Any], models: Sequence[str]) -> dict[str, Any]:
    """Return what the template says of one global explainer."""
    grounds = []
    for regime, who in (("pure", models[0]), ("spurious", models[-1])):
        held = check.get(regime, {})
        if "mean" in held:
            means = ", ".join("undefined" if mean is None else f"{mean:.3g}" for mean in held["mean"])
            low, high = held["slope_interval"]
            slope = "undefined" if held["slope"] is None else f"{held['slope']:+.3g}"
            span = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
            grounds.append(f"{who}: {means} by depth (type M), slope {slope}{span}.")
    if check.get("reason"):
        grounds.append(f"Undefined: {check['reason']}")
    return {
        "sign": _sign_of(check),
        "who": check["method"],
        "by": "additive fallacy check",
        "answer": _capital(check["verdict"]),
        "grounds": grounds,
    }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _finding(finding: Mapping[str, Any]) -> str:
    """Return a pattern of the paper with what was measured: shares in percent, synergy as it is."""
    if "reasoning" not in finding:
        low, high = finding["low"], finding["high"]
        interval = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
        return f"{finding['pattern']}: {finding['result']}, slope {finding['difference']:.3g}{interval}."
    first, second = (f"{100 * finding[key]:.1f} %" for key in ("reasoning", "shortcut"))
    gap = ""
    if "difference" in finding:
        gap = f", {100 * finding['difference']:+.1f} points {_interval(finding['low'], finding['high'])}".rstrip()
    return f"{finding['pattern']}: {finding['result']}; reasoning {first}, shortcut {second}{gap}."


def _interval(low: float | None, high: float | None) -> str:
    """Return shares as ``[low, high]`` in percent, in one piece; nothing where there is none."""
    return "" if low is None or high is None else f"[{100 * low:.1f},\u00a0{100 * high:.1f}]"
