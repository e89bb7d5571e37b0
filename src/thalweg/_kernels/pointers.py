"""Kernels that other kernels call by their address: chosen at run time, compiled once each, and only if used.

A loop takes the projection of its set and the loss of its rounds as pointers. So it is compiled once for all sets and
all losses, with none of them in it, and a set or a loss of one's own is played like a built-in one. A call costs 2 ns.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import config, types
from numba.core import cgutils
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox

__all__ = ["Pointer", "PointerType", "call"]

_known: dict[tuple[str, str], Pointer] = {}


class PointerType(types.Type):  # type: ignore[misc]
    """Numba's type of a pointer: it knows the signature."""

    def __init__(self, signature: Any) -> None:
        self.signature = signature
        super().__init__(f"Pointer({signature})")


@register_model(PointerType)
class _PointerModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: PointerType) -> None:
        super().__init__(manager, kind, manager.lookup(types.int64).get_value_type())


class Pointer:
    """A kernel by its address, for arguments of these types; from Python it is called like any function.

    Copied or pickled it stays the same kernel: an address means nothing in another process. A signature may say ANY
    (`thalweg._kernels.handle`) where the kernel is to be compiled for a type of which its caller knows nothing; `known`
    are then the types of its arguments.
    """

    def __init__(self, kernel: Callable[..., Any], signature: Any, known: tuple[Any, ...] | None = None) -> None:
        self.kernel = kernel
        self.kind = PointerType(signature)
        self._known = signature.args if known is None else known
        self._place = kernel.__module__, kernel.__name__
        if known is None:
            _known[self._place] = self

    def __call__(self, *arguments: Any) -> Any:
        return self.kernel(*arguments)

    @cached_property
    def _code(self) -> Any:
        """The machine code; compiled now if it was not, or read from disk."""
        kernel: Any = self.kernel
        kernel.compile(self._known)
        return kernel.overloads[self._known]

    @cached_property
    def address(self) -> int:
        """Where the machine code is."""
        address: int = self._code.library.get_pointer_to_function(self._code.fndesc.llvm_func_name)
        return address

    @cached_property
    def direct(self) -> Callable[..., Any]:
        """The machine code as a function of Python: what `address` is, for arguments of exactly these types."""
        return self.kernel if config.DISABLE_JIT else self._code.entry_point

    def __reduce__(self) -> tuple[Callable[[str, str], Pointer], tuple[str, str]]:
        return _find, self._place

    def __repr__(self) -> str:
        return f"<pointer to {'.'.join(self._place)}>"


def _find(module: str, name: str) -> Pointer:
    importlib.import_module(module)
    return _known[module, name]


@typeof_impl.register(Pointer)  # type: ignore[untyped-decorator]
def _typeof(pointer: Pointer, _: Any) -> PointerType:
    return pointer.kind


@unbox(PointerType)  # type: ignore[untyped-decorator]
def _unbox(_: PointerType, pointer: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(pointer, "address")
    value = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(value, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


if config.DISABLE_JIT:

    def call(pointer: Pointer, *arguments: Any) -> Any:
        """What the kernel returns."""
        return pointer(*arguments)

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def call(typing: Any, pointer: Any, *arguments: Any) -> Any:
        """Inside a kernel: what the kernel at `pointer` returns. Arrays must be contiguous, as its signature says."""
        signature = pointer.signature
        given = arguments[0] if isinstance(arguments[0], types.StarArgTuple) else types.StarArgTuple(arguments)

        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            door = context.call_conv.get_function_type(signature.return_type, signature.args)
            status, result = context.call_conv.call_function(
                builder,
                builder.inttoptr(values[0], door.as_pointer()),
                signature.return_type,
                signature.args,
                cgutils.unpack_tuple(builder, values[1]),
            )
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return result

        return signature.return_type(pointer, given), generate
