"""Every check of an argument, and the only place that words a parameter error."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from thalweg.errors import InputError

__all__ = [
    "check_array",
    "check_callable",
    "check_choice",
    "check_count",
    "check_nonnegative",
    "check_number",
    "check_positive",
    "check_positives",
    "check_rng",
    "check_shape",
    "wrong",
]


Choice = TypeVar("Choice", bound=str | bool)


def wrong(owner: str, name: str, expected: str, got: object) -> InputError:
    """What to raise for an argument that must be something else."""
    return InputError(f"The '{name}' parameter of {owner} must be {expected}. Got {got!r}.")


def _number(value: Any) -> float:
    """A real number, or nan."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def check_number(owner: str, name: str, value: Any) -> float:
    """A finite real number."""
    number = _number(value)
    if not np.isfinite(number):
        raise wrong(owner, name, "a finite number", value)
    return number


def check_positive(owner: str, name: str, value: Any) -> float:
    """A finite number above zero."""
    number = _number(value)
    if not 0 < number < np.inf:
        raise wrong(owner, name, "a finite number > 0", value)
    return number


def check_nonnegative(owner: str, name: str, value: Any) -> float:
    """A finite number of at least zero."""
    number = _number(value)
    if not 0 <= number < np.inf:
        raise wrong(owner, name, "a finite number >= 0", value)
    return number


def check_count(owner: str, name: str, value: Any) -> int:
    """A whole number of at least 1."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise wrong(owner, name, "a whole number >= 1", value)
    if not np.isfinite(value) or value != int(value) or value < 1:
        raise wrong(owner, name, "a whole number >= 1", value)
    return int(value)


def check_choice(owner: str, name: str, value: Any, choices: tuple[Choice, ...]) -> Choice:
    """One of a few words or truth values."""
    if not isinstance(value, str | bool) or value not in choices:
        raise wrong(owner, name, "one of " + ", ".join(map(repr, choices)), value)
    return choices[choices.index(value)]


def check_shape(owner: str, name: str, value: Any) -> tuple[int, ...]:
    """A dimension (whole number) or a tuple of them."""
    entries = value if isinstance(value, tuple | list) else (value,)
    if not entries:
        raise wrong(owner, name, "a whole number >= 1 or a non-empty tuple of them", value)
    return tuple(check_count(owner, name, entry) for entry in entries)


def check_array(
    owner: str,
    name: str,
    value: Any,
    shape: tuple[int, ...] | None = None,
    ndim: int | None = None,
    finite: bool = True,
) -> NDArray[np.float64]:
    """A real array of the given shape (or number of axes), as a new C-contiguous float64 array. Never nan."""
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "fiub":
            raise TypeError
        array = np.array(raw, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise wrong(owner, name, "an array of real numbers", value) from None
    if shape is not None and array.shape != shape:
        raise InputError(f"The '{name}' parameter of {owner} must have shape {shape}. Got shape {array.shape}.")
    if ndim is not None and array.ndim != ndim:
        raise InputError(f"The '{name}' parameter of {owner} must have {ndim} axes. Got shape {array.shape}.")
    if not finite and np.isnan(array).any():
        raise InputError(
            f"The '{name}' parameter of {owner} must not hold nan. Got {np.isnan(array).sum()} such entries."
        )
    if finite and not np.isfinite(array).all():
        raise InputError(
            f"The '{name}' parameter of {owner} must be finite. Got {np.count_nonzero(~np.isfinite(array))} "
            "entries that are nan or infinite."
        )
    return array


def check_positives(owner: str, name: str, value: Any, count: int) -> NDArray[np.float64]:
    """`count` finite numbers above zero, or one number that stands for all of them."""
    array = check_array(owner, name, value)
    array = check_array(owner, name, np.full(count, array) if array.ndim == 0 else array, shape=(count,))
    if not (array > 0).all():
        raise wrong(owner, name, "a number > 0 or an array of such", value)
    return array


def check_callable(owner: str, name: str, value: Any) -> Callable[..., Any]:
    """A function, or any object that can be called."""
    if not callable(value):
        raise wrong(owner, name, "callable", value)
    return value  # type: ignore[no-any-return]


def check_rng(owner: str, rng: Any) -> np.random.Generator:
    """A source of randomness, or a seed for one."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise wrong(owner, "rng", "a numpy Generator, a whole number >= 0 or None", rng) from None
