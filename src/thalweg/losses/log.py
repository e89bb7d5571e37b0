"""The log loss of a growth factor, -log(z + b): infinite where z + b <= 0."""

import math

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._kernels.jit import kernel
from thalweg.errors import InputError
from thalweg.losses._base import PredictionLoss
from thalweg.losses._phi import of_kernels

__all__ = ["Log"]


@kernel
def value(z: float, b: float, _: float) -> float:
    """-log(z + b)."""
    return -math.log(z + b) if z + b > 0.0 else np.inf


@kernel
def slope(z: float, b: float, _: float) -> float:
    """-1 / (z + b), and -inf where the loss is infinite."""
    return -1.0 / (z + b) if z + b > 0.0 else -np.inf


@kernel
def prox_slope(z: float, b: float, _: float, width: float) -> float:
    """The proximal point x has (x + b)^2 - (z + b)(x + b) = width: the root > 0, without cancellation."""
    m = z + b
    root = math.sqrt(m * m + 4.0 * width)
    return -2.0 / (m + root) if m > 0.0 else -0.5 * (root - m) / width


@kernel
def tangent(z: float, b: float, _: float, s: float) -> float:
    """Touches at z + b = -1/s."""
    return s * (z + b) + 1.0 + math.log(-s) if s < 0.0 else -np.inf


class Log(PredictionLoss):
    r"""The log loss of a portfolio: :math:`f(x) = -\log(\langle a, x \rangle + b)`, infinite where the sum is not > 0.

    With a decision x on the simplex and a the price relatives of the day, the sum of losses is minus the log of the
    wealth. It may be negative. Its slopes are unbounded: bounds are computed from the smallest :math:`\langle a, x
    \rangle` that the domain allows, and are infinite where that plus b is not positive.

    Parameters
    ----------
    features : array
        a, of the shape of a decision.
    offset : float
        b, the gain that does not depend on the decision.

    Examples
    --------
    >>> from thalweg.domains import Simplex
    >>> from thalweg.losses import Log
    >>> f = Log([0.5, 2.0])
    >>> f.value([1.0, 0.0]) == -f.value([0.0, 1.0]), f.gradient([0.0, 1.0]), round(f.loss_bound(Simplex(2)), 3)
    (True, array([-0.25, -1.  ]), 0.693)
    """

    name = "log"
    phi = of_kernels(value, slope, prox_slope, tangent)
    curvature = None
    nonnegative = False
    barrier = True
    _arguments = ("features", "offset")

    def __init__(self, features: ArrayLike, offset: float = 0.0) -> None:
        super().__init__(features, offset)

    def gradient(self, x: ArrayLike) -> Floats:
        """The gradient of f at x, as a new array of the shape of x; not finite where f is infinite."""
        with np.errstate(invalid="ignore"):  # -inf * 0
            return super().gradient(x)

    @classmethod
    def curvature_from(cls, low: Floats, labels: Floats) -> Floats | None:
        """1 / (z + b)^2 falls with z."""
        return 1.0 / (low + labels) ** 2 if (low + labels > 0).all() else None

    @classmethod
    def check_data(cls, owner: str, features: Floats, labels: Floats) -> None:
        """Somewhere the loss is finite."""
        lost = np.flatnonzero((labels <= 0) & ~features.any(axis=1))
        if lost.size:
            raise InputError(
                f"The features of {owner} must not all be zero where the offset is not positive: the log loss would be "
                f"infinite everywhere. Got such a row, number {lost[0]}."
            )
