"""Every check of an argument, and the only place that words a parameter error.

A number is an int, a float, a fraction, a decimal, or an array without axes that holds one. Truth values, complex
numbers, text, dates and durations are none, nor is an array in which an entry is masked.
"""

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from thalweg._core.types import Floats
from thalweg.errors import InputError, MissingExtraError, ProjectionError, StateError

LARGEST_ENTRY = 1e100  # of an entry of an array, and of the size of a set: squares can still be computed
LARGEST_SCALE = 1e50  # of a number > 0, and of 1 over it: products of six can still be computed
MOST_COUNTED = 2**62  # of a count: counters have 64 bits
LARGEST_FLOAT = float(np.finfo(np.float64).max)
MOST_ENTRIES = 2**30  # of an array that an argument asks for: 8 GB

PACKAGE = InputError, StateError, ProjectionError, MissingExtraError

Choice = TypeVar("Choice", bound=str | bool)


def short_repr(value: object) -> str:
    """Return a value as text for a message: its `repr`, if it has one, and not too long."""
    try:
        text = repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= 500 else f"{text[:500]}..."


def short_array(values: object) -> str:
    """An array as short text for a `repr`."""
    array = np.asarray(values)
    if array.size == 1:
        return f"{array.item():g}"
    if array.size <= 6:
        return np.array2string(array, separator=", ", formatter={"float_kind": lambda v: f"{v:g}"}).replace("\n", "")
    return f"<array {array.shape}>"


def visible(text: str) -> str:
    r"""Text on one line, with control characters and all else that cannot be seen written out.

    Examples
    --------
    >>> print(visible("load\x1b[2J.csv"))
    load\x1b[2J.csv
    """
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def wrong(owner: str, name: str, expected: str, got: object) -> InputError:
    """Return the error for an argument that must be something else."""
    return InputError(f"The '{name}' parameter of {owner} must be {expected}. Got {short_repr(got)}.")


# ---------------------------------------------------------------------------------------------------------- numbers


def real_array(value: object) -> Floats | None:
    """Return real numbers as a float64 array, `value` itself where it is one; None for anything else."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    try:
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            return None
        raw = np.asarray(value)
        if raw.dtype.kind not in "fiu":
            return None
        with np.errstate(over="ignore"):  # of a longer float: infinite, which callers refuse
            return raw.astype(np.float64, copy=False)
    except Exception:  # whatever an object raises that is asked for its numbers
        return None


def real_number(value: object) -> float:
    """Return a real number; nan for anything else, inf where it is too large for a float."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int | Fraction | Decimal) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
        except ValueError:  # a signalling nan
            return math.nan
    array = real_array(value)
    return math.nan if array is None or array.ndim else float(array)


def check_number(owner: str, name: str, value: object) -> float:
    """A finite number."""
    number = real_number(value)
    if not math.isfinite(number):
        raise wrong(owner, name, "a finite number", value)
    return number


def check_positive(owner: str, name: str, value: object, largest: float = LARGEST_SCALE) -> float:
    """A number above zero, from 1e-50 to 1e50."""
    number = real_number(value)
    if not 0 < number < math.inf:
        raise wrong(owner, name, "a finite number > 0", value)
    if not 1 / largest <= number <= largest:
        raise wrong(owner, name, f"a number from {1 / largest:g} to {largest:g}", value)
    return number


def check_nonnegative(owner: str, name: str, value: object, largest: float = LARGEST_SCALE) -> float:
    """Return a number from 0 to 1e50; tiny numbers are allowed, and may act as 0."""
    number = real_number(value)
    if not 0 <= number < math.inf:
        raise wrong(owner, name, "a finite number >= 0", value)
    return check_positive(owner, name, number, largest) if number > 1 else number


def check_count(owner: str, name: str, value: object, least: int = 1, most: int = MOST_COUNTED) -> int:
    """Return a whole number from `least` to `most`."""
    count = least - 1
    if isinstance(value, int) and not isinstance(value, bool):
        count = value
    elif (number := real_number(value)).is_integer():
        count = int(number)
    if count < least:
        raise wrong(owner, name, f"a whole number >= {least}", value)
    if count > most:
        limit = most if most < 1000 else f"2^{most.bit_length() - 1}"
        raise wrong(owner, name, f"a whole number of at most {limit}", value)
    return count


def check_entries(owner: str, name: str, value: object, entries: int) -> None:
    """Raise if `value` asks for an array of too many entries."""
    if entries > MOST_ENTRIES:
        raise InputError(
            f"The '{name}' parameter of {owner} asks for an array of {entries:.3g} entries, more than 2^30. "
            f"Got {short_repr(value)}."
        )


