"""From a matrix of the Fantope to a projection: sets of k eigenvectors, drawn such that the mean is that matrix.

With eigenvalues 0 <= s_i <= 1 that sum to k and eigenvectors u_i, both ways below choose sets B of exactly k indices
with P(i in B) = s_i. So the projection sum_{i in B} u_i u_i' has mean sum_i s_i u_i u_i', and since the compression
loss is linear in the projection, its mean is the loss of the mean matrix.
"""

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_array, check_number, short_repr, wrong
from thalweg._kernels import pca as kernels
from thalweg.errors import InputError

__all__ = ["mixture", "systematic"]


EIGENVALUE_ROUNDING = 1e-9  # by which eigenvalues may miss [0, 1] and a whole sum
NOTHING_LEFT = 1e-12  # less than this is left of a decomposition only by rounding


def systematic(sigma: ArrayLike, u: float) -> Ints:
    r"""Choose i where a point of u, u + 1, u + 2, ... falls into its stretch of the line, from c_{i-1} to c_i.

    .. math:: i \in B \iff \lceil c_i - u \rceil - \lceil c_{i-1} - u \rceil = 1, \quad c_i = s_1 + \dots + s_i

    One uniform number u in [0, 1) gives all k of them, in O(d).

    Parameters
    ----------
    sigma : array of d numbers in [0, 1]
        s_i; their sum k must be a whole number.
    u : float
        In [0, 1).

    Returns
    -------
    array of k indices, ascending

    Examples
    --------
    >>> systematic([0.8, 0.6, 0.4, 0.2], 0.7)
    array([0, 2])
    """
    s, k = _read("systematic", sigma)
    point = check_number("systematic", "u", u)
    if not 0.0 <= point < 1.0:
        raise InputError(f"The 'u' parameter of systematic must lie in [0, 1). Got {short_repr(u)}.")
    chosen = np.empty(k, dtype=np.int64)
    kernels.systematic(s, point, chosen)
    return chosen


def mixture(sigma: ArrayLike) -> list[tuple[float, Ints]]:
    """Write s as a mixture of at most d sets of k indices (Warmuth and Kuzmin, JMLR 2008, Algorithm 2).

    Take the k largest; give their set the largest weight that leaves a mixture; repeat. O(d^2 log d).

    Parameters
    ----------
    sigma : array of d numbers in [0, 1]
        s_i; their sum k must be a whole number.

    Returns
    -------
    list of (probability, array of k indices)
        The probabilities sum to 1.

    Examples
    --------
    >>> [(round(probability, 9), chosen.tolist()) for probability, chosen in mixture([0.8, 0.6, 0.4, 0.2])]
    [(0.6, [0, 1]), (0.2, [0, 2]), (0.2, [2, 3])]

    References
    ----------
    M. K. Warmuth, D. Kuzmin, Randomized online PCA algorithms with regret bounds that are logarithmic in the dimension,
    JMLR 9, 2008.
    """
    s, k = _read("mixture", sigma)
    left = 1.0  # of the weight; the entries of s always sum to k times it, and none exceeds it
    parts: list[tuple[float, Ints]] = []
    while left > NOTHING_LEFT and len(parts) < s.size:
        order = np.argsort(-s, kind="stable")
        chosen, others = order[:k], order[k:]
        least = float(s[chosen[-1]])
        most = float(s[others[0]]) if others.size else 0.0
        weight = min(least, left - most)
        if weight <= NOTHING_LEFT:
            break
        parts.append((weight, np.sort(chosen)))
        s[chosen] -= weight
        s[s < NOTHING_LEFT] = 0.0
        left -= weight
    total = sum(weight for weight, _ in parts)
    return [(weight / total, chosen) for weight, chosen in parts]


def _read(owner: str, sigma: ArrayLike) -> tuple[Floats, int]:
    """Eigenvalues of a matrix of the Fantope, as a new array within [0, 1], and their sum."""
    s = check_array(owner, "sigma", sigma, ndim=1)
    k = round(float(s.sum()))
    slack = EIGENVALUE_ROUNDING
    if s.size == 0 or s.min() < -slack or s.max() > 1 + slack or abs(s.sum() - k) > slack * s.size or k < 1:
        raise wrong(owner, "sigma", "numbers in [0, 1] that sum to a whole number >= 1", sigma)
    return np.clip(s, 0.0, 1.0), k
