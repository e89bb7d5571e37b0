"""One side of `ConformalTracker`: candidates for a quantile of the scores, their weights, and what keeps the coverage.

A round, with alpha the share that may be missed and e_k the candidates, w_k their weights (a `Tracker` on the simplex):

    b = sum_k w_k e_k;  q = exp(theta) b                                          the threshold                     (1)
    a score s comes: missed = s > q
    theta <- theta + eta (missed - alpha), held between -2 and 44                                                   (2)
    w learns from the pinball loss of sum_k w_k e_k                                at the weights of now            (3)

(3) is taken at the weights of now for the candidates of then, so that a late answer does no harm. The candidates:

    the (1 - alpha)-quantile of the last W scores, for each window W                                                (4)
    m_h r_h for each half-life h: m_h <- m_h + (s - m_h)/n_h, n_h <- 2^(-1/h) n_h + 1, a mean that forgets,
    and r_h the (1 - alpha)-quantile of the last 1000 ratios s/m_h, m_h of when s was predicted                      (5)
    m_h <= M;  e_k <= 2 M'                                                                                          (6)

with M the largest and M' the second largest score of the shortest window: what is left of a level that is gone does no
harm for longer than that window, and a single huge score next to none. A quantile of n numbers is at place
(1 - alpha)(n + 1) of the sorted ones, between neighbours linear.

After more than 10/alpha zeros in a row windows and means are empty, the threshold is 0 and the rest waits until a score
is above 0: a zero is covered whatever the threshold is. After more than 100/alpha theta is what it was before them.

Scores times a power of two give thresholds times that power, bit for bit, as long as nothing underflows: everything
above is linear in the scores, or made of ratios of them.
"""

from typing import Any, NamedTuple

import numpy as np

from thalweg._kernels.handle import Closed, Handle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.parts import Floats, Ints
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.vectors import copy, dot
from thalweg.learners import loop

__all__ = [
    "ANSWERED", "ASKED", "HIGHEST", "LOWEST", "MISSED", "RATIOS", "STEEPEST", "Side", "SideSettings", "Sides",
    "Weigher", "answer_sides", "ask_sides", "pointers", "run_sides", "weigher",
]  # fmt: skip

RATIOS = 1000  # that are remembered for each half-life
STEEPEST = 2.0**64  # of a ratio
LOWEST, HIGHEST = -2.0, 44.0  # of theta
LONG = 10  # times its patience: zeros in a row after which theta forgets them
ANSWERED, ASKED, MISSED, ZEROS, KEPT = 0, 1, 2, 3, 4  # of `clock`; zeros in a row so far, scores in `recent` ever


class Side(NamedTuple):
    """What changes."""

    recent: Floats  # (longest window,) scores, one after another: the i-th is recent[i % longest]
    scores: Floats  # (W, longest) those of each window, sorted
    held: Ints  # (W,) how many
    ratios: Floats  # (H, RATIOS) as `recent`
    ranked: Floats  # (H, RATIOS) the same, sorted
    ranks: Ints  # (H,) how many there were ever
    means: Floats  # (H,) m_h
    counts: Floats  # (H,) n_h
    candidates: Floats  # (K,) e_k of the present round
    theta: Floats  # (2,) and what it was before the present run of zeros
    asked: Floats  # (horizon,) thresholds that wait for an answer: the i-th is asked[i % horizon]
    advice: Floats  # (horizon, K) e_k of those rounds
    scales: Floats  # (horizon, H) m_h of those rounds
    clock: Ints  # (5,)


class Weigher(NamedTuple):
    """A learner of weights, as compiled code sees it."""

    ready: Pointer
    update: Pointer
    handle: Closed  # what these two take
    x: Floats  # (K,) the weights, to be read only
    g: Floats  # (K,) the gradient of the round


class SideSettings(NamedTuple):
    """What does not change."""

    alpha: float
    eta: float
    patience: int  # zeros in a row after which nothing changes
    windows: Ints  # (W,)
    shortest: int  # the place of the shortest window
    keep: Floats  # (H,) 2^(-1/h)
    weigher: Weigher


