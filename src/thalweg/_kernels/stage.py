"""What every compiled run does with a round before the learner moves: decide, look at the loss, pass the gradient on.

A run is given as two tuples. `world` = (loss code, loss parameter, features, labels, losses, decisions, square bound,
nonnegative): the rounds of a `LinearModel`, where to write what was paid and (if it has rows) played, and what must be
refused. `face` = (reduced, x, clock, code, domain, tol): with `reduced`, the learner lives in a surrogate set, and the
reduction projects its y onto the set (code, domain) once a round, keeping x and a clock of its own; without, x = y and
nothing is counted here.
"""

import numpy as np

from thalweg._kernels.clock import FRESH, GRADIENTS, PROJECTIONS, ROUNDS, VALUES
from thalweg._kernels.jit import inlined
from thalweg._kernels.projections import project
from thalweg._kernels.reduction import surrogate_gradient
from thalweg.losses._table import slope, value

__all__ = ["count_reduced", "meet", "pass_on"]


@inlined
def meet(
    t: int,
    y: np.ndarray,
    loss_code: int,
    loss_par: float,
    features: np.ndarray,
    labels: np.ndarray,
    losses: np.ndarray,
    decisions: np.ndarray,
    square_bound: float,
    nonnegative: bool,
    reduced: bool,
    x: np.ndarray,
    outer: np.ndarray,
    code: int,
    domain: np.ndarray,
    g: np.ndarray,
    work: np.ndarray,
) -> bool:
    """Decide x, write the gradient of round t at x into g and what was paid into losses[t].

    Returns False, with nothing but x changed, where the round must be refused. Overwrites g and work.
    """
    d = y.shape[0]
    if not reduced:
        for j in range(d):
            x[j] = y[j]
    elif outer[FRESH] == 0:
        project(code, domain, y, x, work)
        outer[PROJECTIONS] += 1
        outer[FRESH] = 1
    margin = 0.0
    for j in range(d):
        margin += features[t, j] * x[j]
    loss = value(loss_code, margin, labels[t], loss_par)
    weight = slope(loss_code, margin, labels[t], loss_par)
    square = 0.0
    for j in range(d):
        g[j] = weight * features[t, j]
        square += g[j] * g[j]
    if not (square <= square_bound) or not np.isfinite(loss) or (nonnegative and loss < 0.0):
        return False
    losses[t] = loss
    if decisions.shape[0] > 0:
        for j in range(d):
            decisions[t, j] = x[j]
    return True


@inlined
def count_reduced(outer: np.ndarray, needs_loss: bool) -> None:
    """Count a round of the reduction; its decision is of the past now. Overwrites outer."""
    outer[ROUNDS] += 1
    outer[GRADIENTS] += 1
    outer[VALUES] += 1 if needs_loss else 0
    outer[FRESH] = 0


@inlined
def pass_on(
    g: np.ndarray,
    y: np.ndarray,
    reduced: bool,
    x: np.ndarray,
    outer: np.ndarray,
    tol: float,
    needs_loss: bool,
    h: np.ndarray,
) -> None:
    """h <- what the learner sees of g: the surrogate gradient inside the reduction, else g itself. Overwrites h."""
    surrogate_gradient(g, y, x, tol, h)  # g itself where x = y
    if reduced:
        count_reduced(outer, needs_loss)
