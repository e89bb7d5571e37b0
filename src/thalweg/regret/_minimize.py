r"""Accelerated projected gradient with a bound on the remaining gap.

Each step goes from a point y of X to x+ = Pi_X(y - grad F(y)/L). For u in X and (c, R) a ball around X,

.. math:: F(u) \ge F(y) + \langle \nabla F(y), x^+ - y \rangle
          - L \left( \langle y - x^+, x^+ - c \rangle + R \|y - x^+\| \right),

which uses nothing but convexity and the projection. So every step also gives a lower bound on the minimum; the best one
is kept. F is evaluated in X only, so it need not exist elsewhere.
"""

from collections.abc import Callable

import numpy as np

from thalweg._core.types import Floats
from thalweg.domains._base import Domain
from thalweg.errors import InputError

__all__ = ["minimize"]

Objective = Callable[[Floats], tuple[float, Floats]]

HALVINGS = 60  # of a step in one iteration: beyond that F is not a finite convex function
SUM_ROUNDING = 8 * np.finfo(np.float64).eps  # rounding error of a sum, relative to its size


def minimize(
    objective: Objective, domain: Domain, start: Floats, *, tol: float, steps: int, enough: float = 0.0
) -> tuple[Floats, float, float]:
    """The minimiser of a convex function on a set, by accelerated projected gradients (Nesterov) with restarts.

    `objective` maps a flat point to a value and a flat gradient. `start` is flat; the centre is taken where the
    function is infinite there. It ends after `steps`, or when the remaining gap is at most `enough`, or `tol` times the
    largest possible gap of the first point. Returns a point, its value and a gap with value - min F <= gap.
    """
    c, R, project = domain.center.ravel(), domain.radius, domain._project_flat
    slip = 2 * R * domain.tolerance * domain._scale(domain.center)  # error of an inexact projection, over L

    def reach(g: Floats, x: Floats) -> float:
        """max over the ball of <g, x - u>."""
        return float(g @ (x - c) + R * np.linalg.norm(g))

    x = before = project(start)
    fx, gx = objective(x)
    if not np.isfinite(fx):
        x = before = project(c)
        fx, gx = objective(x)
    if not np.isfinite(fx):
        raise InputError(f"The losses add up to {fx:g} at the centre of {domain!r}, where their minimisation starts.")
    best, f_best, bound = x, fx, fx - reach(gx, x)
    goal = max(tol * max(fx - bound, 0.0), enough)
    L = float(np.linalg.norm(gx)) / R or 1.0
    momentum = 1.0
    for _ in range(steps):
        if f_best - bound <= goal:
            break
        after = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        beta = (momentum - 1) / after
        y, fy, gy = x, fx, gx
        if beta > 0:
            y = project(x + beta * (x - before))
            fy, gy = objective(y)
            if not np.isfinite(fy):  # an infinite loss on the boundary
                y, fy, gy = x, fx, gx
        for _ in range(HALVINGS):
            target = y - gy / L
            new = project(target)
            f_new, g_new = objective(new)
            move = y - new
            flat = fy - float(gy @ move)
            if f_new <= flat + L / 2 * float(move @ move) + SUM_ROUNDING * abs(fy):
                break
            L *= 2
        lost = reach(gy - L * (y - target), new)  # the step as it was rounded: a tiny one is no step at all
        for lower in (flat - L * (reach(move, new) + slip) - lost, f_new - reach(g_new, new)):
            if bound < lower < np.inf:  # not nan, and not from an infinite value
                bound = lower
        if f_new < f_best:
            best, f_best = new, f_new
        momentum = 1.0 if float(move @ (new - x)) > 0 else after
        before, x, fx, gx = x, new, f_new, g_new
        L *= 0.9
    return best, f_best, max(f_best - bound, 0.0) + SUM_ROUNDING * abs(f_best)
