r"""Losses of one round.

The built-in ones depend on the decision through one number, the prediction z = <a, x>:

.. math:: f(x) = \phi(\langle a, x \rangle, b), \qquad \nabla f(x) = \phi'(\langle a, x \rangle, b) \, a .

For a matrix decision <a, x> is the Frobenius inner product. Any object with `value` and `gradient` is a loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg._kernels import losses as kernels
from thalweg._validate import check_array, check_number
from thalweg.errors import InputError

if TYPE_CHECKING:
    from thalweg.domains import Domain

__all__ = ["Absolute", "Linear", "Logistic", "Loss", "PredictionLoss", "Squared"]

Array = NDArray[np.float64]


@runtime_checkable
class Loss(Protocol):
    """A convex function of the decision. An object with these two methods is a loss, no base class needed."""

    def value(self, x: Array, /) -> float:
        """f(x)."""
        ...

    def gradient(self, x: Array, /) -> ArrayLike:
        """A gradient (or subgradient) of f at x, of the shape of x."""
        ...


class PredictionLoss:
    """What the built-in losses share: f(x) = phi(<a, x>, b).

    Attributes
    ----------
    features, label : array, float
        a and b.
    shape : tuple of int
        Shape of a decision.
    code : int
        The loss in compiled loops (`thalweg._kernels.losses`).
    nonnegative : bool
        Whether f >= 0 everywhere, as small-loss bounds ask for.
    """

    code: ClassVar[int]
    curvature: ClassVar[float | None]  # the largest second derivative of phi in z; None where there is a kink
    nonnegative: ClassVar[bool] = True

    features: Array
    label: float

    def __init__(self, features: ArrayLike, label: float) -> None:
        owner = type(self).__name__
        self.features = check_array(owner, "features", features)
        self.label = check_number(owner, "label", label)
        self._check()

    @classmethod
    def trusted(cls, features: Array, label: float) -> Self:
        """The loss on arguments that are already checked: a float64 array, kept and not copied, and a float."""
        loss = cls.__new__(cls)
        loss.features = features
        loss.label = label
        return loss

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a decision."""
        return self.features.shape

    def value(self, x: ArrayLike) -> float:
        """f(x)."""
        return float(kernels.value(self.code, self._predict(x), self.label))

    def gradient(self, x: ArrayLike) -> Array:
        """The gradient of f at x (a subgradient at a kink), as a new array of the shape of x."""
        gradient: Array = kernels.slope(self.code, self._predict(x), self.label) * self.features
        return gradient

    @property
    def smoothness(self) -> float | None:
        """L with ||grad f(x) - grad f(u)|| <= L ||x - u||: the curvature of phi times ||a||^2. None if not smooth."""
        return None if self.curvature is None else self.curvature * float(np.vdot(self.features, self.features))

    def gradient_bound(self, domain: Domain) -> float:
        """At least ||grad f(x)|| for every x of the domain; infinite if no finite bound holds.

        The domain lies in its enclosing ball, so <a, x> lies in <a, c> -+ R ||a||. The slope of a convex phi grows
        with z, so its largest size is at one of the two ends. On a ball the bound is attained.
        """
        low, high = self._range(domain)
        steepest = max(abs(kernels.slope(self.code, z, self.label)) for z in (low, high))
        return steepest * float(np.linalg.norm(self.features))

    def value_bound(self, domain: Domain) -> float:
        """At least f(x) for every x of the domain; infinite if no finite bound holds. Attained on a ball."""
        low, high = self._range(domain)
        return max(float(kernels.value(self.code, z, self.label)) for z in (low, high))

    def _check(self) -> None:
        """Whatever a loss asks of its arguments besides being finite numbers."""
        if self.features.ndim == 0 or self.features.size == 0:
            raise InputError(
                f"The features of {type(self).__name__} must be a non-empty array, one number per entry of a decision. "
                f"Got shape {self.features.shape}."
            )

    def _predict(self, x: ArrayLike) -> float:
        """z = <a, x>."""
        x = np.asarray(x, dtype=np.float64)
        if x.shape != self.features.shape:
            raise InputError(
                f"{type(self).__name__} has features of shape {self.features.shape}, so a decision must have that "
                f"shape. Got shape {x.shape}."
            )
        return float(np.vdot(self.features, x))

    def _range(self, domain: Domain) -> tuple[float, float]:
        """The smallest and largest <a, x> over the enclosing ball of the domain."""
        middle = self._predict(domain.center)
        norm = float(np.linalg.norm(self.features))
        spread = domain.radius * norm if norm > 0 else 0.0  # not inf * 0 for an unbounded domain
        return middle - spread, middle + spread

    def __repr__(self) -> str:
        features = self.features.tolist() if self.features.size <= 6 else f"<array {self.shape}>"
        return f"{type(self).__name__}({features}, {self.label:g})"


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

    code = kernels.SQUARED
    curvature = 1.0


class Logistic(PredictionLoss):
    r"""The logistic loss of a score: :math:`f(x) = \log(1 + \exp(-b \langle a, x \rangle))`.

    Parameters
    ----------
    features : array
        a, of the shape of a decision.
    label : float
        b, -1 or +1.

    Examples
    --------
    >>> from thalweg.losses import Logistic
    >>> f = Logistic([1.0, 2.0], -1)
    >>> f.gradient([0.0, 0.0]), f.smoothness
    (array([0.5, 1. ]), 1.25)
    """

    code = kernels.LOGISTIC
    curvature = 0.25

    def _check(self) -> None:
        super()._check()
        check_signs("Logistic", self.label)


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

    code = kernels.ABSOLUTE
    curvature = None


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

    code = kernels.LINEAR
    curvature = 0.0
    nonnegative = False

    def __init__(self, cost: ArrayLike, offset: float = 0.0) -> None:
        self.features = check_array("Linear", "cost", cost)
        self.label = check_number("Linear", "offset", offset)
        self._check()

    @property
    def cost(self) -> Array:
        """The gradient a."""
        return self.features

    @property
    def offset(self) -> float:
        """The value b at x = 0."""
        return self.label


def check_signs(owner: str, labels: Any) -> None:
    """Labels of a logistic loss are -1 or +1."""
    odd = np.asarray(labels)[np.abs(labels) != 1.0]
    if odd.size:
        raise InputError(
            f"The labels of {owner} must be -1 or +1. Got {odd.flat[0]:g}. Convert labels that are 0 or 1 by 2 * y - 1."
        )
