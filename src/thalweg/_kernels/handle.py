"""Trees of parts, handed over to compiled code once and then passed by one address.

A learner's state and settings are NamedTuples of arrays, one in the other. `bind` writes the addresses and shapes of
the arrays, and the numbers, into one row of 64-bit words (`thalweg._kernels.kinds`). Kernels get the address of that
row. Inside a kernel a part is an address too, and a field is read where it is used, so a call costs the same whatever
is in the tree.

The arrays are borrowed: the handle keeps them alive, kernels return numbers only, and nothing is counted.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from thalweg._kernels.kinds import NUMBERS, address, formats, kind, words

ndarray = np.ndarray
CONTIGUOUS = 1  # the bit of `flags.num`
# Kinds of trees that were bound before and the packing of their words, by keys that are quicker to compute.
_known: dict[tuple[object, ...], tuple[str, Callable[..., bytes]]] = {}


def _data_reader() -> Callable[[Any], int]:
    """The quickest way to the address of an array: NumPy's C interface has it right behind the head of the object."""
    head, read = object.__basicsize__, ctypes.c_void_p.from_address

    def quick(array: object) -> int:
        return read(id(array) + head).value or 0

    sample = np.arange(3.0)
    return quick if all(quick(one) == one.ctypes.data for one in (sample, sample[1:], sample[::-1])) else address


data = _data_reader()


def _read(tree: Iterable[Any], key: list[object], row: list[object]) -> None:
    """Append the words of a tree to `row`, and to `key` everything that its kind depends on."""
    key.append(type(tree))
    for value in tree:
        cls = type(value)
        if cls is ndarray:
            flags = value.flags.num
            key += value.dtype, value.ndim, flags
            row.append(data(value))
            row += value.shape
            if not flags & CONTIGUOUS:
                row += value.strides
        elif cls in NUMBERS:
            key.append(cls)
            row.append(value)
        elif isinstance(value, tuple):
            _read(value, key, row)
        else:
            key.append(kind(value))
            words(value, row)
    key.append(None)


class Handle:
    """A tree of parts that was bound, and the words that compiled code reads it from."""

    __slots__ = ("__weakref__", "_row", "address", "kind", "tree")
    word_kind = ""  # see `kinds.kind`: it is in `kind`

    def __init__(self, tree: tuple[object, ...]) -> None:
        key: list[object] = []
        row: list[object] = []
        _read(tree, key, row)
        found = tuple(key)
        known = _known.get(found)
        if known is None:
            text = kind(tree)
            known = _known[found] = f"*{text}", struct.Struct(formats(text)).pack
        self.tree: Any = tree
        self.kind = known[0]
        packed = known[1](*row)
        self._row = ctypes.create_string_buffer(packed, max(len(packed), 1))
        self.address = ctypes.addressof(self._row)


def bind(tree: tuple[object, ...]) -> Handle:
    """Hand a tree of parts over to compiled code. The arrays stay the same arrays; the tree itself cannot change."""
    return Handle(tree)


class Unbound:
    """A tree that only Python can read: the handle for kernels' functions called in Python."""

    __slots__ = ("tree",)

    def __init__(self, tree: object) -> None:
        self.tree: Any = tree


class Closed:
    """A handle of unknown content, for kernels that only pass it on."""

    __slots__ = ("address", "handle")
    word_kind = "any"

    def __init__(self, handle: Handle) -> None:
        self.handle, self.address = handle, handle.address

    @property
    def tree(self) -> Any:
        """The tree, where nothing is compiled."""
        return self.handle.tree


AnyHandle = Handle | Unbound | Closed


def parts(handle: AnyHandle) -> Any:
    """The tree of a handle."""
    return handle.tree
