"""Play a learner against a problem, from first round to last, and keep the bill."""

import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.html import fact_table
from thalweg._core.interrupts import Stop, interrupts
from thalweg._core.progress import progress_bar
from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_entries, check_flag, real_array, short_repr, wrong
from thalweg.domains._base import read_domain
from thalweg.errors import InputError
from thalweg.learners.base import Learner, Queries, check_takes_losses
from thalweg.learners.delayed_feedback import DelayedFeedback
from thalweg.losses._base import Loss
from thalweg.problems._base import Problem
from thalweg.problems.functions import FromLosses, FromValues
from thalweg.problems.linear_model import LinearModel

__all__ = ["Run", "play"]

QUERIES = ("projections", "gradients", "values")
BLOCK_SECONDS = 0.1  # how long compiled code runs between two looks at Ctrl-C and the progress bar


@dataclass(frozen=True)
class Run:
    """The record of a run, as `play` returns it.

    Attributes
    ----------
    losses : array (rounds,)
        f_t(x_t).
    queries : Queries
        Projections, gradients and values the learner used in these rounds.
    seconds : float
        Wall-clock time of the rounds. The first run in a process includes loading (or compiling) the kernels.
    decisions : array (rounds, *shape) or None
        x_t, where asked for.
    clipped : int
        Gradients scaled down to the bound.
    interrupted : bool
        Whether Ctrl-C was pressed: the run ends with the round that was being played.
    """

    losses: Floats
    queries: Queries
    seconds: float
    decisions: Floats | None = None
    clipped: int = 0
    interrupted: bool = False

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return int(self.losses.size)

    @property
    def total_loss(self) -> float:
        """Sum of the losses."""
        return float(self.losses.sum())

    def __repr__(self) -> str:
        rounds = max(1, self.rounds)
        per_round = ", ".join(f"{getattr(self.queries, name) / rounds:g} {name}" for name in QUERIES)
        return (
            f"Run({self.rounds} rounds, total loss {self.total_loss:.6g}, {self.seconds:.3g} s, a round: {per_round}"
            + (f", {self.clipped} clipped" if self.clipped else "")
            + (", interrupted)" if self.interrupted else ")")
        )

    def _repr_html_(self) -> str:
        rounds = max(1, self.rounds)
        counts = [(f"{name} a round", f"{getattr(self.queries, name) / rounds:g}") for name in QUERIES]
        facts = [
            ("rounds", self.rounds),
            ("total loss", f"{self.total_loss:.6g}"),
            ("mean loss", f"{self.total_loss / rounds:.6g}"),
            *counts,
            ("seconds", f"{self.seconds:.3g}"),
        ]
        facts += [("clipped gradients", self.clipped)] * bool(self.clipped)
        facts += [("interrupted", "yes")] * self.interrupted
        return fact_table("Run", facts)


