"""Kernels that are compiled in the user's process: those with parts of one's own, or whose sources have changed."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import llvmlite.binding as llvm
from numba.core.registry import cpu_target

from thalweg._compiler.emit import Code, levels
from thalweg._compiler.store import CodeStore, CompiledCode, folder, name_of
from thalweg._kernels import library
from thalweg._kernels.jit import CHOSEN, Entry, Kernel

_engines: list[Any] = []  # they own the machine code
_said: set[str] = set()


def compile_now(kernel: Kernel[..., object], kinds: tuple[str, ...]) -> Entry:
    """Machine code for a kernel with arguments of these kinds, from the cache or compiled."""
    name, level, store = library.digest(kernel.qualified_name, kinds), library.level() or _best(), CodeStore(folder())
    kept = store.get(name, level, _own_files(kernel, kinds))
    if kept is None:
        _notify(library.why(kernel, kinds))
        kept = compile_all(kernel, kinds, (level,), store)[level]
    return _load(kernel, kinds, name, kept)


def compile_all(
    kernel: Kernel[..., object], kinds: tuple[str, ...], wanted: tuple[str, ...], store: CodeStore
) -> dict[str, CompiledCode]:
    """Compile a kernel for several levels of processors, and cache it if possible."""
    name = library.digest(kernel.qualified_name, kinds)
    code = Code(kernel, kinds, name)
    files = sorted({name_of(os.path.abspath(file)) for file in code.sources} | _own_files(kernel, kinds))
    sources = [(file, library.content(file) or "") for file in files]
    found = {level: CompiledCode(code.returns, sources, code.machine_code(level)) for level in wanted}
    if code.lasting and all(digest for _, digest in sources):
        for level, kept in found.items():
            store.put(name, level, kept)
    return found


def _own_files(kernel: Kernel[..., object], kinds: tuple[str, ...]) -> set[str]:
    """The files outside the package, in this process, that machine code for these arguments depends on.

    Their modules alone do not tell them apart: every script is `__main__`, and a copied folder has the same names.
    """
    modules = {kernel.__module__, *re.findall(r"([\w.]+):", ",".join(kinds))}
    foreign = {module for module in modules if not module.startswith("thalweg.")}
    files = {getattr(sys.modules.get(module), "__file__", None) or f"<{module}>" for module in foreign}
    for chosen in CHOSEN.values():
        for part, function in chosen.items():
            if part.__module__ in foreign and not function.__module__.startswith("thalweg."):
                files.add(function.__code__.co_filename)
    return {name_of(os.path.abspath(file)) for file in files}


def _best() -> str:
    """The level of this processor, used without a library."""
    features = llvm.get_host_cpu_features()
    best, *rest = levels()
    return rest[0] if rest and not all(features.get(name) for name in ("avx2", "fma", "bmi2", "movbe")) else best


def _notify(reason: str) -> None:
    """Print the reason of a compilation, once for each kernel."""
    if reason not in _said:
        _said.add(reason)
        print(f"thalweg: {reason} This takes seconds, once.", file=sys.stderr, flush=True)  # noqa: T201


def _load(kernel: Kernel[..., object], kinds: tuple[str, ...], name: str, kept: CompiledCode) -> Entry:
    """Put machine code into this process."""
    if kernel.allocates:
        cpu_target.target_context.refresh()  # starts the runtime that owns arrays
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target.create_target_machine(codemodel="jitdefault"))
    engine.add_object_file(llvm.ObjectFileRef.from_data(kept.code))
    engine.finalize_object()
    _engines.append(engine)
    address, direct = (engine.get_function_address(f"{door}{name}") for door in "kd")
    return Entry(kernel.qualified_name, kinds, kept.returns, address, direct, engine)
