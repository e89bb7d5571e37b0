"""Late feedback in plain NumPy: copies that take turns, and a pool of descents that learns from gradients as they come.

`arrivals` says what comes when: the rounds whose feedback comes at the end of round t, in order.
"""

import math

import numpy as np


def arrivals(delays, max_delay):
    """For every round the rounds whose feedback comes in it."""
    T = len(delays)
    comes = [[] for _ in range(T + max_delay + 1)]
    for s, d in enumerate(delays):
        if d >= 0:
            comes[s + d].append(s)
    return [sorted(rounds) for rounds in comes[:T]]


def interleaved(make, losses, delays, max_delay):
    """Decisions, and who played: the first copy that waits for nothing (a round older than max_delay is given up)."""
    comes, copies, waits, X, who, given = arrivals(delays, max_delay), [], {}, [], [], {}
    for t, f in enumerate(losses):
        waits = {k: s for k, s in waits.items() if s >= t - max_delay}
        k = min(set(range(len(copies) + 1)) - waits.keys())
        if k == len(copies):
            copies.append(make())
        x = np.array(copies[k].decision)
        X.append(x)
        who.append(k)
        waits[k] = t
        given[t] = f.gradient(x), f.value(x)
        for s in comes[t]:
            copies[who[s]].update(*given.pop(s))
            del waits[who[s]]
    return np.array(X), who


def late_pool(domain, T, G, losses, delays, max_delay, tau, tangent=lambda g: g):
    """Decisions of (1) to (6) of `thalweg.algorithms.efficient_delayed`."""
    Y = domain.surrogate
    R, c, D = Y.radius, Y.center.ravel(), domain.diameter
    N = math.ceil(0.5 * math.log2(1 + 2 * D * T / (5 * R))) + 1
    eta = 2.0 ** np.arange(N) * R / G * math.sqrt(5 / (2 * (1 + 2 * tau) * T))
    epsilon = math.sqrt(math.log(N) / (1 + G**2 * R**2 * (1 + 2 * tau) * T))
    tol = domain.tolerance * domain._scale(domain.center)
    comes, Z, A, kept, X = arrivals(delays, max_delay), np.tile(c, (N, 1)), np.zeros(N), {}, []
    for t, f in enumerate(losses):
        p = np.exp(-epsilon * (A - A.min()))
        y = p / p.sum() @ Z
        x = domain.project(y.reshape(domain.shape)).ravel()
        X.append(x)
        kept[t] = x, y, Z.copy(), np.asarray(f.gradient(x.reshape(domain.shape))).ravel()
        for s in comes[t]:
            x_s, y_s, Z_s, g = kept.pop(s)
            g, v = tangent(g), tangent(y_s - x_s)
            h = g
            if np.linalg.norm(v) > tol:
                v = v / np.linalg.norm(v)
                h = g - min(0.0, g @ v) * v
            A = A + (Z_s - y_s) @ h
            Z = Z - eta[:, None] * h
            Z = c + (Z - c) / np.maximum(1.0, np.linalg.norm(Z - c, axis=1) / R)[:, None]
    return np.array(X)
