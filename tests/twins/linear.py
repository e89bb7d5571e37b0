"""The linear engine in plain NumPy, from its equations: models are functions of raw rows wherever that is simpler.

Covariances are kept as they are, not as square roots, and the log loss is minimised by bisection. The weights of the
candidates come from outside (`weigh`), so that this imports nothing of the package.
"""

import numpy as np

WARM, MOST, SURE = 10, 10.0, 12.0
RATES = [10 * 4.0**k for k in range(-5, 3)]
FORGET = [1.0, 1.0, 0.999, 0.99, 0.95]
PRIORS = {True: [1.0, 100.0, 1.0, 1.0, 1.0], False: [0.2, 10.0, 1.0, 1.0, 1.0]}


def believed(guests, last=False):
    members = np.array([1, 2, 4, 3, 2, 1, 1, 1]) / 15
    weights = np.r_[0.7 * np.array([0.35, 0.2, 0.25, 0.15, 0.05]), 0.3 * members] if guests else members
    return np.r_[0.95 * weights, 0.05] if last else weights


class Column:
    """Mean and spread, by all numbers seen."""

    def __init__(self, centred=True):
        self.numbers, self.centred = [], centred

    def see(self, x):
        self.numbers.append(x)

    @property
    def mean(self):
        return np.mean(self.numbers) if self.centred and self.numbers else 0.0

    @property
    def spread(self):
        return np.sqrt(np.mean((np.array(self.numbers) - self.mean) ** 2)) if self.numbers else 0.0

    def standard(self, x):
        s = self.spread
        return 0.0 if s <= 1e-12 * abs(self.mean) else (x - self.mean) / s


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


class Loss:
    def __init__(self, name, par):
        self.name, self.par = name, par

    def ends(self, y, scale):
        """Curvature, and the ends of the slope."""
        if self.name == "hinge":
            return 0.0, *((-1.0, 0.0) if y > 0 else (0.0, 1.0))
        delta = self.par * scale
        return {
            "squared_error": (1.0, -np.inf, np.inf),
            "huber": (1.0, -delta, delta),
            "quantile": (0.0, -self.par, 1 - self.par),
        }[self.name]

    def slope(self, p, y, scale):
        if self.name == "log_loss":
            return -y * sigmoid(-y * p)
        k, low, high = self.ends(y, scale)
        e = p - y
        return np.clip(e, low, high) if k else (high if e > 0 else low if e < 0 else 0.0)

    def pull(self, p, y, scale, width, weight):
        """Weight times the slope at p+ = p - width * that."""
        if self.name == "log_loss":
            return weight * self.slope(p, y, scale) / (1 + 0.25 * width * weight)
        k, low, high = self.ends(y, scale)
        return weight * np.clip((p - y) / (k + width * weight), low, high)

    def cost(self, p, y, scale):
        if self.name == "log_loss":  # of a probability
            return -np.log(p if y > 0 else 1 - p)
        e = p - y
        if self.name == "hinge":
            return max(0.0, 1 - y * p)
        if self.name == "quantile":
            return max((1 - self.par) * e, -self.par * e)
        delta = self.par * scale if self.name == "huber" else np.inf
        return abs(e) ** 2 / 2 if abs(e) <= delta else delta * (abs(e) - delta / 2)


class Model:
    """Coefficients, and the quantile of what they leave over where they are of the mean."""

    def __init__(self, memory, d):
        self.memory, self.w, self.offset, self.left = memory, np.zeros(d + 1), 0.0, 0.0

    def move_offset(self, loss, p, y, seen):
        rate = max(1 / seen, 1 - self.memory)
        self.left += rate * (abs(p - y) - self.left)
        self.offset -= np.sqrt(rate) * self.left * loss.slope(p, y, 0.0)


