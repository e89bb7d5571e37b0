"""Records of the members' gains: Hedge on observed gains, once since the start and once for each interval of a cover.

A record has the members' gains since its birth and believes accordingly. With q_i the gain of member i in a round:

    Q = sum_i p_i q_i;  v_i = q_i - Q;  A_i += v_i;  V += sum_i p_i v_i^2;  B = max(B, max_i v_i)                  (1)
    p_i ~ exp(A_i / sqrt(B^2 + V) + log-prior_i)                                                                   (2)

Only this lives on a cover, not the members: a pool that never restarts holds a good member for every interval. Record 0
never ends; slot k has the record of level k of the compact cover (`thalweg._kernels.covers`), flat log-priors and the
prior 3/m. Markers are placed where gains may have added up to 16 of the largest one, phi = min(2f, 2R||h||). The
records are mixed by their own gains, over a grid of rates, as far as gains are no larger than Bt, those
seen before (b = max_j |Q_j|; B0 the first b):

    Q_j *= min(1, Bt/b);  Bt = max(Bt, b);  R_j += Q_j;  W_j += Q_j^2                                              (3)
    w_j ~ prior_j sum_i eta_i exp(eta_i R_j - eta_i^2 W_j),  eta_i = 4^-i/(2 B0),  i_min, a_j <= i < a_j + 8        (4)

with i_min = ceil(log4(Bt/B0)), so that eta_i |Q_j| <= 1/2. A record whose grid has fallen behind, i_min > a_j + 2,
starts another one: a_j = i_min, R_j = W_j = 0.
One more record began at the last evident change (`thalweg.parts.curvature`). It has the prior 3, and in it the
member that restarted there counts for 60 others.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.rules import counters, magnitude, within
from thalweg._core.state import Past, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._kernels.covers import COMPACT, place_marker, slots_in_use
from thalweg._kernels.jit import inner
from thalweg._kernels.vectors import copy, decay

RATES = 8  # of a record's grid
MOST_SLOTS = 58  # of the cover: markers are 16 rounds apart or more, so these hold for 2^62 rounds
BEHIND = 2
ENOUGH = 16.0  # of the largest phi, for a marker
CHANGE, OTHERS = 1, 2  # the rows of the record since the last evident change, and of the first slot of the cover
EVEN, TRUSTING = 1, 2  # of `flat`
TRUST, STARTED = 60.0, 3  # the weight of the member that restarted, and its row
LARGEST_SQUARE = 1e300
FOREVER = 2**63 - 1
Holds = Callable[[Any, Any, Past], Iterator[tuple[str, bool]]]
SMALLEST_GAIN = 1e-150  # a gain up to here is none: its square is lost
LN4 = math.log(4.0)
SINCE, LARGEST, FIRST, SEEN = 0, 1, 2, 3  # of `totals`: phi since the last marker, the largest phi, B0, Bt;
GAINED = 4  # and the sum of Q_0
MARKERS, MINIMUM, ANCHORED = 0, 1, 2  # of `counts`: m, i_min, how often a record was anchored again,
CHANGES = 3  # and how many changes were evident


class RecordsState(NamedTuple):
    """Record 0, one since the last evident change, and S slots of a cover: J = S + 2, B = S + 1.

    Slots grow with the markers. The latest M rounds that set a marker are kept for display; no decision reads them.
    """

    A: Floats = field("J N")
    V: Floats = field("J", within(0.0, LARGEST_SQUARE))
    B: Floats = field("J", within(0.0, LARGEST_SQUARE))
    R: Floats = field("J")
    W: Floats = field("J", within(0.0, LARGEST_SQUARE))
    p: Floats = field("J N")  # the weights of each
    prior: Floats = field("J")  # its logarithm
    anchors: Ints = field("J")  # a_j
    flat: Ints = field("J", within(0, 2))  # 0: log-priors of record 0; EVEN: all are 0; TRUSTING: all but one
    born: Ints = field("B")  # the change or the marker at which records 1, 2, ... began; 0: there is none
    weights: Floats = field("J")  # w_j
    totals: Floats = field("5", magnitude(LARGEST_SQUARE))
    counts: Ints = field("4", counters)
    marks: Ints = field("M")  # marks[i % M]: the round that set marker i + 1


def records_plan(members: int, slots: int, marks: int = 0, holds: Holds | None = None) -> Plan:
    """Return the plan of records over `members` with capacity for 2^slots - 1 markers; no slots, no intervals."""
    sizes = {"J": OTHERS + slots, "B": OTHERS + slots - 1, "N": members, "M": marks}
    return Plan(RecordsState, (), sizes) if holds is None else Plan(RecordsState, (), sizes, holds=holds)


def slots_for(rounds: int) -> int:
    """Return how many slots the markers of a number of rounds can fill: they are 16 rounds apart or more."""
    return min(int(slots_in_use(rounds // 16 + 1)), MOST_SLOTS)


def rounds_for(slots: int | None) -> int:
    """Return the number of rounds that slots suffice for, the inverse of `slots_for`; None: no slots are needed."""
    return FOREVER if slots is None or slots >= MOST_SLOTS else 16 * (2**slots - 1) - 1


def slots_of(born: NDArray[Any]) -> int:
    """Return the slots of saved records; raise ValueError where no run can have them."""
    slots = born.size - 1
    if not 0 < slots <= MOST_SLOTS:
        raise ValueError(f"'born' of its records must have 2 to {MOST_SLOTS + 1} entries. Got {born.size}")
    return slots


@inner
def has_slots(s: RecordsState, rounds: int) -> bool:
    """Whether there are slots for a number of rounds."""
    return (rounds // 16 + 1) >> (s.born.shape[0] - 1) == 0


@inner
def _alive(s: RecordsState, j: int) -> bool:
    return j == 0 or s.born[j - 1] > 0


@inner
def _rows(s: RecordsState) -> int:
    """Records up to the last one that may be there."""
    return OTHERS + slots_in_use(s.counts[MARKERS])


@inner
def _begin(s: RecordsState, j: int, flat: int, prior: float) -> None:
    for i in range(s.A.shape[1]):
        s.A[j, i] = 0.0
    s.V[j] = s.B[j] = s.R[j] = s.W[j] = 0.0
    s.prior[j] = prior
    s.anchors[j] = s.counts[MINIMUM]
    s.flat[j] = flat


@inner
def begin_records(s: RecordsState, logs: Floats, first: int, count: int, scores: Floats) -> None:
    """The first round: record 0 over these rows."""
    _begin(s, 0, 0, 0.0)
    _weigh(s, 0, logs, first, count, scores)
    s.weights[0] = 1.0


@inner
def account(s: RecordsState, q: Floats, first: int, count: int, scores: Floats) -> float:
    """(1) in every record; Q_j into `scores`, which is scratch space (J, ROWS). Returns the largest |Q_j|."""
    gains, largest, best = q[first:count], 0.0, -np.inf
    for i in range(gains.shape[0]):
        best = max(best, gains[i])
    for j in range(_rows(s)):
        if _alive(s, j):
            p, A = s.p[j, first:count], s.A[j, first:count]
            Q, square = 0.0, 0.0
            for i in range(gains.shape[0]):
                Q += p[i] * gains[i]
            for i in range(gains.shape[0]):
                v = gains[i] - Q
                A[i] += v
                square += p[i] * (v * v)
            s.V[j] += square
            s.B[j] = max(s.B[j], best - Q)
            scores[j, 0] = Q
            largest = max(largest, abs(Q))
    s.totals[GAINED] += scores[0, 0]
    return largest


@inner
def credit(s: RecordsState, largest: float, scores: Floats) -> None:
    """(3), once there is another record."""
    if s.counts[MARKERS] + s.counts[CHANGES] == 0 or largest <= SMALLEST_GAIN:
        return
    if s.totals[FIRST] == 0.0:
        s.totals[FIRST] = s.totals[SEEN] = largest
    shrink = min(1.0, s.totals[SEEN] / largest)
    if largest > s.totals[SEEN]:
        s.totals[SEEN] = largest
        s.counts[MINIMUM] = int(np.ceil(0.5 * np.log2(largest / s.totals[FIRST])))
    for j in range(_rows(s)):
        if _alive(s, j):
            Q = scores[j, 0] * shrink
            s.R[j] += Q
            s.W[j] += Q * Q


@inner
def mark(s: RecordsState, phi: float, blind: bool, round: int) -> None:
    """Place a marker if one is due."""
    s.totals[LARGEST] = max(s.totals[LARGEST], phi)
    s.totals[SINCE] += phi
    if 0.0 < ENOUGH * s.totals[LARGEST] <= s.totals[SINCE]:
        s.totals[SINCE] = 0.0
        if s.marks.shape[0] > 0:
            s.marks[s.counts[MARKERS] % s.marks.shape[0]] = round
        s.counts[MARKERS] += 1
        m = s.counts[MARKERS]
        _begin(s, OTHERS + place_marker(COMPACT, m, s.born[OTHERS - 1 :]), 0 if blind else EVEN, np.log(3.0 / m))


@inner
def begin_change(s: RecordsState) -> None:
    """Start the record of an evident change."""
    s.counts[CHANGES] += 1
    s.born[CHANGE - 1] = s.counts[CHANGES]
    _begin(s, CHANGE, TRUSTING, np.log(3.0))


@inner
def _weigh(s: RecordsState, j: int, logs: Floats, first: int, count: int, scores: Floats) -> None:
    """(2)."""
    U = s.B[j] * s.B[j] + s.V[j]
    rate = 1.0 / np.sqrt(U) if U > SMALLEST_GAIN * SMALLEST_GAIN else 0.0
    weight = 1.0 if s.flat[j] == 0 else 0.0
    A, p, prior, score = s.A[j, first:count], s.p[j, first:count], logs[first:count], scores[j, first:count]
    for i in range(p.shape[0]):
        score[i] = rate * A[i] + weight * prior[i]
    if s.flat[j] == TRUSTING and first <= STARTED < count:
        score[STARTED - first] += np.log(TRUST)
    top = -np.inf
    for i in range(p.shape[0]):
        top = max(top, score[i])
    total = 0.0
    for i in range(p.shape[0]):
        p[i] = decay(score[i] - top)
        total += p[i]
    for i in range(p.shape[0]):
        p[i] /= total


@inner
def _grid(s: RecordsState, j: int, scores: Floats) -> float:
    """scores[j, i] <- ln of prior_j eta_i exp(eta_i R_j - eta_i^2 W_j) for the rates of its grid; returns the largest.

    Up to a constant common to all records. Rates below i_min have no weight.
    """
    unit = (s.totals[FIRST] if s.totals[FIRST] > 0.0 else 1.0) * 4.0 ** s.anchors[j]
    gained, square = s.R[j] / unit, s.W[j] / unit / unit
    rate, top = 0.5, -np.inf
    for i in range(RATES):
        score = s.prior[j] - LN4 * (s.anchors[j] + i) + rate * (gained - rate * square)
        scores[j, i] = score if s.anchors[j] + i >= s.counts[MINIMUM] else -np.inf
        top = max(top, scores[j, i])
        rate *= 0.25
    return top


@inner
def mix(s: RecordsState, logs: Floats, first: int, count: int, p: Floats, scores: Floats) -> None:
    """(2) and (4): p <- the weights of the mixture of all records."""
    J = _rows(s) if s.counts[MARKERS] + s.counts[CHANGES] > 0 else 1
    least, top = s.counts[MINIMUM], -np.inf
    for j in range(J):
        if _alive(s, j):
            _weigh(s, j, logs, first, count, scores)
            if least > s.anchors[j] + BEHIND:
                s.anchors[j] = least
                s.R[j] = s.W[j] = 0.0
                s.counts[ANCHORED] += 1
            if J > 1:
                top = max(top, _grid(s, j, scores))
    mixed = p[first:count]
    if J == 1:
        s.weights[0] = 1.0
        copy(s.p[0, first:count], mixed)
        return
    total = 0.0
    for j in range(J):
        s.weights[j] = 0.0
        if _alive(s, j):
            weight = 0.0
            for i in range(RATES):
                weight += decay(scores[j, i] - top)
            s.weights[j] = weight
            total += weight
    for i in range(mixed.shape[0]):
        mixed[i] = 0.0
    for j in range(J):
        s.weights[j] /= total
        if _alive(s, j):
            its = s.p[j, first:count]
            for i in range(mixed.shape[0]):
                mixed[i] += s.weights[j] * its[i]
