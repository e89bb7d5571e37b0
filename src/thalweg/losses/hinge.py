"""The hinge loss of a score, (1 - b z)_+, b = -1 or +1. Since b^2 = 1 its kink is at z = b."""

from thalweg._kernels.jit import kernel
from thalweg.losses._base import PredictionLoss
from thalweg.losses._phi import of_kernels
from thalweg.losses.absolute import tangent

__all__ = ["Hinge"]


@kernel
def value(z: float, b: float, _: float) -> float:
    """(1 - b z)_+."""
    return max(1.0 - b * z, 0.0)


@kernel
def slope(z: float, b: float, _: float) -> float:
    """-b where b z < 1, else 0."""
    return -b if b * z < 1.0 else 0.0


@kernel
def prox_slope(z: float, b: float, _: float, width: float) -> float:
    """The proximal point moves z towards b by width if b z < 1, and not beyond."""
    return -b * min(max((1.0 - b * z) / width, 0.0), 1.0)


class Hinge(PredictionLoss):
    r"""The hinge loss of a score: :math:`f(x) = \max(0, 1 - b \langle a, x \rangle)`. At the kink the gradient is 0.

    Parameters
    ----------
    features : array
        a, of the shape of a decision.
    label : float
        b, -1 or +1.

    Examples
    --------
    >>> from thalweg.losses import Hinge
    >>> f = Hinge([1.0, 2.0], -1)
    >>> f.value([0.0, 1.0]), f.gradient([0.0, 1.0]), f.gradient([0.0, -1.0])
    (3.0, array([1., 2.]), array([0., 0.]))
    """

    name = "hinge"
    phi = of_kernels(value, slope, prox_slope, tangent)
    curvature = None
    signed = True
    kinked = True
