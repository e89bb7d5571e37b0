"""The one decorator of all kernels."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["SAFE_FLAGS", "kernel"]

# Sums may be re-ordered, so that reductions vectorise. Never `nnan` or `ninf`: with them `isnan` stops working.
SAFE_FLAGS = {"reassoc", "contract", "arcp", "nsz"}

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` at its first call and keep the machine code on disk. Division by zero gives inf or nan."""
    return cast(F, njit(cache=True, fastmath=SAFE_FLAGS, error_model="numpy")(function))


def inlined(function: F) -> F:
    """As `kernel`, and always inlined into its callers."""
    return cast(F, njit(cache=True, fastmath=SAFE_FLAGS, error_model="numpy", forceinline=True)(function))
