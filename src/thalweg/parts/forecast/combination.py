"""The combination of candidates, for each of a few horizons by their errors at that horizon.

With S_k and N_k the discounted sum and number of the losses of candidate k at horizon h, and v_k their mean, drawn
towards the harmonic mean `ref` of all means:

    S_k = lam S_k + min(loss, c min_j S_j/N_j);  N_k = lam N_k + 1;  lam = 1 - 0.02/sqrt(h),  c = 9 + 91/h         (1)
    v_k = (S_k + 5 ref)/(N_k + 5);  n_k = max(N_k, min(max_j N_j, 20))                                              (2)
    w_k ~ exp(-0.15 n_k/sqrt(h) (v_k/min_j v_j - 1))                                                                (3)

The loss is the square of the error; for absolute errors it is its size, with sqrt(c) in the place of c and 0.3 in
that of 0.15. Between two horizons weights are interpolated. A candidate that says nothing sleeps: its weight goes to
the others. After g missing values, a forecast of h steps takes the weights of g + h, and no weights learn from it.
Errors beyond the cut in (1) say little about quality, and without it one outlier decides for a long time.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import within
from thalweg._core.state import Plan, field, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import inner
from thalweg.parts.forecast.past import ABSENT, is_there, size_or_absent

FORGET, PRIOR, TRUST, WARM = 0.02, 5.0, 0.15, 5.0
FEW = 20.0
CUT, MORE = 9.0, 91.0
LOST_EXPONENT = 50.0  # exp(-50) of the best weight: lost in rounding, and a candidate that is alone has all
LARGEST_LOSS = 1e203


class CombinationState(NamedTuple):
    """Losses of K candidates at A horizons, and their forecasts that wait for answers."""

    losses: Floats = field("A K", within(0.0, LARGEST_LOSS), called="losses of candidates")
    counts: Floats = field("A K", within(0.0, 2.0**40), called="losses of candidates")
    said: Floats = field("S K", size_or_absent(LARGEST_ENTRY), called="waiting forecasts", start=ABSENT)


class CombinationSettings(NamedTuple):
    """Constants and scratch space."""

    horizons: Ints  # (A,)
    first: Ints  # (A,) slots of a horizon h begin here, and there are h
    below: Ints  # (H,) index of the largest horizon <= h
    part: Floats  # (H,) how far h is on the way to the next one
    squared: bool
    weights: Floats = scratch("A K")


def anchors(horizon: int) -> tuple[int, ...]:
    """Return the horizons that have a memory of their own: 1, 2, 4, 8, 12, 16, 24, 32, ..., and the last."""
    found = [1, 2, 4, 8]
    while found[-1] < horizon:
        found += [3 * found[-1] // 2, 2 * found[-1]]
    return (*(h for h in found if h < horizon), horizon)


def combination_plan(horizon: int, candidates: int, squared: bool) -> Plan:
    """Return the plan of a combination of a number of candidates."""
    h = np.array(anchors(horizon), dtype=np.int64)
    steps = np.arange(1, horizon + 1)
    below = np.searchsorted(h, steps, side="right") - 1
    above = h[np.minimum(below + 1, h.size - 1)]
    part = (steps - h[below]) / np.maximum(above - h[below], 1)
    settings = CombinationSettings(h, np.cumsum(h) - h, below.astype(np.int64), part.astype(np.float64), squared)
    sizes = {"A": h.size, "K": candidates, "S": int(h.sum())}
    return Plan(CombinationState, settings, sizes)


@inner
def weigh_candidates(s: CombinationState, c: CombinationSettings, forecasts: Floats) -> None:
    """weights[a] <- (2) and (3), not normalised, of candidates with a forecast in column 0; 0 for the others."""
    K = s.losses.shape[1]
    for a in range(c.horizons.shape[0]):
        inverse, known, most = 0.0, 0.0, 0.0
        for k in range(K):
            if not is_there(forecasts[k, 0]):
                continue
            if s.counts[a, k] > 0.0 and s.losses[a, k] > 0.0:
                inverse += s.counts[a, k] / s.losses[a, k]
                known += 1.0
            most = max(most, s.counts[a, k])
        ref = known / inverse if inverse > 0.0 else 0.0
        best = np.inf
        for k in range(K):
            v = (s.losses[a, k] + PRIOR * ref) / (s.counts[a, k] + PRIOR)
            c.weights[a, k] = v
            if is_there(forecasts[k, 0]):
                best = min(best, v)
        rate = (TRUST if c.squared else 2.0 * TRUST) / np.sqrt(float(c.horizons[a]))
        for k in range(K):
            more = c.weights[a, k] / best - 1.0 if best > 0.0 else 0.0
            n = max(s.counts[a, k], min(most, FEW))
            c.weights[a, k] = np.exp(-min(rate * n * more, LOST_EXPONENT)) if is_there(forecasts[k, 0]) else 0.0


@inner
def judge_candidates(s: CombinationState, c: CombinationSettings, a: int, slot: int, y: float, least: float) -> None:
    """(1): the answer to the forecasts that wait in this slot. Errors up to `least` are never cut."""
    K, best = s.losses.shape[1], np.inf
    keep = 1.0 - FORGET / np.sqrt(float(c.horizons[a]))
    for k in range(K):
        if s.counts[a, k] > WARM:
            best = min(best, s.losses[a, k] / s.counts[a, k])
    most = CUT + MORE / float(c.horizons[a])
    cut = max(most * best, least * least) if c.squared else max(np.sqrt(most) * best, least)
    for k in range(K):
        if is_there(s.said[slot, k]):
            e = y - s.said[slot, k]
            loss = e * e if c.squared else abs(e)
            s.losses[a, k] = keep * s.losses[a, k] + min(loss, cut)
            s.counts[a, k] = keep * s.counts[a, k] + 1.0
