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
from typing import Any

from thalweg._kernels.kinds import formats, kind, words

__all__ = ["AnyHandle", "Closed", "Handle", "Unbound", "bind", "parts"]


class Handle:
    """A tree of parts that was bound, and the words that compiled code reads it from."""

    __slots__ = ("__weakref__", "_row", "address", "kind", "tree")
    word_kind = ""  # see `kinds.kind`: it is in `kind`

    def __init__(self, tree: object) -> None:
        row: list[Any] = []
        words(tree, row)
        text = kind(tree)
        data = struct.pack(formats(text), *row)
        self.tree: Any = tree
        self.kind = f"*{text}"
        self._row = ctypes.create_string_buffer(data, max(len(data), 1))
        self.address = ctypes.addressof(self._row)


def bind(tree: object) -> Handle:
    """Hand a tree of parts over to compiled code. The arrays stay the same arrays; the tree itself cannot change."""
    return Handle(tree)


class Unbound:
    """A tree that only Python can read: in place of a handle where a kernel's function is called as it is."""

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
