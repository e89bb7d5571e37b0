"""The quantile loss: tau (b - z) where the prediction is too low, (1 - tau) (z - b) where it is too high."""

from numpy.typing import ArrayLike

from thalweg._core.validate import check_positive
from thalweg._kernels.jit import kernel
from thalweg.errors import InputError
from thalweg.losses._base import PredictionLoss
from thalweg.losses._phi import of_kernels
from thalweg.losses.absolute import tangent

__all__ = ["Pinball"]


@kernel
def value(z: float, b: float, tau: float) -> float:
    """tau (b - z)_+ + (1 - tau) (z - b)_+."""
    error = z - b
    return (1.0 - tau) * error if error > 0.0 else -tau * error


@kernel
def slope(z: float, b: float, tau: float) -> float:
    """1 - tau above b, -tau below, 0 at the kink."""
    if z > b:
        return 1.0 - tau
    if z < b:
        return -tau
    return 0.0


@kernel
def prox_slope(z: float, b: float, tau: float, width: float) -> float:
    """The proximal point moves z towards b by width times a slope, and not beyond."""
    return min(max((z - b) / width, -tau), 1.0 - tau)


class Pinball(PredictionLoss):
    r"""The quantile (pinball) loss: an error costs :math:`\tau` below the label and :math:`1 - \tau` above it.

    .. math:: f(x) = \tau \, (b - z)_+ + (1 - \tau) \, (z - b)_+, \qquad z = \langle a, x \rangle .

    The constant with the least sum of losses is the :math:`\tau`-quantile of the labels. At the kink the gradient is 0.

    Parameters
    ----------
    features : array
        a, of the shape of a decision.
    label : float
        b.
    tau : float
        :math:`\tau`, between 0 and 1: 0.9 asks for predictions that nine of ten labels stay below.

    Examples
    --------
    >>> from thalweg.losses import Pinball
    >>> f = Pinball([1.0, 2.0], 3.0, tau=0.75)
    >>> f.value([0.0, 1.0]), f.gradient([0.0, 1.0]), f.value([0.0, 2.0])
    (0.75, array([-0.75, -1.5 ]), 0.25)
    """

    name = "pinball"
    phi = of_kernels(value, slope, prox_slope, tangent)
    curvature = None
    kinked = True
    parameter_name = "tau"
    default = 0.5

    def __init__(self, features: ArrayLike, label: float, tau: float = default) -> None:
        super().__init__(features, label, tau=tau)

    @classmethod
    def check_parameter(cls, owner: str, value: object) -> float:
        """Between 0 and 1."""
        tau = check_positive(owner, "tau", value)
        if tau >= 1:
            raise InputError(f"The 'tau' parameter of {owner} must lie between 0 and 1. Got {tau:g}.")
        return tau
