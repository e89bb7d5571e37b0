"""One run of the study of the Tracker: a stream, a method, and its loss.

The reference of every stream is gradient descent with the best constant step, chosen in hindsight from 2^-20, ..., 2^20
times R/G. It cannot be played; it measures how hard a stream is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from thalweg.lab.studies.tracker import peers, squared
from thalweg.lab.studies.tracker.cases import ALL, calm_of, draw

import thalweg as tw
from thalweg._core.types import Floats
from thalweg.cards import recipes
from thalweg.domains import Ball
from thalweg.lab.catalog import build
from thalweg.lab.report import Row
from thalweg.lab.streams import Stream, measured, planted
from thalweg.problems import LinearRegression, paper_ellipsoid

REFERENCE = "OGD, best step"
STEPS = range(-20, 21)
LARGEST_DIMENSION = 128  # entries of a decision up to which d^2 numbers a round are played

Method = Callable[[Stream], "Floats | None"]

# ---------------------------------------------------------------------------------------------------------- the methods

OPTIONS: dict[str, dict[str, Any]] = {
    "Tracker": {},
    "Tracker, no intervals": {"intervals": False},
    "Tracker, no curvature": {"curvature": False},
    "Tracker, no values": {"loss_floor": None},
    "Tracker, floor 1 too low": {"loss_floor": -1.0},
}
*TRACKERS, LOW = OPTIONS
LEARNERS = (
    "EfficientDynamic", "EfficientDynamic-worst-case", "EfficientScream", "EfficientAdaptive",
    "EfficientAdaptive-eager", "EfficientIntervalDynamic", "EfficientIntervalDynamic-eager", "EfficientCBCE",
    "EfficientAOA", "EfficientCutkosky", "SOGD",
)  # fmt: skip
FORGETTING = {"RLS": 1.0, "RLS 0.999": 0.999, "RLS 0.99": 0.99, "RLS 0.95": 0.95}


def learner_of(name: str, stream: Stream) -> tw.Learner | None:
    """A Tracker, told the domain, or another learner, told all constants; None where that one needs smooth losses."""
    if name in OPTIONS:
        return tw.Tracker(stream.domain, **OPTIONS[name])
    if recipes()[name].card.smooth and not stream.setting.small_loss:
        return None
    return build(name, stream)


def _learner(stream: Stream, name: str) -> Floats | None:
    learner = learner_of(name, stream)
    return None if learner is None else _played(learner, stream)


def _played(learner: tw.Learner, stream: Stream) -> Floats:
    run = tw.play(learner, stream.problem)
    if run.interrupted:
        raise KeyboardInterrupt
    return run.losses


def _least_squares(stream: Stream, forgetting: float) -> Floats | None:
    if stream.problem.loss != "squared" or stream.domain.dim > LARGEST_DIMENSION:
        return None
    return peers.least_squares(stream, forgetting)


def _mean(stream: Stream) -> Floats | None:
    return peers.running_mean(stream) if stream.problem.loss in ("squared", "absolute", "huber") else None


P = functools.partial

SIMPLE: dict[str, Method] = {
    "SGD 0.01": P(peers.optimiser, rule=peers.SGD, rate=0.01),
    "AdaGrad 0.1": P(peers.optimiser, rule=peers.ADAGRAD, rate=0.1),
    "Adam 0.1": P(peers.optimiser, rule=peers.ADAM, rate=0.1),
    **{name: P(_least_squares, forgetting=factor) for name, factor in FORGETTING.items()},
    "coin betting": peers.coin_betting,
    "running mean": _mean,
    "persistence": peers.persistence,
}
METHODS: dict[str, Method] = {
    **{name: P(_learner, name=name) for name in (*OPTIONS, *LEARNERS)},
    **SIMPLE,
}
BANK, FREE = "filters", "filters, not projected"
BESIDE_BANK: dict[str, Method] = {
    **{name: METHODS[name] for name in ("Tracker", "Tracker, no curvature")},
    BANK: peers.filters,
    FREE: P(peers.filters, projected=False),
}
FRESH = "Tracker, fresh"  # one that begins at the change
GOES_ON = "OGD, best step, goes on"  # through the calm with the step that is best for the change
AFTER = (
    *TRACKERS, FRESH, GOES_ON, "EfficientDynamic", "EfficientAdaptive-eager", "EfficientIntervalDynamic-eager",
    "EfficientCBCE", "SOGD", "SGD 0.01", "Adam 0.1", "RLS", "RLS 0.99",
)  # fmt: skip


def best_step(stream: Stream, first: int = 0) -> tuple[float, int]:
    """The least loss of gradient descent with a constant step 2^k R/G, k = -20, ..., 20, and its k.

    Losses count from round `first` on.
    """
    unit = stream.domain.radius / stream.gradient_bound
    learners = ((k, tw.OGD(stream.domain, step_size=2.0**k * unit)) for k in STEPS)
    return min((float(_played(learner, stream)[first:].sum()), k) for k, learner in learners)


# ------------------------------------------------------------------------------------------------------------- one run


def play_one(*, case: str, method: str, group: str = "", horizon: int | None = None, rep: int = 0) -> Row:
    """Play one method on one stream; after a calm the change alone counts. No loss where the method does not apply."""
    stream, spec = draw(case, group, horizon, rep), ALL[group][case]
    C = calm_of(spec, horizon)
    change = measured(case, stream.domain, stream.problem[C:]) if C else stream
    row: Row = {"group": group, "case": case, "method": method, "rounds": len(change.problem), "calm": C}
    row |= {"dim": stream.domain.dim, "loss": stream.problem.loss, "total_loss": None, "step": None}
    if method in (REFERENCE, GOES_ON):
        row["total_loss"], row["step"] = best_step(change) if method == REFERENCE else best_step(stream, C)
        return row
    if method == FRESH:
        losses = METHODS["Tracker"](change)
    elif method == "persistence" and not spec.series:
        losses = None
    else:
        losses = (BESIDE_BANK if group == squared.GROUP else METHODS)[method](stream)
    if losses is not None:
        row["total_loss"] = float(losses[-len(change.problem) :].sum())
    return row


AGAIN = ("Tracker", "Tracker, no values")


def play_again(*, case: str, group: str, horizon: int | None, draws: int) -> Row:
    """The ratio of two methods to the reference on further draws of a stream."""
    ratios: dict[str, list[float]] = {name: [] for name in AGAIN}
    for rep in range(1, draws + 1):
        where: dict[str, Any] = {"case": case, "group": group, "horizon": horizon, "rep": rep}
        best = play_one(method=REFERENCE, **where)["total_loss"]
        for name in AGAIN:
            ratios[name].append(play_one(method=name, **where)["total_loss"] / best)
    return {"case": case, "group": group, "ratios": ratios}


# ------------------------------------------------------------------------------------------------------ PyNOL's example

PUBLISHED = {"PyNOL's PSACS": {2_000: 11.45, 10_000: 44.9}, "PyNOL's SACS": {2_000: 14.75, 10_000: 51.0}}
EXAMPLE = (*TRACKERS, "EfficientDynamic", "EfficientAdaptive-eager", "SOGD", "RLS 0.99", REFERENCE)


def pynol(horizon: int, stages: int) -> Stream:
    """The data of PyNOL's examples/adaptive.py (commit 350c2982; seed 0), drawn as PyNOL's generator draws it.

    Features uniform in the unit ball of R^3; in each stage a model with a uniform direction and a uniform length in
    [0, 1]; noise of standard deviation 0.05. Unlike in PyNOL, whose loss there is r^2/4, losses are r^2/2.
    """
    rng, d = np.random.RandomState(0), 3
    directions = rng.normal(size=(d, horizon))
    radii = rng.random_sample(horizon) ** (1 / d)
    features = (radii * directions / np.linalg.norm(directions, axis=0)).T
    length = math.ceil(horizon / stages)
    models = []
    for _ in range(stages):
        direction = rng.normal(size=d)
        models.append(rng.random_sample() * direction / np.linalg.norm(direction))
    labels = np.einsum("td,td->t", features, np.repeat(models, length, axis=0)[:horizon])
    return measured("pynol", Ball(d), LinearRegression(features, labels + rng.normal(0.0, 0.05, horizon)))


def play_pynol(*, horizon: int, stages: int, method: str) -> Row:
    """One method on PyNOL's example."""
    stream = pynol(horizon, stages)
    losses = None if method == REFERENCE else METHODS[method](stream)
    total = best_step(stream)[0] if losses is None else float(losses.sum())
    return {"rounds": horizon, "stages": stages, "method": method, "total_loss": total}


