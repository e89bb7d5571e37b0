"""`fetch` inside kernels: the processor's prefetch."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from thalweg._compiler.types import _stands_for
from thalweg._kernels import fetching

BYTE, INT = ir.IntType(8).as_pointer(), ir.IntType(32)
WRITE, KEEP, DATA = INT(1), INT(3), INT(1)  # it will be written, soon; and it is no code


@_stands_for(fetching.fetch)  # type: ignore[untyped-decorator]
def fetch(typing: Any, address: Any) -> Any:
    """Nothing; the line of `address` is on its way."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [BYTE, INT, INT, INT])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(prefetch, [builder.inttoptr(args[0], BYTE), WRITE, KEEP, DATA])
        return context.get_dummy_value()

    return types.none(types.int64), generate
