"""Huber's loss: squared for small errors e = z - b, linear beyond delta."""

from numpy.typing import ArrayLike

from thalweg._core.validate import check_positive
from thalweg._kernels.jit import kernel
from thalweg.losses._base import PredictionLoss
from thalweg.losses._phi import of_kernels
from thalweg.losses.squared import tangent

__all__ = ["Huber"]


@kernel
def value(z: float, b: float, delta: float) -> float:
    """e^2/2 for |e| <= delta, else delta (|e| - delta/2)."""
    size = abs(z - b)
    if size <= delta:
        return 0.5 * size * size
    return delta * (size - 0.5 * delta)


@kernel
def slope(z: float, b: float, delta: float) -> float:
    """The error, cut to [-delta, delta]."""
    return min(max(z - b, -delta), delta)


@kernel
def prox_slope(z: float, b: float, delta: float, width: float) -> float:
    """As for the squared loss, cut to [-delta, delta]."""
    return min(max((z - b) / (1.0 + width), -delta), delta)


class Huber(PredictionLoss):
    r"""Huber's loss: half the squared error up to :math:`\delta`, and from there on a straight line.

    .. math:: f(x) = \begin{cases} e^2/2 & |e| \le \delta \\ \delta |e| - \delta^2/2 & \text{else} \end{cases},
              \qquad e = \langle a, x \rangle - b .

    So outliers among the labels pull no more than :math:`\delta \|a\|`.

    Parameters
    ----------
    features : array
        a, of the shape of a decision.
    label : float
        b.
    delta : float
        :math:`\delta > 0`, in units of the label.

    Examples
    --------
    >>> from thalweg.losses import Huber
    >>> f = Huber([1.0, 2.0], 3.0, delta=0.5)
    >>> f.value([0.0, 1.0]), f.gradient([0.0, 1.0]), f.smoothness
    (0.375, array([-0.5, -1. ]), 5.0)
    """

    name = "huber"
    phi = of_kernels(value, slope, prox_slope, tangent)
    curvature = 1.0
    parameter_name = "delta"
    default = 1.0

    def __init__(self, features: ArrayLike, label: float, delta: float = default) -> None:
        super().__init__(features, label, delta=delta)

    @classmethod
    def check_parameter(cls, owner: str, value: object) -> float:
        """Above 0."""
        return check_positive(owner, "delta", value)
