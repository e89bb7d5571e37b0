"""A check for losses of your own."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._types import Array
from thalweg._validate import check_array, check_rng, wrong
from thalweg.losses import Loss

__all__ = ["check_loss"]


def check_loss(loss: Loss, x: ArrayLike, rng: np.random.Generator | int | None = None) -> None:
    r"""Check a loss around a point: its gradient against central differences, and that it is convex.

    Parameters
    ----------
    loss : Loss
        Anything with `value(x)` and `gradient(x)`.
    x : array
        A point, with room around it, where the loss is differentiable.
    rng : Generator or int, optional
        Source of the random points at which convexity is tested.

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
    """
    generator = check_rng("check_loss", rng)
    if not isinstance(loss, Loss):
        raise wrong("check_loss", "loss", "an object with the methods value(x) and gradient(x)", loss)
    name = type(loss).__name__
    x = check_array("check_loss", "x", x)
    value, gradient = _ask(loss, name, x)

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

    scale = max(1.0, float(np.linalg.norm(x)))
    for _ in range(20):
        u, v = (x + scale * generator.uniform(0.0, 1.0) * generator.standard_normal(x.shape) for _ in range(2))
        (fu, _), (fv, gv) = _ask(loss, name, u), _ask(loss, name, v)
        line = fv + float(np.vdot(gv, u - v))
        if fu < line - 1e-9 * max(1.0, abs(fu), abs(fv), abs(line)):
            raise AssertionError(
                f"{name} is not convex, or its gradient is wrong: its value at {u.tolist()} is {fu:g}, below its "
                f"tangent at {v.tolist()}, which is {line:g} there."
            )


def _ask(loss: Loss, name: str, x: Array) -> tuple[float, Array]:
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
