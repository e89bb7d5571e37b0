"""Slow twin of the Tracker: scale-free descents, members with curvature, Hedge on what was gained, records on a cover.

Y = {y : ||y - c|| <= R} contains X. A round, with the numbers of the steps at the lines:

    1  h, the gradient that the ball sees
    2  the first members and record 0
    3  S += ||h||^2, H += ||h||
    4  what every member gained, cut at 2f; every record's account of it; every record's own gain
    5  members move
    6  a marker and its record; a record since an evident change; longer steps join; without values C and M join
    7  weights of members in records, of records; y and x
"""

from __future__ import annotations

import math

import numpy as np

from tests.twins.dynamic import ball, everything, softmax

CURVED = 64  # curvature members live in at most this many dimensions


class Descent:
    """A member k: the proximal step of the cut loss, with multiplier 2^k."""

    def __init__(self, k, start):
        self.k, self.point = k, start.copy()

    def move(self, h, n, f, gained, S, project, R):
        step = min(2.0**self.k * R / math.sqrt(S), max(2 * f - gained, 0.0) / n)
        self.point = project(self.point - step * h)


class Curved:
    """Member C: a recursive-least-squares step on the cut loss."""

    k = None

    def __init__(self, home, flatten, f, n, weak):
        self.home, self.point, self.flatten, self.weak = home, home.copy(), flatten, weak
        self.P = self.fresh(f, n)

    def fresh(self, f, n):
        return 2 * f / (self.weak * n) * np.eye(len(self.home))

    def move(self, h, n, f, gained, S, project, R):
        if not 0 < f < math.inf:
            return
        u, w = self.ahead(h)
        if not 0 <= w < math.inf:
            self.P = self.fresh(f, n)
            u, w = self.ahead(h)
        u, w, gained = self.look(h, n, f, gained, u, w)
        self.point = project(self.point - u * ((2 * f - gained) / (2 * f + w)))
        self.P = self.P - np.outer(u, u) / (2 * f + w)

    def ahead(self, h):
        u = self.flatten(self.P @ h)  # P is large across a flat, and would make rounding large there
        return u, h @ u

    def look(self, h, n, f, gained, u, w):
        return u, w, gained


class Renewed(Curved):
    """Member D: the same, and it restarts when its errors say that the world has changed (a one-sided CUSUM)."""

    def __init__(self, *where):
        super().__init__(*where)
        self.noise, self.alarm, self.rounds, self.starts, self.most = 0.0, 0.0, 0, 0, 0.0
        self.evident = False  # whether this round left no doubt of a change

    def look(self, h, n, f, gained, u, w):
        def own(gained):
            return (2 * f - gained) ** 2 / (4 * f)

        error = own(gained)
        nu = error * 2 * f / (2 * f + w)
        self.most = max(self.most, nu)
        noise = max(self.noise, 1e-14 * self.most)  # below, errors are rounding
        if noise > 0 and self.rounds > 1:
            self.alarm = max(0.0, self.alarm + nu / noise - 2)
        if self.alarm > 12:
            gained = gained + h @ (self.point - self.home)
            self.alarm, self.point = 0.0, self.home.copy()
            error = max(error, own(gained))
            self.P = error / noise * (2 * f / n) * np.eye(len(h))
            u, w = self.ahead(h)
            self.evident = nu > 1000 * noise
            nu = min(nu, 10 * noise)
            self.starts += 1
        self.rounds += 1
        self.noise += (nu - self.noise) / min(self.rounds, 100)
        return u, w, gained


class Walker(Curved):
    """A Kalman filter: the best decision walks, by sqrt(q) noise widths over the width of a feature in a round."""

    def __init__(self, *where, q):
        super().__init__(*where)
        self.q, self.rounds, self.loss, self.square = q, 0, 0.0, 0.0

    def move(self, h, n, f, gained, S, project, R):
        if not 0 < f < math.inf:
            return
        self.rounds += 1
        share = 1 / min(self.rounds, 100)
        self.loss, self.square = self.loss + (2 * f - self.loss) * share, self.square + (n - self.square) * share
        super().move(h, n, f, gained, S, project, R)
        self.P = self.P + self.q * len(h) * self.loss / self.square * np.eye(len(h))


class Slow(Walker):
    """In small steps."""

    def __init__(self, *where):
        super().__init__(*where, q=0.001)


class Fast(Walker):
    """In large ones."""

    def __init__(self, *where):
        super().__init__(*where, q=0.1)


