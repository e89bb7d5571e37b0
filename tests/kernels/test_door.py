"""The door to compiled code: what is wrong is refused before an address is taken. It never ends the process."""

import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import thalweg as tw
from thalweg._kernels import jit, projections
from thalweg._kernels.handle import bind
from thalweg._kernels.kinds import address, formats, kind, numbers, split, words
from thalweg._kernels.pointers import Pointer
from thalweg.learners import loop

HOSTILE = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None  # nothing can be compiled: what has no machine code is an error
import numpy as np
import thalweg as tw
from thalweg._kernels import jit, projections, hulls, vectors
from thalweg.learners import loop


rng = np.random.default_rng(int(sys.argv[1]))
box = tw.domains.Box(-1.0, 1.0, shape=3)
fine = np.zeros(3)
frozen = np.zeros(3); frozen.flags.writeable = False
odd = [
    None, 1, 1.5, True, "text", b"bytes", 10**400, -(2**63), 2**63, np.nan, np.inf, 1j, object(), [], [1.0, 2.0], {},
    (), (fine,), fine.astype(np.float32), fine.astype(np.int64), fine.astype(">f8"), fine.astype(complex),
    fine.astype(object), np.array(["a", "b", "c"]), np.zeros((3, 3)), np.zeros((3, 3)).T[:, 1], np.zeros(6)[::2],
    np.zeros(3)[::-1], np.zeros(0), np.zeros((0, 3)), np.zeros(2), np.zeros(4), np.zeros((1, 3)), np.zeros((3, 1)),
    np.array(1.0), frozen, np.ma.masked_array(fine, [0, 1, 0]), np.matrix([[1.0, 2.0, 3.0]]),
    np.frombuffer(bytes(25), dtype="u1")[1:].view("f8"), np.float32(1), np.int8(1), np.datetime64("2020-01-01"),
    np.zeros(3, dtype=[("a", "f8")]), fine, lambda x: x, type, jit.kernel, memoryview(bytes(24)),
]
bad = [one for one in odd if not isinstance(one, (int, float, np.ndarray, tuple, type(None), np.generic))]
bad += [one for one in odd if isinstance(one, np.ndarray) and one.dtype != np.float64]
made = [tw.EfficientDynamic(box, 100, 10.0), tw.Tracker(box), tw.SOGD(box), tw.EfficientAdaptive(box, 100, 10.0, 1.0)]
handles = [one._memory.handle for one in made]
kernels = [one for one in jit.KERNELS if one.__module__.startswith("thalweg.")]
calls = refused = 0
for _ in range(int(sys.argv[2])):
    def any_one():
        return odd[rng.integers(len(odd))]
    try:
        calls += 1
        which = rng.integers(4)
        if which == 0:  # a kernel with anything: only what has machine code for exactly these arguments runs
            one = kernels[rng.integers(len(kernels))]
            given = [any_one() for _ in range(rng.integers(0, 6))]
            one(*given[:2], bad[rng.integers(len(bad))], *given[2:])  # lengths are checked by those who call kernels
        elif which == 1:
            box.project(any_one())
        elif which == 2:  # a learner
            one = made[rng.integers(len(made))]
            one.update(any_one(), any_one())
        else:
            handle = handles[rng.integers(len(handles))]
            loop.update(handle, any_one(), any_one(), any_one(), any_one())
    except Exception:
        refused += 1
for one in made:
    assert np.isfinite(one.decision).all()
print(calls, refused)
"""


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_ten_thousand_hostile_calls_end_in_errors_and_never_in_a_crash(seed):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HOSTILE, str(seed), "10000"], capture_output=True, text=True
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    calls, refused = map(int, done.stdout.split())
    assert calls == 10000
    assert refused > 7000


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros(3), "f8[1]"),
        (np.zeros((2, 3)), "f8[2]"),
        (np.zeros((2, 3)).T, "f8[2]A"),
        (np.zeros(6)[::2], "f8[1]A"),
        (np.zeros(3, dtype=np.int64), "i8[1]"),
        (np.zeros(3, dtype=bool), "b1[1]"),
        (np.broadcast_to(np.zeros(1), 3), "f8[1]Ar"),
    ],
)
def test_kinds_of_arrays(array, expected):
    assert kind(array) == expected
    row = []
    words(array, row)
    assert len(row) == numbers(expected)
    assert row[0] == address(array) == array.ctypes.data


def test_kinds_of_numbers_and_trees():
    for value, expected in ((1.0, "f8"), (np.float64(1), "f8"), (np.float32(1), "f8"), (1, "i8"), (np.int32(1), "i8")):
        assert kind(value) == expected
    assert [kind(v) for v in (True, np.bool_(True), None)] == ["b1", "b1", "none"]
    assert kind((1.0, np.zeros(2), (3,))) == "(f8,f8[1],(i8))"
    assert formats("(f8,f8[1],(i8))") == "dqqq"
    assert split("a(b,c),d[1],@f(g,h)") == ["a(b,c)", "d[1]", "@f(g,h)"]
    handle = bind((1.0, np.zeros(2)))
    assert kind(handle) == "*(f8,f8[1])"
    assert kind(projections.BALL) == "@none(f8[1],f8[1],f8[1],f8[1])"


@pytest.mark.parametrize(
    "bad", [np.zeros(2, dtype=">f8"), np.zeros(2, dtype=complex), np.zeros(2, dtype=object), "text", 1j]
)
def test_what_kernels_cannot_take_has_no_kind(bad):
    with pytest.raises(TypeError, match="kernels take"):
        kind(bad)


def test_an_integer_that_is_too_large_is_refused():
    learner = tw.SOGD(tw.domains.Ball(2))
    with pytest.raises(Exception, match=r"int too large|out of range|argument|Python int"):
        loop.update(learner._memory.handle, 0.0, 1.0, 2**70, True)


@jit.kernel
def first(a):
    return a[0]


def test_a_handle_keeps_its_arrays():
    """Compiled code reads memory that nobody else refers to."""
    handle = bind((np.full(1000, 3.0),))
    gc.collect()
    junk = [np.zeros(1000) for _ in range(50)]
    assert handle.tree[0][0] == 3.0
    assert junk[0][0] == 0.0


def test_runs_release_the_interpreter():
    """While `play` runs, another thread counts."""
    domain = tw.problems.paper_ellipsoid(8)
    problem = tw.problems.piecewise_stationary(domain, 100_000, 25, rng=0)
    learner = tw.EfficientDynamic(domain, 200_000, 54.3, 9.0, loss_bound=164.0)
    tw.play(learner, problem, rounds=10)
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    counted[0] = 0
    tw.play(learner, problem)
    seen = counted[0]
    stop.set()
    thread.join()
    assert seen > 10  # with the interpreter held it would stand still


def test_pointers_know_their_signature():
    pointer = Pointer(first, "f8(f8[1])")
    assert pointer.known == ("f8[1]",)
    assert pointer(np.array([2.0, 3.0])) == 2.0
