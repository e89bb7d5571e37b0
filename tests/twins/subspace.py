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
        M = self.M = len(halflives)
        self.forget, self.center = 0.5 ** (1 / np.array(halflives)), center
        self.weight = [[] for _ in range(M)]  # of every row, in each member
        self.mu, self.S = np.zeros((M, d)), np.zeros((M, d, d))
        self.frames = [np.eye(k, d) for _ in range(M + 4)]  # the last: what members agree in, most energy by w, b, r
        prior = np.where(np.array(halflives) == max(halflives), max(M - 1, 1), 1)
        prior = prior / prior.sum()
        self.sets, self.means, self.played = [prior] * 3, [np.zeros(d)] * 3, []
        self.jury = Jury(np.append(0.8 * prior, [0.05] * 4))
        self.w, self.mean, self.F, self.variances, self.t = prior, np.zeros(d), np.eye(k, d), np.zeros(k), 0

    def lost(self, F, mean, x):
        return max(np.sum((x - mean) ** 2) - np.sum((F @ (x - mean)) ** 2), 0.0)

    def step(self, x):
        k, M = len(self.F), self.M
        lost = 0.0 if self.center and self.t == 0 else self.lost(self.F, self.mean, x)
        losses = [self.lost(self.frames[m], self.mu[m], x) for m in range(M)]
        losses += [self.lost(self.frames[M], self.means[0], x)]
        losses += [self.lost(self.frames[M + 1 + i], self.means[i], x) for i in range(3)]
        for m, f in enumerate(self.forget):
            z = x - self.mu[m]
            self.weight[m] = [f * w for w in self.weight[m]] + [1.0]
            N = sum(self.weight[m])
            self.S[m] = f * self.S[m] + ((N - 1) / N if self.center else 1.0) * np.outer(z, z)
            if self.center:
                self.mu[m] += z / N
            if np.trace(self.S[m]) > 0:
                self.frames[m] = follow(self.frames[m], self.S[m], z)
        if self.t > k + 1:
            self.believe(np.array(losses[:M]), len(x) - k)
            self.played.append(lost)
            self.jury.hear(self.jury.p @ losses - np.array(losses))
            self.sets[0] = self.jury.p[:M] / self.jury.p[:M].sum()
        self.combine(x)
        self.t += 1
        if self.t <= 10 * (k + 1):
            order = np.argsort(-self.variances, kind="stable")
            self.F, self.variances = self.F[order], self.variances[order]
        return lost

    def believe(self, losses, outside):
        """Bayes' rule for normal rows, and for rows with the tails of Cauchy's distribution."""
        late = 0.99 ** np.arange(len(self.played))[::-1]
        v = late @ self.played / late.sum() / outside if self.played else 0.0
        if v > 0:
            logs = -losses / (2 * v), -0.5 * (1 + outside) * np.log1p(losses / v)
            for i, log in enumerate(logs):
                b = self.sets[1 + i] * np.exp(log - log.max())
                self.sets[1 + i] = b / b.sum()

    def combine(self, x):
        M, Cs = self.M, []
        for i, w in enumerate(self.sets):
            self.means[i], C = w @ self.mu, np.zeros((len(x), len(x)))
            for m, weight in enumerate(self.weight):
                n = sum(weight) - self.center * sum(v * v for v in weight) / sum(weight)
                C += w[m] / n * self.S[m] if n > 0 else 0.0
            if i == 0:
                A = sum(w[m] * F.T @ F for m, F in enumerate(self.frames[:M]))
                self.frames[M] = follow(self.frames[M], A, x - self.means[0])
            if np.any(C):
                self.frames[M + 1 + i] = follow(self.frames[M + 1 + i], C, x - self.means[i])
            Cs.append(C)
        heaviest = int(np.argmax(self.jury.p[M:]))
        i = max(heaviest - 1, 0)
        self.w, self.mean = self.sets[i], self.means[i]
        U, _, V = np.linalg.svd(self.F @ self.frames[M + heaviest].T)
        self.F = U @ V @ self.frames[M + heaviest]
        self.turn(Cs[i])

    def turn(self, C):
        """Eigenvectors inside the subspace, each in the place and with the sign of the row it is nearest to."""
        values, V = np.linalg.eigh(self.F @ C @ self.F.T)
        places = linear_sum_assignment(-np.abs(V))[1]
        V, values = V[:, places], values[places]
        V = V * np.sign(np.diag(V))
        self.F, self.variances, self.total = V.T @ self.F, np.maximum(values, 0.0), np.trace(C)
