"""Hypothesis for compiled code."""

import os

import pytest
from hypothesis import settings

# The first call of a kernel compiles it, and as plain Python it is slow: neither is a failure.
settings.register_profile("kernels", deadline=None)
settings.load_profile("kernels")


@pytest.fixture
def compiled():
    """Skip a test of a million pixels where kernels run as plain Python."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        pytest.skip("kernels run as plain Python (NUMBA_DISABLE_JIT)")
