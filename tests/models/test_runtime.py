"""Devices, precision, determinism, and batches that shrink."""

from __future__ import annotations

import logging

import pytest
import torch

from medground.errors import ConfigError
from medground.models.common.runtime import Runtime


def test_batch_is_halved_until_it_fits_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    runtime, sizes = Runtime("cpu"), []

    def forward(batch: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise torch.OutOfMemoryError
        return batch * 2, None

    inputs = torch.arange(10.0)[:, None]
    with caplog.at_level(logging.WARNING, "medground"):
        doubled, nothing = runtime.batched(forward, inputs)
    assert doubled is not None
    assert torch.equal(doubled, inputs * 2)
    assert nothing is None
    assert sizes == [10, 5, 2, 2, 2, 2, 2]
    assert [record.message for record in caplog.records] == [
        "out of GPU memory: going on with 5 images at a time",
        "out of GPU memory: going on with 2 images at a time",
    ]
    runtime.batched(forward, inputs[:4])
    assert sizes[-2:] == [2, 2]


def test_one_image_that_does_not_fit_is_an_error() -> None:
    def forward(batch: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        Runtime("cpu").batched(forward, torch.zeros(3, 1))


def test_deterministic_mode_is_for_the_call_only() -> None:
    runtime = Runtime("cpu", deterministic=True)
    with runtime.inference():
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_grad_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    with Runtime("cpu").inference():
        assert not torch.are_deterministic_algorithms_enabled()


def test_wrong_devices_and_precisions_are_named() -> None:
    with pytest.raises(ConfigError, match="no such device"):
        Runtime("gpu")
    with pytest.raises(ConfigError, match="float32"):
        Runtime("cpu", "float16")
    assert Runtime("cpu").describe() == {"device": "cpu", "dtype": "float32", "deterministic": False}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_autocast_on_a_gpu() -> None:
    runtime = Runtime("cuda", "bfloat16")
    layer = torch.nn.Linear(8, 8).cuda()
    (result,) = runtime.batched(lambda batch: (layer(batch),), torch.ones(2, 8))
    assert result is not None
    assert result.dtype == torch.float32
