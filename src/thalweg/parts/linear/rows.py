"""The round of a linear model: predict a row, see its label, let all candidates learn.

A row is given by the positions of its features and their values, so that rows with few of many features cost little:
positions count from 1, and 0 is the intercept. A feature that is absent has no part in the row, and its mean and
spread do not move. One that varies and is present in half of the rows or more is centred: absent, it is as if at its
mean. Any other is not, as words of a text: absent, it is 0. A round:

    z <- the values, standardised by the past, cut to 10 spreads or not, whichever lost less so far; every candidate
    predicts                                                                                                        (1)
    the prediction: the mean by weights, each one cut to the range of labels so far, and half as much again          (2)
    (where errors have been small, 0.3 of the label's spread or less, also to as many spreads from its mean as a z is
    from 0; squared and Huber's loss only)
    weights <- by the gain of each over the prediction: a jury, or for the log loss shares                           (3)
    mean and spread of the label, then of the features present, take in the row                                      (4)
    coefficients follow, so that each candidate's function stays the same; in the first 10 rows (of a feature,
    or of all) they stay as they are in standardised units instead, as nothing is known yet                          (5)
    new z; all learn from the label, which is cut to 10 spreads. A row with a feature beyond them has its weight
    times (10/z)^2                                                                                                  (6)

Candidates are the guests, then the members, then the last label where the layout wants it: a guard for streams whose
labels hardly move from row to row, or come late.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import counters, magnitude
from thalweg._core.state import field, part, scratch
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.handle import Handle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg.parts.jury import JurySettings, JuryState, judge
from thalweg.parts.linear.guests import GuestsState, follow_guests, move_guests, score_guests
from thalweg.parts.linear.losses import HINGE, HUBER, LARGEST_GAIN, LOG, QUANTILE, Lesson, chance, gain
from thalweg.parts.linear.members import MembersState, follow_members, learns, move_members, score_members
from thalweg.parts.linear.offsets import bounded
from thalweg.parts.shares import SharesState, share
from thalweg.parts.spread import MOST_SPREADS, SpreadState, see, standard

WARM = 10.0  # rows until means and spreads are known roughly
LEAP = 2.0**60  # a spread that grows by this factor in a row is unrelated to the one before
BEYOND = 0.5  # of the range of labels
ACCURATE, KNOWN = 0.3, 30.0  # errors over the label's spread; rows before they are known
SURE = 12.0  # the largest score for the log loss
SAME = 2.0**-44  # two predictions that differ by rounding only
INSIDE = 0.3173  # of errors beyond the scale, as for a normal distribution beyond its deviation
LEVEL, UNIT, LOW, HIGH, SCALE, GAUGE, UNCUT = range(7)  # of `target`


class LinearState(NamedTuple):
    """A linear model of one target."""

    features: SpreadState = part()  # D spreads, of which 0 is not used
    label: SpreadState = part()
    members: MembersState = part()
    guests: GuestsState = part()
    jury: JuryState = part()  # its weights count; it judges except for the log loss
    shares: SharesState = part()  # for the log loss
    # LEVEL: where predictions count from; UNIT of labels; LOW, HIGH: their range; SCALE of errors; GAUGE: the unit of
    # gains; UNCUT: the gain of not cutting features
    target: Floats = field("7", called="labels")
    last: Floats = field("R", magnitude(LARGEST_ENTRY), called="labels")  # the last one, where it is a candidate
    clock: Ints = field("2", counters, called="counters")  # rows learned; positions in use with the intercept


class LinearSettings(NamedTuple):
    """Constants and scratch space."""

    kind: int
    par: float  # of the loss: tau, or delta in units of the scale of errors
    intercept: bool
    open: bool  # no position is in use at the start
    priors: Floats  # (N,)
    jury: JurySettings = part()
    at: Ints = scratch("D")  # positions that are present
    z: Floats = scratch("D")
    p: Floats = scratch("N")  # predictions
    other: Floats = scratch("1")  # the prediction with features cut, or uncut; nan where that is the same
    q: Floats = scratch("N")  # gains, or the probability of the outcome
    steps: Floats = scratch("D M")
    slopes: Floats = scratch("M")
    widths: Floats = scratch("M")
    f: Floats = scratch("D")


@inner
def _scores(s: LinearState, c: LinearSettings, n: int) -> None:
    """p <- the prediction of every candidate, uncut."""
    for i in range(c.p.shape[0]):
        c.p[i] = s.target[LEVEL]
    score_guests(s.guests, c.at, c.z, n, c.p)
    score_members(s.members, c.at, c.z, n, s.guests.B.shape[0], c.p)
    if s.last.shape[0] > 0:
        c.p[c.p.shape[0] - 1] = s.last[0]


@inner
def _accurate(s: LinearState) -> bool:
    """Whether errors have been small: a linear model can then be trusted beyond the data seen."""
    return s.label.seen[0] >= KNOWN and 0.0 < s.target[SCALE] <= ACCURATE * s.target[UNIT]


@inner
def predict_row(s: LinearState, c: LinearSettings, at: Ints, x: Floats) -> float:
    """Make (1) and (2). p <- the prediction of every candidate, cut; for the log loss the probability of +1."""
    n = at.shape[0] + 1
    c.at[0] = 0
    c.z[0] = 1.0 if c.intercept else 0.0
    largest = 0.0
    for k in range(1, n):
        c.at[k] = at[k - 1]
        largest = max(largest, abs(standard(s.features, at[k - 1], x[k - 1])))
    far = largest > MOST_SPREADS
    low, high = -SURE, SURE
    if c.kind != LOG and c.kind != HINGE:
        wide = BEYOND * (s.target[HIGH] - s.target[LOW])
        low, high = s.target[LOW] - wide, s.target[HIGH] + wide
    played = c.other[0] = np.nan
    for turn in range(0 if far else 1, 2):  # the alternative, then the one played
        most = np.inf if (s.target[UNCUT] > 0.0) == (turn == 1) else MOST_SPREADS
        for k in range(1, n):
            c.z[k] = min(max(standard(s.features, at[k - 1], x[k - 1]), -most), most)
        _scores(s, c, n)
        least, highest = low, high
        if c.kind <= HUBER and _accurate(s):
            wide = min(largest, most, LEAP) * s.target[UNIT]
            least, highest = min(low, s.label.mean[0] - wide), max(high, s.label.mean[0] + wide)
        c.other[0], played, total = played, 0.0, 0.0
        for i in range(c.p.shape[0]):
            if c.p[i] != c.p[i]:  # features so far out that their sum is inf - inf
                c.p[i] = s.target[LEVEL]
            c.p[i] = min(max(c.p[i], least), highest)
            if c.kind == LOG:
                c.p[i] = chance(c.p[i])
            played += s.jury.weights[i] * c.p[i]
            total += s.jury.weights[i]
        played /= total
    return played


@inner
def _weigh(s: LinearState, c: LinearSettings, played: float, y: float, weight: float) -> None:
    """(3)."""
    N = c.p.shape[0]
    par = c.par * s.target[SCALE] if c.kind == HUBER else c.par
    if c.other[0] == c.other[0]:
        more = gain(c.kind, par, played, c.other[0], y, s.target[GAUGE]) if s.target[GAUGE] > 0.0 else 0.0
        s.target[UNCUT] += -weight * more if s.target[UNCUT] > 0.0 else weight * more
    if c.kind == LOG:
        for i in range(N):
            c.q[i] = c.p[i] if y > 0.0 else 1.0 - c.p[i]
        share(s.shares, c.priors, c.q, weight, s.jury.weights)
    elif s.target[GAUGE] > 0.0:
        for i in range(N):
            c.q[i] = 0.0
            if abs(c.p[i] - played) > SAME * abs(played):
                more = weight * gain(c.kind, par, played, c.p[i], y, s.target[GAUGE])
                c.q[i] = min(max(more, -LARGEST_GAIN), LARGEST_GAIN)
        judge(s.jury, c.jury, c.q)


@inner
def _see_label(s: LinearState, c: LinearSettings, played: float, y: float) -> float:
    """(4) and (5) for the label, returned as all shall learn it."""
    if c.kind == LOG or c.kind == HINGE:
        return y
    before, first = s.label.spread[0], s.label.seen[0] == 0.0
    see(s.label, 0, y, c.intercept)
    unit = s.label.spread[0]
    s.target[LOW] = y if first else min(s.target[LOW], y)
    s.target[HIGH] = y if first else max(s.target[HIGH], y)
    s.target[UNIT] = unit
    if s.target[GAUGE] == 0.0:
        s.target[GAUGE] = unit
    if s.label.seen[0] <= WARM:
        s.target[LEVEL] = s.label.mean[0]
        if 0.0 < unit <= LEAP * before:
            ratio = unit / before
            for j in range(s.clock[1]):
                for i in range(s.members.W.shape[1]):
                    s.members.W[j, i] = bounded(s.members.W[j, i] * ratio)
                    if learns(c.kind, i) != QUANTILE:
                        s.members.G[j, i] *= ratio * ratio
                for k in range(s.guests.B.shape[0]):
                    s.guests.B[k, j] *= ratio
    if not first:
        e = abs(played - y)
        if s.target[SCALE] == 0.0:
            s.target[SCALE] = e
        else:
            rate = 1.0 / np.sqrt(min(s.label.seen[0], 400.0))
            s.target[SCALE] *= np.exp(rate * ((1.0 if e > s.target[SCALE] else 0.0) - INSIDE))
    away = MOST_SPREADS * unit
    return float(min(max(y, s.label.mean[0] - away), s.label.mean[0] + away))


@inner
def _see_features(s: LinearState, c: LinearSettings, at: Ints, x: Floats) -> None:
    """Make (4) and (5) for the features, and compute z again."""
    for k in range(at.shape[0]):
        j = at[k]
        spread, mean, seen = s.features.spread[j], s.features.mean[j], s.features.seen[j]
        often = seen + 1.0 == s.clock[0] or (spread > 0.0 and 2.0 * (seen + 1.0) >= s.clock[0])
        if not often and mean != 0.0:
            s.features.squares[j] += seen * mean * mean
            s.features.mean[j] = 0.0
        see(s.features, j, x[k], c.intercept and often)
        now = s.features.spread[j]
        if s.features.seen[j] > WARM and 0.0 < now <= LEAP * spread:
            ratio, shift = now / spread, (s.features.mean[j] - mean) / now
            follow_members(s.members, j, ratio, shift)
            follow_guests(s.guests, s.clock[1], j, ratio, shift)
        c.z[k + 1] = standard(s.features, j, x[k])


@inner
def learn_row(s: LinearState, c: LinearSettings, at: Ints, x: Floats, y: float, weight: float, played: float) -> None:
    """(3) to (6)."""
    n, K = at.shape[0] + 1, s.guests.B.shape[0]
    s.clock[0] += 1
    _weigh(s, c, played, y, weight)
    if s.last.shape[0] > 0:
        s.last[0] = y
    y = _see_label(s, c, played, y)
    _see_features(s, c, at, x)
    par = c.par * s.target[SCALE] if c.kind == HUBER else c.par
    largest = MOST_SPREADS
    for k in range(1, n):
        largest = max(largest, abs(c.z[k]))
    weight *= (MOST_SPREADS / largest) ** 2
    if s.target[UNIT] > 0.0:
        _scores(s, c, n)
        lesson = Lesson(c.kind, par, y, s.target[UNIT], np.float64(s.clock[0]), weight)
        move_guests(s.guests, lesson, c.at, c.z, n, s.clock[1], c.p, c.f)
        move_members(s.members, lesson, c.at, c.z, n, c.p, K, c.steps, c.slopes, c.widths)


@kernel
def play_rows(
    handle: Handle, used: int, at: Ints, X: Floats, y: Floats, weights: Floats, learn: bool, out: Floats
) -> None:
    """out[t] <- the prediction of row t, before it is learned; rows of weight 0 are not.

    X has a column for each of the positions `at`. Predictions for the log loss are probabilities, for hinge scores.
    Where rows are learned, at least the first `used` positions are in use from then on.
    """
    s, c = parts(handle)
    if learn:
        s.clock[1] = max(s.clock[1], used + 1)
    for t in range(X.shape[0]):
        out[t] = predict_row(s, c, at, X[t])
        if learn and weights[t] > 0.0:
            learn_row(s, c, at, X[t], y[t], weights[t], out[t])


@kernel
def play_row(handle: Handle, count: int, y: float, weight: float, learn: bool, used: int, at: Ints, x: Floats) -> float:
    """Play one row as in `play_rows`, with the first `count` of these positions and values; returns its prediction."""
    s, c = parts(handle)
    said = predict_row(s, c, at[:count], x[:count])
    if learn and weight > 0.0:
        s.clock[1] = max(s.clock[1], used + 1)
        learn_row(s, c, at[:count], x[:count], y, weight, said)
    return said
