"""Every network equals its published architecture, and verification tells when one does not."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medground import registry
from medground.errors import DataError, ModelError
from medground.models import standin
from medground.models.radiology import medklip
from medground.verification.cases import Case, Golden
from medground.verification.verify import MODELS, CaseResult, OutputResult, compared, verify


def folder_of(request: pytest.FixtureRequest, name: str) -> Path:
    """Return the folder of a model's golden cases; the two largest lie beside the sample data."""
    folder: Path = request.getfixturevalue("golden") / "models" / name
    if (folder / "cases.npz").is_file():
        return folder
    beside: Path = request.getfixturevalue("data_root").parent / "golden" / "models" / name
    if not beside.is_dir():
        pytest.skip(f"the golden cases of {name} do not lie beside the sample data")
    return beside


@pytest.fixture
def cases_of(request: pytest.FixtureRequest) -> Any:
    """A model's name -> the folder of its golden cases."""
    return lambda name: folder_of(request, name)


SHIPPED = {
    "biomedclip": "short",
    "carzero": "image_to_score",
    "clip": "patch32_short",
    "kad": "full_224variant",
    "llava_med": "tiny",
    "m3ae": "short",
    "mavl": "full",
    "medclip": "class_scores",
    "medklip": "full_224",
    "pmc_clip": "image64_short",
}
"""Model -> a case of it that goes the whole shipped way."""


@dataclass
class Opened:
    """The golden cases of a model, computed once; networks stay in place for the tests that follow."""

    name: str
    golden: Golden
    results: list[CaseResult]


@pytest.fixture(scope="module", params=MODELS)
def opened(request: pytest.FixtureRequest) -> Opened:
    """A model's folder; the tests of one model follow each other."""
    golden = Golden.open(folder_of(request, request.param))
    cases = sorted(golden.cases(), key=lambda case: case.name == SHIPPED.get(request.param))  # that one comes last
    golden.cases = lambda: cases  # type: ignore[method-assign]
    return Opened(request.param, golden, compared(golden, request.param))


def test_every_golden_case_is_within_its_tolerance(opened: Opened) -> None:
    assert opened.results
    missed = [(r.case, r.worst) for r in opened.results if not r.passed]
    assert not missed
    # A rounding difference is expected to stay far below the tolerance.
    assert max(r.worst.ratio for r in opened.results) < 0.5


def changed(prediction: Any, *fields: str) -> Any:
    """Return a prediction with some of its arrays a little wrong."""
    for field in fields:
        value = np.asarray(getattr(prediction, field))
        prediction = replace(prediction, **{field: value[..., ::-1, :] if field == "saliency" else value * 1.01})
    return prediction


