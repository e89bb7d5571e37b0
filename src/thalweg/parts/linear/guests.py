"""Guests: least squares and Kalman filters, which know the covariance of features, with several memories.

Guest k has coefficients b and their covariance P = S S', in units of the noise. With the curvature c
of the loss, its memory lambda, f = S'z and h = f'f:

    b -= S f l'(p+)/lambda,  p+ = p - l'(p+) h/lambda                                                               (1)
    a = lambda + c h;  S -= S f f' c/(a + sqrt(lambda a));  S_j /= sqrt(lambda), while P_jj stays below 100          (2)

Squared loss: c = 1 and (1) is recursive least squares; Huber's: c = min(1, delta/|e|). Log loss: c = q(1 - q) with
q = |l'(p+)|, an extended Kalman filter that is linearised where its own step ends. For the other losses guests learn
the squared loss; for quantiles each adds the quantile of the residuals (`offsets`).
P is kept as S, which is Potter's square root: P itself loses its positive eigenvalues to rounding when it forgets and
features are nearly dependent, such as the last values of a smooth series, and then a guest is lost.
"""

from typing import NamedTuple

import numpy as np

from thalweg._core.rules import magnitude, within
from thalweg._core.state import Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import inner
from thalweg.losses.logistic import prox_slope
from thalweg.parts.linear.losses import HUBER, LOG, QUANTILE, Lesson
from thalweg.parts.linear.offsets import LARGEST_COEFFICIENT, LARGEST_LEFT, move_offset

FORGET = np.array([1.0, 1.0, 0.999, 0.99, 0.95])  # lambda
PRIORS = np.array([0.2, 10.0, 1.0, 1.0, 1.0])  # P at the start, in units of the features' spread
LOG_PRIORS = np.array([1.0, 100.0, 1.0, 1.0, 1.0])
BELIEVED = np.array([0.35, 0.2, 0.25, 0.15, 0.05])  # at the start: long memories come first
VAGUE = 100.0  # a variance is not blown up beyond this
LARGEST_ROOT = LARGEST_ENTRY**1.4  # of a variance


class GuestsState(NamedTuple):
    """G guests, D positions; G = 0 where there are none."""

    B: Floats = field("G D", magnitude(LARGEST_COEFFICIENT), called="coefficients")
    S: Floats = field("G D D", magnitude(LARGEST_ROOT), called="covariances")
    offset: Floats = field("G", magnitude(LARGEST_COEFFICIENT), called="coefficients")  # added to a prediction
    left: Floats = field("G", within(0.0, LARGEST_LEFT), called="errors left over")  # the mean absolute one


def guests_plan(count: int, positions: int) -> Plan:
    """Return the plan of a number of guests."""
    return Plan(GuestsState, (), {"G": count, "D": positions})


def begin_guests(s: GuestsState, log: bool) -> None:
    """Before the first row; all arrays are 0."""
    for k in range(len(s.B)):
        restart(s, k, s.B.shape[1], log)


@inner
def restart(s: GuestsState, k: int, D: int, log: bool) -> None:
    """Let guest k forget everything; D positions are in use."""
    s.offset[k] = s.left[k] = 0.0
    for j in range(D):
        s.B[k, j] = 0.0
        for b in range(D):
            s.S[k, j, b] = 0.0
        s.S[k, j, j] = np.sqrt(LOG_PRIORS[k] if log else PRIORS[k])


@inner
def score_guests(s: GuestsState, at: Ints, z: Floats, n: int, p: Floats) -> None:
    """p[k] += sum_i B[k, at[i]] z[i] + offset, over the n features that are present."""
    for k in range(s.B.shape[0]):
        for i in range(n):
            p[k] += s.B[k, at[i]] * z[i]
        p[k] += s.offset[k]


@inner
def follow_guests(s: GuestsState, D: int, j: int, ratio: float, shift: float) -> None:
    """As `follow_members`; D positions are in use."""
    for k in range(s.B.shape[0]):
        s.B[k, j] *= ratio
        s.B[k, 0] += s.B[k, j] * shift
        for i in range(D):
            s.S[k, j, i] *= ratio
            s.S[k, 0, i] += s.S[k, j, i] * shift


@inner
def move_guests(s: GuestsState, lesson: Lesson, at: Ints, z: Floats, n: int, D: int, p: Floats, f: Floats) -> None:
    """(1) and (2), where p[k] is the prediction of guest k, its offset included, and f is scratch space (D,).

    A guest whose numbers leave the range of a state restarts.
    """
    kind, par, y, _, seen, weight = lesson
    for k in range(s.B.shape[0]):
        memory = FORGET[k]
        for b in range(D):
            f[b] = 0.0
        for i in range(n):
            for b in range(D):
                f[b] += s.S[k, at[i], b] * z[i]
        h = 0.0
        for b in range(D):
            h += f[b] * f[b]
        e = p[k] - s.offset[k] - y
        if kind == QUANTILE:
            move_offset(s.offset, s.left, k, par, memory, p[k] - y, seen)
        if kind == LOG:
            push = prox_slope(p[k], y, 0.0, weight * h / memory) if h > 0.0 else 0.0
            c = weight * abs(push) * (1.0 - abs(push))
            push *= weight / memory
        else:
            c = weight * (par / abs(e)) if kind == HUBER and abs(e) > par else weight
            push = c * e / (memory + c * h)
        a = memory + c * h
        shrink, grow = c / (a + np.sqrt(memory * a)), 1.0 / np.sqrt(memory)
        fits = True
        for j in range(D):
            u = 0.0
            for b in range(D):
                u += s.S[k, j, b] * f[b]
            s.B[k, j] -= u * push
            u *= shrink
            variance = 0.0
            for b in range(D):
                s.S[k, j, b] -= u * f[b]
                variance += s.S[k, j, b] * s.S[k, j, b]
            if memory < 1.0 and variance <= VAGUE * memory:
                for b in range(D):
                    s.S[k, j, b] *= grow
            fits &= abs(s.B[k, j]) <= LARGEST_COEFFICIENT and variance <= LARGEST_ROOT * LARGEST_ROOT  # False of a nan
        if not fits:
            restart(s, k, D, kind == LOG)
