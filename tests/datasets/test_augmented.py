"""A changed dataset: other pictures, regions and words that move along, ids that fit nothing made elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from medground.datasets.augmented import Augmented
from medground.datasets.base import Case, DatasetInfo, fingerprint_cases, names_of, picture_of, pictures_from
from medground.datasets.lazy import LazyRegions, Maker
from medground.errors import RegistryError
from medground.imaging.augmenting import KINDS
from medground.imaging.regions import Region
from medground.registry import create


class Small:
    name: ClassVar[str] = "small"
    info: ClassVar[DatasetInfo] = DatasetInfo("small", (), "none", True, "none", "none", pixels_from="hospital")

    def __init__(self, folder: Path, findings: tuple[str, ...] = ("Left effusion", "Right effusion", "Mass")) -> None:
        self.folder, self.findings = folder, findings

    def cases(self) -> list[Case]:
        regions = {"Left effusion": Region.from_boxes((8, 6), [(5, 1, 7, 3)])}
        lazy = LazyRegions({"Mass": Maker(lambda: Region.from_boxes((8, 6), [(0, 0, 2, 2)]), "mass")})
        labels = {"Left effusion": True, "Right effusion": False, "Mass": None}
        image = self.folder / "a.png"
        return [
            Case("a", image, "p1", "LEFT LATERAL", labels, regions, ("left box clipped",)),
            Case("b", image, "p2", "PA", {"Mass": True}, lazy),
        ]

    def fingerprint(self) -> str:
        return fingerprint_cases(self.cases(), self.folder)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    levels = np.arange(48, dtype=np.uint8).reshape(6, 8) * 5
    Image.fromarray(levels).save(tmp_path / "a.png")
    return Small(tmp_path)


def test_a_flip_exchanges_sides_in_picture_region_label_view_and_note(small: Small) -> None:
    a, b = Augmented(of=small, change="flip").cases()
    assert dict(a.labels) == {"Right effusion": True, "Left effusion": False, "Mass": None}
    assert list(a.regions) == ["Right effusion"]
    assert a.regions["Right effusion"].boxes[0].corners == (1, 1, 3, 3)
    assert (a.view, a.notes, b.view) == ("RIGHT LATERAL", ("right box clipped",), "PA")
    assert b.regions["Mass"].boxes[0].corners == (6, 0, 8, 2)
    plain = picture_of(small.cases()[0])
    assert (picture_of(a).pixels == plain.pixels[:, ::-1]).all()
    assert picture_of(a).case_id == "a@flip"


def test_a_side_that_nobody_asked_for_tells_nothing(small: Small) -> None:
    small.findings = ("Left effusion",)
    (a, _) = Augmented(of=small, change="flip").cases()
    # What was known of the right is true of the left now; what was known of the left is true of what nobody asks for.
    assert dict(a.labels) == {"Left effusion": False, "Mass": None}


@pytest.mark.parametrize("change", KINDS)
def test_cases_keep_patient_and_file_and_say_what_was_done(small: Small, change: Any) -> None:
    made = Augmented(of=small, change=change, amount=0.4 if change == "shift" else None)  # 8 x 6 pixels
    for plain, case in zip(small.cases(), made.cases(), strict=True):
        assert (case.image, case.patient_id) == (plain.image, plain.patient_id)
        assert case.case_id == f"{plain.case_id}@{change}"
        assert made.plain_id(case.case_id) == plain.case_id
        assert (picture_of(case).pixels != picture_of(plain).pixels).any()
        assert len(case.regions) == len(plain.regions)


def test_every_choice_is_part_of_the_identity(small: Small) -> None:
    made = [
        Augmented(of=small, change="noise"),
        Augmented(of=small, change="noise", amount=0.1),
        Augmented(of=small, change="noise", seed=1),
        Augmented(of=small, change="brightness"),
    ]
    marks = [dataset.fingerprint() for dataset in made]
    assert len({*marks, small.fingerprint()}) == 5
    assert Augmented(of=small, change="noise").fingerprint() == marks[0]
    hashes = {fingerprint_cases(dataset.cases(), small.folder) for dataset in [small, *made]}
    assert len(hashes) == 5


def test_it_is_known_as_what_it_changes(small: Small) -> None:
    twice = Augmented(of=Augmented(of=small, change="noise"), change="flip")
    assert names_of(twice) == ("augmented", "augmented", "small")
    assert pictures_from(twice) == "hospital"
    assert twice.cases()[0].case_id == "a@noise@flip"


def test_a_run_file_names_the_other_dataset() -> None:
    made = create("dataset", "augmented", {"of": {"name": "phantom", "cases": 2, "size": 64}, "change": "turn"})
    assert names_of(made) == ("augmented", "phantom")
    assert pictures_from(made) == "phantom"
    with pytest.raises(RegistryError, match="phantoms"):
        create("dataset", "augmented", {"of": {"name": "phantoms"}, "change": "turn"})
