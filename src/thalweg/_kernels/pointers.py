"""Kernels that other kernels call by their address, chosen at run time.

A loop takes the projection of its set and the loss of its rounds as pointers. So it is compiled once for all sets and
all losses, with none of them in it, and a set or a loss of one's own is played like a built-in one. A call costs 2 ns.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

from thalweg._kernels.kinds import split

RESULTS = {"f8": "a float", "i8": "an integer", "b1": "a bool", "none": "nothing"}
_known: dict[tuple[str, str], Pointer] = {}


class Pointer:
    """A kernel by its address; from Python it is called like any function.

    Copied or pickled it stays the same kernel: an address means nothing in another process.

    Parameters
    ----------
    kernel : Kernel
        The kernel to call.
    signature : str
        Its result and arguments as kinds (`thalweg._kernels.kinds`), such as "f8(f8,f8)". It may say `any` where the
        caller knows nothing of an argument.
    known : sequence of str, optional
        The kinds of the arguments, where the signature says `any`.
    """

    word_kind = ""  # see `kinds.kind`: it is in `kind`

    def __init__(self, kernel: Callable[..., Any], signature: str, known: tuple[str, ...] | None = None) -> None:
        if known is None and not hasattr(kernel, "address_of"):
            raise TypeError(f"Pointer needs a kernel. Write @kernel above {getattr(kernel, '__name__', kernel)}.")
        self.kernel = kernel
        self.kind = f"@{signature}"
        self.known = tuple(split(signature[signature.index("(") + 1 : -1])) if known is None else known
        self._place = kernel.__module__, kernel.__name__
        if known is None:
            _known[self._place] = self

    def __call__(self, *arguments: object) -> Any:
        return self.kernel(*arguments)

    @cached_property
    def address(self) -> int:
        """Address of the machine code, which is compiled now if the package has none."""
        kernel: Any = self.kernel
        found, wanted = int(kernel.address_of(self.known)), self.kind[1 : self.kind.index("(")]
        returns = kernel.entry(self.known).returns if found else wanted  # 0: plain Python
        if returns != wanted:
            raise TypeError(f"{self!r} returns {RESULTS[returns]}. It must return {RESULTS[wanted]}, on every path.")
        return found

    @property
    def built_in(self) -> bool:
        """Whether it is a kernel of this package: those never raise."""
        return self._place[0].startswith("thalweg.")

    def __reduce__(self) -> tuple[Callable[[str, str], Pointer], tuple[str, str]]:
        return _find, self._place

    def __repr__(self) -> str:
        return f"<pointer to {'.'.join(self._place)}>"


def _find(module: str, name: str) -> Pointer:
    importlib.import_module(module)
    return _known[module, name]


def call(pointer: Pointer, *arguments: object) -> Any:
    """The result of the kernel at `pointer`. Inside a kernel, arrays must be contiguous, as its signature says."""
    return pointer(*arguments)
