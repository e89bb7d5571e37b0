"""Slow twin of the streaming PCA: the same equations, with NumPy's eigenvectors and QR in the place of its own."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from tests.twins.tracker import Record, Tracker


class Jury(Tracker):
    """Records over candidates that gain what they are said to."""

    def __init__(self, priors):
        super().__init__(np.array, np.zeros(1), 0.5)
        self.members, self.records = [None] * len(priors), [Record(np.log(priors / np.sum(priors)))]
        self.weigh()

    def hear(self, q):
        largest = np.abs(q).max()
        if largest > 0:
            self.credit([record.account(q) for record in self.records])
            self.mark(np.inf, largest**2)  # phi is the largest gain; new records begin with the priors
            self.weigh()


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
        self.frames = [np.eye(k, d) for _ in range(M + 2)]  # the last two: what members agree in, and most energy
        self.w = np.where(np.array(halflives) == max(halflives), max(M - 1, 1), 1)
        self.w = self.w / self.w.sum()
        self.jury = Jury(np.append(0.9 * self.w, [0.05, 0.05]))
        self.mean, self.F, self.variances, self.t = np.zeros(d), np.eye(k, d), np.zeros(k), 0

    def step(self, x):
        k = len(self.F)
        z = x - self.mean
        lost = 0.0 if self.center and self.t == 0 else z @ z - np.sum((self.F @ z) ** 2)
        losses, C = [], 0.0
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
        z = x - self.mean
        losses += [z @ z - np.sum((F @ z) ** 2) for F in self.frames[-2:]]
        if self.t > k + 1:
            self.jury.hear(self.jury.p @ losses - np.array(losses))
            self.w = self.jury.p[:-2] / self.jury.p[:-2].sum()
        w = self.w
        self.mean = w @ self.mu
        for m, weight in enumerate(self.weight):
            n = sum(weight) - self.center * sum(v * v for v in weight) / sum(weight)
            C = C + (w[m] / n * self.S[m] if n > 0 else 0.0)
        A = sum(w[m] * F.T @ F for m, F in enumerate(self.frames[:-2]))
        self.frames[-2] = follow(self.frames[-2], A, x - self.mean)
        if np.any(C):
            self.frames[-1] = follow(self.frames[-1], C, x - self.mean)
        played = self.frames[-2] if self.jury.p[-2] > self.jury.p[-1] else self.frames[-1]
        U, _, V = np.linalg.svd(self.F @ played.T)
        self.F = U @ V @ played
        self.turn(np.zeros((len(x), len(x))) + C)
        self.t += 1
        if self.t <= 10 * (k + 1):
            order = np.argsort(-self.variances, kind="stable")
            self.F, self.variances = self.F[order], self.variances[order]
        return max(lost, 0.0)

    def turn(self, C):
        """Eigenvectors inside the subspace, each in the place and with the sign of the row it is nearest to."""
        values, V = np.linalg.eigh(self.F @ C @ self.F.T)
        places = linear_sum_assignment(-np.abs(V))[1]
        V, values = V[:, places], values[places]
        V = V * np.sign(np.diag(V))
        self.F, self.variances, self.total = V.T @ self.F, np.maximum(values, 0.0), np.trace(C)
