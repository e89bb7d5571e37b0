"""Slow twins of the adaptive-regret algorithms: meta-learners for experts that sleep, covers, and what they make up.

Written from the papers' boxes, with the corrections their proofs need. An expert is an object, a cover a list of
intervals, a meta-learner a few dictionaries with one entry per interval; weights are plain numbers, not logarithms.

    [J17]  Jun, Orabona, Wright, Willett. Improved strongly adaptive online learning using coin betting. AISTATS 2017.
    [W18]  Wang, Zhao, Zhang. Minimizing adaptive regret with one gradient per iteration. IJCAI 2018.
    [L15]  Luo, Schapire. Achieving all with no parameters: AdaNormalHedge. COLT 2015.
    [Ga14] Gaillard, Stoltz, van Erven. A second-order bound with excess losses. COLT 2014.        (Adapt-ML-Prod)
    [Z19]  Zhang, Liu, Zhou. Adaptive regret of convex and smooth functions. ICML 2019.            (SACS)
    [D15]  Daniely, Gonen, Shalev-Shwartz. Strongly adaptive online learning. ICML 2015.           (SAOL)
    [H09]  Hazan, Seshadhri. Efficient learning algorithms for changing environments. ICML 2009.   (FLH)
    [Z18]  Zhang, Yang, Jin, Zhou. Dynamic regret of strongly adaptive methods. ICML 2018.         (improved FLH)
    [Z25]  Zhao, Xie, Zhang, Zhou. Efficient methods for non-stationary online learning. JMLR 26, 2025.  (Alg. 2)
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from tests.twins.dynamic import Trace, ball, everything, surrogate_gradient

# ------------------------------------------------------------------------------------------------------------- covers


def geometric_cover(last):
    """[J17] All [i 2^k, (i+1) 2^k - 1], i >= 1, k >= 0, that start at 1..last."""
    return _cover(last, step=1)


def compact_cover(last):
    """[Z19, eq. 5], [Z25, eq. 3]: the same with i odd only, so that exactly one interval starts at each number."""
    return _cover(last, step=2)


def _cover(last, step):
    intervals = []
    length = 1
    while length <= last:
        i = 1
        while i * length <= last:
            intervals.append((i * length, (i + 1) * length - 1))
            i += step
        length = 2 * length
    return intervals


COVERS = {"geometric": geometric_cover, "compact": compact_cover}


def alive(cover, m):
    """The intervals that contain m, shortest first."""
    return sorted((J for J in cover if J[0] <= m <= J[1]), key=lambda J: J[1] - J[0])


def longest(cover):
    """{start: end} of the longest interval that starts there."""
    ends = {}
    for start, end in cover:
        ends[start] = max(ends.get(start, 0), end)
    return ends


def decompose(ends, p, q):
    """[Z19, Lemma 11] Consecutive intervals from p on until q is covered; `ends` as `longest` has it."""
    parts = []
    while p <= q:
        parts.append((p, ends[p]))
        p = ends[p] + 1
    return parts


# ------------------------------------------------------------------------------------------------------ meta-learners


def phi(R, C):
    """[L15] Phi(R, C) = exp([R]_+^2 / (3C)), Phi(0, 0) = 1."""
    top = max(R, 0.0)
    return 1.0 if top == 0 else math.exp(top**2 / (3 * C))


def normal_hedge_weight(R, C):
    """[L15, eq. 3] w(R, C) = (Phi(R+1, C+1) - Phi(R-1, C+1)) / 2: the same C + 1 twice."""
    return (phi(R + 1, C + 1) - phi(R - 1, C + 1)) / 2


class AdaNormalHedge:
    """[L15, Algorithm 1] with confidences 0 and 1 and a uniform prior."""

    def __init__(self):
        self.R, self.C = {}, {}

    def admit(self, J):
        self.R[J], self.C[J] = 0.0, 0.0

    def weights(self, awake):
        w = np.array([normal_hedge_weight(self.R[J], self.C[J]) for J in awake])
        return w / w.sum() if w.sum() > 0 else np.full(len(awake), 1 / len(awake))

    def feed(self, r):
        for J, gain in r.items():
            self.R[J] += gain
            self.C[J] += abs(gain)


class AdaptMLProd:
    """[Ga14, Algorithm 2] as [Z25, eq. 5] uses it: the expert of marker i has gamma_i = ln(1 + 2i).

    With `observed` the range B of the feedback is the largest |r| so far. Rates are min(1/(2B), sqrt(gamma/(B^2 + V)));
    when B grows, first all weights go to the power new rate/old rate.
    """

    def __init__(self, observed=False):
        self.observed = observed
        self.B = 0.0 if observed else 1.0
        self.w, self.V, self.eta, self.gamma = {}, {}, {}, {}

    def rate(self, J):
        return min(1 / (2 * self.B), math.sqrt(self.gamma[J] / (self.B**2 + self.V[J])))

    def admit(self, J):
        self.w[J], self.V[J], self.gamma[J] = 1.0, 0.0, math.log(1 + 2 * J[0])
        self.eta[J] = self.rate(J) if self.B > 0 else 1.0  # before any feedback nobody is ahead

    def weights(self, awake):
        p = np.array([self.eta[J] * self.w[J] for J in awake])
        return p / p.sum()

    def feed(self, r):
        if self.observed:
            seen = max(abs(gain) for gain in r.values())
            if seen > self.B:
                self.B = seen
                for J in r:
                    new = self.rate(J)
                    self.w[J] = self.w[J] ** (new / self.eta[J])
                    self.eta[J] = new
            if self.B == 0:
                return
        for J, gain in r.items():
            old = self.eta[J]
            self.V[J] += gain**2
            new = self.rate(J)
            self.w[J] = (self.w[J] * (1 + old * gain)) ** (new / old)
            self.eta[J] = new


class Hedge:
    """Exponential weights with a fixed rate and a uniform prior; a newborn has lost nothing yet."""

    def __init__(self, rate):
        self.rate, self.w = rate, {}

    def admit(self, J):
        self.w[J] = 1.0

    def weights(self, awake):
        p = np.array([self.w[J] for J in awake])
        return p / p.sum()

    def feed(self, r):
        for J, gain in r.items():
            self.w[J] *= math.exp(self.rate * gain)


class Prod:
    """[D15, Algorithm 1] in pseudo-weights: 1 at birth, times 1 + eta r; a member counts eta times that."""

    def __init__(self, rate):
        self.rate, self.w = rate, {}

    def admit(self, J):
        self.w[J] = 1.0

    def weights(self, awake):
        p = np.array([self.rate(J) * self.w[J] for J in awake])
        return p / p.sum()

    def feed(self, r):
        for J, gain in r.items():
            self.w[J] *= 1 + self.rate(J) * gain


def rate_of_length(J):
    """[D15] eta_I = min(1/2, 1/sqrt|I|)."""
    return min(1 / 2, 1 / math.sqrt(J[1] - J[0] + 1))


class LeadingHistory:
    """[H09, FLH2], [Z18, Algorithm 1]: those left are normalised, then the t-th newcomer takes 1/t from all of them."""

    def __init__(self, rate):
        self.rate, self.p, self.waiting = rate, {}, []

    def admit(self, J):
        self.waiting.append(J)

    def weights(self, awake):
        waiting, self.waiting = sorted((J for J in self.waiting if J in awake), key=lambda J: J[0]), []
        left = {J: self.p[J] for J in awake if J not in waiting}
        self.p = {J: p / sum(left.values()) for J, p in left.items()}
        for J in waiting:
            share = 1 / J[0] if self.p else 1.0
            self.p = {other: (1 - share) * p for other, p in self.p.items()} | {J: share}
        return np.array([self.p[J] for J in awake])

    def feed(self, r):
        for J, gain in r.items():
            self.p[J] *= math.exp(self.rate * gain)


ROUNDING = 1e-13  # of feedback in [-1, 1]


class CoinBetting:
    """[J17, Algorithms 1-2]: a Krichevsky-Trofimov bettor per expert, wealth 1 + sum of gain times bet.

    A bettor asks whether a sum is positive, so it must not take rounding for a difference: experts that stand in one
    place, or a newborn at the centre of two concentric balls, differ from the combination by 0, not by 1e-17.
    """

    def __init__(self):
        self.z, self.W, self.n, self.pi = {}, {}, {}, {}

    def admit(self, J):
        self.z[J], self.W[J], self.n[J] = 0.0, 1.0, 0
        self.pi[J] = 1 / (J[0] ** 2 * (1 + math.floor(math.log2(J[0]))))

    def bet(self, J):
        return self.z[J] / (self.n[J] + 1) * self.W[J]

    def weights(self, awake):
        p = np.array([self.pi[J] * max(self.bet(J), 0.0) for J in awake])
        if p.sum() == 0:
            p = np.array([self.pi[J] for J in awake])
        return p / p.sum()

    def gain(self, J, r):
        """What the bettor is told: r if it bets on the expert, otherwise only what speaks for the expert."""
        r = r if abs(r) > ROUNDING else 0.0
        return r if self.bet(J) > 0 else max(r, 0.0)

    def feed(self, r):
        for J, difference in r.items():
            bet, gain = self.bet(J), self.gain(J, difference)
            self.z[J] += gain
            self.W[J] += gain * bet
            self.n[J] += 1


# ------------------------------------------------------------------------------------------------------------ experts


class One:
    """An expert with one point."""

    def learn(self, f):
        self.update(f.gradient(self.point))


class ScaleFree(One):
    """w <- Pi[w - alpha g / sqrt(delta + q)], where q has the present gradient in it."""

    def __init__(self, start, project, alpha, delta):
        self.point, self.project, self.alpha, self.delta, self.q = start.copy(), project, alpha, delta, 0.0

    def update(self, g):
        self.q += g @ g
        self.point = self.project(self.point - self.alpha / math.sqrt(self.delta + self.q) * g)


class Steps(One):
    """w <- Pi[w - eta(age) g], age 1 in its first round."""

    def __init__(self, start, project, eta):
        self.point, self.project, self.eta, self.age = start.copy(), project, eta, 0

    def update(self, g):
        self.age += 1
        self.point = self.project(self.point - self.eta(self.age) * g)


def anytime(start, project, diameter, gradient_bound):
    """Steps D/(G sqrt(age))."""
    return Steps(start, project, lambda age: diameter / gradient_bound / math.sqrt(age))


# ------------------------------------------------------------------------------------------------------------- traces


@dataclass
class CoverTrace(Trace):
    """As `Trace`; points, weights and living experts differ in number from round to round and stay lists."""

    markers: list = field(default_factory=list)  # the rounds at which unit intervals start
    born: list = field(default_factory=list)  # of every round: the markers at which the living experts were born

    def arrays(self):
        for name in ("decisions", "losses", "gradients", "fed", "inner"):
            setattr(self, name, np.array(getattr(self, name)))
        return self

    def note(self, f, x, living, p):
        points = np.array([expert.point for expert in living.values()])
        self.add(decisions=x, losses=f.value(x), born=[J[0] for J in living], points=points, weights=p)


def combine(p, living):
    """sum_i p_i y_i, written around the heaviest: where all are in one place, so is their combination, to the bit."""
    points = [expert.point for expert in living.values()]
    main = points[int(np.argmax(p))]
    return main + sum(p_i * (point - main) for p_i, point in zip(p, points, strict=True))


def by_start(cover):
    starts = defaultdict(list)
    for J in cover:
        starts[J[0]].append(J)
    return starts


def ordered(living):
    """Short intervals first."""
    return dict(sorted(living.items(), key=lambda item: item[0][1] - item[0][0]))


# --------------------------------------------------------------------------------------------------------- algorithms


def sacs(
    losses,
    project,
    center,
    *,
    diameter,
    loss_bound,
    cover="problem",
    threshold=None,
    smoothness=1.0,
    delta=1.0,
    gradients="own",
    gradient_bound=None,
):
    """[Z19, Algorithms 2 and 3]: SOGD with own gradients, AdaNormalHedge, a marker a round or one per threshold.

    With one gradient for all the losses are linearised, their range is G D, and markers count the loss paid.
    """
    if threshold is None:
        threshold = 20 * smoothness * diameter**2 + 2 * diameter * math.sqrt(2 * delta)
    trace = CoverTrace()
    meta = AdaNormalHedge()
    starts = by_start(compact_cover(len(losses) + 1))
    first = project(center)
    living = {}
    new_interval, m, accumulated, newest = True, 0, 0.0, None
    for t, f in enumerate(losses, start=1):
        if new_interval:
            m += 1
            trace.markers.append(t)
            (newest,) = starts[m]
            living[newest] = ScaleFree(first, project, diameter / math.sqrt(2), delta)
            meta.admit(newest)
            living = ordered(living)
            new_interval, accumulated = False, 0.0
        p = meta.weights(list(living))
        x = combine(p, living)
        trace.note(f, x, living, p)

        paid = f.value(x)
        trace.projections += len(living)
        if gradients == "own":
            values = {J: f.value(expert.point) for J, expert in living.items()}
            each = {J: f.gradient(expert.point) for J, expert in living.items()}
            r = {J: (paid - values[J]) / loss_bound for J in living}
            accumulated += values[newest]
            trace.value_queries += 1 + len(living)
            trace.gradient_queries += len(living)
        else:
            g = f.gradient(x)
            each = dict.fromkeys(living, g)
            r = {J: g @ (x - expert.point) / (gradient_bound * diameter) for J, expert in living.items()}
            accumulated += paid
            trace.value_queries += cover != "compact"
            trace.gradient_queries += 1
        if cover == "compact" or accumulated > threshold:
            new_interval = True
        meta.feed(r)
        for J, expert in living.items():
            expert.update(each[J])
        if new_interval:
            living = {J: expert for J, expert in living.items() if J[1] != m}  # next comes marker m + 1
    if new_interval:
        trace.markers.append(len(losses) + 1)
    return trace.arrays()


def cbce(
    losses,
    project,
    center,
    *,
    diameter,
    gradient_bound,
    gradients="own",
    loss_bound=None,
    radius=None,
    cover="geometric",
):
    """[J17] with own gradients and values; [W18] on linearised losses, with one gradient and the range 2 G radius."""
    span = gradient_bound * diameter if loss_bound is None else loss_bound
    return every_round(
        losses,
        project,
        center,
        cover,
        CoinBetting(),
        lambda J, first: anytime(first, project, diameter, gradient_bound),
        span if gradients == "own" else 2 * gradient_bound * radius,
        gradients,
    )


def saol(losses, project, center, *, diameter, gradient_bound, gradients="own", loss_bound=None):
    """[D15] with gradient descent of step D/(G sqrt|I|) on the interval I; the mean of the experts is played."""
    span = loss_bound if gradients == "own" and loss_bound is not None else gradient_bound * diameter
    return every_round(
        losses,
        project,
        center,
        "geometric",
        Prod(rate_of_length),
        lambda J, first: Steps(first, project, lambda age: diameter / (gradient_bound * math.sqrt(J[1] - J[0] + 1))),
        span,
        gradients,
    )


def aflh(
    losses,
    project,
    center,
    *,
    diameter,
    gradient_bound,
    horizon=None,
    gradients="own",
    loss_bound=None,
    strong_convexity=None,
):
    """[Z18, Algorithm 1] with K = 2. Strongly convex losses: rate lambda/G^2, steps 1/(lambda age), as there."""
    if strong_convexity is None:
        span = loss_bound if gradients == "own" and loss_bound is not None else gradient_bound * diameter
        rate = math.sqrt(8 * math.log(1 + horizon) / horizon) / span
    else:
        rate = strong_convexity / gradient_bound**2

    def make(J, first):
        if strong_convexity is None:
            return ScaleFree(first, project, diameter / math.sqrt(2), 1.0)
        return Steps(first, project, lambda age: 1 / (strong_convexity * age))

    return every_round(losses, project, center, "compact", LeadingHistory(rate), make, 1.0, gradients)


def every_round(losses, project, center, cover, meta, make, span, gradients):
    """Experts make(J, start) on the intervals J of a cover of the rounds; `span` is the unit of feedback."""
    trace = CoverTrace()
    starts = by_start(COVERS[cover](len(losses) + 1))
    first = project(center)
    living = {}
    for t, f in enumerate(losses, start=1):
        living = {J: expert for J, expert in living.items() if J[1] >= t}
        for J in starts[t]:
            living[J] = make(J, first)
            meta.admit(J)
        living = ordered(living)
        p = meta.weights(list(living))
        x = combine(p, living)
        trace.note(f, x, living, p)

        sizes = [len(getattr(expert, "points", [expert])) for expert in living.values()]  # of pools, or 1
        trace.projections += sum(sizes)
        if gradients == "own":
            paid = f.value(x)
            r = {J: (paid - f.value(expert.point)) / span for J, expert in living.items()}
            trace.value_queries += 1 + sum(n + 1 if n > 1 else 1 for n in sizes)  # one member's value is the expert's
            trace.gradient_queries += sum(sizes)
            for expert in living.values():
                expert.learn(f)
        else:
            g = f.gradient(x)
            r = {J: g @ (x - expert.point) / span for J, expert in living.items()}
            trace.gradients.append(g)
            trace.gradient_queries += 1
            for expert in living.values():
                expert.update(g)
        meta.feed(r)
    trace.markers = list(range(1, len(losses) + 2))
    return trace.arrays()


def efficient_cbce(losses, project, center, radius, *, gradient_bound, project_y=None, tol=1e-12, tau=everything):
    """[Z25, Section 3.1]: [W18] on Y, fed with surrogate gradients, one projection onto X."""
    project_y = project_y or ball(center, radius)

    def make(J):
        return anytime(center, project_y, 2 * radius, gradient_bound)

    return reduced(losses, project, CoinBetting(), make, 2 * gradient_bound * radius, tol, tau)


def reduced(losses, project, meta, make, span, tol, tau):
    """The same on Y = {y : ||y - c|| <= R}, fed with surrogate gradients: experts make(J) on a geometric cover.

    `tol` is the accuracy of `project`: where ||y - x|| is smaller, relatively, there is no direction from x to y.
    """
    trace = CoverTrace()
    starts = by_start(geometric_cover(len(losses) + 1))
    living = {}
    for t, f in enumerate(losses, start=1):
        living = {J: expert for J, expert in living.items() if J[1] >= t}
        for J in starts[t]:
            living[J] = make(J)
            meta.admit(J)
        living = ordered(living)
        p = meta.weights(list(living))
        y = combine(p, living)
        x = project(y)
        trace.projections += 1
        trace.note(f, x, living, p)
        g = f.gradient(x)
        trace.gradient_queries += 1
        h = surrogate_gradient(g, y, x, tol, tau)
        trace.add(gradients=g, fed=h, inner=y)
        meta.feed({J: h @ (y - expert.point) / span for J, expert in living.items()})
        for expert in living.values():
            expert.update(h)
    trace.markers = list(range(1, len(losses) + 2))
    return trace.arrays()


def efficient_adaptive(
    losses,
    project,
    center,
    radius,
    *,
    gradient_bound,
    threshold,
    delta=1.0,
    restart="center",
    feedback_range="bound",
    project_y=None,
    tol=1e-12,
    make_expert=None,
    tau=everything,
):
    """[Z25, Algorithm 2], corrected: learner 1 exists from the start, round t's marker is t + 1, the newborn waits.

    `make_expert(start)` builds another kind of expert than scale-free descent: that is Algorithm 3.
    """
    project_y = project_y or ball(center, radius)
    make_expert = make_expert or (lambda start: ScaleFree(start, project_y, radius, delta))
    trace = CoverTrace()
    meta = AdaptMLProd(observed=feedback_range == "observed")
    unit = 1.0 if meta.observed else 2 * gradient_bound * radius
    starts = by_start(compact_cover(len(losses) + 1))

    def newborn(m, start):
        (J,) = starts[m]
        living[J] = make_expert(start)
        meta.admit(J)

    living = {}
    m, accumulated = 1, 0.0
    trace.markers.append(1)
    newborn(1, center)
    p = meta.weights(list(living))
    y = combine(p, living)
    for t, f in enumerate(losses, start=1):
        x = project(y)
        trace.projections += 1
        trace.note(f, x, living, p)
        # 1: one gradient and one value, at x_t
        g, value = f.gradient(x), f.value(x)
        trace.gradient_queries += 1
        trace.value_queries += 1
        h = surrogate_gradient(g, y, x, tol, tau)
        trace.add(gradients=g, fed=h, inner=y, rates=[meta.eta[J] * meta.B for J in living])
        # 2, 3: the meta-learner and the experts that played in round t
        meta.feed({J: h @ (y - expert.point) / unit for J, expert in living.items()})
        for expert in living.values():
            expert.update(h)
        # 4: the schedule
        accumulated += value
        if accumulated > threshold(m):
            accumulated = 0.0
            living = {J: expert for J, expert in living.items() if J[1] != m}
            m += 1
            trace.markers.append(t + 1)
            newborn(m, center if restart == "center" else y)
            living = ordered(living)
        # 5: those who play in round t + 1
        p = meta.weights(list(living))
        y = combine(p, living)
    return trace.arrays()


# --------------------------------------------------------------------------------------------------------- thresholds


def mu(t):
    """mu_t = ln(1 + (1 + ln(1 + t)) / (2e))."""
    return math.log(1 + (1 + math.log(1 + t)) / (2 * math.e))


def printed_threshold(m, T, G, L, R, delta):
    """[Z25, Theorem 4] with R for D."""
    return (
        (54 * G * R + 168 * R**2 * L) * math.log(1 + 2 * m)
        + 168 * R**2 * L * mu(T) ** 2
        + 18 * G * R * mu(T)
        + 6 * R * math.sqrt(delta)
        + 672 * R**2 * L
    )


def derived_threshold(m, T, G, L, R, delta):
    """What the proof of [Z25, Theorem 4] needs, where the printed threshold has lost a 3 and half of sqrt(delta)."""
    S = 3 * math.sqrt(math.log(1 + 2 * m)) + mu(T) + 2
    return 56 * R**2 * L * S**2 + 54 * G * R * math.log(1 + 2 * m) + 18 * G * R * mu(T) + 12 * R * math.sqrt(delta)
