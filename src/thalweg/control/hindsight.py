"""The best disturbance-action policies in hindsight: the comparators of a learning controller.

The costs and disturbances of a stretch of rounds being known, the truncated losses f_t(M) are convex functions of M,
and their sum is minimised over the set of policies. For quadratic costs the sum is a quadratic function of M, which is
put together once:

    y_t(M) = y_t(0) + Y_t m,   v_t(M) = v_t(0) + V_t m,   m = the entries of M             (1)
    sum_t f_t(M) = sum_t (y_t(0) + Y_t m)'Q_t(y_t(0) + Y_t m) + (v_t(0) + V_t m)'R_t(v_t(0) + V_t m)      (2)
"""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_count, check_items, wrong
from thalweg.control.costs import Cost, QuadraticCost, check_costs
from thalweg.control.policy import DAC, TruncatedLoss
from thalweg.domains._base import Domain, read_domain
from thalweg.errors import InputError
from thalweg.problems.functions import FromLosses
from thalweg.regret.comparators import best_fixed

__all__ = ["best_policies"]


def best_policies(
    policy: DAC,
    domain: Domain,
    costs: Sequence[Cost],
    disturbances: ArrayLike,
    starts: Sequence[int] = (0,),
    *,
    tol: float = 1e-6,
) -> tuple[Floats, float]:
    """The best fixed policy of every stretch of rounds, by its truncated losses.

    Parameters
    ----------
    policy : DAC
        System, gain and memory; `controller.policy` of a learning controller.
    domain : Domain
        The set of policies; `controller.domain`.
    costs : sequence of costs
        One for each round.
    disturbances : array (T, d_x)
        w_1..w_T.
    starts : sequence of int
        The rounds, from 0, at which a new stretch begins; the first must be 0.
    tol : float
        As for `thalweg.regret.best_fixed`.

    Returns
    -------
    policies : array (T, H, d_u, d_x)
        M*_t, for `Planted`. A policy that changes at the starts only.
    gap : float
        By how much the sum of truncated losses could be smaller at most, for policies that change at the starts only.

    Examples
    --------
    >>> from thalweg.control import DAC, QuadraticCost, best_policies, double_integrator, sinusoid
    >>> from thalweg.domains import SpectralBalls
    >>> policy = DAC(double_integrator(), memory=2)
    >>> wind = sinusoid(100, [0.0, 1.0], period=20)
    >>> best, gap = best_policies(policy, SpectralBalls(policy.shape, 1.0), [QuadraticCost([1, 1], [1])] * 100, wind)
    >>> best.shape, gap < 0.01
    ((100, 2, 1, 2), True)
    """
    who = "best_policies"
    if not isinstance(policy, DAC):
        raise wrong(who, "policy", "a DAC", policy)
    if read_domain(who, domain).shape != policy.shape:
        raise InputError(f"{who} needs a domain of policies, of shape {policy.shape}. Got {domain!r}.")
    w = check_array(who, "disturbances", disturbances, ndim=2)
    T, each = len(w), check_costs(who, costs, policy.system)
    begun = [check_count(who, "starts", s, 0) for s in check_items(who, "starts", starts, "a list of rounds")]
    bounds = [*begun, T]
    if len(each) < T or bounds[0] != 0 or (np.diff(bounds) <= 0).any():
        raise InputError(
            f"{who} needs a cost for each round, and starts that begin with 0 and grow. "
            f"Got {len(each)} costs for {T} rounds, and starts {begun[:6]}."
        )
    chosen = np.empty((T, *policy.shape))
    gap = 0.0
    for first, last in itertools.pairwise(bounds):
        rounds = [(each[t], policy.past_of(w, t)) for t in range(first, last)]
        if all(isinstance(cost, QuadraticCost) for cost, _ in rounds):
            best = best_fixed(FromLosses([_Sum(policy, rounds)], shape=policy.shape), domain, tol=tol)
        else:
            losses = [TruncatedLoss(policy, cost, past) for cost, past in rounds]
            best = best_fixed(FromLosses(losses, shape=policy.shape), domain, tol=tol)
        chosen[first:last] = best.decisions[0]
        gap += float(best.gap)
    return chosen, gap


class _Sum:
    """(2) as one loss of M."""

    def __init__(self, policy: DAC, rounds: list[tuple[Cost, Floats]]) -> None:
        H, n, d = policy.shape
        self.square, self.linear, self.constant = np.zeros((H * n * d,) * 2), np.zeros(H * n * d), 0.0
        still = np.zeros(policy.shape)
        lag = np.arange(H)[:, None] + np.arange(1, H + 2)  # [i, j] -> past[i + j + 1] = w_{t-1-j-(i+1)}
        for cost, past in rounds:
            assert isinstance(cost, QuadraticCost)
            y, v = policy.truncated(still, past)
            Y = np.einsum("jak,ijl->aikl", policy.responses, past[lag]).reshape(d, -1)  # (1)
            direct = np.einsum("ak,il->aikl", np.eye(n), past[:H]).reshape(n, -1)
            V = direct - policy.gain @ Y
            self.square += Y.T @ cost.Q @ Y + V.T @ cost.R @ V
            self.linear += 2 * (y @ cost.Q @ Y + v @ cost.R @ V)
            self.constant += cost.value(y, v)

    def value(self, M: Floats) -> float:
        """The sum of the truncated losses."""
        m = np.asarray(M).ravel()
        return float(m @ self.square @ m + self.linear @ m + self.constant)

    def gradient(self, M: Floats) -> Floats:
        """Its gradient."""
        slope: Floats = 2 * (self.square @ np.asarray(M).ravel()) + self.linear
        return slope.reshape(np.shape(M))
