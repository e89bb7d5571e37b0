"""Kernels: the decorators, the dispatch on parts at compile time, and the call from Python.

A kernel is machine code from the package's library (`thalweg._kernels.library`) if the library covers arguments of
these kinds. Otherwise, as with user-defined parts, it is compiled at its first call (`thalweg._compiler`, which needs
the extra `jit`). With NUMBA_DISABLE_JIT=1 in the environment, kernels are plain Python functions.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, cast

from numpy import ndarray

from thalweg._kernels import library
from thalweg._kernels.handle import CONTIGUOUS, Handle, data
from thalweg._kernels.kinds import NUMBERS, formats, kind, words
from thalweg._kernels.pointers import Pointer

PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
P = ParamSpec("P")
R = TypeVar("R")

# Registered for the compiler: functions that are compiled into their callers, kernels, and functions of parts.
INNER: list[Function] = []
KERNELS: list[AnyKernel] = []
CHOSEN: dict[Function, dict[type, Function]] = {}

FAILED = -(2**63)  # returned by an entry whose kernel raised, unless it returns a float
FAILED_FLOAT = struct.pack("q", 0x7FF8_7468_616C_7767)  # the same if it returns a float: a nan with "thalwg" in it


class Entry:
    """Machine code of a kernel for arguments of certain kinds.

    `function(row)` takes the address of a row of words and returns the result; `direct` is the address that other
    kernels call.
    """

    __slots__ = ("direct", "function", "keep", "name", "pack", "returns")

    def __init__(
        self, name: str, kinds: tuple[str, ...], returns: str, address: int, direct: int, keep: object
    ) -> None:
        self.name, self.returns, self.direct, self.keep = name, returns, direct, keep
        self.pack = struct.Struct("".join(map(formats, kinds))).pack
        result = ctypes.c_double if returns == "f8" else ctypes.c_int64
        self.function: Any = ctypes.CFUNCTYPE(result, ctypes.c_void_p)(address)
        self.function.argtypes = (ctypes.c_void_p,)

    def read(self, result: object) -> Any:
        """Convert the number that an entry returned; raise if it reports a failure."""
        if self.returns == "f8":
            if result != result and struct.pack("d", result) == FAILED_FLOAT:
                raise self._failed()
            return result
        if result == FAILED:
            raise self._failed()
        return None if self.returns == "none" else bool(result) if self.returns == "b1" else result

    def _failed(self) -> ValueError:
        return ValueError(
            f"{self.name} failed: shapes of its arguments do not agree, or it raised. With NUMBA_DISABLE_JIT=1 it is a "
            "plain Python function that says where."
        )


class Kernel(Generic[P, R]):
    """A compiled function of numbers, arrays and parts, called from Python like any other function."""

    inline = allocates = False

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.__name__, self.__qualname__, self.__module__ = (
            function.__name__,
            function.__qualname__,
            function.__module__,
        )
        self.__doc__, self.__wrapped__ = function.__doc__, function
        self._entries: dict[tuple[str, ...], Entry] = {}
        self._known: dict[tuple[object, ...], Entry] = {}  # the same under a key that is quicker to compute

    @property
    def qualified_name(self) -> str:
        """Module and name, its key in the library."""
        return f"{self.__module__}:{self.__qualname__}"

    def __call__(self, *arguments: P.args, **_: P.kwargs) -> R:
        """Call the kernel; compile it first if there is no machine code for arguments of these kinds."""
        key: list[object] = []
        row: list[object] = []
        for argument in arguments:
            cls = type(argument)
            if cls is ndarray:
                flags = argument.flags.num  # type: ignore[attr-defined]
                key += argument.dtype, argument.ndim, flags  # type: ignore[attr-defined]
                row.append(data(argument))
                row += argument.shape  # type: ignore[attr-defined]
                if not flags & CONTIGUOUS:
                    row += argument.strides  # type: ignore[attr-defined]
            elif cls in NUMBERS:
                key.append(cls)
                row.append(argument)
            elif cls is Handle or cls is Pointer:
                key.append(argument.kind)  # type: ignore[attr-defined]
                row.append(argument.address)  # type: ignore[attr-defined]
            else:
                key.append(kind(argument))
                words(argument, row)
        known = tuple(key)
        entry = self._known.get(known)
        if entry is None:
            entry = self._known[known] = self.entry(tuple([kind(argument) for argument in arguments]))
        return cast(R, entry.read(entry.function(entry.pack(*row))))

    def entry(self, kinds: tuple[str, ...]) -> Entry:
        """Machine code for arguments of these kinds."""
        found = self._entries.get(kinds)
        if found is None:
            found = self._entries[kinds] = library.find(self, kinds) or library.compiled(self, kinds)
        return found

    def address_of(self, kinds: tuple[str, ...]) -> int:
        """The address that other kernels call."""
        return self.entry(kinds).direct

    def ready(self, *arguments: object) -> Call:
        """Bind the arguments, for repeated calls."""
        return Call(self, arguments)

    def ready_in_python(self, *arguments: object) -> Any:
        """As `ready`, but for the plain Python function, which also takes arguments that compiled code cannot."""
        return PlainCall(self.function, arguments)

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<kernel {self.qualified_name}>"


AnyKernel = Kernel[..., Any]


class PlainKernel(Kernel[P, R]):
    """The function itself, uncompiled. `record`, if set, is called with every kernel and the kinds to compile."""

    record: Callable[[AnyKernel, tuple[str, ...]], None] | None = None
    depth = 0  # calls from inside another kernel need no code of their own

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """The function's result."""
        if PlainKernel.record is None:
            return self.function(*arguments, **named)
        if PlainKernel.depth == 0:
            PlainKernel.record(self, tuple([kind(argument) for argument in arguments]))
            words(arguments, [])  # asks for the address of every kernel among them
        PlainKernel.depth += 1
        try:
            return self.function(*arguments, **named)
        finally:
            PlainKernel.depth -= 1

    def address_of(self, kinds: tuple[str, ...]) -> int:
        """Return 0, as there is no address; record the kinds if asked to."""
        if PlainKernel.record is not None:
            PlainKernel.record(self, kinds)
        return 0

    def ready(self, *arguments: object) -> Any:
        """Bind the arguments, for repeated calls."""
        return PlainCall(self, arguments)