def check_shape(owner: str, name: str, value: object) -> tuple[int, ...]:
    """A dimension (whole number) or a tuple of them."""
    entries = value if isinstance(value, tuple | list) else (value,)
    if not 0 < len(entries) <= 32:
        raise wrong(owner, name, "a whole number >= 1 or a non-empty tuple of them", value)
    shape = tuple(check_count(owner, name, entry) for entry in entries)
    check_entries(owner, name, value, math.prod(shape))
    return shape


def check_array(
    owner: str,
    name: str,
    value: object,
    shape: tuple[int, ...] | None = None,
    ndim: int | None = None,
    finite: bool = True,
    largest: float = LARGEST_ENTRY,
) -> Floats:
    """A real array of the given shape (or number of axes), as a new C-contiguous float64 array.

    Its entries are at most 1e100 in size, and never nan; infinite ones need `finite=False`.
    """
    numbers = real_array(value)
    if numbers is None:
        raise wrong(owner, name, "an array of real numbers", value)
    if shape is not None and numbers.shape != shape:
        raise InputError(f"The '{name}' parameter of {owner} must have shape {shape}. Got shape {numbers.shape}.")
    if ndim is not None and numbers.ndim != ndim:
        raise InputError(f"The '{name}' parameter of {owner} must have {ndim} axes. Got shape {numbers.shape}.")
    array: Floats = np.array(numbers, order="C")
    if array.size == 0 or np.abs(array).max() <= min(largest, LARGEST_FLOAT):  # False for nan
        return array
    if not finite and np.isnan(array).any():
        raise InputError(
            f"The '{name}' parameter of {owner} must not hold nan. Got {np.isnan(array).sum()} such entries."
        )
    endless = ~np.isfinite(array)
    if finite and endless.any():
        raise InputError(
            f"The '{name}' parameter of {owner} must be finite. Got {np.count_nonzero(endless)} "
            "entries that are nan or infinite."
        )
    found = np.abs(array[~endless]).max(initial=0.0)
    if found > largest:
        raise InputError(
            f"The '{name}' parameter of {owner} must have entries of at most {largest:g} in size. Got {found:g}."
        )
    return array


def check_positives(owner: str, name: str, value: object, count: int) -> Floats:
    """Return `count` numbers above zero, at most 1e100; one number is repeated."""
    array = check_array(owner, name, value)
    array = check_array(owner, name, np.full(count, array) if array.ndim == 0 else array, shape=(count,))
    if not (array > 0).all():
        raise wrong(owner, name, "a number > 0 or an array of such", value)
    return array


# -------------------------------------------------------------------------------------------------------- all else


def check_choice(owner: str, name: str, value: object, choices: tuple[Choice, ...]) -> Choice:
    """One of a few words or truth values."""
    if not isinstance(value, str | bool) or value not in choices:
        raise wrong(owner, name, "one of " + ", ".join(map(repr, choices)), value)
    return choices[choices.index(value)]


def check_text(owner: str, name: str, value: object) -> str:
    """A name, or another text."""
    if not isinstance(value, str):
        raise wrong(owner, name, "text", value)
    return value


def check_flag(owner: str, name: str, value: object) -> bool:
    """A truth value."""
    if not isinstance(value, bool | np.bool_):
        raise wrong(owner, name, "True or False", value)
    return bool(value)


def check_items(owner: str, name: str, value: object, what: str) -> list[Any]:
    """Return the items of an iterable as a list; text is refused."""
    try:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise TypeError
        return list(value)
    except Exception:
        raise wrong(owner, name, what, value) from None


def check_callable(owner: str, name: str, value: Any) -> Callable[..., Any]:
    """A function, or any object that can be called."""
    if not callable(value):
        raise wrong(owner, name, "callable", value)
    return value  # type: ignore[no-any-return]


def ask(owner: str, name: str, function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function that was given as an argument; wrap its own errors in an InputError."""
    try:
        return function(*arguments)
    except PACKAGE:
        raise
    except Exception as error:
        raise InputError(f"The '{name}' function of {owner} failed with {type(error).__name__}: {error}") from error


def check_rng(owner: str, rng: object, name: str = "rng") -> np.random.Generator:
    """A source of randomness, or a seed for one."""
    sources = np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | np.random.RandomState
    try:
        if rng is None or isinstance(rng, sources):
            return np.random.default_rng(rng)
        seed = rng if isinstance(rng, int) and not isinstance(rng, bool) else np.asarray(rng)
        if isinstance(seed, np.ndarray):
            if seed.dtype.kind not in "iu" or np.ma.is_masked(rng):
                raise TypeError
            seed = seed.tolist()
        return np.random.default_rng(seed)
    except Exception:
        raise wrong(owner, name, "a numpy Generator, a whole number >= 0 or None", rng) from None
