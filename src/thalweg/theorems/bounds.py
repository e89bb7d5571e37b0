r"""Regret bounds of single pieces of a run, with every constant.

Notation: R the radius of the surrogate ball Y, G the gradient bound, n the rounds of the piece, P the comparator's path
length in it, F its loss, Q >= sum of squared gradient norms. For L-smooth losses f >= 0, ||grad f||^2 <= 2 L f, so
Q = 2 L X with X the learner's own loss, and a bound of the form

.. math:: X - F \le a + b \sqrt{X} + c X \quad (c < 1)

is an inequality for X; `small_loss` solves it for the regret X - F. The paper's constants (its Appendices B to D) use
4 L and rougher steps in between; those here come from the same lemmas and are never larger.
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import real_array, wrong
from thalweg.errors import InputError

__all__ = [
    "ada_normal_hedge",
    "adapt_ml_prod",
    "coin_betting",
    "confident_hedge",
    "descent",
    "hedge",
    "leading_history",
    "optimistic",
    "parameter_free",
    "prod",
    "scale_free",
    "small_loss",
]

P = ParamSpec("P")
Answer = TypeVar("Answer")


def formula(f: Callable[P, Answer]) -> Callable[P, Answer]:
    """A formula whose arguments are finite numbers >= 0, or arrays of such; others are refused."""
    names = tuple(inspect.signature(f).parameters)

    @functools.wraps(f)
    def checked(*args: P.args, **options: P.kwargs) -> Answer:
        for name, value in (*zip(names, args, strict=False), *options.items()):
            array = real_array(value)
            if array is None or not ((array >= 0) & (array < math.inf)).all():
                raise wrong(f.__name__, name, "a finite number >= 0", value)
        try:
            with np.errstate(all="ignore"):
                return f(*args, **options)
        except (ArithmeticError, TypeError, ValueError) as error:  # 0, too large, or an array where one number goes
            raise InputError(f"{f.__name__} cannot be computed from {args}, {options}: {error}.") from error

    return checked


NEWTON = (2 - math.log(3)) / 2  # strong convexity of the coin bettor's logarithmic losses, in its own gradients


@formula
def small_loss(F: float, a: Floats | float, b: float, c: Floats | float = 0.0) -> float:
    """The largest X - F with X - F <= a + b sqrt(X) + c X, a quadratic in sqrt(X). For arrays a, c the least of all."""
    a, c = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(c, dtype=float))
    if (c >= 1.0).all():
        return math.inf
    rest = 1.0 - c[c < 1.0]
    root = (b + np.sqrt(b * b + 4.0 * rest * (F + a[c < 1.0]))) / (2.0 * rest)
    return float((root * root).min()) - F


@formula
def descent(steps: Floats, R: float, P: float, first: float) -> Floats:
    r"""The a of gradient descent with step eta on a ball: :math:`\min(5R^2/2 + RP, \|y_1 - u_1\|^2/2 + 2RP)/\eta`.

    With eta Q/2 it bounds sum <h, y - u> (Lemma 8 of the paper, and the telescoping sum itself); first = ||y_1 - u_1||.
    """
    distances: float = min(2.5 * R**2 + R * P, first**2 / 2 + 2 * R * P)
    return distances / steps


@formula
def hedge(N: int, rate: float, R: float, Q: float) -> float:
    r"""Hedge with a fixed rate and losses of range :math:`2R\|h\|`: :math:`\ln N/\epsilon + \epsilon R^2 Q/2`."""
    return math.log(N) / rate + rate * R**2 * Q / 2 if N > 1 else 0.0


@formula
def confident_hedge(N: int, R: float, G: float) -> tuple[float, float]:
    r"""Hedge with the self-confident rate: a and k of :math:`a + k \sqrt{Q}`.

    The lemma gives :math:`3 \sqrt{\ln N (1 + R^2 Q)} + G^2 R^2 \sqrt{\ln N}/2`.
    """
    root = math.sqrt(math.log(N))
    return (3 + G**2 * R**2 / 2) * root, 3 * R * root


@formula
def optimistic(distances: Floats, steps: Floats, R: float, G: float, C: float, E: float, Q: float) -> float:
    r"""Descents that lean on hints, and the same without, under one Hedge; `distances` as for `descent`.

    With :math:`\rho = R + \eta_N G/2` and :math:`\ell = \ln 2N` the least of
    :math:`a_i + (\sqrt{\eta_i E/2} + \rho\sqrt{2\ell/\eta_i})^2` and :math:`a_i + \eta_i Q/2 + 2\rho\sqrt{\ell Q}`,
    plus :math:`C\sqrt{\ell}`: (T1) and (T2) of docs/feedback-proofs.md.
    """
    rho, log = R + float(np.max(steps)) * G / 2, math.log(2 * np.size(steps))
    leaning = distances + (np.sqrt(steps * E / 2) + rho * np.sqrt(2 * log / steps)) ** 2
    plain = distances + steps * Q / 2 + 2 * rho * math.sqrt(log * Q)
    return C * math.sqrt(log) + float(np.minimum(leaning, plain).min())


@formula
def scale_free(R: float, delta: float) -> tuple[float, float]:
    r"""Scale-free descent with numerator R on a ball: a and k of :math:`a + k\sqrt{Q}`.

    Telescoping gives :math:`2R \sqrt{\delta + Q} + R \sqrt{Q}`; the paper's lemma has 4R in all.
    """
    return 2 * R * math.sqrt(delta), 3 * R


@formula
def adapt_ml_prod(m: int, t: int, R: float, G: float) -> tuple[float, float]:
    r"""Adapt-ML-Prod against the expert born at marker m, until round t: a and k of :math:`a + k\sqrt{Q}`.

    With :math:`\gamma = \ln(1+2m)`, :math:`\mu = \ln(1 + (1 + \ln(1+t))/(2e))`, in units of 2GR:
    :math:`(3\sqrt\gamma + \mu)\sqrt{1 + Q/G^2} + 6\gamma + 2\mu` (the paper's Lemma 3 before its last steps).
    """
    gamma, mu = math.log(1 + 2 * m), math.log(1 + (1 + math.log(1 + t)) / (2 * math.e))
    slope = 3 * math.sqrt(gamma) + mu
    return 2 * G * R * (slope + 6 * gamma + 2 * mu), 2 * R * slope


@formula
def ada_normal_hedge(n: int, t: int, R: float, G: float) -> float:
    r"""AdaNormalHedge against any of at most 2t experts that have started by round t.

    :math:`2GR\sqrt{3 n (\ln 2t + \ln(5/2 + 3/2 \ln(1+t)) + 1)}` (Luo and Schapire 2015, feedback at most 1).
    """
    return 2 * G * R * math.sqrt(3 * n * (math.log(2 * t) + math.log(2.5 + 1.5 * math.log1p(t)) + 1))


@formula
def coin_betting(n: int, t: int, R: float, G: float) -> float:
    r"""Sleeping coin betting until round t: :math:`2GR\sqrt{n (7 \ln t + 5)}` (Jun et al. 2017, Theorem 2)."""
    return 2 * G * R * math.sqrt(n * (7 * math.log(t) + 5))


@formula
def prod(n: int, t: int, length: int) -> float:
    r"""Prod against the expert of an interval of this length, after n of them and until round t, in units of c.

    With :math:`\eta = \min(1/2, length^{-1/2})`: :math:`\eta n + \ln(2t)/\eta`. The weights of all experts so far,
    fewer than 2t, never sum to more than their number, and :math:`\ln(1 + x) \ge x - x^2` for x >= -1/2.
    """
    eta = min(0.5, 1 / math.sqrt(length))
    return eta * n + math.log(2 * t) / eta


@formula
def leading_history(n: int, t: int, rate: float, c: float) -> float:
    r"""Follow the leading history against the expert of n rounds until round t: :math:`\ln t/\alpha + \alpha c^2 n/8`.

    It came with a share 1/r and kept (1 - 1/s) of it in each later round s: 1/t in all. With c = 0 for losses whose
    :math:`e^{-\alpha f}` is concave, else c is the range of the losses.
    """
    return math.log(t) / rate + rate * c**2 * n / 8


@formula
@functools.lru_cache(maxsize=4096)
def parameter_free(size: float, wealth: float, Q: float) -> float:
    r"""A coin bettor times a direction, against a point of length `size`, for losses of length <= 1.

    The bettor's Newton steps on -ln(1 - s v), |s v| <= 1/2, lose at most
    :math:`c = \ln(1 + 4Q)/(2\kappa) + \kappa/8`, :math:`\kappa = (2 - \ln 3)/2`, to the best fixed fraction. So with
    X = -sum s its wealth is at least :math:`\psi e^{f(X) - c}`, where :math:`f(X) = X^2/(4Q)` up to X = Q and
    :math:`X/2 - Q/4` from there, and regret is at most :math:`\psi + \max_X (X \cdot size - \psi e^{f(X) - c})`. The
    direction adds :math:`2\sqrt2\, size \sqrt Q`.
    """
    if Q <= 0:
        return wealth
    cost = math.log1p(4 * Q) / (2 * NEWTON) + NEWTON / 8
    # The maximum is where ln(size) = ln(psi) - c + ln f'(X) + f(X); the right side rises with X.
    goal = math.log(max(size, 1e-300)) - math.log(wealth) + cost
    low, high = 0.0, 1.0

    def rise(X: float) -> float:
        if X <= Q:
            return math.log(max(X, 1e-300) / (2 * Q)) + X * X / (4 * Q)
        return math.log(0.5) + X / 2 - Q / 4

    while rise(high) < goal:
        high *= 2
    for _ in range(200):
        X = (low + high) / 2
        low, high = (X, high) if rise(X) < goal else (low, X)
        if high - low <= 1e-12 * high:
            break
    slope = min(high / (2 * Q), 0.5)  # f'(X), and there psi e^(f(X) - c) = size/f'(X)
    return wealth + size * (high - 1 / slope) + 2 * math.sqrt(2) * size * math.sqrt(Q)
