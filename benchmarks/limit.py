"""The C loop of `limit.c`: built with the system compiler, called through ctypes."""

from __future__ import annotations

import ctypes
import pathlib
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

import numpy as np

__all__ = ["FLAGS", "Limit", "Timed"]

FLAGS = ("-O3", "-march=native", "-ffast-math")
_SOURCE = pathlib.Path(__file__).with_name("limit.c")


@dataclass
class Timed:
    """One run of the loop, `seconds` of processor time."""

    seconds: float
    losses: np.ndarray
    decisions: np.ndarray | None


@dataclass
class Limit:
    """The compiled loop, or the reason why there is none."""

    compiler: str = "none"
    missing: str = ""
    _library: ctypes.CDLL | None = field(default=None, repr=False)

    @classmethod
    def build(cls) -> Limit:
        """Compile `limit.c` in a temporary folder and load it."""
        cc = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if cc is None:
            return cls(missing="no C compiler (cc, gcc or clang) on this machine")
        version = subprocess.run([cc, "--version"], capture_output=True, text=True, check=False).stdout
        name = version.splitlines()[0] if version else cc
        with tempfile.TemporaryDirectory() as folder:
            part, whole = f"{folder}/limit.o", f"{folder}/limit.so"
            # Linked without -ffast-math: with it some compilers add start-up code that makes the whole process, NumPy
            # and Numba included, flush tiny numbers to zero.
            for command in (
                [cc, *FLAGS, "-fPIC", "-c", str(_SOURCE), "-o", part],
                [cc, "-shared", part, "-o", whole, "-lm"],
            ):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    reason = (done.stderr.strip().splitlines() or ["no message"])[0]
                    return cls(name, f"the compiler failed: {reason}")
            library = ctypes.CDLL(whole)
        array, number, count = ctypes.c_void_p, ctypes.c_double, ctypes.c_int
        library.play.restype = None
        library.play.argtypes = [*[count] * 3, *[array] * 4, *[number] * 2, *[array] * 10]
        library.track.restype = count
        library.track.argtypes = [*[count] * 2, *[array] * 4, *[number] * 2, *[array] * 11]
        return cls(name, "", library)

    def play(
        self,
        features: np.ndarray,
        labels: np.ndarray,
        weights: np.ndarray,
        radius: float,
        tol: float,
        steps: np.ndarray,
        *,
        decisions: bool = False,
    ) -> Timed:
        """Play all rounds once over {w : sum weights_j w_j^2 <= 1}. Only the C loop is timed, in processor time."""
        assert self._library is not None
        (T, d), N = features.shape, steps.shape[0]
        losses, path = np.zeros(T), np.zeros((T, d)) if decisions else None
        state = [np.zeros((N, d)), np.zeros(N), np.ones(N), np.zeros(N), np.zeros(d), np.zeros(d), np.zeros(d)]
        inputs = [np.ascontiguousarray(a, dtype=np.float64) for a in (features, labels, weights, 1 / weights, steps)]
        a, b, e, r, eta = (array.ctypes.data for array in inputs)
        rest = [array.ctypes.data for array in (*state, losses)] + [None if path is None else path.ctypes.data]
        start = time.process_time()
        self._library.play(T, d, N, a, b, e, r, radius, tol, eta, *rest)
        return Timed(time.process_time() - start, losses, path)

    def track(
        self,
        features: np.ndarray,
        labels: np.ndarray,
        weights: np.ndarray,
        radius: float,
        tol: float,
        *,
        decisions: bool = False,
    ) -> Timed:
        """As `play`, for the Tracker without intervals and curvature."""
        assert self._library is not None
        (T, d), N = features.shape, 60
        losses, path = np.zeros(T), np.zeros((T, d)) if decisions else None
        state = [np.zeros((N, d)), *(np.zeros(N) for _ in range(5)), *(np.zeros(d) for _ in range(3))]
        inputs = [np.ascontiguousarray(a, dtype=np.float64) for a in (features, labels, weights, 1 / weights)]
        given = [array.ctypes.data for array in inputs]
        rest = [array.ctypes.data for array in (*state, losses)] + [None if path is None else path.ctypes.data]
        start = time.process_time()
        self._library.track(T, d, *given, radius, tol, *rest)
        return Timed(time.process_time() - start, losses, path)