def weigher(handle: Handle, x: Floats, g: Floats) -> Weigher:
    """A machine (`thalweg._machines.loop`) whose decision is found at x and whose gradient is wanted at g."""
    return Weigher(
        Pointer(loop.ready, "none(any)", (handle.kind,)),
        Pointer(loop.update, f"i8(any,{','.join(loop.TURN)})", (handle.kind, *loop.TURN)),
        Closed(handle),
        x,
        g,
    )


# ------------------------------------------------------------------------------------------------------ sorted numbers


@inner
def _quantile(sorted_: Floats, n: int, level: float) -> float:
    """Of the first n numbers, n >= 1."""
    place = level * (n + 1) - 1.0
    if place <= 0.0:
        return float(sorted_[0])
    if place >= n - 1:
        return float(sorted_[n - 1])
    i = int(place)
    return float(sorted_[i] + (place - i) * (sorted_[i + 1] - sorted_[i]))


@inner
def _place(sorted_: Floats, n: int, value: float) -> int:
    """How many of the first n numbers are below the value."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if sorted_[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _insert(sorted_: Floats, n: int, value: float) -> None:
    """One more number beside n."""
    i = _place(sorted_, n, value)
    for j in range(n, i, -1):
        sorted_[j] = sorted_[j - 1]
    sorted_[i] = value


@inner
def _replace(sorted_: Floats, n: int, old: float, new: float) -> None:
    """One of n numbers goes, another comes."""
    i = _place(sorted_, n, old)
    while i + 1 < n and sorted_[i + 1] < new:
        sorted_[i] = sorted_[i + 1]
        i += 1
    while i > 0 and sorted_[i - 1] > new:
        sorted_[i] = sorted_[i - 1]
        i -= 1
    sorted_[i] = new


# -------------------------------------------------------------------------------------------------- what is remembered


@inner
def _rest(s: Side, patience: int) -> None:
    """A long run of zeros: forget the scores; after a very long one, also that zeros were covered."""
    for w in range(s.held.shape[0]):
        s.held[w] = 0
    for h in range(s.means.shape[0]):
        s.means[h] = s.counts[h] = 0.0
    for k in range(s.candidates.shape[0]):
        s.candidates[k] = 0.0
    if s.clock[ZEROS] > LONG * patience:
        s.theta[0] = s.theta[1]


@inner
def _remember(s: Side, c: SideSettings, score: float, scales: Floats) -> None:
    """Windows, means and ratios, with the score in them; `scales` are the means of when it was predicted."""
    longest, kept = s.recent.shape[0], s.clock[KEPT]
    for w in range(c.windows.shape[0]):
        n = s.held[w]
        if n == c.windows[w]:
            _replace(s.scores[w], n, s.recent[(kept - n) % longest], score)
        else:
            _insert(s.scores[w], n, score)
            s.held[w] += 1
    s.recent[kept % longest] = score
    s.clock[KEPT] += 1
    top = s.scores[c.shortest, s.held[c.shortest] - 1]
    for h in range(s.means.shape[0]):
        if scales[h] > 0.0:
            ratio, place = min(score / scales[h], STEEPEST), s.ranks[h] % RATIOS
            if s.ranks[h] < RATIOS:
                _insert(s.ranked[h], s.ranks[h], ratio)
            else:
                _replace(s.ranked[h], RATIOS, s.ratios[h, place], ratio)
            s.ratios[h, place] = ratio
            s.ranks[h] += 1
        s.counts[h] = c.keep[h] * s.counts[h] + 1.0
        s.means[h] = min(s.means[h] + (score - s.means[h]) / s.counts[h], top)  # (5), (6)


@inner
def _propose(s: Side, c: SideSettings) -> None:
    """(4) to (6). There is at least one score."""
    level, W = 1.0 - c.alpha, c.windows.shape[0]
    top = 2.0 * s.scores[c.shortest, max(s.held[c.shortest] - 2, 0)]
    for w in range(W):
        s.candidates[w] = min(_quantile(s.scores[w], s.held[w], level), top)
    for h in range(s.means.shape[0]):
        n = min(s.ranks[h], RATIOS)
        ratio = _quantile(s.ranked[h], n, level) if n > 0 else 1.0
        s.candidates[W + h] = min(s.means[h] * ratio, top)


# -------------------------------------------------------------------------------------------------------------- a round


@kernel
def ask(handle: Any) -> float:
    """The threshold of the next round, (1). It waits for an answer."""
    s, c = parts(handle)
    call(c.weigher.ready, c.weigher.handle)
    threshold: float = np.exp(s.theta[0]) * dot(c.weigher.x, s.candidates)
    row = s.clock[ASKED] % s.asked.shape[0]
    copy(s.candidates, s.advice[row])
    copy(s.means, s.scales[row])
    s.asked[row] = threshold
    s.clock[ASKED] += 1
    return threshold


@kernel
def answer(handle: Any, score: float) -> None:
    """The score of the first round that waits for one."""
    s, c = parts(handle)
    row = s.clock[ANSWERED] % s.asked.shape[0]
    missed = 1.0 if score > s.asked[row] else 0.0
    s.clock[ANSWERED] += 1
    s.clock[MISSED] += int(missed)
    s.clock[ZEROS] = s.clock[ZEROS] + 1 if score == 0.0 else 0
    if s.clock[ZEROS] > c.patience:
        _rest(s, c.patience)
        return
    s.theta[0] = min(max(s.theta[0] + c.eta * (missed - c.alpha), LOWEST), HIGHEST)  # (2)
    if score > 0.0:
        s.theta[1] = s.theta[0]
    call(c.weigher.ready, c.weigher.handle)
    advice, base = s.advice[row], dot(c.weigher.x, s.advice[row])
    low, high = advice[0], advice[0]
    for k in range(1, advice.shape[0]):
        low, high = min(low, advice[k]), max(high, advice[k])
    if high > low:  # (3)
        slope = c.alpha - (1.0 if score > base else 0.0)
        for k in range(advice.shape[0]):
            c.weigher.g[k] = slope * (advice[k] - low)  # the same to the simplex, and without rounding where all agree
        call(c.weigher.update, c.weigher.handle, slope * (base - score), np.inf, 0, True)
    _remember(s, c, score, s.scales[row])
    _propose(s, c)


# ----------------------------------------------------------------------------------------------------------- both sides


class Sides(NamedTuple):
    """One side, or two of a kind: the kernels of a round and what they take."""

    ask: Pointer
    answer: Pointer
    above: Closed
    below: Closed
    two: bool


def pointers(handle: Handle) -> tuple[Pointer, Pointer]:
    """`ask` and `answer` for a side whose handle has this type."""
    return Pointer(ask, "f8(any)", (handle.kind,)), Pointer(answer, "none(any,f8)", (handle.kind, "f8"))


@kernel
def ask_sides(handle: Any, out: Floats) -> None:
    """Thresholds of the next round: out[0] above and, of two sides, out[1] below."""
    sides = parts(handle)
    out[0] = call(sides.ask, sides.above)
    if sides.two:
        out[1] = call(sides.ask, sides.below)


@kernel
def answer_sides(handle: Any, above: float, below: float) -> None:
    """The scores of the first round that waits for them."""
    sides = parts(handle)
    call(sides.answer, sides.above, above)
    if sides.two:
        call(sides.answer, sides.below, below)


@kernel
def run_sides(handle: Any, above: Floats, below: Floats, horizon: int, out: Floats) -> None:
    """All rounds: thresholds into out (T, 2). Round t is answered once `horizon` rounds wait, and all at the end."""
    sides = parts(handle)
    T = above.shape[0]
    for t in range(T + horizon - 1):
        if t < T:
            out[t, 0] = call(sides.ask, sides.above)
            if sides.two:
                out[t, 1] = call(sides.ask, sides.below)
        first = t - horizon + 1
        if 0 <= first < T:
            call(sides.answer, sides.above, above[first])
            if sides.two:
                call(sides.answer, sides.below, below[first])
