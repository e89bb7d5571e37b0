"""The Tracker against the C loop with its members, and beside `EfficientDynamic`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import thalweg as tw
from limit import Limit

__all__ = ["FULL", "QUICK", "measure", "show"]

STAGES = 25
QUICK = ((8, 2_000),)  # (d, T)
FULL = ((1, 20_000), (8, 20_000), (32, 20_000), (64, 4_000), (1000, 1_000))
TARGETS = {8: 1.9, 1000: 1.5}  # times the limit, without intervals and curvature
DEFAULT_TARGET = 1.6 / 0.5  # times EfficientDynamic at d = 8
UPDATE_TARGET = 3.5  # us
BARE = "intervals=False, curvature=False"
SETTINGS: dict[str, dict[str, Any]] = {
    BARE: {"intervals": False, "curvature": False},
    "intervals=False": {"intervals": False},
    "curvature=False": {"curvature": False},
    "defaults": {},
}


def _timed(learner: Any, problem: Any) -> float:
    learner.reset()
    start = time.process_time()
    tw.play(learner, problem)
    return time.process_time() - start


def _by_update(learner: Any, gradients: Sequence[np.ndarray], losses: Sequence[float]) -> float:
    learner.reset()
    start = time.process_time()
    for gradient, loss in zip(gradients, losses, strict=True):
        _ = learner.decision
        learner.update(gradient, loss)
    return time.process_time() - start


def measure(
    limit: Limit, best_of: Callable[..., list[tuple[float, float]]], cases: Sequence[tuple[int, int]], repeats: int
) -> list[dict[str, Any]]:
    """For each (d, T), the C loop, EfficientDynamic and the Tracker's settings in turns; at d = 8 also by update."""
    results = []
    for d, T in cases:
        domain = tw.problems.paper_ellipsoid(d)
        problem = tw.problems.piecewise_stationary(domain, T, STAGES, rng=0)
        G, L = problem.gradient_bound(domain), problem.smoothness
        learners: dict[str, Any] = {"EfficientDynamic": tw.EfficientDynamic(domain, T, G, L)}
        learners |= {name: tw.Tracker(domain, **options) for name, options in SETTINGS.items()}
        runs = [lambda learner=learner, problem=problem: _timed(learner, problem) for learner in learners.values()]
        bare = learners[BARE]
        tol = domain.tolerance * domain._scale(domain.center)  # a shorter way to the set has no direction
        arguments = problem.features, problem.labels, np.array(domain.par[:d]), bare.surrogate.radius, tol
        if not limit.missing:
            runs.append(lambda arguments=arguments: limit.track(*arguments).seconds)
        names = list(learners)
        if d == 8:
            run = tw.play(tw.Tracker(domain), problem, decisions=True)
            slopes = np.einsum("td,td->t", problem.features, run.decisions) - problem.labels
            gradients, losses = list(slopes[:, None] * problem.features), run.losses.tolist()
            runs.insert(len(names), partial(_by_update, tw.Tracker(domain), gradients, losses))
            names.append("defaults, decision + update")
        times = best_of(repeats, *runs)
        limit_us = None if limit.missing else 1e6 * times[-1][0] / T
        difference = None
        if not limit.missing:
            part = min(T, 400_000 // d)
            ours = tw.play(tw.Tracker(domain, **SETTINGS[BARE]), problem, rounds=part, decisions=True).decisions
            theirs = limit.track(arguments[0][:part], arguments[1][:part], *arguments[2:], decisions=True).decisions
            assert ours is not None
            assert theirs is not None
            difference = float(np.abs(ours - theirs).max())
        for name, (seconds, spread) in zip(names, times, strict=False):
            members = getattr(learners.get(name), "weights", np.zeros(0)).size
            results.append(
                {"d": d, "T": T, "setting": name, "members": members, "us": 1e6 * seconds / T, "spread": spread,
                 "limit_us": limit_us, "dynamic_us": 1e6 * times[0][0] / T, "difference": difference}
            )  # fmt: skip
    return results


def show(results: list[dict[str, Any]], table: Callable[..., None], mark: Callable[[float, float], str]) -> None:
    """The table of `measure`."""
    rows = []
    for r in results:
        verdict = ""
        if r["setting"] == BARE and r["limit_us"] is not None and r["d"] in TARGETS:
            verdict = f"{mark(r['us'] / r['limit_us'], TARGETS[r['d']])} <= {TARGETS[r['d']]:g} x limit"
        elif r["setting"] == "defaults" and r["d"] == 8:
            verdict = f"{mark(r['us'] / r['dynamic_us'], DEFAULT_TARGET)} <= {DEFAULT_TARGET:g} x EfficientDynamic"
        elif "update" in r["setting"]:
            verdict = f"{mark(r['us'], UPDATE_TARGET)} <= {UPDATE_TARGET:g} us"
        against = "-" if r["limit_us"] is None or "update" in r["setting"] else f"{r['us'] / r['limit_us']:.2f}"
        bare = "-" if r["limit_us"] is None else f"{r['limit_us']:.2f}"
        rows.append(
            [r["setting"], r["d"], r["members"] or "", f"{r['us']:.2f}", f"{r['spread']:.2f}", bare, against, verdict]
        )
    heads = ["setting", "d", "members", "us", "spread", "limit us", "ratio", "target"]
    table("6. The Tracker, microseconds a round; the limit is its C loop without intervals and curvature", heads, rows)
    found = [r["difference"] for r in results if r["difference"] is not None]
    if found:
        print(f"   Decisions of the C loop and of {BARE}: at most {max(found):.1e} apart, entry by entry.")
