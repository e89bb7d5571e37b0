"""The forecaster in plain NumPy, from the equations of its parts: whole histories, one candidate at a time.

Nothing is kept in rings or packed triangles: every past value, forecast and row of features is in a list or a dict by
its time. Time counts from the first value; `t` is the time of the value to be forecast.
"""

import math

import numpy as np
from scipy.stats import norm

LARGEST = 1e100
PLAIN = ((0.15, 0.0, 1.0), (0.6, 0.0, 1.0), (0.5, 0.05, 0.9))  # alpha, beta, phi
SEASONAL = ((0.05, 0.0, 1.0, 0.05), (0.35, 0.0, 1.0, 0.3), (0.5, 0.05, 0.95, 0.3), (0.9, 0.3, 0.98, 0.3))  # and gamma


def anchors(H):
    """1, 2, 4, 8, 12, 16, 24, 32, 48, ... below H, and H."""
    found = {1, 2, 4, 8, *(2**k for k in range(3, 11)), *(3 * 2**k for k in range(2, 10))}
    return [*(h for h in sorted(found) if h < H), H]


class LeastSquares:
    """w = (A + kappa diag(A)/n)^-1 c; features that were always 0 have no part in it."""

    def __init__(self, d):
        self.A, self.c, self.n = np.zeros((d, d)), np.zeros(d), 0

    def learn(self, x, r):
        self.A += np.outer(x, x)
        self.c += x * r
        self.n += 1

    def weights(self, kappa):
        w, used = np.zeros(self.c.size), np.diag(self.A) > 0
        A = self.A[np.ix_(used, used)]
        w[used] = np.linalg.solve(A + (kappa / self.n + 1e-12) * np.diag(np.diag(A)), self.c[used])
        return w


class Smoothing:
    """Level, damped trend, and a season if there is one."""

    def __init__(self, alpha, beta, phi, gamma=0.0, m=0):
        self.alpha, self.beta, self.phi, self.gamma, self.m = alpha, beta, phi, gamma, m
        self.level, self.slope, self.season, self.errors, self.phases = 0.0, 0.0, np.zeros(max(m, 1)), [0.0, 0.0], {}
        self.started = False

    def start(self, t, z, step):
        """Start from the last two seasons."""
        one, two = np.array(z[-2 * self.m : -self.m]), np.array(z[-self.m :])
        slope = (two.mean() - one.mean()) / self.m
        away = np.arange(self.m) - (self.m - 1) / 2
        for i in range(self.m):
            a, b = (one - one.mean())[i] - slope * away[i], (two - two.mean())[i] - slope * away[i]
            alike = abs(a - b) <= 8 * step
            self.season[(t + i) % self.m] = (a + b) / 2 if alike else min(a, b, key=abs)
        self.level = two.mean() + slope * (self.m - 1) / 2
        self.slope = slope if self.beta else 0.0
        self.started = True

    def say(self, t, H):
        powers = np.cumsum(self.phi ** np.arange(1, H + 1))
        return self.level + self.slope * powers + self.season[(t + np.arange(H)) % max(self.m, 1)]

    def coast(self):
        self.slope *= self.phi
        self.level += self.slope

    def learn(self, t, z, seen, gap):
        if not self.m and not seen:
            self.level = z
            return
        if self.m and not self.started:
            return
        a = self.alpha * (1 + gap * self.alpha) / (1 + gap * self.alpha**2)
        if not self.m:
            a = max(a, 1 / (seen + 2))
        e = z - self.say(t, 1)[0]
        self.level += self.phi * self.slope + a * e
        self.slope = self.phi * self.slope + a * self.beta * e
        self.season[t % max(self.m, 1)] += self.gamma * (1 - a) * e
        self.errors = [e, self.errors[0]]
        self.phases[t % max(self.m, 1)] = e


class Season:
    """All candidates of a season m (0: without one) in one space, with their models."""

    def __init__(self, m, lags, H):
        rows = [(*row, m) for row in SEASONAL] if m else PLAIN
        self.m, self.bank = m, [Smoothing(*row) for row in rows]
        self.lagged = LeastSquares(len(lags) + 1 + (3 if m > 2 else 0))
        self.differences = LeastSquares(6)
        self.direct = {h: LeastSquares(10 if m else 8) for h in anchors(H)}
        self.waiting = {}  # (time, horizon) -> [features, base]


