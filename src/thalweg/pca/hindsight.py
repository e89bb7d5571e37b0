"""The comparator of online PCA: the best projection of an interval, exactly, from eigenvalues.

The loss of P on rounds I is trace((I - P) S) with S = sum of X_t over I. The best projection of rank k spans the
eigenvectors of the k largest eigenvalues of S, and pays the sum of the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_count
from thalweg.errors import InputError

__all__ = ["Subspace", "SubspaceRegret", "best_subspace", "dyadic_regret"]


@dataclass(frozen=True)
class Subspace:
    """A subspace and its loss: `components` (k, d), orthonormal rows, and `loss`."""

    components: Floats
    loss: float


@dataclass(frozen=True)
class SubspaceRegret:
    """Rounds [start, stop), counted from 0: the learner's loss, and its regret against the best projection."""

    start: int
    stop: int
    paid: float
    regret: float


def best_subspace(X: ArrayLike, rank: int) -> Subspace:
    """The projection of rank k with the least loss on the rows of X (n, d).

    Examples
    --------
    >>> best = best_subspace([[1.0, 0.0], [0.8, 0.6], [1.0, 0.0]], 1)
    >>> round(best.loss, 3), best.components.shape
    (0.263, (1, 2))
    """
    rows = check_array("best_subspace", "X", X, ndim=2)
    k = _rank("best_subspace", rank, rows.shape[1])
    values, U = np.linalg.eigh(rows.T @ rows)
    return Subspace(np.ascontiguousarray(U[:, ::-1].T[:k]), float(np.maximum(values[:-k], 0.0).sum()))


def dyadic_regret(losses: ArrayLike, X: ArrayLike, rank: int, *, shortest: int = 1) -> Iterator[SubspaceRegret]:
    """Regret on every interval of the geometric cover, rounds i 2^j, .., (i + 1) 2^j - 1 counted from 1.

    Parameters
    ----------
    losses : array (T,)
        The losses that the learner paid.
    X : array (T, d)
        The instances, as rows.
    rank : int
        k.
    shortest : int
        Leave out intervals of fewer rounds.

    Yields
    ------
    SubspaceRegret
        Short intervals first.

    Examples
    --------
    >>> [(one.start, one.stop, round(one.regret, 3)) for one in dyadic_regret([0.5, 0.5, 0.5], [[1.0, 0.0]] * 3, 1)]
    [(0, 1, 0.5), (1, 2, 0.5), (2, 3, 0.5), (1, 3, 1.0)]
    """
    rows = check_array("dyadic_regret", "X", X, ndim=2)
    paid = check_array("dyadic_regret", "losses", losses, shape=(len(rows),))
    k, least = _rank("dyadic_regret", rank, rows.shape[1]), check_count("dyadic_regret", "shortest", shortest)
    d, T = rows.shape[1], len(rows)
    length = 1
    while 2 * length - 1 <= T:
        if length >= least:
            count = (T + 1) // length - 1
            body = slice(length - 1, length - 1 + count * length)  # round `length`, counted from 1, comes first
            parts = rows[body].reshape(count, length, d)
            for i, part in enumerate(parts):
                small = part.T @ part if length >= d else part @ part.T  # the same eigenvalues but for zeros
                values = np.linalg.eigvalsh(small)[:-k]  # ascending: all but the k largest
                start = length - 1 + i * length
                mine = float(paid[start : start + length].sum())
                yield SubspaceRegret(start, start + length, mine, mine - float(np.maximum(values, 0.0).sum()))
        length *= 2


def _rank(owner: str, rank: int, d: int) -> int:
    k = check_count(owner, "rank", rank)
    if k >= d:
        raise InputError(f"The 'rank' parameter of {owner} must be less than the {d} columns of X. Got {k}.")
    return k
