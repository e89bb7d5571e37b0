r"""Regret of a run, against any comparator, on any interval.

.. math:: \text{static: } \sum_t f_t(x_t) - \min_{u \in X} \sum_t f_t(u), \qquad
          \text{dynamic: } \sum_t f_t(x_t) - f_t(u_t)

and the same on an interval I = [r, s): adaptive regret is the largest static regret of the intervals of a length,
interval dynamic regret the largest dynamic one. Rounds count from 0, and an interval is [start, stop) as in Python.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.html import fact_table, row_table
from thalweg._core.progress import progress_bar
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_array, check_count, check_items, check_positive, short_repr, wrong
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.play import Run
from thalweg.problems._base import Problem
from thalweg.regret._rounds import check_problem, digest
from thalweg.regret.comparators import Comparator, best_fixed
from thalweg.regret.windows import Windows

__all__ = ["IntervalRegret", "Regret", "WorstInterval", "adaptive", "dynamic", "interval_dynamic", "static"]


@dataclass(frozen=True)
class Regret:
    """A regret and its comparator.

    Attributes
    ----------
    value : float
        The learner's loss minus the comparator's.
    gap : float
        The comparator may miss the best one by this: the true regret lies in [value, value + gap].
    loss : float
        The loss of the learner.
    comparator : Comparator
        u_t and its loss.
    """

    value: float
    gap: float
    loss: float
    comparator: Comparator

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        gap = f" (up to {self.gap:.2g} more)" if self.gap > 1e-9 * max(1.0, abs(self.value)) else ""
        return (
            f"Regret({self.value:.6g}{gap}: paid {self.loss:.6g}, comparator {self.comparator.loss:.6g} with path "
            f"length {self.comparator.path_length:.4g})"
        )

    def _repr_html_(self) -> str:
        return fact_table(
            "Regret",
            [
                ("regret", f"{self.value:.6g}"),
                ("at most this much more", f"{self.gap:.2g}"),
                ("paid", f"{self.loss:.6g}"),
                ("comparator paid", f"{self.comparator.loss:.6g}"),
                ("comparator's path length", f"{self.comparator.path_length:.4g}"),
            ],
        )


class WorstInterval(NamedTuple):
    """The interval [start, stop) of a length with the largest regret; `gap` as in `Regret`."""

    length: int
    regret: float
    gap: float
    start: int
    stop: int
    intervals: int
    exact: bool


@dataclass(frozen=True)
class IntervalRegret(Sequence[WorstInterval]):
    """The largest regret of the intervals of each length, a `WorstInterval` a length.

    Attributes
    ----------
    rows : tuple of WorstInterval
        One a length, shortest first.
    kind : str
        "adaptive" or "interval dynamic".
    """

    rows: tuple[WorstInterval, ...]
    kind: str
    run: str = ""  # a digest of the losses it was measured on; "" where it is not known

    @overload
    def __getitem__(self, k: int) -> WorstInterval: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[WorstInterval, ...]: ...
    def __getitem__(self, k: int | slice) -> WorstInterval | tuple[WorstInterval, ...]:
        return self.rows[k]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def worst(self) -> WorstInterval:
        """The interval with the largest regret of all."""
        return max(self.rows, key=lambda row: row.regret)

    def __repr__(self) -> str:
        lines = [f"{self.kind} regret: the worst interval of each length", _line("length", "regret", "gap", "interval")]
        for row in self.rows:
            grid = "" if row.exact else f"   of {row.intervals} looked at"
            lines.append(_line(row.length, f"{row.regret:.6g}", f"{row.gap:.1e}", f"[{row.start}, {row.stop})") + grid)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(row.length, row.regret, f"{row.gap:.1e}", f"[{row.start}, {row.stop})") for row in self.rows]
        title = f"{self.kind.capitalize()} regret: the worst interval of each length"
        return row_table(title, ("length", "regret", "gap", "interval"), rows)


def _line(*cells: object) -> str:
    return f"{cells[0]!s:>8}{cells[1]!s:>14}{cells[2]!s:>11}   {cells[3]}"


# ------------------------------------------------------------------------------------------------------- whole runs


def static(run: Run | ArrayLike, problem: Problem, domain: Domain, *, tol: float = 1e-9) -> Regret:
    r"""Regret against the best fixed decision: :math:`\sum_t f_t(x_t) - \min_{u \in X} \sum_t f_t(u)`.

    Parameters
    ----------
    run : Run or array (T,)
        The result of `play`, or the losses paid.
    problem : Problem
        The rounds that were played. A run shorter than the problem is measured on its own rounds.
    domain : Domain
        X.
    tol : float
        As for `best_fixed`.

    Returns
    -------
    Regret
        Negative for a learner that moves and so beats every fixed decision.

    Examples
    --------
    >>> import thalweg as tw
    >>> problem = tw.problems.LinearRegression([[1.0], [1.0]], [0.0, 1.0])
    >>> tw.regret.static([0.5, 0.5], problem, tw.domains.Ball(1)).value
    0.75
    """
    paid, problem = played("static", run, problem, domain)
    best = best_fixed(problem, domain, tol=tol)
    return Regret(float(paid.sum() - best.loss), best.gap, float(paid.sum()), best)


def dynamic(run: Run | ArrayLike, problem: Problem, comparators: Comparator | ArrayLike | None = None) -> Regret:
    r"""Regret against decisions that move: :math:`\sum_t f_t(x_t) - f_t(u_t)`.

    Parameters
    ----------
    run, problem
        As for `static`.
    comparators : Comparator or array (T, *shape), optional
        u_t: computed (`best_per_round`, `best_path`), given, or when left out the ones planted in the problem.

    Examples
    --------
    >>> import thalweg as tw
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=100, stages=4, rng=0)
    >>> run = tw.play(tw.SOGD(ball), problem)
    >>> float(tw.regret.dynamic(run, problem)) > 0
    True
    """
    paid, problem = played("dynamic", run, problem, None)
    against = comparator_of("dynamic", problem, comparators)
    return Regret(float(paid.sum() - against.loss), against.gap, float(paid.sum()), against)


# -------------------------------------------------------------------------------------------------------- intervals


def adaptive(
    run: Run | ArrayLike,
    problem: Problem,
    domain: Domain,
    *,
    lengths: str | Sequence[int] = "dyadic",
    stride: int | None = 1,
    tol: float = 1e-9,
    progress: bool = False,
) -> IntervalRegret:
    r"""Adaptive regret: for each length, the largest static regret of an interval of that length.

    .. math:: \max_{r} \left( \sum_{t=r}^{r+\tau-1} f_t(x_t) - \min_{u \in X} \sum_{t=r}^{r+\tau-1} f_t(u) \right)

    Parameters
    ----------
    run, problem, domain, tol
        As for `static`.
    lengths : "dyadic", "all" or sequence of int
        tau: 1, 2, 4, ... and T; every length from 1 to T (T^2/2 intervals: for short runs, or with a stride); or these.
    stride : int or None
        Look at intervals that start at multiples of it, and at the last one. 1 looks at all: the maximum is exact. None
        takes the length itself: intervals side by side, as in a dyadic partition.
    progress : bool
        Show a progress bar (extra `lab`).

    Examples
    --------
    >>> import thalweg as tw
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=100, stages=4, rng=0)
    >>> run = tw.play(tw.SOGD(ball), problem)
    >>> by_length = tw.regret.adaptive(run, problem, ball, lengths=[10, 100])
    >>> [(row.length, row.intervals, row.exact) for row in by_length]
    [(10, 91, True), (100, 1, True)]
    """
    paid, problem = played("adaptive", run, problem, domain)
    windows = Windows(problem, domain, check_positive("adaptive", "tol", tol))
    sums = WindowSums(paid)
    step = None if stride is None else check_count("adaptive", "stride", stride)
    grids = [(tau, *_starts(paid.size, tau, step)) for tau in _lengths("adaptive", paid.size, lengths)]
    rows = []
    with progress_bar("adaptive", sum(starts.size for _, starts, _ in grids), progress, "interval") as tick:
        for tau, starts, exact in grids:
            points, best, gaps, rounding = windows.fits(starts, starts + tau, tick)
            lost, error = sums.of(starts, tau)

            def regret(k: int, r: int, s: int, points=points) -> float:  # type: ignore[no-untyped-def]
                w = points[k].reshape(problem.shape)
                return float(paid[r:s].sum() - problem[r:s].losses_of(w).sum())

            rows.append(_worst(tau, regret, lost - best, error + rounding, error + gaps, starts, exact))
    return IntervalRegret(tuple(rows), "adaptive", digest(paid))


def interval_dynamic(
    run: Run | ArrayLike,
    problem: Problem,
    comparators: Comparator | ArrayLike | None = None,
    *,
    lengths: str | Sequence[int] = "dyadic",
) -> IntervalRegret:
    r"""Interval dynamic regret: for each length, the largest :math:`\sum_{t \in I} f_t(x_t) - f_t(u_t)`, exactly.

    Parameters
    ----------
    run, problem, comparators
        As for `dynamic`.
    lengths : "dyadic", "all" or sequence of int
        As for `adaptive`. All intervals of each length are looked at.

    Examples
    --------
    >>> import thalweg as tw
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=100, stages=4, rng=0)
    >>> run = tw.play(tw.SOGD(ball), problem)
    >>> by_length = tw.regret.interval_dynamic(run, problem)
    >>> by_length[-1].regret == tw.regret.dynamic(run, problem).value
    True
    """
    paid, problem = played("interval_dynamic", run, problem, None)
    against = comparator_of("interval_dynamic", problem, comparators)
    sums, minus = WindowSums(paid), WindowSums(against.losses)

    def regret(k: int, r: int, s: int) -> float:
        return float(paid[r:s].sum() - against.losses[r:s].sum())

    rows = []
    for tau in _lengths("interval_dynamic", paid.size, lengths):
        starts = np.arange(paid.size - tau + 1)
        (lost, error), (best, more) = sums.of(starts, tau), minus.of(starts, tau)
        rows.append(_worst(tau, regret, lost - best, error + more, error + more, starts, True))
    return IntervalRegret(tuple(rows), "interval dynamic", digest(paid))


class WindowSums:
    """Sums of terms over many windows, and bounds on their rounding errors.

    They are put together from sums over 1, 2, 4, ... terms, so no window holds the rounding of terms outside of it.
    """

    def __init__(self, terms: Floats) -> None:
        self.levels = self._doubled(terms)
        self.sizes = self.levels if (terms >= 0).all() else self._doubled(np.abs(terms))

    @staticmethod
    def _doubled(terms: Floats) -> list[Floats]:
        levels = [terms]
        while 2 * (half := 1 << (len(levels) - 1)) <= terms.size:
            levels.append(levels[-1][:-half] + levels[-1][half:])
        return levels

    def of(self, starts: Ints, length: int) -> tuple[Floats, Floats]:
        """Of the terms of every window [start, start + length)."""
        total, size, at = np.zeros(starts.size), np.zeros(starts.size), starts
        for k in range(length.bit_length()):
            if length >> k & 1:
                total += self.levels[k][at]
                size += self.sizes[k][at]
                at = at + (1 << k)
        return total, 2 * length.bit_length() * float(np.finfo(np.float64).eps) * size


def _worst(
    tau: int,
    regret: Callable[[int, int, int], float],
    regrets: Floats,
    errors: Floats,
    gaps: Floats,
    starts: Ints,
    exact: bool,
) -> WorstInterval:
    """The interval whose regret is largest for certain, with `regret` as its definition says.

    `regrets` are known up to `errors` either way, and at most `gaps` more.
    """
    k = int(np.argmax(regrets - errors))
    start = int(starts[k])
    value = regret(k, start, start + tau)
    # Another interval may be the worst one once its gap is counted.
    gap = max(float((regrets + gaps).max()) - value, 0.0)
    return WorstInterval(tau, value, gap, start, start + tau, starts.size, exact)


def _starts(T: int, tau: int, stride: int | None) -> tuple[Ints, bool]:
    """Where the intervals of a length start, and whether these are all of them."""
    step = tau if stride is None else stride
    starts = np.arange(0, T - tau + 1, step)
    if starts[-1] != T - tau:
        starts = np.append(starts, T - tau)
    return starts, starts.size == T - tau + 1


def _lengths(owner: str, T: int, lengths: str | Sequence[int]) -> list[int]:
    if isinstance(lengths, str) and lengths == "dyadic":
        return sorted({2**k for k in range(T.bit_length()) if 2**k <= T} | {T})
    if isinstance(lengths, str) and lengths == "all":
        return list(range(1, T + 1))
    given = check_items(owner, "lengths", lengths, "'dyadic', 'all' or whole numbers")
    found = sorted({check_count(owner, "lengths", tau) for tau in given})
    if not found or found[-1] > T:
        raise wrong(owner, "lengths", f"numbers from 1 to {T}, the rounds", lengths)
    return found


# ----------------------------------------------------------------------------------------------------------- inputs


def played(owner: str, run: Run | ArrayLike, problem: Problem, domain: Domain | None) -> tuple[Floats, Problem]:
    """The losses paid, and the problem cut to the rounds that were played."""
    paid = run.losses if isinstance(run, Run) else check_array(owner, "run", run, ndim=1)
    if domain is not None:
        problem = check_problem(owner, problem, domain)
    elif not isinstance(problem, Problem):
        raise InputError(f"{owner} needs a thalweg problem. Got {short_repr(problem)}.")
    if paid.size == 0 or (problem.horizon is not None and paid.size > problem.horizon):
        raise InputError(f"{owner} got {paid.size} losses paid for a problem of {problem.horizon} rounds.")
    return paid, problem if paid.size == problem.horizon else problem[: paid.size]


def comparator_of(owner: str, problem: Problem, given: Comparator | ArrayLike | None) -> Comparator:
    if isinstance(given, Comparator):
        if len(given.losses) != len(problem):
            raise InputError(f"{owner}: the comparator has {len(given.losses)} rounds, the run {len(problem)}.")
        return given
    if given is None:
        given = getattr(problem, "comparators", None)
        if given is None:
            raise InputError(
                f"{owner} needs comparators: this problem has none planted. Pass decisions of shape "
                f"{(len(problem), *problem.shape)}, or compute them: best_fixed, best_per_round, best_path."
            )
    losses = problem.losses_of(given)
    decisions = np.array(given, dtype=np.float64)
    if decisions.shape == problem.shape:
        decisions = np.broadcast_to(decisions, (len(problem), *problem.shape))
    return Comparator(decisions.reshape(len(problem), *problem.shape), losses, 0.0)