def test_a_sabotaged_method_of_the_shipped_class_fails(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    if opened.name not in SHIPPED:
        pytest.skip("a network that is part of several models has no class of its own")
    case = next(case for case in opened.golden.cases() if case.name == SHIPPED[opened.name])
    # Beside the case, those that hold the text encoder of the folder.
    kept = [case, *(c for c in opened.golden.cases() if "bert_config" in c.options or c.has("texts"))]
    monkeypatch.setattr(opened.golden, "cases", lambda: kept)
    cls = registry.load("model", opened.name)
    predict, match = cls.predict, getattr(cls, "match", None)
    sabotage: dict[str, list[Any]] = {
        "predict": [
            lambda *given: changed(predict(*given), "scores", "probabilities"),
            lambda *given: changed(predict(*given), "saliency"),
            stopped,
        ],
        "match": [lambda *given: twice(match(*given)), stopped] if match else [],
        "assemble": [stopped] if opened.name in ("clip", "llava_med") else [],
    }
    assert outcome(opened, case) == "passes"
    for method, ways in sabotage.items():
        for way in ways:
            if method == "assemble":
                opened.golden._kept.clear()
            with monkeypatch.context() as patch:
                patch.setattr(cls, method, way)
                assert outcome(opened, case) == ("stops" if way is stopped else "misses")


def stopped(*_: object, **__: object) -> None:
    raise RuntimeError("sabotaged")


def twice(scores: Any) -> Any:
    return replace(scores, scale=2 * scores.scale)


def outcome(opened: Opened, case: Case) -> str:
    """Say whether a case passes, misses or stops."""
    try:
        (result,) = [result for result in compared(opened.golden, opened.name) if result.case == case.name]
    except RuntimeError:
        return "stops"
    return "passes" if result.passed else "misses"


def test_the_shared_tower_is_verified_for_both_its_models(cases_of: Any) -> None:
    assert all(r.passed for r in verify("biomedclip", cases_of("vit_b16_timm")))


def edited(source: Path, target: Path, keep: list[str], **changes: Any) -> Path:
    """Copy a folder with fewer cases and with inputs of another key or order."""
    shutil.copytree(source, target)
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["cases"] = [case for case in manifest["cases"] if case["name"] in keep]
    for case in manifest["cases"]:
        case.update(changes)
    (target / "manifest.json").chmod(0o644)
    (target / "manifest.json").write_text(json.dumps(manifest))
    return target


def test_other_inputs_give_other_outputs_and_a_miss(cases_of: Any, tmp_path: Path) -> None:
    folder = edited(cases_of("medklip"), tmp_path / "cases", ["decoder_only"])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["cases"][0]["inputs"][0]["recipe"]["key"] = "another memory"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (result,) = verify("medklip", folder)
    assert not result.passed
    assert result.worst.ratio > 1000


def test_further_cases_with_other_shapes_are_computed(cases_of: Any, tmp_path: Path) -> None:
    """A new case, whose truth is computed here, passes: another number of images, queries and cells."""
    folder = edited(cases_of("medklip"), tmp_path / "cases", ["decoder_only"])
    manifest = json.loads((folder / "manifest.json").read_text())
    case = manifest["cases"][0]
    case["name"] = "larger"
    case["inputs"][0]["recipe"] = {"kind": "tensor", "key": "m", "shape": [3, 9, 256]}
    case["inputs"][1]["recipe"] = {"kind": "tensor", "key": "q", "shape": [7, 256], "rows": [6, 0, 2]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    network = medklip.MedklipNetwork().eval()
    state = {
        name: torch.from_numpy(np.array(standin.parameter(medklip.published(name), tuple(value.shape))))
        for name, value in network.state_dict().items()
    }
    network.load_state_dict(state)
    queries = torch.from_numpy(standin.tensor("q", (7, 256))[[6, 0, 2]])
    with torch.no_grad():
        answers, attention = network.decoder(queries, torch.from_numpy(standin.tensor("m", (3, 9, 256))))
    (folder / "cases.npz").chmod(0o644)
    np.savez(folder / "cases.npz", **{"larger/decoder_output": answers, "larger/attention": attention})
    (result,) = verify("medklip", folder)
    assert result.passed


def test_wrong_norm_order_or_layer_choice_is_noticed(cases_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("medground.models.layers.vit.LAYER_NORM_EPS", 1e-5)
    results = verify("vit_b16_timm", cases_of("vit_b16_timm"))
    assert not any(r.passed for r in results)


def test_folder_of_another_model_or_none_is_refused(cases_of: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be verified") as caught:
        verify("kad", cases_of("medklip"))
    assert "cases of medklip" in str(caught.value)
    with pytest.raises(ModelError, match="cannot be verified"):
        verify("devide", cases_of("medklip"))
    with pytest.raises(DataError, match="cannot be read"):
        verify("kad", tmp_path)


def test_a_folder_without_cases_proves_nothing(cases_of: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="prove nothing"):
        verify("medklip", edited(cases_of("medklip"), tmp_path / "cases", []))


def test_nothing_in_the_folder_is_executed(cases_of: Any, tmp_path: Path) -> None:
    flag = tmp_path / "ran"

    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, (f"touch {flag}",)

    folder = edited(cases_of("medklip"), tmp_path / "cases", ["decoder_only"])
    (folder / "cases.npz").unlink()
    (folder / "cases.npz").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError):
        verify("medklip", folder)
    (folder / "cases.npz").unlink()
    np.savez(folder / "cases.npz", **{"decoder_only/attention": np.array([Trap()], dtype=object)})
    with pytest.raises(DataError):
        verify("medklip", folder)
    assert not flag.exists()


def test_results_tell_the_worst_output_and_what_must_differ() -> None:
    near, far = OutputResult("near", 1e-6, 1e-5), OutputResult("far", 2e-5, 1e-5)
    mistake, repeated = OutputResult("a", 3.0, 1e-5, must_differ=True), OutputResult("b", 0.0, 1e-5, must_differ=True)
    exact, off = OutputResult("c", 0.0, 0.0), OutputResult("d", 1.0, 0.0)
    assert [o.passed for o in (near, far, mistake, repeated, exact, off)] == [True, False, True, False, True, False]
    assert CaseResult("case", (near, far, mistake)).worst is far
    assert CaseResult("case", (near, mistake, exact)).worst is near
    assert CaseResult("case", (near, mistake)).passed
    assert not CaseResult("case", (near, repeated)).passed


def test_stand_in_values_follow_the_name() -> None:
    assert np.array_equal(standin.parameter("a.weight", (3, 4)), standin.parameter("a.weight", (3, 4)))
    assert not np.array_equal(standin.parameter("a.weight", (3, 4)), standin.parameter("b.weight", (3, 4)))
    assert standin.parameter("bn.num_batches_tracked", ()).dtype == np.int64
    variance = standin.parameter("bn.running_var", (500,))
    assert variance.min() > 0.5
    assert variance.max() < 1.5
    assert float(standin.parameter("logit_scale", ())) == 2.0
    assert abs(float(standin.parameter("w", (100, 400)).std()) - 1 / 20) < 0.001
