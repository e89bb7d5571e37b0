"""One side of `ConformalTracker`: candidates for a quantile of the scores, their weights, and coverage control.

A round, with alpha the share that may be missed and e_k the candidates, w_k their weights (a `Tracker` on the simplex):

    b = sum_k w_k e_k;  q = exp(g(D) + c_F F) b                                   the threshold                     (1)
    g(D) = c_D D (1 + (D/B)^2)
    a score s comes: missed = s > q
    D <- D + (missed - alpha), held between two ends;  F <- e^(-1/m) F + (missed - alpha)                           (2)
    w learns from the pinball loss of exp(g(D)) sum_k w_k e_k                      at the weights of now            (3)

D is the balance of misses, and F that of about the last m rounds. (3) is taken at the weights and the balance of now
for the candidates of then, so that a late answer does no harm. It leaves F out: weights that learned from it would
undo it. The candidates:

    the (1 - alpha)-quantile of the last W scores, for each window W                                                (4)
    m_h r_h for each half-life h: m_h <- m_h + (s - m_h)/n_h, n_h <- 2^(-1/h) n_h + 1, a mean that forgets,
    and r_h the (1 - alpha)-quantile of the last 1000 ratios s/m_h, m_h of when s was predicted                      (5)
    m_h <= M;  e_k <= 2 M'                                                                                          (6)

with M the largest and M' the second largest score of the shortest window: after a drop of the level, old scores matter
no longer than that window, and a single huge score hardly at all. A quantile of n numbers is at place
(1 - alpha)(n + 1) of the sorted ones, between neighbours linear.

After more than 10/alpha zeros in a row windows and means are empty, the threshold is 0 and the rest waits until a score
is above 0: a zero is covered whatever the threshold is. After more than 100/alpha zeros D and F return to their values
before the first of them.

Scores times a power of two give thresholds times that power, bit for bit, as long as nothing underflows: everything
above is linear in the scores, or made of ratios of them.

Of the scores of a window and of the ratios those around the quantile are also kept in order, as scratch space
(`thalweg.parts.nearby`): `sort` makes it from a state.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from thalweg._core.rules import counters
from thalweg._core.state import Past, Plan, field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._kernels.fetching import fetch
from thalweg._kernels.handle import AnyHandle, Closed, Handle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.pointers import Pointer, call
from thalweg._kernels.vectors import copy, dot
from thalweg.parts.nearby import BELOW, COUNT, NEARBY, enter, first_near, leave, reaches, refill
from thalweg.parts.ranked import number_at, rank_of
from thalweg.parts.weigher import Weigher, fits, teach

RATIOS = 1000  # that are remembered for each half-life
STEEPEST = 2.0**64  # of a ratio
FEWEST, ENDLESS = 32, 2**62  # capacity for scores: the smallest, and one that is never reached
FADING = 0.6  # share of the correction in c_F; the rest is in c_D
BEND = 5.0  # B, if answers come at once
FADING_ROUNDS = 60.0  # m: rounds in which F fades by a factor e
LOWEST, HIGHEST = -2.0, 44.0  # of the logarithm of the factor: ends of g(D), the lower one without the largest c_F F
LONG = 10  # times its patience: zeros in a row after which D and F forget them
LARGEST_SCORE = 1e100  # of a score or a forecast
ANSWERED, ASKED = 0, 1  # of the clock of all sides
MISSED, ZEROS, KEPT = 0, 1, 2  # of the counts of a side; zeros in a row so far, scores in `recent` ever


class SideState(NamedTuple):
    """W windows, H half-lives, K = W + H candidates; up to h rounds wait for their answer.

    L is the longest window, R = RATIOS; both are smaller as long as there are few scores: see `capacities`.
    """

    recent: Floats = field("L", sparse=True)  # scores, one after another: the i-th is recent[i % L]
    held: Ints = field("W")  # how many are in each window
    ratios: Floats = field("H R", sparse=True)  # as `recent`
    ranks: Ints = field("H")  # how many there were ever
    means: Floats = field("H")  # m_h
    counts: Floats = field("H")  # n_h
    candidates: Floats = field("K")  # e_k of the present round
    balance: Floats = field("2")  # D and F
    before: Floats = field("2")  # and their values before the present run of zeros
    asked: Floats = field("h")  # thresholds that wait for an answer: the i-th is asked[i % h]
    advice: Floats = field("h K")  # e_k of those rounds
    scales: Floats = field("h H")  # m_h of those rounds
    tally: Ints = field("3", counters, called="clock")
    weights: Any = part()  # w_k: a Tracker on the simplex


class SideSettings(NamedTuple):
    """Constants and scratch space."""

    alpha: float
    lasting: float  # c_D
    fading: float  # c_F
    bend: float  # B
    fade: float  # e^(-1/m)
    least: float  # of D
    most: float  # of D
    patience: int  # zeros in a row after which nothing changes
    windows: Ints  # (W,)
    shortest: int  # the place of the shortest window
    keep: Floats  # (H,) 2^(-1/h)
    capacity: int  # for scores; ENDLESS once there is capacity for all that are kept
    weights: Any = part()
    near: Floats = scratch("B N")  # numbers around the rank of each candidate, then of the shortest window's top
    spans: Ints = scratch("B 2")
    numbers: Floats = scratch("S")  # all numbers of a window


class SideTurn(NamedTuple):
    """A side as kernels take it. Its parts called `weights` are None: they are behind the weigher."""

    state: SideState
    settings: SideSettings
    weigher: Weigher


def capacities(longest: int) -> tuple[int, ...]:
    """Return the numbers of scores for which there may be capacity, if this is the longest window."""
    most = max(longest, RATIOS)
    below = range((most - 1).bit_length())
    return (*(FEWEST * 4**k for k in below if FEWEST * 4**k < most), most)


class SideLayout(NamedTuple):
    """One side: what is settled before its capacity."""

    alpha: float
    correction: float
    patience: int  # zeros in a row after which nothing changes
    windows: Ints  # (W,)
    keep: Floats  # (H,) 2^(-1/h)
    horizon: int

    def plan(self, capacity: int, weights: Plan) -> Plan:
        """Return the plan with this capacity for scores, and candidates weighed by a part with that plan."""
        W, H, L = self.windows.size, self.keep.size, int(self.windows.max())
        most = ENDLESS if capacity >= max(L, RATIOS) else capacity
        rates, shortest = _rates(self.alpha, self.correction, self.horizon), int(self.windows.argmin())
        scores, ratios = min(L, capacity), min(RATIOS, capacity)
        sizes = {"L": scores, "W": W, "H": H, "R": ratios, "K": W + H, "h": self.horizon}
        return Plan(
            SideState,
            SideSettings(self.alpha, *rates, self.patience, self.windows, shortest, self.keep, most),
            sizes | {"B": W + H + 1, "N": min(NEARBY, capacity), "S": max(scores, ratios)},
            {"weights": weights},
            holds=_holds,
            begin=lambda s, c: weights.begin(s.weights, c.weights),
        )


def _rates(alpha: float, correction: float, horizon: int) -> tuple[float, float, float, float, float, float]:
    """Return c_D, c_F, B, e^(-1/m) and the ends of D.

    With answers h rounds late the correction is slower, its bend is farther out, and less of it fades: the past it
    answers to is over.
    """
    rate, share = correction / horizon**0.75, FADING / horizon
    lasting, fading = (1 - share) * rate, share * rate
    bend, fade = BEND * horizon, math.exp(-1 / FADING_ROUNDS)

    def balance(level: float) -> float:  # g(balance) = level
        return 2 * bend / math.sqrt(3) * math.sinh(math.asinh(level / lasting * 1.5 * math.sqrt(3) / bend) / 3)

    return lasting, fading, bend, fade, balance(LOWEST - fading * (1 - alpha) / (1 - fade)), balance(HIGHEST)


def _holds(s: SideState, c: SideSettings, past: Past) -> Iterator[tuple[str, bool]]:
    """Relations that the next round relies on."""
    answered, (missed, zeros, kept) = past.rounds, s.tally.tolist()
    yield "clock", max(missed, zeros, kept) <= answered and missed + zeros <= answered
    yield "clock", kept <= c.capacity
    held, ranks = s.held, s.ranks
    yield "windows", bool(((held >= 0) & (held <= np.minimum(c.windows, kept))).all())
    yield "windows", bool((held == np.minimum(c.windows, held.max(initial=0))).all())
    yield "ratios", bool(((ranks >= 0) & (ranks <= kept)).all())
    numbers = s.recent, s.ratios, s.means, s.counts, s.candidates, s.asked, s.advice, s.scales
    yield "scores", all(bool((one >= 0).all()) for one in numbers)
    yield "ratios", bool((s.ratios <= STEEPEST).all())
    top = float(s.recent.max(initial=0.0))
    yield "means", top <= LARGEST_SCORE and bool((s.means <= top).all() and (s.candidates <= 2 * top).all())
    yield "counts", bool((s.counts <= answered + 1).all() and ((s.counts >= 1) | (s.means == 0)).all())
    both, slack = np.array([s.balance, s.before]), 1.0 + 1e-9
    yield "balance", bool(((both[:, 0] >= c.least) & (both[:, 0] <= c.most)).all())
    memory = slack / (1.0 - c.fade)
    yield "balance", bool(((both[:, 1] >= -c.alpha * memory) & (both[:, 1] <= (1.0 - c.alpha) * memory)).all())
    largest = 2 * LARGEST_SCORE
    yield "predictions", bool((s.advice <= largest).all() and (s.scales <= largest).all())
    yield "predictions", bool((s.asked <= math.exp(HIGHEST + 0.5 + c.fading * memory) * largest).all())


@inner
def _rank(s: SideState, c: SideSettings, b: int, n: int) -> float:
    """The rank of row b of `near` among n numbers: that of a candidate's quantile, or of the second largest number."""
    return rank_of(n, 1.0 - c.alpha) if b < s.candidates.shape[0] else max(n - 2.0, 0.0)


