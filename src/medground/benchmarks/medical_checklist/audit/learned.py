"""A learned blind scorer: logistic regression over what distinguishes the two captions of an item.

The strongest of the blind scorers, and the one to trust: builds that n-grams call fair can give it 55 percent. It is
fitted on items of other papers, built in the same way. Features are antisymmetric (value of the first caption minus
value of the second), so that the order of the captions tells it nothing, and a mirrored pair of items comes
to exactly one half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from medground.benchmarks.medical_checklist.audit.base import Floats, Pair
from medground.benchmarks.medical_checklist.hashing import number
from medground.benchmarks.medical_checklist.words import tokens

BITS = 20
FOLDS = 5


class Learned:
    """Cross-fitted by cluster: each item is scored by a model that saw no item of its cluster.

    Args:
        folds: parts that the clusters are split into.
        penalty: weight of the squared coefficients.
        seed: of the split.
    """

    name: str = "learned"

    def __init__(self, folds: int = FOLDS, penalty: float = 1.0, seed: int = 0) -> None:
        self.folds, self.penalty, self.seed = folds, penalty, seed

    def scores(self, pairs: Sequence[Pair]) -> Floats:
        """Return (N, 2): the decision for the true caption and for the false one, opposite in sign.

        With fewer than two clusters nothing can be fitted: all scores are 0, which is a tie.
        """
        fold = np.array([number(self.seed, p.cluster) % self.folds for p in pairs], dtype=np.int64)
        values = np.zeros(len(pairs))
        table = features(pairs)
        for part in np.unique(fold):
            train = fold != part
            if train.any():
                values[~train] = table[~train] @ fit(table[train], self.penalty)
        return np.stack([values, -values], axis=1)


def fit(differences: sparse.csr_array, penalty: float) -> Floats:
    """Return coefficients that make ``differences @ w`` positive (logistic loss, all labels 1, no intercept).

    Args:
        differences: (N, D) features of the true caption minus those of the false one.
        penalty: of sum(w * w) / 2.
    """
    used = np.unique(differences.indices)
    small = differences[:, used]

    def loss(w: Floats) -> tuple[float, Floats]:
        margin = small @ w
        value = float(np.logaddexp(0, -margin).sum() + penalty / 2 * w @ w)
        slope = -1 / (1 + np.exp(np.clip(margin, -500, 500)))
        return value, small.T @ slope + penalty * w

    found = optimize.minimize(loss, np.zeros(len(used)), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    weights = np.zeros(differences.shape[1])
    weights[used] = found.x
    return weights


def features(pairs: Sequence[Pair]) -> sparse.csr_array:
    """Return (N, 2**20) hashed features, true minus false caption; what both share cancels."""
    rows: list[int] = []
    columns: list[int] = []
    data: list[float] = []
    for row, pair in enumerate(pairs):
        held: dict[int, float] = {}
        for name, value in _named(pair):
            column = number(name) & ((1 << BITS) - 1)
            held[column] = held.get(column, 0.0) + value
        for column in sorted(held):
            if held[column]:
                rows.append(row)
                columns.append(column)
                data.append(held[column])
    shape = (len(pairs), 1 << BITS)
    return sparse.csr_array((np.array(data), (np.array(rows, dtype=int), np.array(columns, dtype=int))), shape=shape)


def _named(pair: Pair) -> Iterator[tuple[str, float]]:
    """Yield n-grams, skip pairs with the changed words, lengths, and the two terms as a pair."""
    first, second = tokens(pair.positive.lower()), tokens(pair.negative.lower())
    for words, sign in ((first, 1.0), (second, -1.0)):
        for n in (1, 2, 3):
            for i in range(len(words) - n + 1):
                yield f"{n}:" + " ".join(words[i : i + n]), sign
    changed_first, changed_second = set(first) - set(second), set(second) - set(first)
    shared = set(first) & set(second)
    for changed, sign in ((changed_first, 1.0), (changed_second, -1.0)):
        for word in changed:
            for other in shared:
                yield f"with:{word}|{other}", sign
    a, b = pair.term_positive.lower(), pair.term_negative.lower()
    yield (f"pair:{a}|{b}", 1.0) if a < b else (f"pair:{b}|{a}", -1.0)
    yield "length", (len(pair.positive) - len(pair.negative)) / 10
    yield "words", float(len(first) - len(second))


def gaps(pairs: Sequence[Pair], weights: Floats) -> NDArray[np.float64]:
    """Return the decision values of pairs under fitted coefficients."""
    return np.asarray(features(pairs) @ weights)
