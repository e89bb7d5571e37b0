r"""The theorem of `EfficientPCA` with its constants: the most regret that an interval can have.

Expert m (counted from 1) starts in round m, lives for tau = lowbit(m) rounds, and moves by gradient descent with step
:math:`s = \rho/(G \sqrt\tau)` from (k/d) I, where :math:`\rho = \sqrt{k(d-k)/d}` is the distance of every projection of
rank k from there. With gradients of length at most G, until n <= tau rounds after its start:

.. math:: \frac{\rho^2}{2 s} + \frac{s}{2} G^2 n = \frac{G \rho}{2} \left( \sqrt\tau + \frac{n}{\sqrt\tau} \right)

Added to it is the regret of Adapt-ML-Prod to expert m in these n rounds (`thalweg.theorems.bounds.adapt_ml_prod`, in a
ball of radius R). The experts m, m + lowbit(m), .. share an interval that starts in round m among them.

Where tau is longer than the rest of the interval, that expert's step is too short for it: the bound above does not
shrink with n. Another way is open there: give round m up, which costs at most :math:`G \sqrt{\min(k, d-k)}`, and go on
from m + 1, where experts of 1, 2, 4, .. rounds follow. The least over these choices is of order
:math:`\sqrt{k |I| \log T}` on every interval, not only on those of the cover.
"""

import math

from thalweg._core.validate import check_count
from thalweg.errors import InputError
from thalweg.theorems import bounds

__all__ = ["interval_bound", "step_size"]


def step_size(dim: int, rank: int, G: float, rounds: int) -> float:
    r"""The step of gradient descent from (k/d) I for a number tau of rounds, :math:`\sqrt{k(d-k)/(d \tau)}/G`.

    The sources print it without the root, which does not minimise their bound.
    """
    return math.sqrt(rank * (dim - rank) / (dim * rounds)) / G


def interval_bound(start: int, stop: int, dim: int, rank: int, G: float, R: float) -> float:
    """The most expected regret of `EfficientPCA` on rounds [start, stop), counted from 0.

    Examples
    --------
    >>> round(interval_bound(4095, 8191, dim=10, rank=1, G=1.0, R=0.95))     # an interval of the cover
    1409
    """
    first = check_count("regret_bound", "start", start, least=0) + 1
    last = check_count("regret_bound", "stop", stop)
    if first > last:
        raise InputError(f"regret_bound needs start < stop. Got [{start}, {stop}).")
    return _best(first, last, dim, rank, G, R)


def _best(m: int, last: int, dim: int, rank: int, G: float, R: float) -> float:
    """The bound on the rounds m..last, counted from 1."""
    total = 0.0
    while m <= last:
        tau, left = m & -m, last - m + 1
        n = min(tau, left)
        meta, slope = bounds.adapt_ml_prod(m, m + n - 1, R, G)
        rho = math.sqrt(rank * (dim - rank) / dim)
        part = meta + slope * G * math.sqrt(n) + G * rho / 2 * (math.sqrt(tau) + n / math.sqrt(tau))
        round_ = G * math.sqrt(min(rank, dim - rank))
        if tau > left:  # the last piece
            return total + min(part, n * round_, round_ + _best(m + 1, last, dim, rank, G, R))
        total += min(part, n * round_)
        m += tau
    return total
