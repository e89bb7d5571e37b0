"""How kernels are compiled: the decorators, and the one way a part is chosen while compiling."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.extending import overload

__all__ = ["SAFE_FLAGS", "generic", "implement", "inlined", "inner", "kernel"]

# Sums may be re-ordered, so that reductions vectorise. Never `nnan` or `ninf`: with them `isnan` stops working.
SAFE_FLAGS = {"reassoc", "contract", "arcp", "nsz"}
OPTIONS: dict[str, Any] = {"fastmath": SAFE_FLAGS, "error_model": "numpy"}

# What only compiled code calls needs no door to Python. With trees of parts as arguments doors are most of the compiling.
INNER = {**OPTIONS, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

F = TypeVar("F", bound=Callable[..., Any])

_chosen: dict[Any, dict[type, Callable[..., Any]]] = {}


def kernel(function: F) -> F:
    """Compile `function` at its first call and keep the machine code on disk. Division by zero gives inf or nan."""
    return cast(F, njit(cache=True, **OPTIONS)(function))


def inlined(function: F) -> F:
    """As `kernel`, and always inlined into its callers."""
    return cast(F, njit(cache=True, forceinline=True, **OPTIONS)(function))


def inner(function: F) -> F:
    """Always inlined, and called by compiled code only."""
    return cast(F, njit(**INNER)(function))


def generic(function: F) -> F:
    """A function of parts: what it does is what `implement` says for the class of its first argument.

    The class is known while compiling, so the choice costs nothing in a compiled loop. `function` itself only names
    the arguments and says what every implementation does.
    """

    def choose(part: Any, *rest: Any) -> Any:
        return _chosen[choose][type(part)](part, *rest)

    choose.__name__, choose.__doc__ = function.__name__, function.__doc__
    _chosen[choose] = {}

    @overload(choose, strict=False, jit_options=INNER)
    def _(part: Any, *rest: Any) -> Any:
        if isinstance(part, types.Array):
            return _chosen[choose].get(np.ndarray)
        return _chosen[choose].get(getattr(part, "instance_class", type(None)))

    return cast(F, choose)


def implement(function: Callable[..., Any], *parts: type) -> Callable[[F], F]:
    """Decorator: what the generic `function` does for parts of these classes: NamedTuples, arrays, or None."""

    def keep(implementation: F) -> F:
        for part in parts:
            _chosen[function][part] = implementation
        return implementation

    return keep
