"""The list of kernels in the library: those that the specimens call, recorded in plain Python in a few seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import NamedTuple

from thalweg._kernels import jit
from thalweg._kernels.library import PACKAGE

__all__ = ["Wanted", "command", "environment", "record", "recorded"]


class Wanted(NamedTuple):
    """A kernel, by module and name, for arguments of certain kinds (`thalweg._kernels.kinds`)."""

    qualified_name: str
    kinds: tuple[str, ...]


def record() -> list[Wanted]:
    """Play all specimens and record the kernels they call. Kernels must be plain functions: NUMBA_DISABLE_JIT=1."""
    from thalweg._build.specimens import play_all

    if not jit.PLAIN:
        raise RuntimeError("Recording needs NUMBA_DISABLE_JIT=1 in the environment, before anything is imported.")
    found: set[Wanted] = set()

    def note(kernel: jit.Kernel[..., object], kinds: tuple[str, ...]) -> None:
        if kernel.__module__.startswith("thalweg."):
            found.add(Wanted(kernel.qualified_name, kinds))

    jit.PlainKernel.record = staticmethod(note)
    try:
        play_all()
    finally:
        jit.PlainKernel.record = None
    return sorted(found)


def recorded() -> list[Wanted]:
    """As `record`, from another process."""
    done = subprocess.run(command("--record"), env=environment(plain=True), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"The specimens could not be played:\n{done.stderr[-4000:]}")
    return [Wanted(qualified_name, tuple(kinds)) for qualified_name, kinds in json.loads(done.stdout.splitlines()[-1])]


def command(*options: str) -> list[str]:
    """A process of the build, with this very package: pip takes paths out of PYTHONPATH that a .pth file names."""
    path = str(PACKAGE.parent)
    code = f"import runpy, sys; sys.path.insert(0, {path!r}); runpy.run_module('thalweg._build', run_name='__main__')"
    return [sys.executable, "-W", "ignore", "-c", code, *options]


def environment(*, plain: bool) -> dict[str, str]:
    """The environment of a process of the build, with kernels as plain functions or compiled."""
    return os.environ | {"NUMBA_DISABLE_JIT": str(int(plain)), "OMP_NUM_THREADS": "1"}