class Forecaster:
    """The same forecasts as `thalweg.estimators.Forecaster` without columns."""

    def __init__(self, lags=(1, 2, 3, 4), season=(), horizon=1, levels=(), squared=True, search=False):
        self.lags, self.H, self.levels, self.squared = lags, horizon, levels, squared
        self.given, self.found, self.search = tuple(season), (), search
        self.z, self.mean, self.step = [[], []], [0.0, 0.0], [0.0, 0.0]
        self.positive, self.seen, self.gap, self.rounds, self.check = True, 0, 0, 0, 30
        self.first = self.last = self.low = self.high = None
        self.s, self.errors, self.side, self.odd = 0.0, 0, 0, 0.0
        self.stayed, self.returned, self.trusted, self.largest, self.changes = 0, 0, False, 0.0, []
        self.parts = {(0, p): Season(0, lags, horizon) for p in range(2)}
        self.parts |= {(m, p): Season(m, lags, horizon) for m in season for p in range(2)}
        self.said = {}  # (time, horizon) -> {candidate: forecast}
        self.losses = {h: {} for h in anchors(horizon)}  # candidate -> [S, N]
        self.spans = {h: {"scores": [], "answers": 0, "theta": dict.fromkeys(levels, 0.0)} for h in anchors(horizon)}
        self.intervals = {}  # (time, horizon) -> (forecast, unit, {level: threshold})
        self.sizes, self.heard = [0.0, 0.0, 0.0], 0

    @property
    def t(self):
        return len(self.z[0])

    # ------------------------------------------------------------------ candidates

    def forecast(self):
        """The mean (H,), and thresholds {level: (H,)}, nan where there are none."""
        self.look_for_seasons()
        nothing = np.full(self.H, np.nan)
        if not self.seen:
            self.told = None
            return nothing, dict.fromkeys(self.levels, nothing)
        said = self.candidates()
        mean = np.array([self.combined(said, h) for h in range(1, self.H + 1)])
        self.told = mean[0]
        for h in anchors(self.H):
            if not self.gap:
                self.said[self.t, h] = {k: f[h - 1] for k, f in said.items() if not np.isnan(f[h - 1])}
        return mean, self.thresholds(mean)

    def bounds(self):
        wide = self.high - self.low
        return max(self.low - wide, -LARGEST), min(self.high + wide, LARGEST)

    def candidates(self):
        H, low, high, steps = self.H, *self.bounds(), np.arange(1, self.H + 1)
        last = self.z[0][-1 - self.gap] if self.side and not self.trusted else self.last
        found = {"naive": np.full(H, last)}
        if self.seen > 3:
            drift = (last - self.first) / max(self.t - 1 - self.gap, 1)
            found["drift"] = np.clip(last + (steps + self.gap) * drift, low, high)
        found["damped trend"] = np.clip(self.parts[0, 0].bank[2].say(self.t, H), low, high)
        found["lags"] = self.lagged(0)
        if not self.given:
            for p in range(1 + self.positive):
                found[f"direct {p}"] = self.direct(0, p)
        for m in (*self.given, *self.found):
            if self.t < m:
                continue
            found[f"seasonal naive {m}"] = np.array([self.z[0][-m + h % m] for h in range(H)])
            found[f"lags {m}"] = self.lagged(m)
            for p in range(2):
                for one in self.parts[m, p].bank:
                    if not one.started and self.t >= 2 * m:
                        one.start(self.t, self.z[p], self.step[p])
            for p in range(1 + self.positive):
                for j, one in enumerate(self.parts[m, p].bank):
                    if one.started:
                        found[f"smoothing {j} {p} {m}"] = self.value(one.say(self.t, H), p)
                found[f"differences {p} {m}"] = self.differences(m, p)
                found[f"direct {p} {m}"] = self.direct(m, p)
        return {k: f for k, f in found.items() if f is not None}

    def value(self, z, p):
        """Forecasts in space p as values within the range."""
        low, high = self.bounds()
        return np.clip(np.exp(np.minimum(z, 700.0)) if p else z, low, high)

    def lag_features(self, m, p, z):
        """(1) of `lagged`, of the value after z."""
        x = [z[-a] - z[-b] for a, b in zip(self.lags, self.lags[1:], strict=False)] + [z[-1] - self.mean[p]]
        if m > 2:
            x += [z[-m] - z[-1], z[-m] - z[-m - 1], z[-m + 1] - z[-m]]
        return np.array([*x, self.step[p]])

    def lag_ready(self, m):
        return self.t > max(self.lags[-1], m + 1, 4)

    def lagged(self, m):
        model, (low, high) = self.parts[m, 0].lagged, self.bounds()
        if not self.lag_ready(m) or model.n <= 2:
            return None
        z, w = list(self.z[0]), model.weights(3.0)
        for _ in range(self.H):
            z.append(min(max(z[-1] + w @ self.lag_features(m, 0, z), low), high))
        return np.array(z[self.t :])

    def difference_features(self, m, p, z):
        """(2) of `lagged`."""
        return np.array([*(z[-j] - z[-j - m] for j in (1, 2, 3, m, m + 1)), self.step[p]])

    def differences(self, m, p):
        model, (low, high) = self.parts[m, p].differences, self.bounds()
        if self.t <= 2 * m + 2 or model.n <= 2:
            return None
        if p:
            low, high = -700.0, math.log(max(high, 1e-300))
        z, w = list(self.z[p]), model.weights(3.0)
        for _ in range(self.H):
            z.append(min(max(z[-m] + w @ self.difference_features(m, p, z), low), high))
        return self.value(np.array(z[self.t :]), p)

    def direct(self, m, p):
        """(1) of `direct`; also puts rows aside that wait for their answer."""
        part, z, t = self.parts[m, p], self.z[p], self.t
        if t <= max(m + 1, 4) or (m and not part.bank[1].started):
            return None
        slow, base, trend = (one.say(t, self.H) for one in part.bank[:3])
        out, weights = np.full(self.H, np.nan), {}
        for h in range(1, self.H + 1):
            b = base[h - 1]
            x = [z[-1] - b, z[-1] - z[-2], z[-2] - z[-3], *part.bank[1].errors]
            if m:
                x += [part.bank[1].phases.get((t + h - 1) % m, 0.0), z[-m + (h - 1) % m] - b]
            x = np.array([*x, slow[h - 1] - b, trend[h - 1] - b, self.step[p]])
            at = max(k for k in anchors(self.H) if k <= min(h + self.gap, self.H))
            model = part.direct[at]
            if model.n > 2 and (not self.gap or h + self.gap <= self.H):
                if at not in weights:
                    weights[at] = model.weights(3.0 * at)
                out[h - 1] = b + weights[at] @ x
            if h in part.direct and not self.gap:
                part.waiting[t, h] = [x, b]
        known = ~np.isnan(out)
        out[known] = self.value(out[known], p)
        return out

    # ------------------------------------------------------------------ combination

    def weights(self, said, h):
        """(2) and (3) of `pool`."""
        awake = [k for k, f in said.items() if not np.isnan(f[0])]
        S = {k: self.losses[h].get(k, (0.0, 0.0))[0] for k in awake}
        N = {k: self.losses[h].get(k, (0.0, 0.0))[1] for k in awake}
        means = [S[k] / N[k] for k in awake if N[k] > 0 and S[k] > 0]
        ref = len(means) / sum(1 / v for v in means) if means else 0.0
        v = {k: (S[k] + 5 * ref) / (N[k] + 5) for k in awake}
        best, most = min(v.values()), max(N.values())
        rate = (0.15 if self.squared else 0.3) / math.sqrt(h)
        return {
            k: math.exp(-min(rate * max(N[k], min(most, 20)) * (v[k] / best - 1), 50)) if best > 0 else 1.0
            for k in awake
        }

    def combined(self, said, h):
        far = min(h + self.gap, self.H)
        below, part, above = self.between(far)
        one, two = self.weights(said, below), self.weights(said, above)
        w = {k: (1 - part) * one[k] + part * two[k] for k in one if not np.isnan(said[k][h - 1])}
        return sum(w[k] * said[k][h - 1] for k in w) / sum(w.values())

    def between(self, h):
        """Neighbouring horizons with a memory, and the way from one to the other."""
        every = anchors(self.H)
        below = max(k for k in every if k <= h)
        above = min([k for k in every if k > below], default=below)
        return below, (h - below) / max(above - below, 1), above

    def judge(self, y):
        """(1) of `combination`."""
        least = 1e-4 * (self.high - self.low)
        for h in anchors(self.H):
            said = self.said.get((self.t + 1 - h, h))
            if said is None:
                continue
            best = min([S / N for S, N in self.losses[h].values() if N > 5], default=math.inf)
            most = 9 + 91 / h
            cut = max(most * best, least**2) if self.squared else max(math.sqrt(most) * best, least)
            keep = 1 - 0.02 / math.sqrt(h)
            for k, f in said.items():
                S, N = self.losses[h].get(k, (0.0, 0.0))
                loss = (y - f) ** 2 if self.squared else abs(y - f)
                self.losses[h][k] = keep * S + min(loss, cut), keep * N + 1

    # ------------------------------------------------------------------ intervals

    def thresholds(self, mean):
        """(1), (2) and (4) of `spans`."""
        S, s, F = self.sizes
        q = {}
        for h in anchors(self.H):
            held = [1.0, *(np.clip(a / b, 0.2, 5) if b > 0 else 1.0 for a, b in ((s, S), (abs(mean[h - 1]), F)))]
            unit = float(np.mean(held)) ** h**-0.25
            kept = len(self.spans[h]["scores"])
            scores = sorted(self.spans[h]["scores"][kept // 4 :][-128:])
            n, below = len(scores), max([k for k in anchors(self.H) if k < h], default=None)
            for level in self.levels:
                now = math.inf
                if n:
                    seen = np.interp(level * (n + 1), np.arange(1, n + 1), scores)
                    normal = norm.ppf((1 + level) / 2) * np.linalg.norm(scores) / math.sqrt(n)
                    mix = (1 + 5 / max(n, 25)) * np.average([seen, min(normal, 1.5 * seen)], weights=[n, 50])
                    now = math.exp(self.spans[h]["theta"][level]) * unit * mix
                if n < 10 and below and q[below, level] < math.inf:
                    now = max(now, q[below, level]) if n else q[below, level] * math.sqrt(h / below)
                q[h, level] = now
            if not self.gap:
                self.intervals[self.t, h] = mean[h - 1], unit, {level: q[h, level] for level in self.levels}
        found = {}
        for i, level in enumerate(self.levels):
            found[level] = np.full(self.H, np.nan)
            for h in range(1, self.H + 1):
                below, part, above = self.between(min(h + self.gap, self.H))
                if q[below, level] < math.inf:
                    found[level][h - 1] = max(
                        math.sqrt((1 - part) * q[below, lower] ** 2 + part * q[above, lower] ** 2)
                        for lower in self.levels[: i + 1]
                    )
        return found

    def judge_intervals(self, y):
        """(3) of `spans`, and new scores."""
        for h in anchors(self.H):
            waits, mine = self.intervals.get((self.t + 1 - h, h)), self.spans[h]
            if waits is None:
                continue
            mean, unit, q = waits
            for level in self.levels:
                if q[level] < math.inf:
                    eta = min(0.12, 0.6 * (1 - level)) / h**0.6
                    theta = mine["theta"][level] + eta * ((abs(y - mean) > q[level]) - (1 - level))
                    mine["theta"][level] = min(max(theta, -2.0), 5.0)
            if mine["answers"] % math.isqrt(h) == 0:
                mine["scores"].append(abs(y - mean) / unit)
            mine["answers"] += 1
        if not self.gap and self.told is not None:
            self.heard += 1
            e, n = abs(y - self.told), self.heard
            self.sizes[0] += (e - self.sizes[0]) / min(n, 200)
            self.sizes[1] += (min(e, 10 * self.sizes[0]) - self.sizes[1]) / min(n, 1 / (1 - 0.5**0.1))
            self.sizes[2] += (abs(self.told) - self.sizes[2]) / min(n, 200)

    # ------------------------------------------------------------------ learning

    def update(self, y):
        """See y; nan: it is missing."""
        self.rounds += 1
        if np.isnan(y):
            if self.seen:
                self.z[0].append(self.told)
                self.z[1].append(self.log(self.told) if self.positive else 0.0)
                for part in self.parts.values():
                    for one in part.bank:
                        one.coast()
                self.gap += 1
            return
        if self.seen:
            self.judge(y)
            self.judge_intervals(y)
        clean = self.clean(y)
        self.positive = self.positive and y > 0
        if self.gap:
            self.spread_back(clean)
        z = [clean, math.log(clean)] if self.positive else [clean]
        if self.seen:
            self.learn_models(z)
        for (_, p), part in self.parts.items():
            if p < len(z):
                for one in part.bank:
                    one.learn(self.t, z[p], self.seen, self.gap)
        self.accept(y, clean, z)

    def log(self, value):
        return math.log(max(value, 0.5 * self.low))

    def learn_models(self, z):
        t = self.t
        for (m, p), part in self.parts.items():
            if p >= len(z):
                continue
            if p == 0 and self.lag_ready(m):
                part.lagged.learn(self.lag_features(m, 0, self.z[0]), z[0] - self.z[0][-1])
            if m and t > 2 * m + 2:
                part.differences.learn(self.difference_features(m, p, self.z[p]), z[p] - self.z[p][-m])
            for h, model in part.direct.items():
                if (t + 1 - h, h) in part.waiting:
                    x, base = part.waiting[t + 1 - h, h]
                    model.learn(x, z[p] - base)

    def accept(self, y, clean, z):
        self.low = clean if not self.seen else min(self.low, clean)
        self.high = clean if not self.seen else max(self.high, clean)
        if not self.seen:
            self.first = y
        self.last = y
        self.seen += 1
        for p in range(2):
            new = z[p] if p < len(z) else 0.0
            self.mean[p] += (new - self.mean[p]) / self.seen
            if self.t:
                self.step[p] += (abs(new - self.z[p][-1]) - self.step[p]) / max(self.seen - 1, 1)
        for p in range(2):
            self.z[p].append(z[p] if p < len(z) else 0.0)
        self.gap = 0

    def spread_back(self, clean):
        """(3) of `past`."""
        g, e = self.gap, clean - self.told
        e_log = math.log(clean) - self.log(self.told) if self.positive else 0.0
        for j in range(1, g + 1):
            self.z[0][-j] += e * (g + 1 - j) / (g + 1)
            self.z[1][-j] += e_log * (g + 1 - j) / (g + 1)

    def clean(self, y):
        """(1) and (2) of `past`."""
        if self.told is None:
            return y
        f, s = self.told, self.s
        e = y - f
        seasons = (*self.given, *self.found)
        calm = max((*(2 * m for m in seasons), 60 if self.search else 0), default=0)
        side = int(np.sign(e)) if self.t >= calm and self.errors >= 10 and s > 0 and abs(e) > 8 * s else 0
        before, odd, trusted = self.side, self.odd, self.trusted
        if not self.gap:
            self.errors += 1
            self.s += ((min(abs(e), 8 * s) if s > 0 else abs(e)) - s) / min(self.errors, 20)
        self.side, self.trusted, self.odd = side, False, y
        if before:
            stayed = abs(y - odd) < abs(y - self.expected)
            self.stayed, self.returned = self.stayed + stayed, self.returned + (not stayed)
            if stayed and not trusted:
                self.largest = max(self.largest, abs(e))
                self.expected = f
                self.change_level(y, odd)
                return y
        self.expected = f
        if not side:
            return y
        if self.stayed > 2 * self.returned and abs(e) <= 2 * self.largest:
            self.trusted = True
            self.change_level(y, y)
            self.side = side
            return y
        clean = f + side * 5 * s
        return y if y > 0 >= clean else clean

    def change_level(self, y, before):
        shift = [y - self.told, math.log(y) - self.log(self.told) if self.positive and y > 0 else 0.0]
        for p in range(2):
            self.z[p] = [z + shift[p] for z in self.z[p]]
            self.mean[p] += shift[p]
        self.first += shift[0]
        if not self.gap and not self.trusted:
            self.z[0][-1] = before
            if self.positive and before > 0:
                self.z[1][-1] = math.log(before)
        for (_, p), part in self.parts.items():
            for one in part.bank:
                one.level += shift[p]
            for row in part.waiting.values():
                row[1] += shift[p]
        self.low, self.high = min(self.low, before), max(self.high, before)
        self.changes.append(self.rounds)
        self.side, self.errors, self.s = 0, 0, 0.0

    # ------------------------------------------------------------------ seasons

    def look_for_seasons(self):
        """The test of `seasons`, after 30 rounds and then whenever there are half as many more."""
        if not self.search or self.rounds < self.check or len(self.found) == 2:
            return
        self.check = max(30, self.rounds + 1 + (self.rounds + 1) // 2)
        d = np.diff(self.z[0][-256:])
        if d.size < 8:
            return
        d = d - np.median(d)
        scale = 1.4826 * np.median(np.abs(d)) or d.std()
        if scale <= 0:
            return
        d = np.clip(d / scale, -4, 4)
        longest = min(60, d.size // 2 - 1)
        r = {k: float(d[k:] @ d[:-k]) / float(d @ d) for k in range(1, longest + 2)}
        peaks = [k for k in range(3, longest + 1) if r[k] > r[k - 1] and r[k] >= r[k + 1]]
        for k in sorted((k for k in peaks if r[k] > 3 / math.sqrt(d.size)), key=lambda k: -r[k]):
            if len(self.found) < 2 and all(k % other for other in self.found):
                self.found += (k,)
                self.parts |= {(k, p): Season(k, self.lags, self.H) for p in range(2)}
