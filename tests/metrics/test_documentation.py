"""Every example of the page on metrics runs and prints what it says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


def test_examples_of_the_page_on_metrics():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 30
    assert not failed