class Mixed:
    """Member M: helpers that each suppose another curvature, 1/s, weighed by how large their own gradients are."""

    k = None

    def __init__(self, home):
        self.point, self.helpers = home.copy(), np.tile(home, (12, 1))
        self.longest, self.errors, self.age, self.rounds = 0.0, np.zeros(12), 0.0, 0

    def learn(self, h, n, y, project, R):
        """Moves; returns the loss that there may have been."""
        length, powers = math.sqrt(n), 1.0 - np.arange(12)
        self.longest = max(self.longest, length)
        s = 2.0**powers * R / self.longest
        own = length - (y - self.helpers) @ h / (length * s)
        self.errors, self.age, self.rounds = 0.999 * self.errors + own**2, 0.999 * self.age + 1, self.rounds + 1
        self.helpers = np.array([project(z) for z in self.helpers - np.outer(s * own, h / length)])
        w = softmax(-powers * math.log(2) / 4 - self.age / 2 * np.log(self.errors / self.errors.min()))
        self.point = w @ self.helpers
        return n * 2.0 ** (w @ powers) * R / self.longest / 2

    def move(self, *_):
        """It has learned already."""


class Record:
    """Gains A of the members since the record's birth, and its own gain R against the whole.

    `flat` says that log-priors of newcomers are 0; `slot` is None for record 0 and infinite for that since a change;
    `anchor` is the first rate of its grid.
    """

    def __init__(self, logs, *, prior=1.0, slot=None, anchor=0, flat=False, born=0):
        self.logs, self.flat, self.born = list(logs), flat, born
        self.prior, self.slot, self.anchor = prior, slot, anchor
        self.A = np.zeros(len(self.logs))
        self.V = self.B = self.R = self.W = 0.0
        self.gain = self.squares = 0.0  # sums of Q and of the cut Q^2 since its birth: only the bounds look at them
        self.anchored = 0  # how often it was anchored again
        self.weigh()

    def admit(self, log):
        self.logs.append(0.0 if self.flat else log)
        self.A = np.append(self.A, 0.0)

    def account(self, q):
        """Step 4; returns Q."""
        Q = float(self.p @ q)
        self.gain += Q
        v = q - Q
        self.A = self.A + v
        self.V += float(self.p @ v**2)
        self.B = max(self.B, float(v.max()))
        return Q

    @property
    def U(self):
        return self.B**2 + self.V

    def weigh(self):
        """Step 7: the members' weights."""
        rate = 1 / math.sqrt(self.U) if self.U > 0 else 0.0
        self.p = softmax(rate * self.A + np.array(self.logs))


