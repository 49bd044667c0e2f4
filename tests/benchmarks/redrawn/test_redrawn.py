"""Explanations of phantoms against models that are known to look at one thing and at nothing else."""

from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.redrawn import RedrawnBenchmark
from medground.benchmarks.redrawn.asking import FindingAnswerer, question_of
from medground.benchmarks.redrawn.rows import DENIED, NOTHING, OWN, best, laid, on_cause, row_of
from medground.benchmarks.redrawn.scenes import findings_of, redrawn
from medground.benchmarks.requests import Answer
from medground.errors import ConfigError
from medground.explainers.emap import Emap
from medground.imaging.geometry import Geometry
from medground.models.base import MatchScores, ModelInfo, Prediction

CASES, SEED, SIZE = 6, 77, 64
BRIGHT = {f"{case}": redrawn(SEED, case, SIZE) for case in range(CASES) if findings_of(SEED, case)}


class Seer:
    """Knows every whole phantom by heart: says yes the surer, the less of it was changed; maps where it is told to."""

    name: ClassVar[str] = "seer"
    info: ClassVar[ModelInfo] = ModelInfo("Seer")

    def __init__(self, honest: bool = True) -> None:
        self.honest = honest

    def predict(self, images, findings) -> Prediction:
        scores, maps = [], []
        for image in images:
            shown = min(BRIGHT.values(), key=lambda b: float(np.abs(b.whole[..., 0] - image.pixels).sum()))
            changed = np.abs(shown.whole[..., 0] - image.pixels) > 2.5 / 255
            named = (
                next(f for f in shown.regions if f.lower() == findings[0]) if self.known(shown, findings[0]) else None
            )
            region = shown.regions[named] if named else np.zeros((SIZE, SIZE), bool)
            scores.append(2.0 - 4.0 * (changed & region).sum() / max(region.sum(), 1))
            maps.append(region if self.honest else ~region)
        scores = np.array(scores)[:, None]
        saliency = np.array(maps, np.float32)[:, None]
        geometry = [Geometry.identity((SIZE, SIZE))] * len(images)
        return Prediction(scores, 1 / (1 + np.exp(-scores)), saliency, geometry)

    @staticmethod
    def known(shown, finding: str) -> bool:
        return finding in {f.lower() for f in shown.regions}

    def fingerprint(self) -> str:
        return f"seer-{self.honest}"


class Denier(Seer):
    """Says no to everything."""

    name: ClassVar[str] = "denier"

    def predict(self, images, findings) -> Prediction:
        told = super().predict(images, findings)
        return Prediction(told.scores - 9, 1 / (1 + np.exp(9 - told.scores)), told.saliency, told.geometry)


class Matcher:
    """Prefers the caption that affirms by the brightness of the picture."""

    name: ClassVar[str] = "matcher"
    info: ClassVar[ModelInfo] = ModelInfo("Matcher")

    def match(self, images, captions) -> MatchScores:
        assert captions[0] == ["There is mass.", "There is no mass."]
        raw = np.array([[float(image.pixels.mean()), 0.25] for image in images])
        return MatchScores(raw, 10.0, "contrastive")

    def fingerprint(self) -> str:
        return "matcher"


def run(*models, **options):
    bench = RedrawnBenchmark(cases=CASES, seed=SEED, size=SIZE, **{"grid": 8} | options)
    bench.bind(Setting([Entry(f"{cls.name}{i}", cls.name, cls, p) for i, (cls, p) in enumerate(models)]))
    rows = {}
    for task in bench.tasks():
        players = {role: entry.build() for role, entry in task.roles.items()}
        made = [row for measured in evaluate(task, players) for row in measured.rows]
        rows[task.path] = pl.DataFrame(made, schema=task.schema)
    return bench, rows


@pytest.fixture(scope="module")
def seen():
    return run((Seer, {"honest": True}), (Seer, {"honest": False}))


def test_a_model_that_maps_what_it_reads_is_truthful_and_one_that_maps_the_rest_is_not(seen):
    _, rows = seen
    honest, liar = (table.filter(pl.col("method") == OWN) for table in rows.values())
    # Where two findings overlap, some of what the answer hangs on is the other one's.
    assert honest["mass"].drop_nulls().median() == pytest.approx(1)
    assert honest["mass"].drop_nulls().min() > 0.8
    assert honest["follows"].drop_nulls().min() == 1
    assert liar["mass"].drop_nulls().median() == pytest.approx(0)
    assert liar["mass"].drop_nulls().max() < 0.2
    # Occlusion asks the model, whatever the model maps.
    both = [table.filter(pl.col("method") == "occlusion")["mass"].to_list() for table in rows.values()]
    assert both[0] == both[1]


