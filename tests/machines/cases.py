"""Learners for compiled code and for plain Python: `python -m tests.machines.cases FILE` writes what the latter plays.

Every expert with every meta-learner, on a cover and in a pool, and a few of the paper's methods.
"""

import sys

import numpy as np

import thalweg as tw
from thalweg.experts import AdaGradDescent, Descent, Pool
from thalweg.metas import AdaNormalHedge, AdaptMLProd, CoinBetting, Hedge, LeadingHistory, Prod

T, G = 30, 8.0
BALL = tw.domains.Ball(3, radius=1.5, center=[0.5, -1.0, 2.0])
ELLIPSOID = tw.domains.Ellipsoid([1.0, 2.0, 4.0], bound=2.0)
RANGE = 2 * G * BALL.radius

EXPERTS = {
    "Descent": lambda size: Descent(BALL, 0.2 * size, step_rule="decaying"),
    "AdaGradDescent": lambda size: AdaGradDescent(BALL, scale=size),
    "Pool": lambda size: Pool([Descent(BALL, step * size) for step in (0.05, 0.5)]),
}
METAS = {
    "Hedge": lambda: Hedge(rate=0.1),
    "AdaptMLProd": lambda: AdaptMLProd(RANGE),
    "AdaptMLProd, observed": lambda: AdaptMLProd("observed"),
    "AdaNormalHedge": lambda: AdaNormalHedge(RANGE),
    "CoinBetting": lambda: CoinBetting(RANGE),
    "LeadingHistory": lambda: LeadingHistory(0.2),
    "Prod": lambda: Prod(2 * RANGE),
}


def on_cover(expert, meta):
    return lambda: tw.Cover(BALL, EXPERTS[expert](1.0), meta=METAS[meta](), horizon=T)


def in_pool(expert, meta):
    return lambda: tw.Alone(Pool([EXPERTS[expert](2.0**-k) for k in range(3)], meta=METAS[meta]()))


COMBINATIONS = {f"{expert} on a cover, {meta}": on_cover(expert, meta) for expert in EXPERTS for meta in METAS} | {
    f"{expert} in a pool, {meta}": in_pool(expert, meta) for expert in EXPERTS if expert != "Pool" for meta in METAS
}
METHODS = {
    "EfficientDynamic": lambda: tw.EfficientDynamic(ELLIPSOID, T, G, 1.0),
    "EfficientAdaptive": lambda: tw.EfficientAdaptive(ELLIPSOID, T, G, 1.0, threshold=2.0),
    "SACS, own": lambda: tw.SACS(ELLIPSOID, loss_bound=60.0, smoothness=1.0, threshold=2.0, gradients="own"),
    "EfficientCutkosky": lambda: tw.EfficientCutkosky(ELLIPSOID, T, G),
}


def problem():
    rng = np.random.default_rng(7)
    a = rng.standard_normal((T, 3))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    return tw.problems.LinearRegression(a, np.repeat(rng.standard_normal(3), T // 3) + 0.1 * rng.standard_normal(T))


def played(make):
    """The decisions of a run; it is feasible, equals the run by steps, and goes on from a saved state bit for bit."""
    losses = problem()
    run = tw.play(make(), losses, decisions=True)
    whole, first, rest = make(), make(), make()
    assert all(whole.domain.contains(x, tol=1e-9) for x in run.decisions)
    assert np.linalg.norm(np.diff(run.decisions, axis=0), axis=1).max() > 1e-3
    for t, f in enumerate(losses):
        assert np.array_equal(whole.decision, run.decisions[t])
        if t < 13:
            first.step(f)
        if t == 13:
            rest.restore(first.state())
        if t >= 13:
            assert np.array_equal(rest.decision, whole.decision)
            rest.step(f)
        whole.step(f)
    assert np.array_equal(rest.decision, whole.decision)
    assert rest.queries == whole.queries
    mine, theirs = rest.state(), whole.state()
    assert all(np.array_equal(mine[key], theirs[key]) for key in theirs)
    return run.decisions


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: played(make) for name, make in (COMBINATIONS | METHODS).items()})