class Member(Model):
    def __init__(self, rate, d, of_mean):
        super().__init__(0.999, d)
        self.rate, self.G, self.of_mean = rate, np.zeros(d + 1), of_mean

    def rescale(self, ratio, quantile):
        self.w *= ratio
        if not quantile or self.of_mean:
            self.G *= ratio**2

    def follow(self, j, ratio, shift):
        self.w[j] *= ratio
        self.G[j] /= ratio**2
        self.w[0] += self.w[j] * shift

    def learn(self, loss, z, p, y, unit, scale, weight, seen):
        own, mean = (Loss("squared_error", 0.0) if self.of_mean else loss), p - self.offset
        self.G += (weight * own.slope(mean, y, scale) * z) ** 2
        steps = np.divide(self.rate * unit, np.sqrt(self.G), out=np.zeros_like(z), where=self.G > 0)
        width = (steps * z**2).sum()
        if width > 0:
            self.w -= steps * z * own.pull(mean, y, scale, width, weight)
        if self.of_mean:
            self.move_offset(loss, p, y, seen)


class Guest(Model):
    def __init__(self, forget, prior, d):
        super().__init__(forget, d)
        self.P = prior * np.eye(d + 1)

    def rescale(self, ratio, quantile):
        self.w *= ratio

    def follow(self, j, ratio, shift):
        T = np.eye(len(self.w))
        T[j, j] = ratio
        T[0, j] = shift * ratio
        self.w, self.P = T @ self.w, T @ self.P @ T.T

    def learn(self, loss, z, p, y, unit, scale, weight, seen):
        lam, Pz = self.memory, self.P @ z
        h, e = z @ Pz, p - self.offset - y
        if loss.name == "quantile":
            self.move_offset(loss, p, y, seen)
        if loss.name == "log_loss":
            low, high = sorted([p, p + y * weight * h / lam])
            for _ in range(200):  # x = p - (weight h/lam) l'(x)
                x = (low + high) / 2
                low, high = (low, x) if x - p + weight * h / lam * loss.slope(x, y, scale) > 0 else (x, high)
            q = loss.slope(x, y, scale)
            self.w -= Pz * weight * q / lam
            c = weight * abs(q) * (1 - abs(q))
        else:
            delta = loss.par * scale if loss.name == "huber" else np.inf
            c = weight * min(1.0, delta / max(abs(e), 1e-300))
            self.w -= Pz * c * e / (lam + c * h)
        self.P -= np.outer(Pz, Pz) * c / (lam + c * h)
        grow = np.where((lam < 1) & (np.diag(self.P) <= 100 * lam), lam**-0.5, 1.0)
        self.P *= np.outer(grow, grow)