def test_occlusion_finds_what_the_model_reads(seen):
    _, rows = seen
    table = next(iter(rows.values())).filter(pl.col("method") == "occlusion", pl.col("mass").is_not_null())
    assert len(table) >= 4
    assert (table["mass"] > table["prior"]).mean() > 0.7
    assert (table["mass"] > table["even"]).all()
    np.testing.assert_allclose(table["mass"], table["ceiling"], atol=0.12)


def test_few_patients_allow_no_claim_and_cells_carry_intervals_and_counts(seen):
    bench, rows = seen
    summary = bench.summarise(rows)
    assert {v.question for v in summary.verdicts} == {"explains"}
    assert all(v.answer in ("cannot be told", "no") and "few" in v.notes for v in summary.verdicts)
    mass = next(c for c in summary.cells if (c.method, c.scope, c.metric) == (OWN, "all", "mass"))
    assert mass.low is not None
    assert mass.n + mass.undefined == len(next(iter(rows.values())).filter(pl.col("method") == OWN))
    assert set(summary.tables["explanations"]["explanation"]) == {OWN, "occlusion"}


def test_enough_patients_allow_one():
    bench, rows = run((Seer, {"honest": True}), rules={"mass": {"least": 2, "reliability": 0.5}})
    told = {v.method: v.answer for v in bench.summarise(rows).verdicts}
    # Four patients that all gain flip to p = .125: the rule's p value still has its say.
    assert told[OWN] in ("yes", "cannot be told")
    assert told[OWN] != "no"


def test_a_no_is_undefined_with_its_reason():
    _, rows = run((Denier, {}))
    (table,) = rows.values()
    assert table["mass"].null_count() == len(table)
    assert set(table["reason"]) == {DENIED}


def test_regions_are_where_the_picture_changes_and_nowhere_else():
    for shown in BRIGHT.values():
        for finding, other in shown.without.items():
            changed = np.abs(shown.whole - other).max(-1) > 2.5 / 255
            np.testing.assert_array_equal(changed, shown.regions[finding])
            assert changed.any()


def test_mass_is_weighed_by_what_removal_costs():
    left, right = np.zeros((4, 4), bool), np.zeros((4, 4), bool)
    left[:, 0], right[:, 3] = True, True
    values = np.zeros((4, 4))
    values[:, 0] = 1
    odds = Answer(
        {"findings": ["Mass", "Nodule"]},
        {"odds": np.array([3.0, 0.0, 2.0]), "region/Mass": left, "region/Nodule": right},
    )
    told = Answer({"reason": "", "retest": None}, {"map": values})
    row = row_of("i", 0, "Nodule", odds, "m", told)
    # Three of four points of odds hang on the mass, though the nodule was asked about.
    assert row["mass"] == pytest.approx(0.75)
    assert row["follows"] == 0
    assert row["even"] == pytest.approx(0.25)
    still = Answer(odds.values, {**odds.arrays, "odds": np.array([3.0, 3.5, 3.0])})
    assert row_of("i", 0, "Mass", still, "m", told)["reason"] == NOTHING


def test_the_best_map_of_a_grid_holds_the_share_of_each_cell():
    region = np.zeros((4, 4), bool)
    region[0, :3] = True
    grid = best((2, 2), {"Mass": region}, {"Mass": 1.0})
    np.testing.assert_allclose(grid, laid(np.array([[0.5, 0.25], [0, 0]]), (4, 4)))
    assert on_cause(grid, {"Mass": region}, {"Mass": 1.0}) == pytest.approx((0.5 * 2 + 0.25) / (0.75 * 4))


def test_a_matcher_is_asked_by_two_captions():
    images = np.stack([np.full((8, 8, 3), v, np.float32) for v in (0.0, 0.5)])
    logits = FindingAnswerer(Matcher(), "mass").logits(images, [question_of("mass")] * 2)
    np.testing.assert_allclose(logits, [[-2.5, 0], [2.5, 0]], atol=1e-6)


def test_explainers_of_pools_are_refused():
    with pytest.raises(ConfigError, match="score pools"):
        RedrawnBenchmark().bind(Setting([Entry("s", "s", Seer)], explainers=[Entry("emap", "emap", Emap)]))


@pytest.mark.parametrize("options", [{"cases": 0}, {"size": 32}, {"grid": 5}, {"level": 1.0}, {"seed": -1}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigError):
        RedrawnBenchmark(**options)
