"""Rules that weigh experts by their regrets: those of OPERA, and BOA that forgets.

In a round the rule with weights w has predicted p = sum_i w_i x_i, and r_i = a_i l'(p)(p - x_i), or a_i (l(p) -
l(x_i)), is its regret for not having followed expert i; a_i is 0 where it sleeps. With sums over an expert's rounds:

    BOA       V_i += 2.2 r_i^2;  A_i += r_i - r_i^2/sqrt(V_i);  w_i ~ exp(A_i/sqrt(V_i))/sqrt(V_i)                  (1)
    ML-Poly   V_i += r_i^2;  A_i += r_i;  w_i ~ max(A_i, 0)/V_i                                                    (2)
    ML-Prod   B_i = max |r_i|;  V_i += r_i^2;  s_i = min(1/(2 B_i), sqrt(ln K/V_i));
              A_i <- A_i s_i/s_i' + ln(1 + s_i r_i), s' the step before;  w_i ~ s_i exp(A_i)                        (3)
    share     v_i ~ w_i exp(c r_i/B), B = max |r| so far;  w_i = alpha/K + (1 - alpha) v_i                          (4)
    Bayes     as (4) with exp(r_i)                                                                                (5)

(1) forgets where V and A are multiplied by `keep` < 1 first. (4) with alpha = 0 are exponential weights. Nothing
depends on the scale of the losses, but (5), which is for logarithmic ones. In (1) and (3) an expert that was never
judged has an equal share. Where all experts awake have weight 0, all have the same. Rules of one more kind use the
covariance of errors: `thalweg.parts.covariance`.

References
----------
P. Gaillard, G. Stoltz, T. van Erven, A second-order bound with excess losses, COLT 2014: (2), (3).
O. Wintenberger, Optimal learning with Bernstein online aggregation, Machine Learning 106, 2017: (1), as OPERA has it.
M. Herbster, M. Warmuth, Tracking the best expert, Machine Learning 32, 1998: (4).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from thalweg._core.rules import within
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._kernels.jit import inner
from thalweg.parts.covariance import LARGEST_FORECAST, LARGEST_SUM

BOA, MLPOL, MLPROD, SHARE, BAYES = range(5)  # those from SHARE on keep logarithms of weights
COVARIANCE = 5  # not a rule of this file: a memory of `thalweg.parts.covariance`
LEAST_LOG_WEIGHT = -700.0  # of a logarithm of a weight


class Rule(NamedTuple):
    """One rule with its numbers, and its first weight."""

    kind: int
    keep: float = 1.0  # discount factor of the past, each round
    rate: float = 1.0  # c
    share: float = 0.0  # alpha
    prior: float = 1.0


_RATES = tuple(4.0**k for k in range(-8, 4))
FAMILIES = {
    "BOA": (Rule(BOA),),
    "MLpol": (Rule(MLPOL),),
    "MLprod": (Rule(MLPROD),),
    "recent": tuple(Rule(BOA, keep=0.5 ** (1 / rounds), prior=0.1) for rounds in (4, 16, 64, 256)),
    "covariance": (Rule(COVARIANCE), Rule(COVARIANCE, keep=0.5 ** (1 / 64))),
    "EWA": tuple(Rule(SHARE, rate=c, prior=1 / 12) for c in _RATES),
    "FS": tuple(Rule(SHARE, rate=c, share=alpha, prior=1 / 48) for c in _RATES for alpha in (1e-4, 1e-3, 1e-2, 1e-1)),
    "Bayes": tuple(Rule(BAYES, share=alpha, prior=1 / 4) for alpha in (0.0, 1e-4, 1e-3, 1e-2)),
}


class RulesState(NamedTuple):
    """M rules on K experts."""

    A: Floats = field("M K")
    V: Floats = field("M K", within(0.0, LARGEST_SUM))
    B: Floats = field("M K", within(0.0, LARGEST_SUM))


class RulesSettings(NamedTuple):
    """Constants."""

    kinds: Ints  # (M,)
    keep: Floats  # (M,)
    rates: Floats  # (M,)
    shares: Floats  # (M,)


def rules_plan(rows: Sequence[Rule], experts: int) -> Plan:
    """Return the plan of these rules."""
    numbers = np.array([row[1:4] for row in rows], dtype=np.float64).reshape(len(rows), 3).T.copy()
    settings = RulesSettings(np.array([row.kind for row in rows], dtype=np.int64), *numbers)
    return Plan(RulesState, settings, {"M": len(rows), "K": experts}, holds=_holds)


def _holds(s: RulesState, c: RulesSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Relations that the next round relies on: in (3), an expert with squares has a largest regret."""
    yield "rules", bool((s.V >= 0).all() and (s.B >= 0).all() and (np.abs(s.A) < LARGEST_FORECAST**3).all())
    yield "rules", not ((s.V > 0) & (s.B == 0) & (c.kinds == MLPROD)[:, None]).any()