@inner
def _restore(s: SideState, c: SideSettings, b: int, w: int) -> None:
    """Make row b of `near` reach its rank among the scores of window w or, from w = W on, the ratios of a half-life."""
    W, L, kept = s.held.shape[0], s.recent.shape[0], s.tally[KEPT]
    n = s.held[w] if w < W else min(s.ranks[w - W], RATIOS)
    rank = _rank(s, c, b, n)
    if n == 0 or reaches(c.spans[b], n, rank):
        return
    for i in range(n):
        c.numbers[i] = s.recent[(kept - 1 - i) % L] if w < W else s.ratios[w - W, i]
    refill(c.near[b], c.spans[b], c.numbers, n, rank)


def sort(s: SideState, c: SideSettings) -> None:
    """Make the scratch space that holds numbers in order."""
    W, K = s.held.size, s.candidates.size
    for b in range(K + 1):
        w = b if b < K else c.shortest
        n = int(s.held[w]) if w < W else min(int(s.ranks[w - W]), RATIOS)
        latest = s.recent[(s.tally[KEPT] - 1 - np.arange(n)) % s.recent.size] if w < W else s.ratios[w - W, :n]
        first = first_near(c.near.shape[1], n, _rank(s, c, b, n)) if n else 0
        near = np.sort(latest)[first : first + c.near.shape[1]]
        c.near[b, : near.size], c.spans[b] = near, (first, near.size)


