"""The list of broken rules follows the code: each still stands where it is to be broken, and there are enough."""

from __future__ import annotations

import pytest
from simulations.mutations import ROOT, mutated
from simulations.rules import MUTATIONS, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.rule)
def test_every_mutation_can_be_made(mutation: Mutation) -> None:
    path, broken = mutated(mutation)
    assert broken != path.read_text("utf-8")
    compile(broken, path.name, "exec")
    assert mutation.tests
    assert all((ROOT / "tests" / name).exists() for name in mutation.tests)


def test_there_are_forty_of_different_rules() -> None:
    assert len({mutation.rule for mutation in MUTATIONS}) == len(MUTATIONS) >= 40


def test_a_rule_that_has_moved_is_said() -> None:
    with pytest.raises(ValueError, match="0 times"):
        mutated(Mutation("made up", "metrics/decide.py", "not there", "", ("x",)))
