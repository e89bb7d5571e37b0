"""Slow twin of the streaming PCA: the same equations, with NumPy's eigenvectors and QR in the place of its own."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from tests.twins.combination import Jury


def follow(F, S, z):
    """The row joins, the weakest direction leaves by the smallest turn; then a step of orthogonal iteration."""
    k = len(F)
    out = z - F.T @ (F @ z)
    out -= F.T @ (F @ out)
    if out @ out > 1e-24 * (z @ z):
        e = np.append(np.zeros(k), 1.0)
        Z = np.vstack([F, out / np.linalg.norm(out)])
        H = Z @ S @ Z.T
        u = np.linalg.eigh(H)[1][:, 0]
        u *= 1 if u[k] >= 0 else -1
        turn = np.eye(k + 1) - np.outer(u + e, u + e) / (1 + u[k]) + 2 * np.outer(u, e)  # e goes to u
        F = (turn @ np.eye(k + 1)[:, :k]).T @ Z
    Q, R = np.linalg.qr((F @ S + 1e-6 * np.trace(S) * F).T)
    return (Q * np.sign(np.diag(R))).T


class Subspace:
    """The bank; `step` learns a row and returns what it lost."""

    def __init__(self, d, k, halflives, center):
        M = len(halflives)
        self.forget, self.center = 0.5 ** (1 / np.array(halflives)), center
        self.weight = [[] for _ in range(M)]  # of every row, in each member
        self.mu, self.S = np.zeros((M, d)), np.zeros((M, d, d))
        self.frames = [np.eye(k, d) for _ in range(M + 2)]  # the last two: by the first two sets of weights
        prior = np.where(np.array(halflives) == max(halflives), max(M - 1, 1), 1)
        self.prior = prior / prior.sum()
        self.sets = [self.prior] * 3  # the jury's, the fast ones, those of the mean
        self.past = [], []  # what the last two were told
        self.jury = Jury(np.append(0.5 * self.prior, np.full(4, 0.125)))
        self.mean, self.F, self.variances, self.t = np.zeros(d), np.eye(k, d), np.zeros(k), 0
        self.w, self.means = self.prior, [np.zeros(d)] * 3

    def step(self, x):
        k = len(self.F)
        z = x - self.mean
        lost = 0.0 if self.center and self.t == 0 else z @ z - np.sum((self.F @ z) ** 2)
        around = [x - mean for mean in self.means]
        slopes = -2 * self.mu @ (around[2] - self.F.T @ (self.F @ around[2]))
        last = [(around[i], F) for F, own in zip(self.frames[-2:], (0, 1), strict=True) for i in (own, 2)]
        losses = []
        for m, f in enumerate(self.forget):
            z = x - self.mu[m]
            losses.append(z @ z - np.sum((self.frames[m] @ z) ** 2))
            self.weight[m] = [f * w for w in self.weight[m]] + [1.0]
            N = sum(self.weight[m])
            self.S[m] = f * self.S[m] + ((N - 1) / N if self.center else 1.0) * np.outer(z, z)
            if self.center:
                self.mu[m] += z / N
            if np.trace(self.S[m]) > 0:
                self.frames[m] = follow(self.frames[m], self.S[m], z)
        losses += [z @ z - np.sum((F @ z) ** 2) for z, F in last]
        if self.t > k + 1:
            self.jury.judge(self.jury.p @ losses - np.array(losses))
            judged = self.jury.p[:-4] / self.jury.p[:-4].sum()
            self.sets = [judged, self.hedge(0, losses[:-4]), self.hedge(1, slopes)]
        self.means = [w @ self.mu for w in self.sets]
        best = int(np.argmax(self.jury.p[-4:]))
        for which in (0, 1):
            C = self.mix(self.sets[which])
            if np.any(C):
                self.frames[which - 2] = follow(self.frames[which - 2], C, x - self.means[which])
        self.w, self.mean = self.sets[best // 2], self.means[2 if best % 2 else best // 2]
        played, C = self.frames[best // 2 - 2], self.mix(self.w)
        U, _, V = np.linalg.svd(self.F @ played.T)
        self.F = U @ V @ played
        self.turn(C)
        self.t += 1
        if self.t <= 10 * (k + 1):
            order = np.argsort(-self.variances, kind="stable")
            self.F, self.variances = self.F[order], self.variances[order]
        return max(lost, 0.0)

    def hedge(self, which, told):
        """Exponential weights: the largest difference in a row so far makes odds of e^4."""
        self.past[which].append(told)
        past = np.array(self.past[which])
        B = np.ptp(past, axis=1).max()
        weights = self.prior * np.exp(-4 * (past - past.min(axis=1, keepdims=True)).sum(axis=0) / B if B > 0 else 0.0)
        return weights / weights.sum()

    def mix(self, w):
        """The members' covariances by their weights."""
        C = np.zeros(self.S.shape[1:])
        for m, weight in enumerate(self.weight):
            n = sum(weight) - self.center * sum(v * v for v in weight) / sum(weight)
            C += w[m] / n * self.S[m] if n > 0 else 0.0
        return C

    def turn(self, C):
        """Eigenvectors inside the subspace, each in the place and with the sign of the row it is nearest to."""
        values, V = np.linalg.eigh(self.F @ C @ self.F.T)
        places = linear_sum_assignment(-np.abs(V))[1]
        V, values = V[:, places], values[places]
        V = V * np.sign(np.diag(V))
        self.F, self.variances, self.total = V.T @ self.F, np.maximum(values, 0.0), np.trace(C)
