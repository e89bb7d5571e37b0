"""Kernels of parts of one's own, played as plain Python functions, where every index is checked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from thalweg._core.state import Field, Part, Plan
from thalweg._core.types import AnyArray, Floats
from thalweg._kernels.jit import PLAIN, Kernel
from thalweg.learners import loop
from thalweg.learners.base import Learner
from thalweg.losses._base import Loss

__all__ = ["check_against_python"]

CLOSE = 1e-6  # relative difference that rounding may grow to in some rounds


def check_against_python(learner: Learner, twin: Learner, stream: Sequence[Loss]) -> None:
    """Play a learner compiled, and its twin in plain Python; only for machines with a part that is not the package's.

    All scratch space is nan at the beginning of a round: whatever a round reads it has written before.
    """
    machine, memory = learner.machine, twin._memory
    if PLAIN or not machine.looped or machine.guests or not machine.one_gradient or not _own(memory.block.plan):
        return
    for t, f in enumerate(stream):
        x = np.array(learner.decision)
        with _in_python():
            loop.ready.function(memory.unbound)
        y = machine.view(memory.state).reshape(x.shape)
        assert np.allclose(x, y, rtol=CLOSE, atol=CLOSE * twin.domain.radius), (
            f"round {t}: the compiled decision is {x.tolist()}, in plain Python it is {y.tolist()}. Does a kernel read "
            "an index that is not there, or scratch space before it has written it?"
        )
        _play(twin, np.asarray(f.gradient(x), dtype=np.float64).ravel(), float(f.value(x)))
        learner.step(f)


def _play(twin: Learner, g: Floats, paid: float) -> None:
    """Play a round in plain Python."""
    memory, status = twin._memory, loop.FULL
    while status == loop.FULL:
        for array in _scratch(memory.block.plan, memory.settings):
            array.fill(np.nan)
        twin._feedback.g[:] = g
        with _in_python():
            status = loop.update.function(memory.unbound, paid, np.inf, 0, True)
        if status == loop.FULL:
            memory.grow(twin.machine.larger(memory.state, memory.settings))
    assert status == loop.PLAYED, "a round is refused in plain Python, and not by compiled code"


@contextmanager
def _in_python() -> Iterator[None]:
    """Call kernels as the functions they are, and name the place where one fails."""
    usual, plain = Kernel.__call__, lambda kernel, *arguments: kernel.function(*arguments)
    Kernel.__call__ = plain  # type: ignore[method-assign, assignment]
    try:
        with np.errstate(all="ignore"):
            yield
    except (IndexError, ValueError, TypeError) as error:
        raise AssertionError(
            f"in plain Python, a kernel fails in {_innermost(error)}: {error}. (Scratch space is nan before a round.)"
        ) from error
    finally:
        Kernel.__call__ = usual  # type: ignore[method-assign]


def _innermost(error: BaseException) -> str:
    """Return function and line of the innermost frame."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return "" if frame is None else f"{frame.tb_frame.f_code.co_name}, line {frame.tb_lineno}"


def _own(plan: Plan) -> bool:
    """Whether a part of a plan is not the package's."""
    below = (*plan.parts.values(), *(one for several in plan.several.values() for one in several))
    return not plan.state.__module__.startswith("thalweg.") or any(map(_own, below))


def _scratch(plan: Plan, settings: Any) -> Iterator[AnyArray]:
    """Yield the scratch space of floats in settings."""
    for said, array in zip(plan.settings, settings, strict=True):
        if isinstance(said, Field) and array.dtype.kind == "f":
            yield array
    for one, theirs in _below(plan, settings):
        yield from _scratch(one, theirs)


def _below(plan: Plan, settings: Any) -> Iterator[tuple[Plan, Any]]:
    """Yield the plans of parts, and their settings."""
    for name, one in plan.parts.items():
        yield one, getattr(settings, name) if isinstance(getattr(plan.settings, name, None), Part) else ()
    for name, several in plan.several.items():
        theirs = getattr(settings, name) if hasattr(plan.settings, name) else [()] * len(several)
        yield from zip(several, theirs, strict=True)
