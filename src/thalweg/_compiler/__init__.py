"""The compiler: Numba, and all use of its internals. Nothing else in the package imports numba or llvmlite."""

from thalweg._compiler import fetching  # noqa: F401  # registers it
from thalweg._compiler.process import compile_now

__all__ = ["compile_now"]
