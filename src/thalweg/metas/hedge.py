"""Hedge on cumulative losses, with a fixed or a self-confident rate.

    A_{t,i}     = sum_{s<=t} l_{s,i},   l_{s,i} = -r_{s,i}                                  (1)
    p_{t+1,i}   ~ prior_i exp(-epsilon_{t+1} A_{t,i})                                       (2)
    epsilon_t   = epsilon   or   epsilon / sqrt(1 + R^2 sum_{s<t} ||h_s||^2)                (3)

The rate multiplies the cumulative loss; updating the last weights instead can have linear regret if the rate changes
(Zhao, Zhang, Zhang, Zhou, JMLR 2024, Remark 9). Losses are taken relative to the combination's, which does not change
(2) and keeps A small.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.rules import within, within_bounds
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_array, check_count, check_entries, check_positive, short_repr, wrong
from thalweg._kernels.jit import implement, inlined
from thalweg._kernels.parts import admit, alive, clear, feed, fits, weigh
from thalweg._kernels.vectors import decay
from thalweg.errors import InputError
from thalweg.metas._base import Meta

__all__ = ["Hedge", "HedgeSettings", "HedgeState", "rate"]

LARGEST_EXPONENT = 1e300  # of a rate times a score: beyond it weights may be nan


class HedgeState(NamedTuple):
    """K groups of N members."""

    scores: Floats = field("K N")  # A_t
    sums: Floats = field("K", within(0.0, "all_squares"), called="sums of squares")  # of ||h_s||^2


class HedgeSettings(NamedTuple):
    """Constants."""

    log_prior: Floats  # (K, N)
    epsilon: Floats  # (K,) the rate, or its first value
    radius: Floats  # (K,) R; 0 where the rate is fixed


@inlined
def rate(epsilon: float, R: float, q: float) -> float:
    """(3)."""
    return epsilon / np.sqrt(1.0 + R * R * q) if R > 0.0 else epsilon


@implement(clear, HedgeState)
def _clear(m: HedgeState, c: HedgeSettings, k: int) -> None:
    m.sums[k] = 0.0
    for i in range(m.scores.shape[1]):
        m.scores[k, i] = 0.0


@implement(admit, HedgeState)
def _admit(m: HedgeState, c: HedgeSettings, k: int, i: int, index: int) -> None:
    m.scores[k, i] = 0.0


@implement(fits, HedgeState)
def _fits(m: HedgeState, c: HedgeSettings, k: int, n: int, born: Ints | None, r: Floats) -> bool:
    return True


@implement(feed, HedgeState)
def _feed(
    m: HedgeState, c: HedgeSettings, k: int, n: int, born: Ints | None, base: float, losses: Floats, square: float
) -> None:
    m.sums[k] += square
    for i in range(n):
        m.scores[k, i] += losses[i] - base if alive(born, i) else 0.0  # (1)


@implement(weigh, HedgeState)
def _weigh(m: HedgeState, c: HedgeSettings, k: int, n: int, born: Ints | None, p: Floats) -> None:
    epsilon = rate(c.epsilon[k], c.radius[k], m.sums[k])
    top = -np.inf
    for i in range(n):
        p[i] = c.log_prior[k, i] - epsilon * m.scores[k, i] if alive(born, i) else -np.inf
        top = max(top, p[i])
    total = 0.0
    for i in range(n):
        p[i] = decay(p[i] - top)  # the largest term is exp(0): total >= 1
        total += p[i]
    for i in range(n):
        p[i] /= total  # (2)


class Hedge(Meta):
    """Exponential weights.

    Parameters
    ----------
    rate : float, optional
        epsilon; sqrt(ln N) by default, which needs `radius`.
    radius : float, optional
        R of (3), for the self-confident rate. If left out, the rate is fixed.
    prior : array of N numbers > 0, optional
        Weights before the first round, normalised to sum 1; uniform by default.
    """

    members: int | None = None  # final size of a group that grows

    def __init__(
        self, *, rate: float | None = None, radius: float | None = None, prior: ArrayLike | None = None
    ) -> None:
        if rate is None and radius is None:
            raise InputError("Hedge needs 'rate', a fixed rate, or 'radius', for the self-confident one.")
        self.rate = None if rate is None else check_positive("Hedge", "rate", rate)
        self.radius = None if radius is None else check_positive("Hedge", "radius", radius)
        self.prior = None if prior is None else check_array("Hedge", "prior", prior, ndim=1)
        if self.prior is not None:
            if not (self.prior > 0).all():
                raise InputError(f"The 'prior' parameter of Hedge must be numbers > 0. Got {short_repr(prior)}.")
            self.prior = self.prior / self.prior.sum()
            if not (self.prior > 0).all():
                raise wrong("Hedge", "prior", "numbers > 0 of sizes that can be compared", prior)

    def for_members(self, members: int) -> Hedge:
        """Return a copy with rate and prior for a group that grows to this size."""
        other = copy.copy(self)
        other.members = members
        return other

    def check(self, members: int) -> None:
        """Check that the prior has one number for each member."""
        if self.prior is not None and self.prior.size != members:
            raise InputError(f"The 'prior' parameter of Hedge must have shape {(members,)}. Got {self.prior.shape}.")

    def weights(self, members: int) -> Floats:
        """Return the prior for a number of members."""
        n = check_count("Hedge.weights", "members", members)
        check_entries("Hedge.weights", "members", members, n)
        self.check(n)
        return np.full(n, 1.0 / n) if self.prior is None else self.prior

    @classmethod
    def plan(cls, metas: Sequence[Hedge], sizes: Sequence[int]) -> Plan:
        """See `Meta.plan`."""
        K, N = len(metas), max(sizes)
        log_prior = np.zeros((K, N))
        epsilon = np.empty(K)
        for k, (meta, n) in enumerate(zip(metas, sizes, strict=True)):
            members = n if meta.members is None else meta.members
            meta.check(members)
            prior = np.full(max(n, members), 1.0 / members)  # a group may outgrow its announced size
            if meta.prior is not None:
                prior[:members] = meta.prior
            log_prior[k, :n] = np.log(prior[:n])
            epsilon[k] = np.sqrt(np.log(members)) if meta.rate is None else meta.rate
        radius = np.array([meta.radius or 0.0 for meta in metas])
        return Plan(HedgeState, HedgeSettings(log_prior, epsilon, radius), {"K": K, "N": N}, holds=_holds)


def _holds(m: HedgeState, c: HedgeSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Check that no rate times a score is too large."""
    root = np.sqrt(1.0 + c.radius**2 * m.sums)
    exponents = np.abs(c.epsilon[:, None] * m.scores) / root[:, None]
    yield "scores", within_bounds(exponents, 0.0, LARGEST_EXPONENT, past.alive)
