"""Slow twins of the methods that guess the next gradient, one member at a time; see `tests.twins.dynamic`.

[O25]  EfficientOptimistic of this package, docs/feedback-proofs.md.
[Z24]  Zhao, Zhang, Zhang, Zhou. Adaptivity and non-stationarity. JMLR 25, 2024.                        (Sword++)
"""

import math

import numpy as np

from tests.twins.dynamic import Trace, ball, everything, softmax, surrogate_gradient


def hint_pool(horizon, radius, gradient_bound, smoothness=None):
    """R/G, or 1/(8L) if that is less, and halves of it until one is at most R/(G sqrt T); ascending."""
    steps = [radius / gradient_bound]
    if smoothness is not None:
        steps = [min(steps[0], 1 / (8 * smoothness))]
    while steps[-1] > radius / (gradient_bound * math.sqrt(horizon)) * (1 + 1e-12):
        steps.append(steps[-1] / 2)
    return np.array(steps[::-1])


def spread(etas, radius, gradient_bound, smoothness=None):
    """Rho and C."""
    reach, log = radius + etas[-1] * gradient_bound / 2, math.log(2 * len(etas))
    return reach, max(reach * gradient_bound, 16 * (smoothness or 0.0) * reach**2 * (math.sqrt(log) + log))


def efficient_optimistic(
    losses, project, center, radius, *, horizon, gradient_bound, smoothness=None, hints=None, tau=everything, flaw=None
):
    """[O25]. `hints`, a row a round, stand in for the last gradient; each is at most G long.

    `flaw` breaks it on purpose: "away" adds hints to the wrong side, "bent" feeds members the gradient itself.
    """
    etas = hint_pool(horizon, radius, gradient_bound, smoothness)
    (_, c), n, project_y = spread(etas, radius, gradient_bound, smoothness), len(etas), ball(center, radius)
    trace, hats = Trace(), [center.copy() for _ in etas]
    trace.hints = []
    A, W, m = np.zeros(2 * n), 0.0, np.zeros(len(center))
    for t, f in enumerate(losses):
        m = m if hints is None else hints[t]
        side = -1.0 if flaw == "away" else 1.0
        rate = math.sqrt(math.log(2 * n) / (c**2 + W))  # (4)
        p = softmax(-rate * A)  # (3)
        members = [hats[i] - side * etas[i] * m for i in range(n)] + hats  # (1)
        y = sum(p[i] * members[i] for i in range(2 * n))  # (5)
        x = project(y)
        g = f.gradient(x)
        h = g if flaw == "bent" else surrogate_gradient(g, y, x, tau=tau)
        loss = np.array([h @ (z - y) for z in members])
        trace.add(
            decisions=x,
            losses=f.value(x),
            gradients=g,
            fed=h,
            inner=y,
            points=np.array(hats),
            weights=p,
            rates=rate,
            hints=m,
        )
        trace.projections += 1
        trace.gradient_queries += 1
        A = A + loss
        W = W + ((loss.max() - loss.min()) / 2) ** 2
        hats = [project_y(hats[i] - etas[i] * h) for i in range(n)]  # (2)
        m = g
    trace.hints = np.array(trace.hints)
    return trace.arrays()


def sword_pp(losses, project, center, *, horizon, diameter, gradient_bound, smoothness):
    """[Z24], Algorithms 3 and 4, with the pool and the rate of its Theorem 4."""
    D, G, L = diameter, gradient_bound, smoothness
    n = max(1, math.ceil(0.5 * math.log2(G**2 * horizon / (8 * D**2 * L**2))) + 1)
    etas = [min(1 / (8 * L), 2**i * math.sqrt(D**2 / (8 * G**2 * horizon))) for i in range(n)]
    trace, past, before = Trace(), np.zeros(n), np.zeros(len(center))
    hats = [project(center) for _ in etas]
    points, moved = [z.copy() for z in hats], np.zeros(n)
    p, variation = np.full(n, 1 / n), 0.0
    for f in losses:
        x = sum(p[i] * points[i] for i in range(n))
        g = f.gradient(x)
        trace.add(decisions=x, losses=f.value(x), gradients=g, points=np.array(points), weights=p)
        trace.gradient_queries += 1
        variation, before = variation + (g - before) @ (g - before), g
        past = past + np.array([g @ points[i] + 2 * L * moved[i] for i in range(n)])
        hats = [project(hats[i] - etas[i] * g) for i in range(n)]
        fresh = [project(hats[i] - etas[i] * g) for i in range(n)]
        trace.projections += 2 * n
        moved = np.array([(fresh[i] - points[i]) @ (fresh[i] - points[i]) for i in range(n)])
        guess = np.array([g @ fresh[i] + 2 * L * moved[i] for i in range(n)])
        rate = 1 / (8 * D**2 * L)
        if variation > 0:
            rate = min(rate, math.sqrt(math.log(n) / (D**2 * variation)))
        points, p = fresh, softmax(-rate * (past + guess))
    return trace.arrays()