def play(
    learner: Learner,
    problem: Problem | Iterable[Loss],
    *,
    rounds: int | None = None,
    delay: int | ArrayLike | None = None,
    decisions: bool = False,
    progress: bool = False,
) -> Run:
    """Play `learner` against the rounds of `problem` and return the record of the run.

    The learner goes on from the state it is in. Where the learner, its domain and the problem are all built in, the
    whole loop is compiled; otherwise each round is a `step`. Both are the same code: no bit differs.

    Parameters
    ----------
    learner : Learner
        Any learner, yours or ours: only `step`, `queries` and `domain` are used on the Python path.
    problem : Problem or iterable of losses
        The opponent.
    rounds : int, optional
        Play only this number of rounds; needed for an endless problem.
    delay : int or array of ints, optional
        For a learner with delayed feedback (`Delayed`, `EfficientDelayed`): the delay of each round in rounds,
        or that of all; negative: never. That of the learner when left out.
    decisions : bool
        Keep x_t for every round.
    progress : bool
        Show a progress bar (extra `lab`).

    Notes
    -----
    Ctrl-C ends the run after the current round and returns the rounds played; a second one interrupts at once. A round
    that must be refused raises, and the error names the round; the learner is then in the state just before that round.

    Examples
    --------
    >>> import numpy as np, thalweg as tw
    >>> problem = tw.problems.LinearRegression(np.ones((100, 2)), np.ones(100))
    >>> run = tw.play(tw.SOGD(tw.domains.Ball(2)), problem)
    >>> run.rounds, bool(run.losses[-1] < 1e-6)
    (100, True)
    """
    check_takes_losses("play", learner)
    if not (hasattr(learner, "step") and hasattr(learner, "domain")) or isinstance(learner, type):
        raise InputError(
            f"play needs a learner, then a problem: play(learner, problem). Got {short_repr(learner)} first."
        )
    if rounds is not None:
        rounds = check_count("play", "rounds", rounds)
    keep = check_flag("play", "decisions", decisions)
    shape = read_domain("play", learner.domain).shape
    if not isinstance(problem, Problem):
        if not isinstance(problem, Iterable) or (isinstance(problem, np.ndarray) and problem.ndim == 0):
            raise InputError(f"play needs a problem or an iterable of losses. Got {short_repr(problem)}.")
        kind = FromValues if getattr(learner, "values_only", False) else FromLosses
        problem = kind(itertools.islice(problem, rounds), shape=shape)
    if problem.shape != shape:
        raise InputError(f"play: the problem has decisions of shape {problem.shape}, the learner's domain {shape}.")
    T = problem.horizon
    if rounds is not None:
        T = rounds if T is None else min(T, rounds)
    if T is None:
        raise InputError("play: this problem has no end. Say how many rounds to play: play(..., rounds=1000).")

    delays = _read_delays(learner, delay, T)
    check_entries("play", "rounds", rounds, T * (learner.domain.dim if keep else 1))
    losses = np.empty(T)
    kept = np.empty((T if keep else 0, learner.domain.dim))
    before, clipped = learner.queries, getattr(learner, "clipped", 0)
    began = time.perf_counter()
    with interrupts() as stop, progress_bar("play", T, progress, "round") as tick:
        t = _play_rounds(learner, problem, T, losses, kept, delays, stop, tick)
    return Run(
        losses=losses[:t].copy(),
        queries=learner.queries - before,
        seconds=time.perf_counter() - began,
        decisions=kept[:t].reshape(t, *shape) if keep else None,
        clipped=getattr(learner, "clipped", 0) - clipped,
        interrupted=stop.asked,
    )


def _read_delays(learner: object, delay: object, T: int) -> list[int] | None:
    """Return the delay of each round; None: as the learner has it."""
    if delay is None:
        return None
    if not isinstance(learner, DelayedFeedback):
        raise InputError(
            f"play: {type(learner).__name__} takes no delayed feedback. Wrap it: "
            "Delayed(domain, make_learner, delay=...), or leave out 'delay'."
        )
    given = real_array(delay)
    if given is None or given.ndim > 1:
        raise wrong("play", "delay", "a whole number, or one for each round", delay)
    if given.ndim == 1 and given.size != T:
        raise InputError(f"The 'delay' parameter of play must have one entry for each of {T} rounds. Got {given.size}.")
    if given.ndim == 0:
        one = learner._read_delay(given.item(), "play")
        return None if one == learner.delay else [one] * T
    return [learner._read_delay(one, f"round {t} in play") for t, one in enumerate(given.tolist())]


def _play_rounds(
    learner: Any,
    problem: Problem,
    T: int,
    losses: Floats,
    kept: Floats,
    delays: list[int] | None,
    stop: Stop,
    tick: Callable[[int], object],
) -> int:
    """Rounds 0..T-1, in compiled blocks where there is a loop for these parts. Returns how many were played."""
    rounds = None
    if isinstance(learner, Learner) and isinstance(problem, LinearModel) and delays is None:
        rounds = learner._rounds(problem, losses, kept)
    block, t = min(2**15, max(1, 2**18 // learner.domain.dim)), 0  # the first one is short for any learner
    while t < T and not stop.asked:
        first, last = t, min(T, t + block)
        if rounds is not None:
            began = time.perf_counter()
            t = learner._play(problem, rounds, first, last)
            spent = time.perf_counter() - began
            if spent < BLOCK_SECONDS / 2 and t == last:
                block *= 2
            elif spent > 2 * BLOCK_SECONDS:
                block = max(1, block // 2)
        if t < last:  # no loop for these parts, or one round that it would not play: `step` says why
            if len(kept):
                kept[t] = learner.decision.ravel()
            try:
                losses[t] = learner.step(problem[t]) if delays is None else learner.step(problem[t], delay=delays[t])
            except Exception as error:
                error.add_note(f"In round {t} of the problem, counted from 0.")
                raise
            t += 1
        tick(t - first)
    return t
