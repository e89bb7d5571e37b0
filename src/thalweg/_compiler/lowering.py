"""From Python functions to LLVM code, and no further: kernels are optimised whole, once, at the end.

Numba optimises every function on its own and makes machine code of it before it is linked into its caller, where
everything is optimised again. Nothing here does that. Nor are references counted: arrays are borrowed, and a kernel
that allocates cannot be linked.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numba import _dynfunc, njit, types
from numba.core import funcdesc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, NativeLowering
from numba.extending import overload

from thalweg._kernels import jit

# Sums may be re-ordered, so that reductions vectorise. Never `nnan` or `ninf`: with them `isnan` stops working.
SAFE_FLAGS = {"reassoc", "contract", "arcp", "nsz"}
CONSTANTS = (int, float, bool, str, tuple, np.ndarray, np.generic)


class Lowered(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code of a function and of everything it calls, and the source files it was made from."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.sources: set[str] = set()
        self.lasting = True  # whether the source files say all there is to know: no closures, no code without a file

    @property
    def module(self) -> Any:
        """The LLVM module."""
        return self._final_module

    def add_llvm_module(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            if isinstance(library, Lowered):
                self.sources |= library.sources
                self.lasting = self.lasting and library.lasting
        self._finalized = True

    def add_source(self, function: Any) -> None:
        """Record the source file of a function, and the constants that are compiled into it."""
        self.sources.add(function.__code__.co_filename)
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, ModuleType):
                self.sources |= {value.__file__} if value.__name__.startswith("thalweg.") and value.__file__ else set()
            elif isinstance(value, CONSTANTS):
                self.sources |= _origins(function.__module__, name)
        if function.__closure__ or "<locals>" in function.__qualname__:
            self.lasting = False


def _origins(module: str, name: str) -> set[str]:
    """The files that a module has a name from: it is imported, perhaps by way of others."""
    origin = _imports(module).get(name)
    if origin is None:
        return set()
    file = getattr(sys.modules.get(origin), "__file__", None)
    return ({file} if file else set()) | _origins(origin, name)


@cache
def _imports(module: str) -> dict[str, str]:
    """Names that a module imports from others: `from thalweg.place import NAME`."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not Path(file).exists():
        return {}
    nodes = [node for node in ast.walk(ast.parse(Path(file).read_text())) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: node.module for node in nodes if node.module for alias in node.names}


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):  # type: ignore[misc]
    _name = "thalweg_lowering"

    @property
    def lowering_class(self) -> Any:
        return Lower

    def run_pass(self, state: Any) -> bool:
        flags = state.flags
        if state.func_id.func not in _allocating:
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
        context = state.targetctx
        state.library = library = Lowered(context.codegen(), state.func_id.func_qualname)
        library._reload_init.update(state.reload_init)
        library.add_source(state.func_id.func)
        described = funcdesc.PythonFunctionDescriptor.from_specialized_function(
            state.func_ir,
            state.typemap,
            state.return_type,
            state.calltypes,
            mangler=context.mangler,
            inline=flags.forceinline,
            noalias=flags.noalias,
            abi_tags=[flags.get_mangle_string()],
        )
        with context.push_code_library(library):
            lower = Lower(context, library, described, state.func_ir, metadata=state.metadata)
            lower.lower()
        name = described.qualname.rpartition(".")[2]
        key = _dynfunc.make_function(described.lookup_module(), name, "called by kernels", 0, lower.env, (library,))
        library._ensure_finalized()
        context.insert_user_function(key, described, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = _LowerResult(described, lower.call_helper, cfunc=key, env=lower.env)
        state.metadata["prune_stats"] = state.metadata["llvm_pass_timings"] = None
        return True


class _Compiler(Compiler):  # type: ignore[misc]
    def define_pipelines(self) -> Any:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for index, (step, text) in enumerate(passes.passes):
            if step is NativeLowering:
                passes.passes[index] = (_Lowering, text)
        passes._finalized = False
        passes.finalize()
        return [passes]


OPTIONS: dict[str, Any] = {
    "fastmath": SAFE_FLAGS,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": _Compiler,
}

_allocating: set[Any] = set()  # functions whose references are counted after all
_registered: set[Any] = set()  # functions registered with Numba
_made: dict[Any, Any] = {}


def _register() -> None:
    """Register with Numba all functions that kernels may call and were defined since the last call."""
    for function in jit.INNER:
        _compiled_into_callers(function, function, OPTIONS)
    for kernel in jit.KERNELS:
        _allocating.update([kernel.function] if kernel.allocates else [])
        _compiled_into_callers(kernel, kernel.function, OPTIONS | {"forceinline": kernel.inline})
    for function, table in jit.CHOSEN.items():
        if function not in _registered:
            _registered.add(function)
            _chosen_by_class(function, table)


def _compiled_into_callers(known_as: Any, function: Any, options: dict[str, Any]) -> None:
    if known_as in _registered:
        return
    _registered.add(known_as)

    @overload(known_as, strict=False, jit_options=options)  # type: ignore[untyped-decorator]
    def _(*arguments: Any) -> Any:
        return function


def _chosen_by_class(function: Any, table: dict[type, Any]) -> None:
    @overload(function, strict=False, jit_options=OPTIONS)  # type: ignore[untyped-decorator]
    def _(part: Any, *rest: Any) -> Any:
        kind = np.ndarray if isinstance(part, types.Array) else getattr(part, "instance_class", type(None))
        return table.get(kind, table.get(object))


def lower(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Numba's result for a kernel's function with arguments of these types: its `library` is a `Lowered`."""
    _register()
    made = _made.get(function)
    if made is None:
        made = _made[function] = njit(**OPTIONS)(function)
    made.compile(arguments)
    return made.overloads[arguments]
