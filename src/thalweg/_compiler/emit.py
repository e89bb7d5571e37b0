"""From the LLVM code of a kernel to machine code with two doors.

Python calls `k<name>(row)`: it takes the address of a row of words (`thalweg._kernels.kinds`) and returns the result,
or a number that says the kernel raised. Other kernels call `d<name>(result, word, word, ...)`: it writes the result and
returns whether it raised.
"""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from llvmlite.binding.newpassmanagers import create_pass_builder, create_pipeline_tuning_options
from numba.core import cgutils
from numba.core.errors import NumbaError

from thalweg._compiler.lowering import lower
from thalweg._compiler.types import I64, SIMPLE, VOID, WORD, typed, value_of, word_types
from thalweg._kernels.jit import FAILED, FAILED_FLOAT
from thalweg._kernels.kinds import numbers

STATUS = ir.IntType(32)
# Functions begin with a cache line: otherwise the speed of a loop depends by up to 10 % on what is linked before it.
llvm.set_option("thalweg", "-align-all-functions=6")
ALLOCATES = (
    "makes a new array, or assigns one array to a slice of another, which may. Kernels cannot: pass scratch space to "
    "them, and write entries in a loop (thalweg._kernels.vectors.copy)."
)


def levels() -> tuple[str, ...]:
    """Levels of processors that a library is made for on this machine, best first."""
    return ("x86-64-v3", "x86-64") if platform.machine().lower() in ("x86_64", "amd64") else ("generic",)


