"""The list of kernels in the library: those that the specimens call, recorded in plain Python in a few seconds."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import NamedTuple

from thalweg._kernels import jit


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
    play_all()
    return sorted(found)


@contextmanager
def processes(count: int, *, plain: bool) -> Iterator[ProcessPoolExecutor]:
    """Processes of the build, which import this very package, with kernels as plain functions or compiled."""
    before = dict(os.environ)
    os.environ |= {"NUMBA_DISABLE_JIT": str(int(plain)), "OMP_NUM_THREADS": "1"}  # a process reads them when it starts
    try:
        with ProcessPoolExecutor(count, get_context("spawn"), _begin) as pool:
            yield pool
    finally:
        os.environ.clear()
        os.environ.update(before)


def _begin() -> None:
    warnings.simplefilter("ignore")
    gc.set_threshold(50_000, 20, 1000)  # Numba makes many objects that live as long as the process