# -------------------------------------------------------------------------------------------------- remembered scores


@inner
def _rest(s: SideState, c: SideSettings) -> None:
    """A long run of zeros: forget the scores; after a very long one, also that zeros were covered."""
    for w in range(s.held.shape[0]):
        s.held[w] = c.spans[w, BELOW] = c.spans[w, COUNT] = 0
    top = s.candidates.shape[0]
    c.spans[top, BELOW] = c.spans[top, COUNT] = 0
    for h in range(s.means.shape[0]):
        s.means[h] = s.counts[h] = 0.0
    for k in range(s.candidates.shape[0]):
        s.candidates[k] = 0.0
    if s.tally[ZEROS] > LONG * c.patience:
        copy(s.before, s.balance)


@inner
def _fetch_old(s: SideState) -> None:
    """Ask for the numbers that the next score replaces: after a while without a round they are not in the cache."""
    L, kept, R = s.recent.shape[0], s.tally[KEPT], s.ratios.shape[1]
    fetch(s.recent.ctypes.data + 8 * (kept % L))
    for w in range(s.held.shape[0]):
        fetch(s.recent.ctypes.data + 8 * ((kept - s.held[w]) % L))
    for h in range(s.ranks.shape[0]):
        fetch(s.ratios.ctypes.data + 8 * (h * R + s.ranks[h] % RATIOS))


