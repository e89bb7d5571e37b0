"""A linear loss, z + b."""

from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._kernels.jit import kernel
from thalweg.losses._base import PredictionLoss
from thalweg.losses._phi import of_kernels

__all__ = ["Linear"]


@kernel
def value(z: float, b: float, _: float) -> float:
    """z + b."""
    return z + b


@kernel
def slope(_z: float, _b: float, _: float) -> float:
    """1 everywhere."""
    return 1.0


@kernel
def prox_slope(_z: float, _b: float, _: float, _width: float) -> float:
    """1 everywhere."""
    return 1.0


@kernel
def tangent(z: float, b: float, _: float, s: float) -> float:
    """The loss itself: s = 1."""
    return s * z + b


class Linear(PredictionLoss):
    r"""A linear loss: :math:`f(x) = \langle a, x \rangle + b`. It may be negative.

    Parameters
    ----------
    cost : array
        a, of the shape of a decision.
    offset : float
        b.

    Examples
    --------
    >>> from thalweg.losses import Linear
    >>> f = Linear([1.0, -2.0])
    >>> f.value([0.0, 1.0]), f.gradient([0.0, 1.0])
    (-2.0, array([ 1., -2.]))
    """

    name = "linear"
    phi = of_kernels(value, slope, prox_slope, tangent)
    curvature = 0.0
    nonnegative = False
    _arguments = ("cost", "offset")

    def __init__(self, cost: ArrayLike, offset: float = 0.0) -> None:
        super().__init__(cost, offset)

    @property
    def cost(self) -> Floats:
        """The gradient a."""
        return self.features

    @property
    def offset(self) -> float:
        """The value b at x = 0."""
        return self.label