class Call:
    """A kernel call with bound arguments; the numbers among them may be changed between runs.

    `floats[i]` and `integers[i]` set word i, which is argument i if arrays and trees come last. `run()` makes the call
    and returns the result of `Entry.function`. This takes 0.2 us; a call from scratch takes 1 us, and as much again for
    every array.
    """

    __slots__ = ("arguments", "entry", "floats", "integers", "row", "run")

    def __init__(self, kernel: AnyKernel, arguments: tuple[object, ...]) -> None:
        kinds = tuple([kind(argument) for argument in arguments])
        row: list[object] = []
        for argument in arguments:
            words(argument, row)
        self.arguments, self.entry = arguments, kernel.entry(kinds)
        self.row = ctypes.create_string_buffer(self.entry.pack(*row), max(8 * len(row), 1))
        self.integers = (ctypes.c_int64 * len(row)).from_buffer(self.row)
        self.floats = (ctypes.c_double * len(row)).from_buffer(self.row)
        self.run = partial(self.entry.function, ctypes.addressof(self.row))


class PlainCall:
    """As `Call`, for a function that is not compiled."""

    __slots__ = ("arguments", "entry", "floats", "integers", "kernel")

    def __init__(self, kernel: Function, arguments: tuple[object, ...]) -> None:
        self.kernel, self.arguments, self.entry = kernel, arguments, self
        self.integers = self.floats = [*arguments]

    def run(self) -> Any:
        """The function's result."""
        return self.kernel(*self.floats)

    def read(self, result: object) -> Any:
        """Return the result unchanged."""
        return result


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Make a kernel of `function`. Division by zero gives inf or nan."""
    made = PlainKernel(function) if PLAIN else Kernel(function)
    KERNELS.append(made)
    return made


def inlined(function: Callable[P, R]) -> Kernel[P, R]:
    """As `kernel`, and always inlined into other kernels: for arithmetic in loops that should be vectorised."""
    made = kernel(function)
    made.inline = True
    return made


def allocating(function: Callable[P, R]) -> Kernel[P, R]:
    """As `kernel`, for functions that allocate arrays. Only studies use them, so the library has none."""
    made = kernel(function)
    made.allocates = True
    return made


def inner(function: F) -> F:
    """Mark a function that is compiled into its callers; from Python it is called as it is."""
    INNER.append(function)
    return function


def generic(function: F) -> F:
    """Make a generic function of parts: `implement` adds an implementation for the class of its first argument.

    The class is known while compiling, so the choice costs nothing in a compiled loop. `function` itself only names
    the arguments and documents the contract of all implementations.
    """
    return _choosing(function, {})


def optional(function: F) -> F:
    """As `generic`, with `function` as the fallback for classes without an implementation."""
    return _choosing(function, {object: function})


def _choosing(function: F, table: dict[type, Function]) -> F:
    def choose(part: object, *rest: object) -> Any:
        return table[object if type(part) not in table and object in table else type(part)](part, *rest)

    choose.__name__, choose.__qualname__, choose.__doc__ = function.__name__, function.__qualname__, function.__doc__
    choose.__module__ = function.__module__
    CHOSEN[choose] = table
    return cast(F, choose)


def implement(function: Function, *parts: type) -> Callable[[F], F]:
    """Register an implementation of the generic `function` for parts of these classes: NamedTuples, arrays, None."""

    def keep(implementation: F) -> F:
        for part in parts:
            CHOSEN[function][part] = implementation
        return implementation

    return keep
