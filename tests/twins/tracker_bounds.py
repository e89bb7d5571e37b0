"""What is proved about the Tracker, evaluated from what a run of the twin recorded (docs/why-the-tracker-works.md).

Rounds count from 0 and an interval is [start, stop). The letters are those of the page.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tests.twins.tracker import Record

KAPPA = 2 * (math.e - 2)  # of the record lemma


@dataclass
class Round:
    """What was played, and what stood there after the round."""

    loss: object
    paid: float
    h: np.ndarray
    y: np.ndarray
    f: float  # infinite where the learner was not told
    multipliers: list  # k of the members that were there in the round, None for C, D and M
    gains: np.ndarray  # q of the same members
    S: float
    H: float
    K: int
    N: int
    m: int
    changes: int
    Bt: float
    U: float  # of record 0
    A: dict  # of record 0, by multiplier
    gain: float  # the sum of Q_0
    squares: float  # the sum of its cut squares
    anchored: list  # the records that were anchored again

    def model(self, u):
        """-l(u): at least what the round lost against u."""
        return min(2 * self.f, float(self.h @ (self.y - u)))


@dataclass
class Log:
    """A run."""

    radius: float
    k0: int = 0
    curved: float = 0.0  # the share of all members with curvature
    rounds: list = field(default_factory=list)
    squares: np.ndarray | None = None  # |h|^2 of every round
    phi: np.ndarray | None = None

    def longest(self, stop):
        """G: the longest gradient so far."""
        return math.sqrt(self.squares[:stop].max())

    def markers(self, start, stop):
        return self.rounds[stop - 1].m - (self.rounds[start - 1].m if start else 0)

    def anchorings(self, start, stop):
        """All re-anchorings, and the most of one record."""
        who = [one for r in self.rounds[start:stop] for one in r.anchored]
        return len(who), max((who.count(one) for one in set(who)), default=0)


def play(twin, losses, values=True):
    """Play all rounds. A loss has `value` and `gradient`, or is a function that makes one when it has seen the twin."""
    log = Log(twin.radius)
    kept = []  # records stay alive, so that no two have one id
    for loss in losses:
        loss = loss(twin) if callable(loss) else loss
        paid, g, y = loss.value(twin.x), loss.gradient(twin.x), twin.y
        f = paid if values else math.inf
        h = twin.surrogate(g)
        there = list(twin.members)
        gains = np.minimum([h @ (y - member.point) for member in there], 2 * f)
        before = {id(record): record.anchored for record in twin.records}
        twin.update(g, paid if values else None)
        kept += [record for record in twin.records if id(record) not in before]
        zero = twin.records[0] if twin.records else Record([])
        ledger = {member.k: A for member, A in zip(twin.members, zero.A, strict=True) if member.k is not None}
        log.rounds.append(
            Round(
                loss, paid, h, y, f, [member.k for member in there], gains, twin.S, twin.H, twin.K, len(twin.members),
                twin.m, twin.changes, twin.Bt, zero.U, ledger, zero.gain, zero.squares,
                [id(record) for record in twin.records if record.anchored > before.get(id(record), 0)],
            )
        )  # fmt: skip
    log.squares = np.array([r.h @ r.h for r in log.rounds])
    log.phi = np.minimum([2 * r.f for r in log.rounds], 2 * twin.radius * np.sqrt(log.squares))
    log.k0 = twin.k0
    if any(member.k is None for member in twin.members):
        log.curved = 2.0  # four of 1/2 with values, two of 1 without
    return log


def regret(log, u):
    """What every round lost against u."""
    return np.array([r.paid - r.loss.value(u_t) for r, u_t in zip(log.rounds, u, strict=True)])


def path(u):
    return float(np.linalg.norm(np.diff(u, axis=0), axis=1).sum())


def spread(curved):
    """Z: the sum of all weights that members of record 0 can ever start with."""
    return (2.75 + math.sqrt(2)) * (1 + curved)


def prior_cost(log, k):
    """ln(1/pi_k) in record 0."""
    return math.log(spread(log.curved)) + math.log(2) / 2 * (k - log.k0)


def logarithm(m, a, prior=1.0):
    """L of a record with this prior, after m markers and a re-anchorings and evident changes."""
    return math.log(8 * (4 + 3 * math.log(max(m, 1)) + 3 * a) / prior)


def top(W, L, Bt, E=1):
    """The most that a record gains against the whole: W over all its anchors, E of them."""
    return 2.5 * math.sqrt(E * W * L) + ((16.0 if E == 1 else 20.1) * L + 1) * Bt


def whole_run(log, stop, length, how="lemmas", kappa=KAPPA):
    """(T1) for rounds [0, stop) and a comparator of this path length, at the best k.

    `how` says what the records gained: "ledger", as it was (T1'); "record", for record 0 as it was and for its members
    by the record lemma; "lemmas", by both lemmas (T1).
    """
    last, R = log.rounds[stop - 1], log.radius
    if last.S == 0:
        return 0.0
    square = 2 + 2 * length / R  # c*^2

    def pool(k):
        c = 2.0**k
        late = 0.0 if k <= 1 else c + 2
        return R * math.sqrt(last.S) * (square / c + c + late)

    if how == "ledger":
        return min(pool(k) + A for k, A in last.A.items()) + last.gain
    best = min(pool(k) + (kappa + prior_cost(log, k)) * math.sqrt(last.U) for k in range(64))
    if how == "record":
        return best + last.gain
    if last.Bt == 0:
        return best
    a, most = log.anchorings(0, stop)
    return best + top(last.squares, logarithm(last.m, a + last.changes), last.Bt, 1 + most)


def member_on_interval(log, start, stop):
    """What the best member loses on [start, stop), in the model, against comparators of path length at most R."""
    S = log.squares[start:stop].sum()
    return log.radius * (4.25 * math.sqrt(S) + 4 * log.longest(stop))


def member_on_any_path(log, start, stop, length):
    """(4'): the same for any path, where a member may join on the way."""
    S, square = log.squares[start:stop].sum(), 2 + 2 * length / log.radius
    return log.radius * (4.95 * math.sqrt(square * S) + 1.415 * square * log.longest(stop))


def records_on_interval(log, start, stop, n, kappa=KAPPA, blind=False):
    """What n records one after the other lose on [start, stop) to a member, and to the mixture of all records."""
    last = log.rounds[stop - 1]
    L = logarithm(last.m, log.anchorings(0, stop)[0] + last.changes, 3 / last.m)
    E = 1 + log.anchorings(start, stop)[1]
    prior = prior_cost(log, last.K) if blind else math.log(last.N)
    root = math.sqrt(5) * (kappa + prior) + 5 * math.sqrt(E * L)
    steep = n * (32 if E == 1 else 40.2) * L + 2
    return log.radius * (root * math.sqrt(n * log.squares[start:stop].sum()) + steep * log.longest(stop))


def interval(log, start, stop, length, *, kappa=KAPPA, blind=False):
    """(T2) for rounds [start, stop) and a comparator of this path length on them."""
    pieces, markers = 1 + math.floor(length / log.radius), log.markers(start, stop)
    bound = 17 * pieces * log.phi[:stop].max()
    if markers == 0:
        return bound
    n = pieces * (1 + math.floor(math.log2(markers)))
    member = log.radius * (4.25 * math.sqrt(n * log.squares[start:stop].sum()) + 4 * n * log.longest(stop))
    return bound + member + records_on_interval(log, start, stop, n, kappa, blind)


def interval_at_once(log, start, stop, length, *, kappa=KAPPA, blind=False):
    """(T2*) for rounds [start, stop) and a comparator of this path length on them."""
    R, S, markers, F = log.radius, log.squares[start:stop].sum(), log.markers(start, stop), log.phi[:stop].max()
    if markers == 0:
        return 16 * F
    n = 1 + math.floor(math.log2(markers))
    member = R * (4.95 * math.sqrt((2 * n + 2 * length / R) * S) + 2.83 * (n + length / R) * log.longest(stop))
    return 17 * F + member + records_on_interval(log, start, stop, n, kappa, blind)