@inner
def _exchange(s: SideState, c: SideSettings, b: int, n: int, full: bool, old: float, new: float) -> None:
    """One number more in row b of `near`; if its window is full, the old one leaves."""
    if full:
        n -= 1
        leave(c.near[b], c.spans[b], old)
    enter(c.near[b], c.spans[b], n, new, _rank(s, c, b, n + 1))


@inner
def _remember(s: SideState, c: SideSettings, score: float, scales: Floats) -> None:
    """Windows, means and ratios, with the score in them; `scales` are the means of when it was predicted."""
    W, L, K, kept = s.held.shape[0], s.recent.shape[0], s.candidates.shape[0], s.tally[KEPT]
    for w in range(W):
        n = s.held[w]
        full, old = n == c.windows[w], s.recent[(kept - n) % L]
        _exchange(s, c, w, n, full, old, score)
        if w == c.shortest:
            _exchange(s, c, K, n, full, old, score)
        s.held[w] = n if full else n + 1
    s.recent[kept % L] = score
    s.tally[KEPT] += 1
    for h in range(s.means.shape[0]):
        if scales[h] > 0.0:
            n, ratio = s.ranks[h], min(score / scales[h], STEEPEST)
            old = s.ratios[h, n % RATIOS] if n >= RATIOS else 0.0
            _exchange(s, c, W + h, min(n, RATIOS), n >= RATIOS, old, ratio)
            s.ratios[h, n % RATIOS] = ratio
            s.ranks[h] += 1
    for b in range(K + 1):
        _restore(s, c, b, b if b < K else c.shortest)
    top = number_at(c.near[K], c.spans[K, BELOW], s.held[c.shortest], s.held[c.shortest] - 1.0)
    for h in range(s.means.shape[0]):
        s.counts[h] = c.keep[h] * s.counts[h] + 1.0
        s.means[h] = min(s.means[h] + (score - s.means[h]) / s.counts[h], top)  # (5), (6)


@inner
def _propose(s: SideState, c: SideSettings) -> None:
    """(4) to (6). There is at least one score."""
    W, K = s.held.shape[0], s.candidates.shape[0]
    n = s.held[c.shortest]
    top = 2.0 * number_at(c.near[K], c.spans[K, BELOW], n, _rank(s, c, K, n))
    for k in range(K):
        n = s.held[k] if k < W else min(s.ranks[k - W], RATIOS)
        value = number_at(c.near[k], c.spans[k, BELOW], n, _rank(s, c, k, n)) if n > 0 else 1.0
        s.candidates[k] = min(value if k < W else s.means[k - W] * value, top)


# -------------------------------------------------------------------------------------------------------------- a round


@inner
def _lasting(s: SideState, c: SideSettings) -> float:
    """g(D)."""
    D = s.balance[0]
    return c.lasting * D * (1.0 + (D / c.bend) ** 2)


@inner
def log_factor(s: SideState, c: SideSettings) -> float:
    """Logarithm of the threshold over b."""
    return _lasting(s, c) + c.fading * s.balance[1]


@kernel
def ask(handle: AnyHandle, row: int) -> float:
    """The threshold of the next round, (1). It waits for an answer in this row."""
    turn = parts(handle)
    s, c, weigher = turn.state, turn.settings, turn.weigher
    call(weigher.ready, weigher.handle)
    threshold: float = np.exp(log_factor(s, c)) * dot(weigher.x, s.candidates)  # (1)
    copy(s.candidates, s.advice[row])
    copy(s.means, s.scales[row])
    s.asked[row] = threshold
    _fetch_old(s)
    return threshold


@kernel
def has_capacity(handle: AnyHandle) -> bool:
    """Whether there is capacity for one more answer."""
    turn = parts(handle)
    return turn.state.tally[KEPT] < turn.settings.capacity and fits(turn.weigher)


