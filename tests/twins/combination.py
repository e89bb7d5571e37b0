"""Slow twin of forecast combination: the rules, a jury over them and the Tracker, from their equations."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np

from tests.twins.conformal import onto_simplex
from tests.twins.dynamic import softmax
from tests.twins.tracker import Record, Tracker

LOSSES = {
    "square": (lambda p, y, tau: (p - y) ** 2, lambda p, y, tau: 2 * (p - y)),
    "absolute": (lambda p, y, tau: abs(p - y), lambda p, y, tau: np.sign(p - y)),
    "percentage": (lambda p, y, tau: abs(p - y) / abs(y), lambda p, y, tau: np.sign(p - y) / abs(y)),
    "pinball": (
        lambda p, y, tau: np.maximum(tau * (y - p), (1 - tau) * (p - y)),
        lambda p, y, tau: 0.0 if p == y else (1 - tau if p > y else -tau),
    ),
    "log": (
        lambda p, y, tau: -np.log(np.where(y == 1, p, 1 - p)),
        lambda p, y, tau: -1 / p if y == 1 else 1 / (1 - p),
    ),
}


def among(a, w):
    """Weights of those awake; the same for all where these are 0."""
    w = a * w
    return w / w.sum() if w.sum() > 0 else a / a.sum()


def apart(a, b):
    """a - b, unless that is rounding."""
    return np.where(abs(a - b) > 1e-13 * abs(a), a - b, 0.0)


class BOA:
    def __init__(self, K, keep=1.0):
        self.V, self.A, self.keep = np.zeros(K), np.zeros(K), keep

    def weights(self, a):
        known, w = (self.V > 0) & (a > 0), np.ones(len(a))
        if known.any():
            V = self.V[known]
            w[known] = known.sum() * softmax(self.A[known] / np.sqrt(V) - np.log(V) / 2)
        return among(a, w)

    def learn(self, a, r):
        on = a > 0
        if r.any():
            self.V[on] = self.keep * self.V[on] + 2.2 * r[on] ** 2
            on &= self.V > 0
            self.A[on] = self.keep * self.A[on] + r[on] - r[on] ** 2 / np.sqrt(self.V[on])


class MLPol:
    def __init__(self, K):
        self.V, self.A = np.zeros(K), np.zeros(K)

    def weights(self, a):
        return among(a, np.maximum(self.A, 0) / np.where(self.V > 0, self.V, 1.0))

    def learn(self, a, r):
        self.V += r**2
        self.A += r


class MLProd:
    def __init__(self, K):
        self.V, self.B, self.A = np.zeros(K), np.zeros(K), np.zeros(K)

    def step(self):
        with np.errstate(divide="ignore"):
            return np.minimum(0.5 / self.B, np.sqrt(math.log(max(len(self.A), 2)) / self.V))

    def weights(self, a):
        known, w = (self.V > 0) & (a > 0), np.ones(len(a))
        if known.any():
            w[known] = known.sum() * softmax((self.A + np.log(self.step()))[known])
        return among(a, w)

    def learn(self, a, r):
        before = np.where(self.V > 0, self.step(), 1.0)
        self.V += r**2
        self.B = np.maximum(self.B, abs(r))
        s = np.where(self.V > 0, self.step(), 0.0)
        self.A = np.where(self.V > 0, self.A * s / before + np.log1p(s * r), 0.0)


class Share:
    def __init__(self, K, rate, share, fixed=False):
        self.w, self.rate, self.share, self.B, self.fixed = np.full(K, 1 / K), rate, share, 0.0, fixed

    def weights(self, a):
        return among(a, self.w)

    def learn(self, a, r):
        self.B = max(self.B, abs(r).max())
        if r.any():
            v = softmax(np.log(self.w) + (self.rate if self.fixed else self.rate / self.B) * r)
            self.w = np.maximum(self.share / len(r) + (1 - self.share) * v, math.exp(-700))


class Flat(Tracker):
    """Where a gradient points straight against y - x, as it does where experts sleep, it is 0 and not rounding."""

    def surrogate(self, g):
        h = super().surrogate(g)
        return h if np.linalg.norm(h) > 1e-13 * np.linalg.norm(self.flatten(g)) else np.zeros(len(h))


class Tracking:
    def __init__(self, K):
        center = np.full(K, 1 / K)
        self.inner = Flat(onto_simplex, center, math.sqrt(1 - 1 / K), lambda v: v - v.mean(), tolerance=lambda y: 1e-24)

    def weights(self, a):
        return among(a, self.inner.x)

    def learn(self, a, r, paid):
        self.inner.update(-r, paid)


class Jury(Tracker):
    """Only its records, over candidates that do not move."""

    def __init__(self, priors):
        self.members = list(priors)
        self.acc = self.F = self.B0 = self.Bt = 0.0
        self.m = self.changes = 0
        self.records = [Record(np.log(np.array(priors) / np.sum(priors)))]
        self.radius = 0.5
        self.weigh()

    def judge(self, q):
        largest = abs(q).max()
        if largest > 0:
            self.credit([record.account(q) for record in self.records])
            self.mark(math.inf, largest**2)  # phi = the largest gain; new records begin with the priors
            self.weigh()


def moments(E, A, keep, awake):
    """M of those awake after rounds with these errors, by its definition."""
    f = keep ** np.arange(len(E))[::-1]
    S, n = (A * E).T @ (f[:, None] * A * E), f @ A**2
    known = awake & (n > 0)
    v = np.mean(np.diag(S)[known] / n[known]) if known.any() else 0.0
    M = (S + 4 * v * (0.5 + 0.5 * np.eye(len(S)))) / np.sqrt(np.outer(n + 4, n + 4))
    return M[np.ix_(awake, awake)], v


def least(M):
    """The weights for which w' M w is least: those of positive weight are found by trying all sets of them."""
    best, found = math.inf, None
    for size in range(1, len(M) + 1):
        for some in map(list, itertools.combinations(range(len(M)), size)):
            u = np.linalg.solve(M[np.ix_(some, some)], np.ones(size))
            w = np.zeros(len(M))
            w[some] = u / u.sum()
            if (u > 0).all() and w @ M @ w < best:
                best, found = w @ M @ w, w
    return found


