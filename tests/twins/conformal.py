"""Slow twin of ConformalTracker: candidates for a quantile of scores, weights by a Tracker, and a correction.

All scores are kept, and everything is recomputed from them.
"""

import collections
import math

import numpy as np

from tests.twins.dynamic import along
from tests.twins.tracker import Tracker


def onto_simplex(y):
    """The nearest point with entries >= 0 that sum to 1 (Held, Wolfe, Crowder 1974)."""
    u = np.sort(y)[::-1]
    excess = (np.cumsum(u) - 1) / np.arange(1, len(u) + 1)
    return np.maximum(y - excess[np.flatnonzero(u > excess)[-1]], 0.0)


def quantile(numbers, level):
    """At place level (n + 1) of the sorted numbers, linear in between; the least or the largest beyond."""
    values = np.sort(np.asarray(numbers))
    return float(np.interp(level * (len(values) + 1), np.arange(1, len(values) + 1), values))


class Side:
    """Thresholds for scores of which a share alpha may be missed; `weights`, where given, are somebody else's."""

    def __init__(
        self, alpha, windows=(100, 400), halflives=(1, 5, 20, 80, 320), correction=0.05, horizon=1, weights=None
    ):
        self.alpha, self.windows, self.halflives = alpha, windows, halflives
        self.fading, self.bend = 0.6 / horizon * correction / horizon**0.75, 5 * horizon
        self.slope = correction / horizon**0.75 - self.fading
        K = len(windows) + len(halflives)
        memory = np.sqrt([*windows, *(h / math.log(2) for h in halflives)])
        self.weights = weights or Tracker(
            onto_simplex, np.full(K, 1 / K), math.sqrt(1 - 1 / K), along(np.ones((1, K))), start=memory / memory.sum()
        )
        self.scores, self.zeros, self.answers, self.before = [], 0, [], []
        self.means, self.counts = [0.0] * len(halflives), [0.0] * len(halflives)
        self.ratios = [[] for _ in halflives]
        self.waiting = collections.deque()

    @property
    def lasting(self):
        """The part of theta that stays: of the balance of all answers, held between its ends."""
        most_fading = self.fading * (1 - self.alpha) / (1 - math.exp(-1 / 60))
        low, high = self.balance_at(-2 - most_fading), self.balance_at(44)
        D = 0.0
        for missed in self.answers:
            D = min(max(D + missed - self.alpha, low), high)
        return self.level(D)

    def level(self, D):
        return self.slope * (D + D**3 / self.bend**2)

    def balance_at(self, level):
        """By the roots of the cubic."""
        roots = np.roots([1 / self.bend**2, 0.0, 1.0, -level / self.slope])
        return float(roots[np.abs(roots.imag).argmin()].real)

    @property
    def theta(self):
        ages = np.arange(len(self.answers))[::-1]
        F = float(np.sum(np.exp(-ages / 60) * (np.array(self.answers) - self.alpha)))
        return self.lasting + self.fading * F

    @property
    def shortest(self):
        return self.scores[-min(self.windows) :]

    def candidates(self):
        if not self.scores:
            return np.zeros(len(self.windows) + len(self.halflives))
        found = [quantile(self.scores[-w:], 1 - self.alpha) for w in self.windows]
        for mean, ratios in zip(self.means, self.ratios, strict=True):
            found.append(mean * (quantile(ratios[-1000:], 1 - self.alpha) if ratios else 1.0))
        return np.minimum(found, 2 * sorted(self.shortest)[-2:][0])

    def ask(self):
        e = self.candidates()
        q = math.exp(self.theta) * float(self.weights.x @ e)
        self.waiting.append((q, e, list(self.means)))
        return q

    def answer(self, score):
        q, advice, means = self.waiting.popleft()
        self.zeros = self.zeros + 1 if score == 0 else 0
        if self.zeros > round(10 / self.alpha):
            self.scores = []
            if self.zeros > 10 * round(10 / self.alpha):
                self.answers = list(self.before)
            self.means, self.counts = [0.0] * len(self.means), [0.0] * len(self.means)
            return
        factor = math.exp(self.lasting)
        self.answers.append(float(score > q))
        self.before = list(self.answers) if score > 0 else self.before
        base = float(self.weights.x @ advice)
        if np.ptp(advice) > 0:
            slope = self.alpha - (score > factor * base)
            self.weights.update(slope * (advice - advice.min()), slope * (base - score / factor))
        self.scores.append(score)
        for i, h in enumerate(self.halflives):
            if means[i] > 0:
                self.ratios[i].append(min(score / means[i], 2.0**64))
            self.counts[i] = 0.5 ** (1 / h) * self.counts[i] + 1
            self.means[i] = min(self.means[i] + (score - self.means[i]) / self.counts[i], max(self.shortest))


def thresholds(scores, alpha, horizon=1, **options):
    """For a whole series: a round is answered once `horizon` of them wait."""
    side = Side(alpha, horizon=horizon, **options)
    found = []
    for t in range(len(scores)):
        found.append(side.ask())
        if t >= horizon - 1:
            side.answer(scores[t - horizon + 1])
    return np.array(found)
