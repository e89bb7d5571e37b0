"""The absolute error, |z - b|."""

from thalweg._kernels.jit import kernel
from thalweg.losses._base import PredictionLoss
from thalweg.losses._phi import of_kernels

__all__ = ["Absolute"]


@kernel
def value(z: float, b: float, _: float) -> float:
    """|z - b|."""
    return abs(z - b)


@kernel
def slope(z: float, b: float, _: float) -> float:
    """The sign of z - b, 0 at the kink."""
    if z > b:
        return 1.0
    if z < b:
        return -1.0
    return 0.0


@kernel
def prox_slope(z: float, b: float, _: float, width: float) -> float:
    """The proximal point moves z towards b by width, and not beyond."""
    return min(max((z - b) / width, -1.0), 1.0)


@kernel
def tangent(z: float, b: float, _: float, s: float) -> float:
    """Touches at b."""
    return s * (z - b)


class Absolute(PredictionLoss):
    r"""The absolute error of a prediction: :math:`f(x) = |\langle a, x \rangle - b|`. At the kink the gradient is 0.

    Parameters
    ----------
    features : array
        a, of the shape of a decision.
    label : float
        b.

    Examples
    --------
    >>> from thalweg.losses import Absolute
    >>> f = Absolute([1.0, 2.0], 3.0)
    >>> f.value([0.0, 1.0]), f.gradient([0.0, 1.0])
    (1.0, array([-1., -2.]))
    """

    name = "absolute"
    phi = of_kernels(value, slope, prox_slope, tangent)
    curvature = None
    kinked = True