class Linear:
    """`learn` returns what was predicted; `weigh(costs of all, of what was played)` returns the next weights."""

    def __init__(self, d, loss="squared_error", *, par=0.5, intercept=True, guests=True, last=False, weigh=None):
        self.loss, self.intercept, self.weigh = Loss(loss, par), intercept, weigh
        priors = PRIORS[loss == "log_loss"]
        self.candidates = [Guest(f, p, d) for f, p in zip(FORGET, priors, strict=True)] if guests else []
        self.candidates += [Member(r, d, loss == "quantile" and i % 2 == 0) for i, r in enumerate(RATES)]
        self.weights = believed(guests, last)
        self.last = [0.0] if last else []  # the last label, the last candidate
        self.columns, self.labels = [Column(intercept) for _ in range(d)], Column(intercept)
        self.classes = loss in ("log_loss", "hinge")
        self.unit, self.level, self.scale = float(self.classes), 0.0, 0.0
        self.gauge, self.uncut, self.rows = float(self.classes), 0.0, 0

    def row(self, x):
        return np.array([float(self.intercept), *(c.standard(v) for c, v in zip(self.columns, x, strict=True))])

    def say(self, z):
        far = np.abs(z[1:]).max(initial=0.0)
        p = np.array([c.w @ z + c.offset + self.level for c in self.candidates] + self.last)
        if self.classes:
            p = np.clip(p, -SURE, SURE)
            return sigmoid(p) if self.loss.name == "log_loss" else p
        seen = self.labels.numbers or [0.0]
        wide = (max(seen) - min(seen)) / 2
        low, high = min(seen) - wide, max(seen) + wide
        accurate = len(self.labels.numbers) >= 30 and 0 < self.scale <= 0.3 * self.unit
        if accurate and self.loss.name in ("squared_error", "huber"):
            low = min(low, self.labels.mean - far * self.unit)
            high = max(high, self.labels.mean + far * self.unit)
        return np.clip(p, low, high)

    def learn(self, x, y, weight=1.0):
        z, other = self.row(x), None
        far = np.abs(z).max() > MOST
        ways = [np.clip(z, -MOST, MOST), z][:: -1 if self.uncut > 0 else 1]
        p = self.say(ways[0])
        played = self.weights @ p
        if far:
            other = self.weights @ self.say(ways[1])
        self.rows += 1
        if self.gauge > 0:
            self.judge(p, played, other, y, weight)
        if self.last:
            self.last = [y]
        y = y if self.classes else self.see_label(played, y)
        self.see_row(x)
        if self.unit > 0:
            z = self.row(x)
            weight *= (MOST / max(MOST, np.abs(z).max())) ** 2
            for c in self.candidates:
                p = c.w @ z + c.offset + self.level
                c.learn(self.loss, z, p, y, self.unit, self.scale, weight, self.rows)
        return played

    def judge(self, p, played, other, y, weight):
        power = 2.0 if self.loss.name == "squared_error" else 1.0  # the engine's squared loss has no 1/2
        scale = self.scale / self.gauge
        units = 1.0 if self.loss.name == "log_loss" else self.gauge

        def cost(q):
            return power * weight * self.loss.cost(q / units, y / units if units != 1 else y, scale)

        if other is not None:
            self.uncut += (cost(played) - cost(other)) * (-1 if self.uncut > 0 else 1)
        same = abs(p - played) <= 2.0**-44 * abs(played) if self.loss.name != "log_loss" else np.zeros(p.size, bool)
        self.weights = self.weigh(
            np.array([cost(played if s else q) for q, s in zip(p, same, strict=True)]), cost(played)
        )

    def see_label(self, played, y):
        before, first = self.unit, not self.labels.numbers
        self.labels.see(y)
        self.unit = self.labels.spread
        self.gauge = self.gauge or self.unit
        n = len(self.labels.numbers)
        if n <= WARM:
            self.level = self.labels.mean
            if 0 < self.unit <= 2.0**60 * before:
                for c in self.candidates:
                    c.rescale(self.unit / before, self.loss.name == "quantile")
        if not first:
            e = abs(played - y)
            step = np.exp(((e > self.scale) - 0.3173) / np.sqrt(min(n, 400)))
            self.scale = self.scale * step if self.scale > 0 else e
        return np.clip(y, self.labels.mean - MOST * self.unit, self.labels.mean + MOST * self.unit)

    def see_row(self, x):
        for j, (column, value) in enumerate(zip(self.columns, x, strict=True), start=1):
            mean, spread = column.mean, column.spread
            column.see(value)
            if len(column.numbers) > WARM and 0 < column.spread <= 2.0**60 * spread:
                for c in self.candidates:
                    c.follow(j, column.spread / spread, (column.mean - mean) / column.spread)

    def coefficients(self):
        w = sum(a * c.w for a, c in zip(self.weights, self.candidates, strict=False))
        offset = sum(a * c.offset for a, c in zip(self.weights, self.candidates, strict=False))
        offset += sum(self.weights[-1] * (last - self.level) for last in self.last)
        raw = np.array([v / c.spread if c.spread > 0 else 0.0 for v, c in zip(w[1:], self.columns, strict=True)])
        return raw, self.level + offset + w[0] - sum(b * c.mean for b, c in zip(raw, self.columns, strict=True))