# ------------------------------------------------------------------------------------------------------ every interval

ON_INTERVALS = (
    "Tracker", "Tracker, no intervals", "EfficientAdaptive", "EfficientAdaptive-eager", "EfficientIntervalDynamic",
    "EfficientIntervalDynamic-eager",
)  # fmt: skip
STAGES = 8


def intervals(*, horizon: int, noise: float, method: str, seed: int) -> Row:
    """The largest regret against the best fixed decision, over all intervals of each dyadic length."""
    stream = planted("intervals", paper_ellipsoid(), horizon, seed, stages=STAGES, noise=noise)
    learner = learner_of(method, stream)
    assert learner is not None  # the losses are smooth
    losses, inner = _played(learner, stream), getattr(learner, "inner", None)
    found = tw.regret.adaptive(losses, stream.problem, stream.domain)
    # The Tracker counts markers after the start, a cover that of the start, too.
    markers = inner.marker_count - 1 if isinstance(inner, tw.Cover) else learner.marker_count  # type: ignore[attr-defined]
    return {
        "method": method, "rounds": horizon, "noise": noise, "total_loss": float(losses.sum()), "markers": markers,
        "lengths": [row.length for row in found], "regrets": [row.regret for row in found],
        "gaps": [row.gap for row in found],
    }  # fmt: skip
