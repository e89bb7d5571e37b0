"""Kinds and words: how Python values are described and handed over to compiled code.

A *kind* is a short text for the type of a value as a kernel sees it:

    f8, i8, b1, none        a float, an integer, a truth value, None
    f8[2]                   a C-contiguous array of two dimensions; `A` after it: strided; `r`: read-only
    module:Class(k, k)      a NamedTuple with fields of these kinds; without a name, a plain tuple
    *k                      the address of a tree that was bound (`thalweg._kernels.handle`)
    any                     such an address, of whatever kind
    @r(k, k)                the address of a kernel (`thalweg._kernels.pointers`)

*Words* are the 64-bit numbers that a value becomes: a number is itself, an array its address and shape (and strides
where it is strided), a tuple the words of its items.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

_BYTE = ctypes.c_char
CLASSES: dict[str, type] = {}  # of tuples, by the names that they have in kinds
_NUMBERS: dict[type, str] = {
    float: "f8", int: "i8", bool: "b1", np.float64: "f8", np.int64: "i8", type(None): "none",
}  # fmt: skip

NUMBERS = frozenset(_NUMBERS) - {type(None)}  # classes of numbers that are a word as they are


def address(array: np.ndarray) -> int:
    """Address of the first entry."""
    try:
        return ctypes.addressof(_BYTE.from_buffer(array))  # type: ignore[arg-type]  # three times as fast, but only for writable, non-empty ones
    except (TypeError, ValueError, BufferError):
        return int(array.ctypes.data)


def kind(value: Any) -> str:
    """The kind of a value."""
    cls = type(value)
    found = _NUMBERS.get(cls)
    if found is not None:
        return found
    if cls is np.ndarray:
        flags = value.flags
        if not flags.aligned or not value.dtype.isnative:
            raise TypeError("kernels take aligned arrays of this machine's byte order")
        return _array(value.dtype, value.ndim, flags.c_contiguous, flags.writeable)
    if isinstance(value, tuple):
        return f"{_class_name(cls)}({','.join([kind(item) for item in value])})"  # type: ignore[arg-type]
    own: str | None = getattr(cls, "word_kind", None)
    if own is not None:
        return own if own else str(value.kind)
    for base, text in ((np.ndarray, ""), (np.bool_, "b1"), (float, "f8"), (np.floating, "f8"), (int, "i8")):
        if isinstance(value, base):
            return text or kind(np.asarray(value))
    if isinstance(value, np.integer):
        return "i8"
    raise TypeError(f"kernels take numbers, arrays and tuples of them, not {cls.__name__}")


@cache
def _array(dtype: np.dtype[Any], ndim: int, contiguous: bool, writable: bool) -> str:
    if dtype.kind not in "fiub":
        raise TypeError(f"kernels take arrays of numbers, not of {dtype}")
    return f"{dtype.str[1:]}[{ndim}]{'' if contiguous else 'A'}{'' if writable else 'r'}"


@cache
def _class_name(cls: type) -> str:
    """The name of a class of tuples. Classes of one name, as in a notebook whose cells run twice, get numbers."""
    if cls is tuple:
        return ""
    name, number = f"{cls.__module__}:{cls.__qualname__}", 1
    while CLASSES.setdefault(name if number == 1 else f"{name}#{number}", cls) is not cls:
        number += 1
    return name if number == 1 else f"{name}#{number}"


def words(value: Any, out: list[Any]) -> None:
    """Append the words of a value, whose kind is known to be right."""
    cls = type(value)
    if cls in NUMBERS:
        out.append(value)
    elif cls is np.ndarray:
        out.append(address(value))
        out.extend(value.shape)
        if not value.flags.c_contiguous:
            out.extend(value.strides)
    elif isinstance(value, tuple):
        for item in value:
            words(item, out)
    elif hasattr(cls, "word_kind"):
        out.append(value.address)
    elif isinstance(value, np.ndarray):
        words(np.asarray(value), out)
    elif value is not None:
        out.append(value.item())  # a NumPy scalar


def split(text: str) -> list[str]:
    """The kinds in a list that is separated by commas, such as the fields of a class."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text else []


@cache
def formats(text: str) -> str:
    """The words of a kind in the language of `struct`: `d` for a float, `q` for everything else."""
    if text == "none":
        return ""
    if text == "f8":
        return "d"
    if text[0] in "*@" or text in ("i8", "b1", "any"):
        return "q"
    if text.endswith(")"):
        return "".join(formats(item) for item in split(text[text.index("(") + 1 : -1]))
    ndim = int(text[text.index("[") + 1 : text.index("]")])
    return "q" * (1 + ndim * (2 if "A" in text else 1))


def numbers(text: str) -> int:
    """How many words a value of this kind has."""
    return len(formats(text))