@cache
def machine(level: str) -> Any:
    """LLVM's machine for a level."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=level, features="", opt=3, reloc="pic", codemodel="default")


class Code:
    """A kernel for arguments of certain kinds, as LLVM code that is not yet optimised."""

    def __init__(self, kernel: Any, kinds: tuple[str, ...], name: str) -> None:
        try:
            made = lower(kernel.function, tuple(map(typed, kinds)))
        except NumbaError as error:
            if "NRT required" in str(error):
                raise TypeError(f"{kernel.qualified_name} {ALLOCATES}") from error
            raise
        self.qualified_name, self.kinds, self.name = kernel.qualified_name, kinds, name
        self._allocates = kernel.allocates
        self.returns = next((kind for kind, its in SIMPLE.items() if its == made.signature.return_type), "")
        if not self.returns:
            raise TypeError(
                f"{kernel.qualified_name} returns {made.signature.return_type}: kernels return numbers or None"
            )
        self.sources, self.lasting = made.library.sources, made.library.lasting
        module = llvm.parse_bitcode(made.library.module.as_bitcode())
        module.link_in(llvm.parse_assembly(str(_doors(made, kinds, self.returns, name))))
        self._bitcode = module.as_bitcode()

    def machine_code(self, level: str) -> bytes:
        """An object file for processors of a level."""
        module = llvm.parse_bitcode(self._bitcode)
        doors = f"k{self.name}", f"d{self.name}"
        for function in module.functions:
            if not function.is_declaration and function.name not in doors:
                function.linkage = "internal"
        for variable in module.global_variables:
            if not variable.is_declaration:
                variable.linkage = "internal"
        options = create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization, options.slp_vectorization = True, False
        passes = create_pass_builder(machine(level), options)
        passes.getModulePassManager().run(module, passes)
        wanted = [f.name for f in module.functions if f.is_declaration and f.name.startswith(("NRT_", "Py", "numba_"))]
        if wanted and not self._allocates:
            raise TypeError(f"{self.qualified_name} {ALLOCATES} It needs {', '.join(wanted)}.")
        return bytes(machine(level).emit_object(module))


def _doors(made: Any, kinds: tuple[str, ...], returns: str, name: str) -> Any:
    """A module with the two doors of a kernel."""
    context = made.target_context
    module = ir.Module(f"doors of {name}")
    module.triple, module.data_layout = llvm.get_process_triple(), str(machine(levels()[0]).target_data)
    described = made.fndesc
    inside = ir.Function(
        module, context.call_conv.get_function_type(described.restype, described.argtypes), described.llvm_func_name
    )
    flat = [_flat(context, kind) for kind in kinds]
    result = _result(returns)
    kind = ir.FunctionType(STATUS, [result.as_pointer(), *[form for forms in flat for form in forms]])
    direct = ir.Function(module, kind, f"d{name}")
    builder = ir.IRBuilder(direct.append_basic_block())
    values, rest = [], list(direct.args[1:])
    for its, forms in zip(kinds, flat, strict=True):
        mine, rest = rest[: len(forms)], rest[len(forms) :]
        values.append(mine[0] if _tuple(its) else value_of(context, builder, its, mine))
    status, value = context.call_conv.call_function(builder, inside, described.restype, described.argtypes, values)
    if returns != "none":
        builder.store(builder.zext(value, I64) if returns == "b1" else value, direct.args[0])
    builder.ret(builder.zext(status.is_error, STATUS))

    outer = I64 if returns == "none" else result if returns != "b1" else I64
    entry = ir.Function(module, ir.FunctionType(outer, [VOID]), f"k{name}")
    builder = ir.IRBuilder(entry.append_basic_block())
    passed, at = [], 0
    for its, forms in zip(kinds, flat, strict=True):
        for offset, form in enumerate(forms):
            place = builder.gep(entry.args[0], [ir.Constant(I64, (at + offset) * WORD)])
            passed.append(place if _tuple(its) else builder.load(builder.bitcast(place, form.as_pointer())))
        at += numbers(its)
    room = builder.alloca(result)
    failed = builder.icmp_signed("!=", builder.call(direct, [room, *passed]), ir.Constant(STATUS, 0))
    if returns == "f8":
        bad = ir.Constant(I64, int.from_bytes(FAILED_FLOAT, "little")).bitcast(result)
        builder.ret(builder.select(failed, bad, builder.load(room)))
    else:
        fine = ir.Constant(I64, 0) if returns == "none" else builder.load(room)
        builder.ret(builder.select(failed, ir.Constant(I64, FAILED), fine))
    return module


def _tuple(kind: str) -> bool:
    """Whether the words of an argument are read where they lie: tuples that Python hands over by value."""
    return kind.endswith(")") and kind[0] not in "*@"


def _flat(context: Any, kind: str) -> list[Any]:
    return [VOID] if _tuple(kind) else word_types(context, kind)


def _result(returns: str) -> Any:
    return ir.DoubleType() if returns == "f8" else I64


def call_direct(context: Any, builder: Any, pointer: Any, address: Any, given: list[tuple[Any, Any]]) -> Any:
    """Code inside a kernel that calls another by its address; an error of the other is passed on."""
    passed = []
    for kind, (its, value) in zip(pointer.takes, given, strict=True):
        passed += _passed(context, builder, kind, its, value)
    result = _result("f8" if pointer.returns == SIMPLE["f8"] else "i8")
    kind = ir.FunctionType(STATUS, [result.as_pointer(), *[one.type for one in passed]])
    room = cgutils.alloca_once(builder, result)
    status = builder.call(builder.inttoptr(address, kind.as_pointer()), [room, *passed])
    with cgutils.if_unlikely(builder, builder.icmp_signed("!=", status, ir.Constant(STATUS, 0))):
        context.call_conv.return_user_exc(builder, ValueError, ("a kernel failed",))
    if pointer.returns == SIMPLE["none"]:
        return context.get_dummy_value()
    value = builder.load(room)
    return builder.trunc(value, ir.IntType(1)) if pointer.returns == SIMPLE["b1"] else value


def _passed(context: Any, builder: Any, kind: Any, its: Any, value: Any) -> list[Any]:
    """The words of an argument."""
    from numba import types

    if isinstance(kind, types.Array):
        array = context.make_array(its)(context, builder, value)
        return [array.data, *cgutils.unpack_tuple(builder, array.shape)]
    if kind in SIMPLE.values():
        value = context.cast(builder, value, its, kind)
        return [builder.zext(value, I64)] if kind == SIMPLE["b1"] else [value]
    return [value]