class Held:
    """Weights by how errors go together, of all rounds up to t - late; there is nothing to learn from regrets."""

    def __init__(self, X, y, A, keep, late, relative):
        (T, K), E = X.shape, np.where(A > 0, X - y[:, None], 0.0) / (abs(y)[:, None] if relative else 1.0)
        self.rows = np.zeros((T, K))
        for t in range(T):
            on, n = A[t] > 0, max(t - late + 1, 0)
            M, v = moments(E[:n], A[:n], keep, on)
            self.rows[t, on] = least(M / v) if v > 0 else 1 / on.sum()

    def every(self, first, step):
        """The rounds first, first + step, ... of a copy."""
        mine = copy.copy(self)
        mine.rows = iter(self.rows[first::step])
        return mine

    def weights(self, a):
        return among(a, next(self.rows))

    def learn(self, a, r):
        pass


FAMILIES = {
    "Tracker": lambda K: [(Tracking(K), 1.0)],
    "BOA": lambda K: [(BOA(K), 1.0)],
    "MLpol": lambda K: [(MLPol(K), 1.0)],
    "MLprod": lambda K: [(MLProd(K), 1.0)],
    "recent": lambda K: [(BOA(K, 0.5 ** (1 / h)), 0.1) for h in (4, 16, 64, 256)],
    "EWA": lambda K: [(Share(K, 4.0**k, 0.0), 1 / 12) for k in range(-8, 4)],
    "FS": lambda K: [(Share(K, 4.0**k, s), 1 / 48) for k in range(-8, 4) for s in (1e-4, 1e-3, 1e-2, 1e-1)],
    "Bayes": lambda K: [(Share(K, 1.0, s, fixed=True), 1 / 4) for s in (0.0, 1e-4, 1e-3, 1e-2)],
}


def combine(names, X, y, awake=None, loss="square", tau=0.5, gradient=True, late=1):
    """Forecasts and weights of the candidates with these names under a jury; copies take turns."""
    T, K = X.shape
    A = np.ones((T, K)) if awake is None else awake
    memories = [Held(X, y, A, keep, late, loss == "percentage") for keep in (1.0, 0.5 ** (1 / 64))]
    P, W = np.zeros(T), np.zeros((T, K))
    for k in range(late):
        families = FAMILIES | {"covariance": lambda _, k=k: [(one.every(k, late), 1.0) for one in memories]}
        candidates = [pair for name in names for pair in families[name](K)]
        P[k::late], W[k::late] = turns(candidates, X[k::late], y[k::late], A[k::late], loss, tau, gradient)
    return P, W


def turns(candidates, X, y, A, loss, tau, gradient):
    """One copy: candidates with their priors."""
    (T, K), (value, slope) = X.shape, LOSSES[loss]
    rules, priors = zip(*candidates, strict=True)
    jury, P, W = Jury(priors), np.zeros(T), np.zeros((T, K))

    def regrets(p, t, linear):
        if linear:
            return A[t] * slope(p, y[t], tau) * apart(p, X[t])
        return A[t] * apart(value(p, y[t], tau), value(X[t], y[t], tau))

    for t in range(T):
        played = [rule.weights(A[t]) for rule in rules]
        W[t] = sum(p * w for p, w in zip(jury.p, played, strict=True))
        P[t] = W[t] @ X[t]
        said = np.array([w @ X[t] for w in played])
        gains = slope(P[t], y[t], tau) * apart(P[t], said)
        if loss == "log":
            gains = value(P[t], y[t], tau) - value(said, y[t], tau)
        for rule, p in zip(rules, said, strict=True):
            r = regrets(p, t, gradient and not getattr(rule, "fixed", False))
            if isinstance(rule, Tracking):
                rule.learn(A[t], r, value(p, y[t], tau) - (0.0 if gradient else rule.inner.x @ r))
            else:
                rule.learn(A[t], r)
        if len(rules) > 1:
            jury.judge(gains)
    return P, W
