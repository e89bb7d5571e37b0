"""The absolute error, |z - b|."""

from thalweg._kernels.jit import inlined
from thalweg.losses._base import PredictionLoss

__all__ = ["Absolute"]


@inlined
def value(z: float, b: float, _: float) -> float:
    """|z - b|."""
    return abs(z - b)


@inlined
def slope(z: float, b: float, _: float) -> float:
    """The sign of z - b, 0 at the kink."""
    if z > b:
        return 1.0
    if z < b:
        return -1.0
    return 0.0


@inlined
def prox_slope(z: float, b: float, _: float, width: float) -> float:
    """The proximal point moves z towards b by width, and not beyond."""
    return min(max((z - b) / width, -1.0), 1.0)


@inlined
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
    phi, phi_slope = staticmethod(value), staticmethod(slope)
    curvature = None
    kinked = True