class Tracker:
    """The Tracker, as its equations say. f is the loss at x, at least 0, or None.

    Members begin at `start`, a point of X, or at the centre. `tolerance(y)` is the square that ||y - x||^2 must exceed
    for y to count as outside X.
    """

    below = 2  # descents with shorter steps than k0 at the start
    kinds = Slow, Fast, Curved, Renewed  # members with curvature, where values are given
    share, weak = 0.5, 0.03  # the prior of each over that of the descents, and the prior of their P

    def __init__(
        self,
        project,
        center,
        radius,
        flatten=None,
        *,
        intervals=True,
        curvature=True,
        start=None,
        tolerance=lambda y: 1e-20 * max(1.0, y @ y),
    ):
        self.project, self.center, self.radius = project, np.array(center, dtype=float), float(radius)
        self.flatten = everything if flatten is None else flatten
        self.intervals, self.curvature, self.tolerance = intervals, curvature, tolerance
        self.project_y = ball(self.center, self.radius)
        self.home = self.center if start is None else np.array(start, dtype=float)
        self.y, self.x = self.home.copy(), project(self.home)
        self.S = self.H = self.acc = self.F = self.B0 = self.Bt = 0.0
        self.m, self.k0, self.K, self.changes = 0, None, None, 0
        self.members, self.records, self.mixed = [], [], None
        self.p, self.weights = np.zeros(0), np.zeros(0)

    def surrogate(self, g):
        """Step 1."""
        h = self.flatten(np.asarray(g, dtype=float))
        e = self.y - self.x
        if e @ e > self.tolerance(self.y) and h @ e < 0:
            h = self.flatten(h - (h @ e) / (e @ e) * e)
        return h

    def update(self, g, f=None):
        f = math.inf if f is None else float(f)
        h = self.surrogate(g)  # 1
        n = float(h @ h)
        if n <= 1e-300:
            return
        if not self.members:
            self.begin(f, n)  # 2
        self.S += n  # 3
        self.H += math.sqrt(n)
        r = np.array([h @ (self.y - member.point) for member in self.members])  # 4
        q = self.seen(r, f)
        self.credit([record.account(q) for record in self.records])
        value = f
        if self.mixed is not None:  # 5
            value = self.mixed.learn(h, n, self.y, self.project_y, self.radius)
            value = f if math.isfinite(f) else value
        for member, gained in zip(self.members, r, strict=True):
            given = f if isinstance(member, Descent) else value
            member.move(h, n, given, gained, self.S, self.project_y, self.radius)
        if self.intervals:
            self.mark(f, n)  # 6
            self.recall()
        self.admit()
        if self.mixed is not None and self.mixed.rounds == 4:
            self.admit_blind(h, n, value)
        self.combine()  # 7

    def seen(self, r, f):
        """What records see of the gains."""
        return np.minimum(r, 2 * f)

    def log_prior(self, k):
        return -math.log(2) / 2 * (k - self.k0) if k >= self.k0 else math.log(2) * (k - self.k0)

    def begin(self, f, n):
        """Step 2."""
        self.k0 = -6
        if 0 < f < math.inf:
            self.k0 = min(max(math.floor(math.log2(2 * f / (math.sqrt(n) * self.radius))), -20), -4)
        self.K = 1
        self.members = [Descent(k, self.home) for k in range(self.k0 - self.below, self.K + 1)]
        logs = [self.log_prior(member.k) for member in self.members]
        if self.curvature and len(self.center) <= CURVED and 0 < f < math.inf:
            share = math.log(self.share * sum(math.exp(log) for log in logs))
            self.members += [kind(self.home, self.flatten, f, n, self.weak) for kind in self.kinds]
            logs += [share] * len(self.kinds)
        elif self.curvature and len(self.center) <= CURVED and f == math.inf:
            self.mixed, self.share = Mixed(self.home), math.log(sum(math.exp(log) for log in logs))
        self.records = [Record(logs)]

    def credit(self, Q):
        """Step 4, its second half: the records' own gains, cut to the largest seen before."""
        b = max(abs(gain) for gain in Q)
        if self.m + self.changes == 0 or b == 0:
            return
        if self.B0 == 0:
            self.B0 = self.Bt = b
        shrink = min(1.0, self.Bt / b)
        self.Bt = max(self.Bt, b)
        for record, gain in zip(self.records, Q, strict=True):
            record.R += gain * shrink
            record.W += (gain * shrink) ** 2
            record.squares += (gain * shrink) ** 2

    def mark(self, f, n):
        """Step 6: a marker whenever the losses since the last one may have added up to 16 of the largest."""
        phi = min(2 * f, 2 * self.radius * math.sqrt(n))
        self.F = max(self.F, phi)
        self.acc += phi
        if self.F == 0 or self.acc < 16 * self.F:
            return
        self.acc = 0.0
        self.m += 1
        slot = (self.m & -self.m).bit_length() - 1  # trailing zeros
        blind = not math.isfinite(f)
        logs = self.records[0].logs if blind else [0.0] * len(self.members)
        self.records = [record for record in self.records if record.slot is None or record.slot > slot]
        self.records.append(Record(logs, prior=3 / self.m, slot=slot, anchor=self.i_min, flat=not blind, born=self.m))

    def recall(self):
        """Step 6: a record since the last evident change; the member that restarted counts for 60 others."""
        started = [member for member in self.members if getattr(member, "evident", False)]
        if started:
            started[0].evident = False
            self.changes += 1
            logs = [math.log(60) if isinstance(member, Renewed) else 0.0 for member in self.members]
            self.records = [record for record in self.records if record.slot != math.inf]
            record = Record(logs, prior=3.0, slot=math.inf, anchor=self.i_min, flat=True, born=self.changes)
            self.records.insert(1, record)

    def admit_blind(self, h, n, value):
        """Step 6: C, with this round behind it, and M."""
        curved = Curved(self.home, self.flatten, value, n, self.weak)
        curved.move(h, n, value, float(h @ (self.y - self.home)), self.S, self.project_y, self.radius)
        for member in (curved, self.mixed):
            self.members.append(member)
            for record in self.records:
                record.admit(self.share)

    def admit(self):
        """Step 6: longer steps join when the stream is long enough to need them."""
        while 2.0 ** (self.K + 1) * math.sqrt(self.S) <= 2 * self.H:
            self.K += 1
            self.members.append(Descent(self.K, self.y))
            for record in self.records:
                record.admit(self.log_prior(self.K))

    @property
    def i_min(self):
        """ceil(log4(Bt/B0)): faster rates could meet a gain below -1/2."""
        return math.ceil(math.log2(self.Bt / self.B0) / 2) if self.B0 > 0 else 0

    def weigh(self):
        """Step 7: the records' weights, and what they make of the members'."""
        first = self.i_min
        B0 = self.B0 if self.B0 > 0 else 1.0
        logs = []
        for record in self.records:
            record.weigh()
            if first > record.anchor + 2:
                record.anchor, record.R, record.W = first, 0.0, 0.0
                record.anchored += 1
            rates = [4.0**-i / 2 for i in range(max(record.anchor, first), record.anchor + 8)]  # times 1/B0
            R, W = record.R / B0, record.W / B0 / B0
            logs.append(np.logaddexp.reduce([math.log(c) + c * R - c * c * W for c in rates]) + math.log(record.prior))
        self.weights = softmax(np.array(logs))
        self.p = sum(w * record.p for w, record in zip(self.weights, self.records, strict=True))

    def combine(self):
        """Step 7: the decision."""
        self.weigh()
        self.y = sum(p * member.point for p, member in zip(self.p, self.members, strict=True))
        self.x = self.project(self.y)
