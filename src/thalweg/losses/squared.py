"""Half the squared error, (z - b)^2 / 2."""

from thalweg._kernels.jit import kernel
from thalweg.losses._base import PredictionLoss
from thalweg.losses._phi import of_kernels

__all__ = ["Squared"]


@kernel
def value(z: float, b: float, _: float) -> float:
    """(z - b)^2 / 2."""
    return 0.5 * (z - b) * (z - b)


@kernel
def slope(z: float, b: float, _: float) -> float:
    """Linear in z."""
    return z - b


@kernel
def prox_slope(z: float, b: float, _: float, width: float) -> float:
    """The proximal point is (z + width b) / (1 + width)."""
    return (z - b) / (1.0 + width)


@kernel
def tangent(z: float, b: float, _: float, s: float) -> float:
    """Touches at b + s."""
    return s * (z - b) - 0.5 * s * s


class Squared(PredictionLoss):
    r"""Half the squared error of a prediction: :math:`f(x) = (\langle a, x \rangle - b)^2 / 2`.

    Parameters
    ----------
    features : array
        a, of the shape of a decision.
    label : float
        b.

    Examples
    --------
    >>> from thalweg.losses import Squared
    >>> f = Squared([1.0, 2.0], 3.0)
    >>> f.value([0.0, 1.0]), f.gradient([0.0, 1.0]), f.smoothness
    (0.5, array([-1., -2.]), 5.0)
    """

    name = "squared"
    phi = of_kernels(value, slope, prox_slope, tangent)
    curvature = 1.0