@kernel
def answer(handle: AnyHandle, row: int, score: float) -> None:
    """Learn the score of the round that waits in this row; there must be capacity for it."""
    turn = parts(handle)
    s, c, weigher = turn.state, turn.settings, turn.weigher
    missed = 1.0 if score > s.asked[row] else 0.0
    s.tally[MISSED] += int(missed)
    s.tally[ZEROS] = s.tally[ZEROS] + 1 if score == 0.0 else 0
    if s.tally[ZEROS] > c.patience:
        _rest(s, c)
        return
    factor = np.exp(_lasting(s, c))
    s.balance[0] = min(max(s.balance[0] + (missed - c.alpha), c.least), c.most)  # (2)
    s.balance[1] = c.fade * s.balance[1] + (missed - c.alpha)
    if score > 0.0:
        copy(s.balance, s.before)
    call(weigher.ready, weigher.handle)
    advice, base = s.advice[row], dot(weigher.x, s.advice[row])
    low, high = advice[0], advice[0]
    for k in range(1, advice.shape[0]):
        low, high = min(low, advice[k]), max(high, advice[k])
    if high > low:  # (3)
        slope = c.alpha - (1.0 if score > factor * base else 0.0)
        for k in range(advice.shape[0]):
            weigher.g[k] = slope * (advice[k] - low)  # the same to the simplex, and without rounding where all agree
        teach(weigher, slope * (base - score / factor))
    _remember(s, c, score, s.scales[row])
    _propose(s, c)


# ----------------------------------------------------------------------------------------------------------- both sides


class Sides(NamedTuple):
    """One side, or two of a kind: the kernels of a round and their arguments."""

    ask: Pointer
    has_capacity: Pointer
    answer: Pointer
    above: Closed
    below: Closed
    two: bool
    horizon: int
    clock: Ints  # rounds that were answered and asked
    forecasts: Floats  # (h,) of the rounds that wait
    kinds: Ints  # (h,) whether there is one


def pointers(handle: Handle) -> tuple[Pointer, Pointer, Pointer]:
    """Return `ask`, `has_capacity` and `answer` for a side whose handle has this type."""
    kind = handle.kind
    return (
        Pointer(ask, "f8(any,i8)", (kind, "i8")),
        Pointer(has_capacity, "b1(any)", (kind,)),
        Pointer(answer, "none(any,i8,f8)", (kind, "i8", "f8")),
    )


@inner
def _ask_next(sides: Sides, out: Floats) -> None:
    """out <- thresholds of the next round: above and, of two sides, below."""
    row = sides.clock[ASKED] % sides.horizon
    out[0] = call(sides.ask, sides.above, row)
    if sides.two:
        out[1] = call(sides.ask, sides.below, row)
    sides.clock[ASKED] += 1


@inner
def _fits(sides: Sides) -> bool:
    """Whether there is capacity for one more answer."""
    if not call(sides.has_capacity, sides.above):
        return False
    return not sides.two or call(sides.has_capacity, sides.below)


@inner
def _answer_first(sides: Sides, above: float, below: float) -> None:
    """Learn the scores of the first round that waits; there must be capacity for them."""
    row = sides.clock[ANSWERED] % sides.horizon
    call(sides.answer, sides.above, row, above)
    if sides.two:
        call(sides.answer, sides.below, row, below)
    sides.clock[ANSWERED] += 1


@kernel
def ask_sides(handle: AnyHandle, forecast: float, kind: int, out: Floats) -> None:
    """Thresholds of the next round: out[0] above and, of two sides, out[1] below. `kind` 1: there is a forecast."""
    sides = parts(handle)
    row = sides.clock[ASKED] % sides.horizon
    sides.forecasts[row], sides.kinds[row] = forecast, kind
    _ask_next(sides, out)


@kernel
def answer_sides(handle: AnyHandle, above: float, below: float) -> bool:
    """Learn the scores of the first round that waits. False, with nothing changed, where there is no capacity."""
    sides = parts(handle)
    if not _fits(sides):
        return False
    _answer_first(sides, above, below)
    return True


@kernel
def run_sides(handle: AnyHandle, above: Floats, below: Floats, first: int, out: Floats) -> int:
    """Steps from `first` on: thresholds into out (T, 2). Returns the first that was not made, for lack of capacity.

    In step t round t is asked, if there is one, and round t - horizon + 1 is answered. There are T + horizon - 1 steps.
    """
    sides = parts(handle)
    T, late = above.shape[0], sides.horizon - 1
    for t in range(first, T + late):
        if t >= late and not _fits(sides):
            return t
        if t < T:
            _ask_next(sides, out[t])
        if t >= late:
            _answer_first(sides, above[t - late], below[t - late])
    return T + late
