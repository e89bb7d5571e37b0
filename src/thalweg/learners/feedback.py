"""Gradients and losses as learners receive them: read and checked before anything changes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_FLOAT, check_choice, check_positive, real_array, real_number, short_repr
from thalweg._kernels.hulls import FULL, flatten
from thalweg._kernels.vectors import square_norm
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.learners.limits import Limits

FLOAT64 = np.dtype(np.float64)
BOUND_SLACK = 1e-9  # a gradient may exceed its bound by this much, relatively: bounds are computed in floats, too


class Feedback:
    """Reads gradients into its buffer `g`, and losses.

    Parameters
    ----------
    name : str
        The learner's name in messages.
    who : callable
        Returns the beginning of a message: learner and round.
    domain : Domain
        Gradients have its shape.
    hull : (int, array)
        The affine hull that gradients are projected onto.
    limits : Limits
        Those of the machine.
    bound, on_violation, nonnegative
        As for every `Learner`.
    """

    def __init__(
        self,
        name: str,
        who: Callable[[], str],
        domain: Domain,
        hull: tuple[int, Floats],
        limits: Limits,
        *,
        bound: float | None = None,
        on_violation: str = "raise",
        nonnegative: bool = False,
    ) -> None:
        self.name, self.who, self.shape, self.hull = name, who, domain.shape, hull
        self.bound = None if bound is None else check_positive(name, "gradient_bound", bound)
        self.on_violation = check_choice(name, "on_violation", on_violation, ("raise", "clip"))
        self.square = min(LARGEST_FLOAT, limits.square) if self.bound is None else (self.bound * (1 + BOUND_SLACK)) ** 2
        self.limits, self.guarantee = limits, name  # whose guarantee needs losses >= 0
        self.floor = max(limits.floor, 0.0 if nonnegative else -math.inf)
        self.g = np.empty(domain.dim)

    def follow(self, other: Feedback) -> None:
        """Take over the limits of another one, and keep the name in messages."""
        self.bound, self.on_violation, self.square = other.bound, other.on_violation, other.square
        self.hull, self.limits, self.floor, self.guarantee = other.hull, other.limits, other.floor, other.guarantee

    # ------------------------------------------------------------------ gradients

    def read_gradient(self, gradient: ArrayLike) -> None:
        """g <- a gradient of the domain's shape."""
        array = self.shaped("gradient", gradient)
        self.g[:] = array if array.ndim == 1 else array.ravel()

    def shaped(self, what: str, given: ArrayLike) -> Floats:
        """Return numbers in the shape of the domain, possibly the array itself."""
        array = given if type(given) is np.ndarray and given.dtype is FLOAT64 else real_array(given)
        if array is None:
            raise InputError(f"{self.who()}: {what} must be an array of real numbers. Got {short_repr(given)}.")
        if array.shape != self.shape:
            raise InputError(
                f"{self.who()}: {what} has shape {array.shape}, the domain has shape {self.shape}. "
                f"Pass a {what} in the shape of `decision`."
            )
        return array

    def shorten(self, g: Floats) -> bool:
        """Project a gradient onto the hull; returns whether it had to be clipped."""
        if self.hull[0] != FULL:
            flatten(*self.hull, g)
        if square_norm(g) <= self.square:  # False for nan
            return False
        self.clip(g)
        return True

    def clip(self, g: Floats) -> None:
        """Refuse a gradient that is not finite or above the bound, or scale it down to the bound."""
        if not np.isfinite(g).all():
            raise InputError(
                f"{self.who()}: gradient has entries that are nan or infinite. Check the loss where it was asked."
            )
        largest = float(np.abs(g).max())
        norm = largest * float(np.linalg.norm(g / largest))  # where the squares would overflow, too
        if self.bound is None:
            raise InputError(f"{self.who()}: gradient of norm {norm:g} is too large for floating point.")
        if self.on_violation == "raise":
            raise InputError(
                f"{self.who()}: gradient has norm {norm:g}, above gradient_bound = {self.bound:g}. "
                "Give a larger gradient_bound, or on_violation='clip' to scale such gradients down."
            )
        g *= self.bound / norm

    # ------------------------------------------------------------------ losses

    def read_loss(self, loss: object) -> float | None:
        """Return the loss that `update` was given, checked."""
        if loss is None:
            if self.limits.needs_loss:
                raise InputError(f"{self.who()}: {self.name} needs the loss too. Call update(gradient, loss).")
            return None
        return self.read_paid(loss)

    def read_paid(self, loss: object) -> float:
        """Return a loss that was paid, checked."""
        value = real_number(loss)
        if not math.isfinite(value):
            what = "finite" if isinstance(loss, float) else "a number"
            raise InputError(f"{self.who()}: loss must be {what}. Got {short_repr(loss)}.")
        if value < self.floor:
            why = self.limits.why_floor or (
                f"the guarantee of {self.guarantee} needs losses >= 0. "
                "Add a constant to the loss, or use a learner without small-loss theory."
            )
            raise InputError(f"{self.who()}: loss is {value:g}, but {why}")
        if value - self.floor > self.limits.largest_loss:
            raise InputError(f"{self.who()}: {self.limits.too_large}")
        return value

    def check_loss_object(self, f: object) -> None:
        """Refuse an object without `value` and `gradient`."""
        if not (hasattr(f, "value") and hasattr(f, "gradient")):
            raise InputError(f"{self.who()}: step needs a loss with f.value(x) and f.gradient(x). Got {short_repr(f)}.")
