"""How kernels are compiled: the decorators, and the one way a part is chosen while compiling."""

import contextlib
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import config, njit, types
from numba.core.caching import FunctionCache
from numba.extending import overload

__all__ = ["SAFE_FLAGS", "before_compiling", "generic", "implement", "inlined", "inner", "kernel", "optional"]

# Sums may be re-ordered, so that reductions vectorise. Never `nnan` or `ninf`: with them `isnan` stops working.
SAFE_FLAGS = {"reassoc", "contract", "arcp", "nsz"}
OPTIONS: dict[str, Any] = {"fastmath": SAFE_FLAGS, "error_model": "numpy"}

# What is compiled into its callers needs no door to Python. With trees of parts as arguments doors are most of the
# compiling.
INNER = {**OPTIONS, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

PARTS = "_kernels", "_machines", "experts", "losses", "metas"  # packages whose functions are compiled into others

F = TypeVar("F", bound=Callable[..., Any])

_chosen: dict[Any, dict[type, Callable[..., Any]]] = {}
_waiting: list[Callable[[], None]] = []  # whom to tell before a kernel is compiled
_hinted: list[str] = []  # what was wrong with Numba's cache


class _Cache(FunctionCache):  # type: ignore[misc]
    """Machine code on disk, where all parts are the package's: other processes may not know those of a user's module.

    Numba's index of what is on disk names all classes, and cannot be read where one of them is missing. What is there
    belongs to the sources of all parts, too, not only to the kernel's own file, as Numba has it. Where the disk fails
    the kernel is compiled, and that is said once.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = (self._cache_file._source_stamp, _stamp(Path(function.__code__.co_filename)))

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            loaded = super().load_overload(signature, context)
            if loaded is None:
                for tell in _waiting:
                    tell()
            return loaded
        except Exception as error:  # damaged pickles raise anything
            if not isinstance(error, AttributeError | ImportError):  # these two: an older version's, with other classes
                _hint(f"Numba's cache in {self.cache_path} cannot be used ({error!r}).")
            with contextlib.suppress(OSError):
                self.flush()  # what is compiled now replaces it
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        if any(_foreign(kind) for kind in data.signature.args):
            return
        try:
            super().save_overload(signature, data)
        except Exception as error:
            _hint(f"Numba's cache in {self.cache_path} cannot be used ({error!r}).")


def before_compiling(tell: Callable[[], None]) -> None:
    """Call `tell` whenever a kernel is about to be compiled, which takes seconds."""
    if tell not in _waiting:
        _waiting.append(tell)


def _hint(problem: str) -> None:
    """Say once in a process why kernels are compiled that might have been loaded, and what to do."""
    if not _hinted:
        _hinted.append(problem)
        advice = "Set NUMBA_CACHE_DIR to a folder that can be written."
        warnings.warn(f"{problem} Kernels are compiled instead, which takes seconds. {advice}", stacklevel=3)


@cache
def _stamp(path: Path) -> int:
    """Changes when a file with parts of kernels does, or one of the package that the kernel's own file is in."""
    package = Path(__file__).parents[1]
    inside = path.parent != package and package in path.parents
    own = [package / path.relative_to(package).parts[0]] if inside else []
    files = [file for folder in [*(package / name for name in PARTS), *own] for file in sorted(folder.rglob("*.py"))]
    return zlib.crc32(repr([(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files]).encode())


def _foreign(kind: Any) -> bool:
    """Whether a type has a part whose class is not the package's."""
    if isinstance(kind, types.StructRef):
        return any(_foreign(field) for _, field in kind._fields)
    if isinstance(kind, types.BaseTuple):
        own = getattr(kind, "instance_class", _Cache).__module__.startswith("thalweg.")
        return not own or any(_foreign(item) for item in kind.types)
    return False


def _compile(function: F, **more: Any) -> F:
    compiled = njit(**more, **OPTIONS)(function)
    if not config.DISABLE_JIT:
        try:
            compiled._cache = _Cache(function)
        except RuntimeError:  # no folder of Numba's can be written
            _hint("Numba has no folder for compiled kernels.")
    return cast(F, compiled)


def kernel(function: F) -> F:
    """Compile `function` at its first call and keep the machine code on disk. Division by zero gives inf or nan."""
    return _compile(function)


def inlined(function: F) -> F:
    """As `kernel`, and always inlined into its callers."""
    return _compile(function, forceinline=True)


def inner(function: F) -> F:
    """Compiled into its callers, always inlined; called from Python it is the function itself."""

    @overload(function, strict=False, jit_options=INNER)  # type: ignore[untyped-decorator]
    def _(*arguments: Any) -> F:
        return function

    return function


def generic(function: F) -> F:
    """A function of parts: what it does is what `implement` says for the class of its first argument.

    The class is known while compiling, so the choice costs nothing in a compiled loop. `function` itself only names
    the arguments and says what every implementation does.
    """
    return _choosing(function, {})


def optional(function: F) -> F:
    """As `generic`, but `function` is what is done for classes of which nothing is said."""
    return _choosing(function, {object: function})


def _choosing(function: F, table: dict[type, Callable[..., Any]]) -> F:
    def choose(part: Any, *rest: Any) -> Any:
        return table[object if type(part) not in table and object in table else type(part)](part, *rest)

    choose.__name__, choose.__doc__ = function.__name__, function.__doc__
    _chosen[choose] = table

    @overload(choose, strict=False, jit_options=INNER)  # type: ignore[untyped-decorator]
    def _(part: Any, *rest: Any) -> Any:
        kind = np.ndarray if isinstance(part, types.Array) else getattr(part, "instance_class", type(None))
        return table.get(kind, table.get(object))

    return cast(F, choose)


def implement(function: Callable[..., Any], *parts: type) -> Callable[[F], F]:
    """Decorator: what the generic `function` does for parts of these classes: NamedTuples, arrays, or None."""

    def keep(implementation: F) -> F:
        for part in parts:
            _chosen[function][part] = implementation
        return implementation

    return keep
