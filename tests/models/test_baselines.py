"""The baselines: what they say, and that nothing but their seed moves them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from medground.datasets.base import Case
from medground.datasets.lazy import LazyRegions, Maker
from medground.errors import ModelError, RegionError
from medground.imaging.reading import Radiograph
from medground.imaging.regions import Region
from medground.metrics.folds import patient_folds
from medground.models.base import Fitted, Grounder
from medground.models.baselines.baseline_all_foreground import AllForeground
from medground.models.baselines.baseline_centre import CentrePrior
from medground.models.baselines.baseline_class_prior import GRID, ClassPrior
from medground.models.baselines.baseline_random import UniformRandom

FINDINGS = ("Mass", "Nodule")


def picture(case_id: str, size: tuple[int, int] = (30, 20)) -> Radiograph:
    return Radiograph(np.zeros((size[1], size[0]), dtype=np.float32), case_id=case_id)


def cases(n: int = 8) -> list[Case]:
    """Case i of patient i // 2 has a Mass in column i of eight, and no Nodule but in case 0."""
    found = []
    for i in range(n):
        regions = {"Mass": Region.from_boxes((80, 80), [(10 * i, 0, 10 * i + 10, 80)])}
        if i == 0:
            regions["Nodule"] = Region.from_boxes((80, 80), [(0, 0, 80, 40)])
        found.append(Case(f"c{i}", Path("x.png"), patient_id=f"p{i // 2}", regions=regions))
    return found


@pytest.mark.parametrize("model", [AllForeground(), CentrePrior(), UniformRandom(), ClassPrior()])
def test_every_baseline_is_a_grounder_of_the_right_shapes(model: Grounder) -> None:
    assert isinstance(model, Grounder)
    assert model.info.kind == "baseline"
    if isinstance(model, Fitted):
        model.fit(cases(), FINDINGS)
    said = model.predict([picture("c0"), picture("c1", (10, 40))], FINDINGS)
    assert said.scores.shape == said.probabilities.shape == (2, 2)
    assert said.saliency is not None
    assert np.asarray(said.saliency).shape[:2] == (2, 2)
    assert [g.source for g in said.geometry] == [(30, 20), (10, 40)]


def test_the_centre_is_hottest_in_the_middle_and_symmetric() -> None:
    said = CentrePrior(0.25).predict([picture("a")], ["Mass"])
    array = np.asarray(said.saliency)[0, 0]
    assert (array == array[::-1]).all()
    assert (array == array.T).all()
    assert array.max() == array[27, 27]
    # A quarter of the width away from the centre a Gaussian of that width has fallen to exp(-1/2).
    assert array[27, 41] / array[27, 27] == pytest.approx(np.exp(-0.5), rel=0.05)
    assert CentrePrior(0.1).fingerprint() != CentrePrior(0.2).fingerprint()


def test_noise_depends_on_seed_case_and_finding_alone() -> None:
    alone = UniformRandom().predict([picture("b")], ["Nodule"])
    among = UniformRandom().predict([picture("a"), picture("b")], ["Mass", "Nodule"])
    np.testing.assert_array_equal(np.asarray(alone.saliency)[0, 0], np.asarray(among.saliency)[1, 1])
    assert alone.scores[0, 0] == among.scores[1, 1]
    other = UniformRandom(seed=1).predict([picture("b")], ["Nodule"])
    assert other.scores[0, 0] != alone.scores[0, 0]
    everything = np.asarray(among.saliency)
    assert 0.4 < everything.mean() < 0.6
    assert len(np.unique(everything)) == everything.size


def test_the_class_prior_is_the_mean_of_the_other_patients() -> None:
    model, known = ClassPrior(), cases()
    model.fit(known, FINDINGS)
    fold = patient_folds([c.patient_id or "" for c in known], 2, 0)
    assert {fold[i] == fold[i + 1] for i in range(0, 8, 2)} == {True}
    for i, case in enumerate(known):
        others = [c.regions["Mass"].mask_at((GRID, GRID)) for j, c in enumerate(known) if fold[j] != fold[i]]
        prior = model.map_for(case.case_id, "Mass")
        assert prior is not None
        np.testing.assert_allclose(prior, np.mean(others, axis=0), atol=1e-6)


def test_a_finding_without_other_regions_has_no_prior() -> None:
    model = ClassPrior()
    model.fit(cases(), FINDINGS)
    said = model.predict([picture("c0"), picture("c1"), picture("c7")], FINDINGS)
    same_fold = [i for i, c in enumerate(("c0", "c1", "c7")) if model.map_for(c, "Nodule") is None]
    assert 0 in same_fold
    assert set(said.absent) == {(i, 1) for i in same_fold}
    assert np.isnan(np.asarray(said.saliency)[0, 1]).all()


def test_the_class_prior_does_not_depend_on_the_order_of_cases() -> None:
    one, two = ClassPrior(), ClassPrior()
    one.fit(cases(), FINDINGS)
    two.fit(cases()[::-1], FINDINGS)
    for case in cases():
        np.testing.assert_array_equal(one.map_for(case.case_id, "Mass"), two.map_for(case.case_id, "Mass"))


def test_a_region_that_cannot_be_read_leaves_the_prior_of_the_others() -> None:
    def broken() -> Region:
        raise RegionError("a mask is cut short")

    damaged = LazyRegions({"Mass": Maker(broken, "")})
    one, two = ClassPrior(), ClassPrior()
    one.fit([*cases(), Case("bad", Path("x.png"), "p0", regions=damaged)], FINDINGS)
    two.fit(cases(), FINDINGS)
    for case in cases():
        np.testing.assert_array_equal(one.map_for(case.case_id, "Mass"), two.map_for(case.case_id, "Mass"))


def test_an_unfitted_prior_says_so() -> None:
    with pytest.raises(ModelError, match="not seen this case"):
        ClassPrior().predict([picture("c0")], FINDINGS)