@inner
def _step(c: RulesSettings, s: RulesState, m: int, i: int) -> float:
    """s_i of (3); V_i > 0."""
    return min(0.5 / s.B[m, i], np.sqrt(np.log(max(s.A.shape[1], 2)) / s.V[m, i]))


@inner
def weigh_rule(s: RulesState, c: RulesSettings, m: int, a: Floats, w: Floats) -> None:
    """w <- the weights of rule m among those awake."""
    K, kind = w.shape[0], c.kinds[m]
    top, judged = -np.inf, 0.0
    for i in range(K):
        w[i] = 0.0
        if a[i] > 0.0:
            if kind == MLPOL:
                w[i] = max(s.A[m, i], 0.0) / s.V[m, i] if s.V[m, i] > 0.0 else 0.0
            elif kind >= SHARE:
                w[i] = s.A[m, i]
                top = max(top, w[i])
            elif s.V[m, i] > 0.0:
                judged += 1.0
                if kind == BOA:
                    w[i] = s.A[m, i] / np.sqrt(s.V[m, i]) - 0.5 * np.log(s.V[m, i])
                else:
                    w[i] = s.A[m, i] + np.log(_step(c, s, m, i))
                top = max(top, w[i])
    if kind != MLPOL:
        total = 0.0
        for i in range(K):
            if a[i] > 0.0 and (kind >= SHARE or s.V[m, i] > 0.0):
                w[i] = np.exp(w[i] - top)
                total += w[i]
        for i in range(K):
            if a[i] > 0.0 and kind < SHARE:
                w[i] = w[i] * judged / total if s.V[m, i] > 0.0 else 1.0  # a newcomer has an equal share
    normalise(a, w)


@inner
def normalise(a: Floats, w: Floats) -> None:
    """w <- a w / sum, or the same for all awake where that is 0."""
    total, awake = 0.0, 0.0
    for i in range(w.shape[0]):
        w[i] *= a[i]
        total += w[i]
        awake += a[i]
    for i in range(w.shape[0]):
        w[i] = w[i] / total if total > 0.0 else a[i] / awake  # at least one is awake


@inner
def learn_rule(s: RulesState, c: RulesSettings, m: int, a: Floats, r: Floats) -> None:
    """One round of rule m with its regrets."""
    K, kind = r.shape[0], c.kinds[m]
    largest = 0.0
    for i in range(K):
        largest = max(largest, abs(r[i]))
    if largest == 0.0:
        return
    if kind >= SHARE:
        _share(s, c, m, r, largest)
        return
    for i in range(K):
        if a[i] > 0.0:
            square = r[i] * r[i]
            if kind == MLPROD:
                before = _step(c, s, m, i) if s.V[m, i] > 0.0 else 1.0  # A is 0 then
                s.B[m, i] = max(s.B[m, i], abs(r[i]))
                s.V[m, i] += square
                if s.V[m, i] > 0.0:
                    step = _step(c, s, m, i)
                    s.A[m, i] = s.A[m, i] * (step / before) + np.log1p(step * r[i])  # (3); step |r| <= 1/2
            elif kind == BOA:
                s.V[m, i] = c.keep[m] * s.V[m, i] + 2.2 * square
                if s.V[m, i] > 0.0:
                    s.A[m, i] = c.keep[m] * s.A[m, i] + r[i] - square / np.sqrt(s.V[m, i])  # (1)
            else:
                s.V[m, i] = c.keep[m] * s.V[m, i] + square
                s.A[m, i] = c.keep[m] * s.A[m, i] + r[i]  # (2)


@inner
def _share(s: RulesState, c: RulesSettings, m: int, r: Floats, largest: float) -> None:
    """(4), (5); A holds logarithms of weights."""
    K, alpha = r.shape[0], c.shares[m]
    s.B[m, 0] = max(s.B[m, 0], largest)
    rate = c.rates[m] if c.kinds[m] == BAYES else c.rates[m] / s.B[m, 0]
    top, total = -np.inf, 0.0
    for i in range(K):
        s.A[m, i] += rate * r[i]
        top = max(top, s.A[m, i])
    for i in range(K):
        total += np.exp(s.A[m, i] - top)
    for i in range(K):
        v = np.exp(s.A[m, i] - top) / total
        s.A[m, i] = max(np.log(alpha / K + (1.0 - alpha) * v), LEAST_LOG_WEIGHT)
