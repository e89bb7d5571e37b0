"""A check for losses of your own."""

import contextlib
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_rng, wrong
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.learners.base import bounded, read_start
from thalweg.losses._base import Loss, PredictionLoss

__all__ = ["check_loss"]

ALMOST = 1e-7  # relative accuracy of a proximal point
WIDTHS = (1e-3, 1.0, 1e3)  # at which `prox_slope` is tried


def check_loss(
    loss: Loss,
    x: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    *,
    domain: Domain | None = None,
) -> None:
    r"""Check a loss around a point, or on a set: its gradient against differences, and that it is convex.

    For a `PredictionLoss` the kernels `value`, `slope`, `prox_slope` and `tangent` and the facts `curvature`,
    `nonnegative` and `barrier` are checked as well, at predictions of these points and near 0 and the label.

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
        from the slope of the values; if :math:`f(u) \ge f(v) + \langle \nabla f(v), u - v \rangle` fails for random
        u, v around x; or if a kernel or fact of a `PredictionLoss` is wrong.

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
    if isinstance(loss, PredictionLoss):
        _check_parameter(loss, name)
        _check_kernels(loss, name, drawn[:20])


def _check_entries(loss: Loss, name: str, x: Floats) -> None:
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


def _check_towards(loss: Loss, name: str, x: Floats, points: Floats) -> None:
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


def _check_tangents(loss: Loss, name: str, points: Floats) -> None:
    for u, v in zip(points[::2], points[1::2], strict=True):
        (fu, _), (fv, gv) = _value_and_gradient(loss, name, u), _value_and_gradient(loss, name, v)
        line = fv + float(np.vdot(gv, u - v))
        if fu < line - 1e-9 * max(1.0, abs(fu), abs(fv), abs(line)):
            raise AssertionError(
                f"{name} is not convex, or its gradient is wrong: its value at {u.tolist()} is {fu:g}, below its "
                f"tangent at {v.tolist()}, which is {line:g} there."
            )


def _check_parameter(loss: PredictionLoss, name: str) -> None:
    """The constructor keeps another value of the parameter than the default."""
    kind, named = type(loss), loss.parameter_name
    if named is None:
        return
    for value in (0.5 * loss.default, 0.5 + 0.5 * loss.default, loss.default + 1.0):
        with contextlib.suppress(InputError):  # of a value that the parameter may not have
            if kind.check_parameter(name, value) == loss.default:
                continue
            kept = kind(loss.features, loss.label, **{named: value}).parameter
            if kept != value:
                raise AssertionError(
                    f"{name}(..., {named}={value:g}) has `parameter` {kept:g}. Its constructor must call "
                    f"super().__init__(features, label, {named}={named})."
                )
            return


def _check_kernels(loss: PredictionLoss, name: str, points: Floats) -> None:
    """The kernels of phi(., b) and the facts that the class states, near 0, the label and the predictions."""
    b, par = loss.label, loss.parameter
    sizes = np.array([1e-9, 1e-8, 1e-7, 1e-5, 0.3, 1.0, 3.0, 30.0])
    near = [*(-sizes).tolist(), 0.0, *sizes.tolist()]
    found = [float(np.vdot(loss.features, point)) for point in points]
    tries = sorted({*near, *(b + off for off in near), *found})
    values = {z: float(loss.phi.value(z, b, par)) for z in tries}
    inside = [z for z in tries if values[z] < np.inf or not loss.barrier]
    for z in inside:
        slope = float(loss.phi.slope(z, b, par))
        if not (np.isfinite(values[z]) and np.isfinite(slope)):
            raise AssertionError(
                f"{name}: at z = {z:g}, b = {b:g} the kernels `value` and `slope` return {values[z]:g} and {slope:g}. "
                "Only a loss with barrier = True may be infinite."
            )
        if loss.nonnegative and values[z] < 0.0:  # learners refuse even those of the size of rounding
            raise AssertionError(
                f"{name}: its value at z = {z:g}, b = {b:g} is {values[z]:g}. Set nonnegative = False in the class, "
                "or cut the value at 0 if this is rounding."
            )
    for z in tries:
        _check_prox_slope(loss, name, z)
    for z in inside:
        _check_tangent(loss, name, z, {u: values[u] for u in (*inside[::4], inside[-1])}, values[z])
    steps = [(z, z + 1e-3 * max(1.0, abs(z))) for z in inside]
    for low, high in (*steps, *pairwise(inside)):
        _check_curvature(loss, name, low, high)


def _check_prox_slope(loss: PredictionLoss, name: str, z: float) -> None:
    """m = prox_slope(z) lies between the slopes on the two sides of p = z - step m."""
    b, par = loss.label, loss.parameter
    for step in WIDTHS:
        m = float(loss.phi.prox_slope(z, b, par, step))
        p = z - step * m
        off = ALMOST * (1.0 + abs(z) + abs(b) + step * abs(m))
        low, high = float(loss.phi.slope(p - off, b, par)), float(loss.phi.slope(p + off, b, par))
        slack = ALMOST * max(1.0, abs(m))
        if not low - slack <= m <= high + slack:
            raise AssertionError(
                f"{name}: `prox_slope` at z = {z:g}, b = {b:g}, step = {step:g} is m = {m:g}, but the slope at "
                f"p = z - step m = {p:g} is {float(loss.phi.slope(p, b, par)):g}. It must be the slope at "
                "p = argmin phi(p) + (p - z)^2 / (2 step)."
            )


def _check_tangent(loss: PredictionLoss, name: str, z: float, others: dict[float, float], value: float) -> None:
    """The line with the slope at z touches phi at z, and is above it nowhere."""
    b, par = loss.label, loss.parameter
    m = float(loss.phi.slope(z, b, par))
    height = float(loss.phi.tangent(z, b, par, m))
    if not abs(height - value) <= 1e-8 * max(1.0, abs(value), abs(m * z), abs(m * b)):
        raise AssertionError(
            f"{name}: `tangent` at z = {z:g}, b = {b:g} with m = {m:g}, the slope there, is {height:g}. It must be the "
            f"value there, {value:g}."
        )
    for u, most in others.items():
        line = float(loss.phi.tangent(u, b, par, m))
        slack = 1e-8 * max(1.0, abs(most), abs(line), abs(m * z), abs(m * u), abs(m * b))
        if not line <= most + slack:
            raise AssertionError(
                f"{name}: `tangent` at z = {u:g}, b = {b:g} with m = {m:g} is {line:g}, above the value {most:g}."
            )
        if not abs(line - (height + m * (u - z))) <= slack:
            raise AssertionError(
                f"{name}: `tangent` with m = {m:g}, b = {b:g} is {height:g} at z = {z:g} and {line:g} at z = {u:g}. "
                "These are not on a line of slope m."
            )


def _check_curvature(loss: PredictionLoss, name: str, low: float, high: float) -> None:
    """The slope grows from low to high no faster than the class states."""
    b, par = loss.label, loss.parameter
    stated = loss.curvature_from(np.array([low]), np.array([b]))
    if stated is None:
        return
    first, last = float(loss.phi.slope(low, b, par)), float(loss.phi.slope(high, b, par))
    most, growth = float(stated[0]), (last - first) / (high - low)
    if not growth <= most * (1.0 + 1e-6) + 1e-14 * (1.0 + abs(first) + abs(last) + abs(b)) / (high - low):
        raise AssertionError(
            f"{name}: between z = {low:g} and {high:g} with b = {b:g} the slope grows by {growth:g} per unit, but the "
            f"class states a curvature of {most:g}. It must be the largest second derivative, or None."
        )


def _value_and_gradient(loss: Loss, name: str, x: Floats) -> tuple[float, Floats]:
    """Value and gradient at x, and whether they are of the right kind."""
    before = x.copy()
    value, gradient = loss.value(x), loss.gradient(x)
    if not np.array_equal(x, before):
        raise AssertionError(f"{name} changes the point it is given. It must leave its argument alone.")
    if np.ndim(value) != 0 or not np.isfinite(value):
        raise AssertionError(f"{name}.value must return a finite number. Got {value!r}.")
    if np.shape(gradient) != x.shape or not np.isfinite(gradient).all():
        raise AssertionError(f"{name}.gradient must return a finite array of shape {x.shape}. Got {gradient!r}.")
    return float(value), np.asarray(gradient, dtype=np.float64)
