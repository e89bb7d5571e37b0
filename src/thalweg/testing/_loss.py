"""A check for losses of your own."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._types import Array
from thalweg._validate import check_array, check_rng, wrong
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.learners.base import bounded, read_start
from thalweg.losses._base import Loss

__all__ = ["check_loss"]


def check_loss(
    loss: Loss,
    x: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    *,
    domain: Domain | None = None,
) -> None:
    r"""Check a loss around a point, or on a set: its gradient against differences, and that it is convex.

    Parameters
    ----------
    loss : Loss
        Anything with `value(x)` and `gradient(x)`.
    x : array, optional
        A point where the loss is differentiable, with room around it unless there is a `domain`; the point of the
        domain nearest to its centre when left out.
    rng : Generator or int, optional
        Source of the random points at which convexity is tested.
    domain : Domain, optional
        The set on which the loss is defined, bounded: it is asked there and nowhere else. Slopes are then those along
        the set, from x towards random points of it.

    Raises
    ------
    AssertionError
        If a method changes its argument or returns something of the wrong kind; if an entry of the gradient differs
        from the slope of the values; or if :math:`f(u) \ge f(v) + \langle \nabla f(v), u - v \rangle` fails for random
        u, v around x.

    Examples
    --------
    >>> from thalweg.losses import Squared
    >>> from thalweg.testing import check_loss
    >>> check_loss(Squared([1.0, 2.0], 3.0), [0.5, -0.5], rng=0)

    A loss that is infinite outside the simplex:

    >>> import numpy as np
    >>> from thalweg.domains import Simplex
    >>> class Wealth:
    ...     returns = np.array([1.1, 0.9])
    ...     def value(self, x):
    ...         return -np.log(self.returns @ x)
    ...     def gradient(self, x):
    ...         return -self.returns / (self.returns @ x)
    >>> check_loss(Wealth(), rng=0, domain=Simplex(2))
    """
    generator = check_rng("check_loss", rng)
    if not isinstance(loss, Loss):
        raise wrong("check_loss", "loss", "an object with the methods value(x) and gradient(x)", loss)
    name = type(loss).__name__
    if domain is None:
        if x is None:
            raise InputError("check_loss needs a point x to look around, or a domain.")
        x = check_array("check_loss", "x", x)
        _check_entries(loss, name, x)
        scale = max(1.0, float(np.linalg.norm(x)))
        drawn = x + scale * generator.uniform(size=(40, *[1] * x.ndim)) * generator.standard_normal((40, *x.shape))
    else:
        bounded("check_loss", domain)
        x = domain.project(domain.center) if x is None else read_start("check_loss", domain, x)
        around = domain.center + domain.radius * generator.uniform(-1.0, 1.0, size=(40, *domain.shape))
        drawn = np.array([domain.project(point) for point in around])
        _check_towards(loss, name, x, drawn)
    _check_tangents(loss, name, drawn)


def _check_entries(loss: Loss, name: str, x: Array) -> None:
    """The gradient at x against central differences."""
    value, gradient = _value_and_gradient(loss, name, x)
    step = 1e-5 * max(1.0, float(np.abs(x).max()))
    slopes = np.empty(x.size)
    for j in range(x.size):
        ahead, behind = x.copy(), x.copy()
        ahead.flat[j] += step
        behind.flat[j] -= step
        slopes[j] = (loss.value(ahead) - loss.value(behind)) / (ahead.flat[j] - behind.flat[j])
    rounding = 8 * np.finfo(float).eps * abs(value) / step
    gaps = np.abs(gradient.ravel() - slopes)
    worst = int(np.argmax(gaps))
    if gaps[worst] > 1e-5 * max(1.0, float(np.linalg.norm(gradient))) + rounding:
        raise AssertionError(
            f"{name}: entry {worst} of the gradient at {x.tolist()} is {gradient.flat[worst]:g}, but the values there "
            f"have slope {slopes[worst]:g}. Check the gradient."
        )


def _check_towards(loss: Loss, name: str, x: Array, points: Array) -> None:
    """The gradient at x against differences towards other points of the set, of second order."""
    value, gradient = _value_and_gradient(loss, name, x)
    for point in points[:20]:
        way = point - x
        length = float(np.linalg.norm(way))
        if length == 0.0:
            continue
        step = min(1.0, 1e-5 * max(1.0, float(np.abs(x).max())) / length)
        near, far = loss.value(x + step / 2 * way), loss.value(x + step * way)
        slope, expected = (4 * near - far - 3 * value) / step, float(np.vdot(gradient, way))
        rounding = 32 * np.finfo(float).eps * max(abs(value), abs(far)) / step
        if abs(slope - expected) > 1e-4 * length * max(1.0, float(np.linalg.norm(gradient))) + rounding:
            raise AssertionError(
                f"{name}: by the gradient at {x.tolist()} the slope towards {point.tolist()} is {expected:g}, but the "
                f"values there have slope {slope:g}. Check the gradient."
            )


def _check_tangents(loss: Loss, name: str, points: Array) -> None:
    for u, v in zip(points[::2], points[1::2], strict=True):
        (fu, _), (fv, gv) = _value_and_gradient(loss, name, u), _value_and_gradient(loss, name, v)
        line = fv + float(np.vdot(gv, u - v))
        if fu < line - 1e-9 * max(1.0, abs(fu), abs(fv), abs(line)):
            raise AssertionError(
                f"{name} is not convex, or its gradient is wrong: its value at {u.tolist()} is {fu:g}, below its "
                f"tangent at {v.tolist()}, which is {line:g} there."
            )


def _value_and_gradient(loss: Loss, name: str, x: Array) -> tuple[float, Array]:
    """Value and gradient at x, and whether they are of the right kind."""
    before = x.copy()
    value: Any = loss.value(x)
    gradient: Any = loss.gradient(x)
    if not np.array_equal(x, before):
        raise AssertionError(f"{name} changes the point it is given. It must leave its argument alone.")
    if np.ndim(value) != 0 or not np.isfinite(value):
        raise AssertionError(f"{name}.value must return a finite number. Got {value!r}.")
    if np.shape(gradient) != x.shape or not np.isfinite(gradient).all():
        raise AssertionError(f"{name}.gradient must return a finite array of shape {x.shape}. Got {gradient!r}.")
    return float(value), np.asarray(gradient, dtype=np.float64)
