"""Experts on a cover against the C loop: the time of n living experts beside a pool of n members."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import thalweg as tw
from limit import Limit
from thalweg.algorithms import thresholds

__all__ = ["FULL", "QUICK", "measure", "show"]

STAGES = 25
QUICK = ((8, 2_000),)  # (d, T)
FULL = ((8, 2_000), (8, 20_000), (8, 200_000), (100, 20_000))
TARGET = 2.5  # times the limit, for three layers
SCALE = 1e-4  # of the theory's thresholds, which never fire on this problem


def scaled(m: int, *, C: Callable[[int], float]) -> float:
    """A threshold that does fire."""
    return SCALE * C(m)


def makers(domain: tw.domains.Ellipsoid, problem: tw.problems.LinearRegression) -> dict[str, Callable[[], Any]]:
    """The learners, with thresholds low enough to keep several experts alive."""
    T = len(problem)
    G, L, B = problem.gradient_bound(domain), float(problem.smoothness or 0.0), problem.loss_bound(domain)
    R = domain.surrogate.radius
    adaptive = partial(thresholds.adaptive_paper, T=T, G=G, L=L, R=R, delta=1.0)
    N = tw.EfficientDynamic(domain, T, G, L).inner.step_sizes.size
    interval = partial(thresholds.interval_dynamic, T=T, G=G, L=L, R=R, N=N)
    C = SCALE * thresholds.sacs(L=L, D=domain.diameter, delta=1.0)
    return {
        "EfficientAdaptive": lambda: tw.EfficientAdaptive(domain, T, G, L, threshold=partial(scaled, C=adaptive)),
        "SACS": lambda: tw.SACS(domain, loss_bound=B, smoothness=L, gradients="own", threshold=C, horizon=T),
        "SACS, a marker a round": lambda: tw.SACS(
            domain, loss_bound=B, smoothness=L, gradients="own", cover="compact", horizon=T
        ),
        "EfficientCBCE": lambda: tw.EfficientCBCE(domain, gradient_bound=G, horizon=T),
        "EfficientIntervalDynamic": lambda: tw.EfficientIntervalDynamic(
            domain, T, G, L, threshold=partial(scaled, C=interval)
        ),
        "EfficientAOA": lambda: tw.EfficientAOA(domain, gradient_bound=G, horizon=T),
    }


def measure(
    limit: Limit, best_of: Callable[..., list[tuple[float, float]]], cases: Sequence[tuple[int, int]], repeats: int
) -> list[dict[str, Any]]:
    """For each (d, T), time every learner and the C loop with as many members as its experts had on average."""
    results = []
    for d, T in cases:
        domain = tw.problems.paper_ellipsoid(d)
        problem = tw.problems.piecewise_stationary(domain, T, STAGES, rng=0)
        weights = np.array(domain.par[: domain.dim])
        for name, make in makers(domain, problem).items():
            learner = make()
            tw.play(learner, problem)
            inner = getattr(learner, "inner", learner)
            members = inner.queries.projections / T
            steps = np.geomspace(1e-3, 1.0, max(1, round(members)))

            def library(learner: Any = learner, problem: Any = problem) -> float:
                learner.reset()
                start = time.process_time()
                tw.play(learner, problem)
                return time.process_time() - start

            def bare(problem: Any = problem, weights: Any = weights, steps: Any = steps) -> float:
                return limit.play(problem.features, problem.labels, weights, 3.0, 3e-12, steps).seconds

            runs = [library] if limit.missing else [library, bare]
            times = best_of(repeats if T <= 20_000 else 3, *runs)
            results.append(
                {
                    "d": d,
                    "T": T,
                    "learner": name,
                    "markers": learner.marker_count,
                    "members": members,
                    "projections": learner.queries.projections / T,
                    "us": 1e6 * times[0][0] / T,
                    "spread": times[0][1],
                    "limit_us": None if limit.missing else 1e6 * times[1][0] / T,
                    "ratio": None if limit.missing else times[0][0] / times[1][0],
                }
            )
    return results


def show(results: list[dict[str, Any]], table: Callable[..., None], mark: Callable[[float, float], str]) -> None:
    """The table of `measure`, a block for each T."""
    rows = []
    for r in results:
        against = ["-", "-", "-"]
        if r["ratio"] is not None:
            verdict = mark(r["ratio"], TARGET) if r["learner"] == "EfficientIntervalDynamic" else ""
            against = [f"{r['limit_us']:.2f}", f"{r['ratio']:.2f}", verdict]
        rows.append(
            [r["learner"], r["d"], r["T"], r["markers"], f"{r['members']:.1f}", f"{r['projections']:.1f}",
             f"{r['us']:.2f}", f"{r['spread']:.2f}", *against]
        )  # fmt: skip
    heads = [
        "learner",
        "d",
        "T",
        "markers",
        "members",
        "projections",
        "us",
        "spread",
        "limit us",
        "ratio",
        f"<= {TARGET:g}",
    ]
    table("5. Experts on a cover, microseconds a round against the limit with as many members", heads, rows)
    print("   members: gradient descents alive, on average; projections: onto the feasible set, a round.")
