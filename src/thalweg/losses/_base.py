r"""The base of the built-in losses: they depend on the decision through one number, the prediction z = <a, x>.

.. math:: f(x) = \phi(\langle a, x \rangle, b), \qquad \nabla f(x) = \phi'(\langle a, x \rangle, b) \, a .

For a matrix decision <a, x> is the Frobenius inner product. Any object with `value` and `gradient` is a loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_number, real_array, short_repr
from thalweg.errors import InputError
from thalweg.losses._phi import Phi, slope_at, value_at

if TYPE_CHECKING:
    from thalweg.domains._base import Domain

__all__ = ["KINDS", "Loss", "PredictionLoss", "predictions"]

FLOAT64 = np.dtype(np.float64)
PLAIN_ROW = 0x101  # bits of `flags.num`: contiguous and aligned

KINDS: dict[str, type[PredictionLoss]] = {}  # by name


@runtime_checkable
class Loss(Protocol):
    """A convex function of the decision. An object with these two methods is a loss, no base class needed."""

    def value(self, x: Floats, /) -> float:
        """f(x)."""
        ...

    def gradient(self, x: Floats, /) -> ArrayLike:
        """A gradient (or subgradient) of f at x, of the shape of x."""
        ...


class PredictionLoss:
    """A loss of one prediction: f(x) = phi(<a, x>, b).

    A loss is a file: phi in four kernels (`value`, `slope`, `prox_slope`, `tangent`, explained in
    `thalweg.losses._phi`) and a class that states the facts below. It is known by its name from then on, wherever it
    was written.

    Attributes
    ----------
    features, label : array, float
        a and b.
    parameter : float
        The one number that phi may have besides; 0 where it has none.
    shape : tuple of int
        Shape of a decision.
    name, phi : str, Phi
        The loss by name, and in compiled loops (`thalweg.losses._phi`).
    nonnegative : bool
        Whether f >= 0 everywhere, as small-loss bounds ask for.
    """

    name: ClassVar[str]
    phi: ClassVar[Phi]
    curvature: ClassVar[float | None]  # the largest second derivative of phi in z; None where there is none
    kinked: ClassVar[bool] = False  # slopes that jump, and stay finite
    nonnegative: ClassVar[bool] = True
    barrier: ClassVar[bool] = False  # infinite from some z downwards
    parameter_name: ClassVar[str | None] = None
    default: ClassVar[float] = 0.0  # of the parameter
    signed: ClassVar[bool] = False  # labels are classes, -1 and +1
    _arguments: ClassVar[tuple[str, str]] = ("features", "label")

    features: Floats
    label: float
    parameter: float = 0.0

    def __init_subclass__(cls) -> None:
        for fact in ("name", "phi", "curvature"):
            if not hasattr(cls, fact):
                raise TypeError(f"{cls.__name__} must state its {fact} (see thalweg.losses.PredictionLoss).")
        other = KINDS.get(cls.name)
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{cls.__name__} needs a name of its own: {cls.name!r} is the loss {other.__name__}.")
        KINDS[cls.name] = cls

    def __init__(self, features: ArrayLike, label: float, **parameter: float) -> None:
        owner, names = type(self).__name__, self._arguments
        self.features = check_array(owner, names[0], features)
        self.label = check_number(owner, names[1], label)
        if self.features.ndim == 0 or self.features.size == 0:
            raise InputError(
                f"The features of {owner} must be a non-empty array, one number per entry of a decision. "
                f"Got shape {self.features.shape}."
            )
        self.parameter = self.read_parameter(owner, parameter)
        self.check_data(owner, self.features.reshape(1, -1), np.array([self.label]))

    @classmethod
    def trusted(cls, features: Floats, label: float, parameter: float = 0.0) -> Self:
        """The loss on arguments that are already checked: a float64 array, kept and not copied, and two floats."""
        loss = cls.__new__(cls)
        loss.features = features
        loss.label = label
        loss.parameter = parameter
        return loss

    @classmethod
    def read_parameter(cls, owner: str, given: Mapping[str, object]) -> float:
        """The parameter out of keyword arguments, checked; its default where there is none."""
        strangers = [name for name in given if name != cls.parameter_name]
        if strangers:
            known = f"one parameter, '{cls.parameter_name}'" if cls.parameter_name else "no parameter"
            raise InputError(f"{owner}: the {cls.name} loss has {known}. Got '{strangers[0]}'.")
        if cls.parameter_name is None:
            return 0.0
        return cls.check_parameter(owner, given.get(cls.parameter_name, cls.default))

    @classmethod
    def check_parameter(cls, owner: str, value: object) -> float:
        """The parameter, if it may have that value."""
        return check_number(owner, str(cls.parameter_name), value)

    @classmethod
    def check_data(cls, owner: str, features: Floats, labels: Floats) -> None:
        """Whatever a loss asks of its data besides being finite numbers: one row and one label a round."""
        odd = labels[np.abs(labels) != 1.0]
        if cls.signed and odd.size:
            raise InputError(
                f"The labels of {owner} must be -1 or +1. Got {odd[0]:g}. Convert labels that are 0 or 1 by 2 * y - 1."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a decision."""
        return self.features.shape

    def value(self, x: ArrayLike) -> float:
        """f(x)."""
        point, a = self._point(x), self.features
        found = value_at(self.phi, self.label, self.parameter, a, point)
        if found != found:
            self.gradient(x)  # raises where <a, x> is not finite
        return found

    def gradient(self, x: ArrayLike) -> Floats:
        """The gradient of f at x (a subgradient at a kink), as a new array of the shape of x."""
        point, a = self._point(x), self.features
        gradient = np.empty(a.shape)
        if not math.isfinite(slope_at(self.phi, self.label, self.parameter, a, point, gradient)):
            raise InputError(
                f"{type(self).__name__}: a decision must be finite, and so must <a, x>. Got {short_repr(x)}."
            )
        return gradient

    @property
    def smoothness(self) -> float | None:
        """L with ||grad f(x) - grad f(u)|| <= L ||x - u||: the curvature of phi times ||a||^2. None if not smooth."""
        return None if self.curvature is None else self.curvature * float(np.vdot(self.features, self.features))

    def gradient_bound(self, domain: Domain) -> float:
        """At least ||grad f(x)|| for every x of the domain; infinite if no finite bound holds.

        The domain lies in its enclosing ball, so <a, x> lies in <a, c> -+ R ||a||. The slope of a convex phi grows
        with z, so its largest size is at one of the two ends. On a ball the bound is attained. On a domain without
        inner points only the part of a and of the gradient in `domain.directions` counts.
        """
        ends = self._range(domain)
        steepest = max(abs(self.phi.slope(z, self.label, self.parameter)) for z in ends)
        norm = self._norm(domain)
        return steepest * norm if norm > 0 else 0.0

    def smoothness_on(self, domain: Domain) -> float | None:
        """As `smoothness`, on the domain alone: of the gradients in `domain.directions`. None if not smooth there."""
        low, _ = self._range(domain)
        curvature = self.curvature_from(np.array([low]), np.array([self.label]))
        return None if curvature is None else float(curvature.max()) * self._norm(domain) ** 2

    @classmethod
    def curvature_from(cls, low: Floats, labels: Floats) -> Floats | None:
        """The largest second derivative of phi for z >= low, one for each label; None if one of them is infinite."""
        return None if cls.curvature is None else np.full(labels.shape, cls.curvature)

    def loss_bound(self, domain: Domain) -> float:
        """At least f(x) for every x of the domain; infinite if no finite bound holds. Attained on a ball."""
        return max(float(self.phi.value(z, self.label, self.parameter)) for z in self._range(domain))

    def _point(self, x: ArrayLike) -> Floats:
        """A decision for compiled code, which only reads it: contiguous, of the shape of the features."""
        a = self.features
        if (
            type(x) is np.ndarray
            and x.dtype is FLOAT64
            and x.shape == a.shape
            and x.flags.num & a.flags.num & PLAIN_ROW == PLAIN_ROW
        ):
            return x
        given = real_array(x)
        if given is None:
            raise InputError(
                f"{type(self).__name__}: a decision must be an array of real numbers. Got {short_repr(x)}."
            )
        if given.shape != a.shape:
            raise InputError(
                f"{type(self).__name__} has features of shape {a.shape}, so a decision must have that shape. "
                f"Got shape {given.shape}."
            )
        self.features = np.require(a, FLOAT64, ["C", "A"])
        return np.require(given, FLOAT64, ["C", "A"])

    def _norm(self, domain: Domain) -> float:
        """The length of a in the directions of the domain."""
        return float(np.linalg.norm(domain._directions(self.features.reshape(1, -1))))

    def _range(self, domain: Domain) -> tuple[float, float]:
        """The smallest and largest <a, x> over the domain, or over a larger set."""
        from thalweg.domains._base import read_domain  # all else of a loss needs no set

        self.value(read_domain(type(self).__name__, domain).center)  # the shape
        low, high = predictions(self.features.reshape(1, -1), domain, self.barrier)
        return float(low[0]), float(high[0])

    def __repr__(self) -> str:
        features = self.features.tolist() if self.features.size <= 6 else f"<array {self.shape}>"
        parameter = f", {self.parameter_name}={self.parameter:g}" if self.parameter_name else ""
        return f"{type(self).__name__}({features}, {self.label:g}{parameter})"


def predictions(features: Floats, domain: Domain, exact: bool) -> tuple[Floats, Floats]:
    """The smallest and largest <a_t, x> of every row a_t: over the domain if `exact`, else over its enclosing ball.

    Only a barrier needs the exact range. The other losses keep to the ball: the constants of runs and theorems were
    computed with it, and on a ball it is exact.
    """
    if exact:
        return -domain._support(-features), domain._support(features)
    middle, norms = features @ domain.center.ravel(), np.linalg.norm(domain._directions(features), axis=1)
    spread = np.multiply(norms, domain.radius, where=norms > 0, out=np.zeros_like(norms))  # never 0 * inf
    return middle - spread, middle + spread
