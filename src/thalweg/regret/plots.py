"""Pictures of runs: loss, regret against its bound, regret by interval length, and the experts of a cover.

Every function draws on the Axes it is given, or on a new figure, and returns the Axes. None prints, shows, or changes a
setting of matplotlib (extra `lab`). A new figure is no figure of pyplot: in a notebook end the cell with `ax.figure`,
in a script call `ax.figure.savefig("picture.png")`.

Titles and axis labels that the Axes already has are kept. Colours are those of Okabe and Ito, which the colour-blind
can tell apart; solid lines are learners, dashed ones comparators and bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats, Ints
from thalweg._core.validate import (
    check_array,
    check_count,
    check_flag,
    check_items,
    check_text,
    real_number,
    short_repr,
)
from thalweg.errors import InputError
from thalweg.play import Run
from thalweg.problems._base import Problem
from thalweg.regret._axes import axes, colors, describe, legend
from thalweg.regret.comparators import Comparator
from thalweg.regret.covers import CoverExpert, CoverRecord, cover, record_cover
from thalweg.regret.measures import IntervalRegret, dynamic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CoverExpert",
    "CoverRecord",
    "cover",
    "cumulative_loss",
    "record_cover",
    "regret_by_length",
    "regret_over_time",
]


FAR = 10.0  # a bound this many times the regret asks for a logarithmic axis


# ------------------------------------------------------------------------------------------------------------- curves


def cumulative_loss(
    runs: Mapping[str, object],
    *,
    comparators: Mapping[str, object] | None = None,
    log: bool = False,
    ax: Axes | None = None,
) -> Axes:
    r"""The cumulative loss of each learner: :math:`\sum_{s \le t} f_s(x_s)`.

    Parameters
    ----------
    runs : mapping of name to Run, losses (T,), or a list of these
        Several runs under one name, for instance one a seed, are drawn as their mean with a band of one standard
        deviation (that of a sample, ddof = 1) on both sides.
    comparators : mapping of name to Comparator, losses (T,), or a list of these, optional
        Drawn dashed, over the same rounds.
    log : bool
        Whether both axes are logarithmic: losses that are orders of magnitude apart, and powers of t as lines. Sums
        <= 0 are left out.
    ax : Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> import thalweg as tw
    >>> from thalweg.regret import plots
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=100, stages=4, rng=0)
    >>> run = tw.play(tw.SOGD(ball), problem)
    >>> ax = plots.cumulative_loss({"SOGD": run}, comparators={"best fixed": tw.regret.best_fixed(problem, ball)})
    >>> [line.get_label() for line in ax.get_lines()]
    ['SOGD', 'best fixed']
    """
    owner = "cumulative_loss"
    log = check_flag(owner, "log", log)
    solid = _tables(owner, "runs", runs)
    dashed = _tables(owner, "comparators", {} if comparators is None else comparators)
    T = max(table.shape[1] for table in solid.values()) if solid else None
    for name, table in dashed.items():
        if T is not None and table.shape[1] != T:
            raise InputError(f"{owner}: the comparator {name!r} has {table.shape[1]} rounds, the longest run {T}.")
    if not solid and not dashed:
        raise InputError(f"{owner} needs at least one run. Got {short_repr(runs)}.")
    ax, own = axes(owner, ax)
    for tables, dash in ((solid, False), (dashed, True)):
        lines = colors(ax, reverse=dash)
        for name, table in tables.items():
            color, style = next(lines)
            sums = np.cumsum(table, axis=1)
            t = np.arange(1, sums.shape[1] + 1)
            mean = sums.mean(axis=0)
            ax.plot(t, mean, color=color, linestyle="--" if dash else style, linewidth=1.6, label=name)
            if len(sums) > 1:
                spread = sums.std(axis=0, ddof=1)
                ax.fill_between(t, mean - spread, mean + spread, color=color, alpha=0.2, linewidth=0)
    counts = {len(table) for table in [*solid.values(), *dashed.values()]} - {1}
    number = counts.pop() if len(counts) == 1 else "several" if counts else None
    band = "" if number is None else f": mean of {number} runs ± standard deviation"
    describe(ax, "rounds played", "cumulative loss", "Cumulative loss" + band)
    if log:
        ax.set_xscale("log")
        ax.set_yscale("log", nonpositive="mask")
    ax.margins(x=0.01)
    legend(ax, own)
    return ax


def regret_over_time(
    run: Run | ArrayLike,
    problem: Problem,
    comparator: Comparator | ArrayLike | None = None,
    *,
    bound: ArrayLike | Callable[[int], float] | None = None,
    label: str = "regret",
    ax: Axes | None = None,
) -> Axes:
    r"""Regret so far against one comparator: :math:`\sum_{s \le t} f_s(x_s) - f_s(u_s)`, and its bound.

    Parameters
    ----------
    run, problem, comparator
        As for `thalweg.regret.dynamic`. The comparator is the same for all t: the best one of all T rounds need not be
        the best one of the first t.
    bound : float, array (T,) or callable, optional
        The bound of the theorem after t rounds: a number for all t, one for each t = 1, ..., T, or a function of t.
        Dashed. Where it lies far above the regret (ten times), the axis becomes logarithmic, and regret <= 0 is left
        out. Where the regret is above it, the space between is hatched.
    label : str
        The name of this regret in the legend.
    ax : Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> import thalweg as tw
    >>> from thalweg.regret import plots
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=100, stages=4, rng=0)
    >>> run = tw.play(tw.SOGD(ball), problem)
    >>> ax = plots.regret_over_time(run, problem, bound=lambda t: 50 * t**0.5)
    >>> [line.get_label() for line in ax.get_lines()]
    ['regret', 'bound']
    """
    owner = "regret_over_time"
    paid = run.losses if isinstance(run, Run) else check_array(owner, "run", getattr(run, "losses", run), ndim=1)
    regret = np.cumsum(paid - dynamic(paid, problem, comparator).comparator.losses)
    t = np.arange(1, paid.size + 1)
    allowed = None if bound is None else _bound(owner, bound, t)
    ax, own = axes(owner, ax)
    lines = colors(ax)
    color, style = next(lines)
    ax.plot(
        t, regret, color=color, linestyle=style, linewidth=1.6, label=check_text("regret_over_time", "label", label)
    )
    if allowed is None and ax.get_yscale() == "linear":
        ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
    if allowed is not None:
        name = "bound" if label == "regret" else f"bound, {label}"
        ax.plot(t, allowed, color=color, linestyle="--", linewidth=1.6, label=name)
        above = regret > allowed
        if above.any():
            ax.fill_between(
                t, allowed, regret, where=above.tolist(), facecolor="none", edgecolor="0.35", hatch="////",
                linewidth=0, label="above the bound",
            )  # fmt: skip
        if 0 < regret.max() < np.max(allowed, where=np.isfinite(allowed), initial=0.0) / FAR:
            ax.set_yscale("log", nonpositive="mask")
    describe(ax, "rounds played", "cumulative regret", "Regret over time")
    ax.margins(x=0.01)
    legend(ax, own)
    return ax


def regret_by_length(
    *measured: IntervalRegret, bound: object = None, labels: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """The largest regret of the intervals of each length, and the bound.

    Lengths are on a logarithmic axis, and so are the regrets. A regret <= 0 has no place on it: a triangle at the
    bottom. An open circle is a maximum over a grid of intervals: the true one may be larger.

    Parameters
    ----------
    *measured : IntervalRegret
        Results of `thalweg.regret.adaptive` and `interval_dynamic`.
    bound : mapping, certificate or rows, optional
        Length -> number; or a `Certificate`, or a selection of its rows: anything with `start`, `stop` and `bound`.
        The intervals of one length can have different bounds. The dashed line is then the smallest of them and the
        band goes up to the largest: a regret below the band is allowed on whichever interval it was, one above it is
        not, and for one inside `certificate.holds` decides.
    labels : sequence of str, optional
        The names in the legend. The kinds of regret when left out.
    ax : Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> import thalweg as tw
    >>> from thalweg.regret import plots
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=100, stages=4, rng=0)
    >>> run = tw.play(tw.SOGD(ball), problem)
    >>> by_length = tw.regret.adaptive(run, problem, ball)
    >>> ax = plots.regret_by_length(by_length, bound={1: 50.0, 100: 500.0}, labels=["SOGD"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['SOGD', 'bound', 'regret ≤ 0']
    """
    owner = "regret_by_length"
    if not measured or not all(isinstance(one, IntervalRegret) for one in measured):
        raise InputError(
            f"{owner} needs the result of thalweg.regret.adaptive or interval_dynamic. Got {short_repr(measured)}."
        )
    names = _names(owner, measured, labels)
    of = getattr(bound, "run", "")
    if of and all(one.run not in ("", of) for one in measured):
        raise InputError(f"{owner}: the certificate is of another run than the regret. Give that of the same run.")
    allowed = None if bound is None else _bounds_by_length(owner, bound)
    ax, own = axes(owner, ax)
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator

    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    lines = colors(ax)
    notes: dict[str, Line2D] = {}
    grey: dict[str, Any] = {"color": "0.35", "linestyle": "none", "markersize": 4.5}
    for rank, (one, name) in enumerate(zip(measured, names, strict=True)):
        color, style = next(lines)
        lengths = np.array([row.length for row in one], dtype=np.float64)
        regrets = np.array([row.regret for row in one])
        exact = np.array([row.exact for row in one], dtype=bool)
        shown = regrets > 0
        curve = np.where(shown, regrets, np.nan)
        ax.plot(lengths, curve, color=color, linestyle=style, linewidth=1.6, label=name)
        for mask, inside in ((shown & exact, color), (shown & ~exact, "white")):
            if mask.any():
                ax.plot(lengths[mask], regrets[mask], "o", color=color, markerfacecolor=inside, markersize=4.5)
        if (shown & ~exact).any():
            notes["on a grid: may be larger"] = Line2D([], [], **grey, marker="o", markerfacecolor="white")
        if not shown.all():
            bottom = np.full(np.count_nonzero(~shown), 0.025 + 0.03 * rank)  # of the height
            place = ax.get_xaxis_transform()
            ax.plot(lengths[~shown], bottom, "v", color=color, markersize=4.5, transform=place)
            notes["regret ≤ 0"] = Line2D([], [], **grey, marker="v")
    if allowed is not None:
        lengths, low, high = allowed
        dashed = ax.plot(lengths, low, color="0.25", linestyle="--", linewidth=1.6, label="bound")[0]
        if (high > low).any():
            dashed.set_label("bound: smallest to largest")
            ax.fill_between(lengths, low, high, color="0.25", alpha=0.15, linewidth=0)
    ax.xaxis.set_major_locator(LogLocator(base=2, numticks=10))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    describe(ax, "length of the interval [rounds]", "largest regret of such an interval", "Regret by interval length")
    legend(ax, own, notes)
    return ax


def _tables(owner: str, parameter: str, given: object) -> dict[str, Floats]:
    """Losses by name, a row a run."""
    if not isinstance(given, Mapping):
        raise InputError(
            f"The '{parameter}' parameter of {owner} must map names to runs, such as {{'SOGD': run}}. "
            f"Got {short_repr(given)}."
        )
    return {str(name): _table(owner, f"{parameter}[{name!r}]", value) for name, value in given.items()}


def _table(owner: str, parameter: str, value: object) -> Floats:
    losses = getattr(value, "losses", value)
    if isinstance(losses, list | tuple) and any(hasattr(one, "losses") or np.ndim(one) for one in losses):
        rows = [check_array(owner, parameter, getattr(one, "losses", one), ndim=1) for one in losses]
        lengths = sorted({row.size for row in rows})
        if len(lengths) > 1:
            raise InputError(
                f"The '{parameter}' parameter of {owner} must hold runs of the same length. Got {lengths} rounds."
            )
        losses = rows
    table = np.atleast_2d(check_array(owner, parameter, losses))
    if table.ndim != 2 or table.size == 0:
        raise InputError(f"The '{parameter}' parameter of {owner} must hold losses (T,). Got shape {table.shape}.")
    return table


def _bound(owner: str, bound: object, t: Ints) -> Floats:
    """The bound after t rounds, for all t."""
    if callable(bound):
        bound = [float(bound(int(s))) for s in t]
    values = check_array(owner, "bound", bound, finite=False)
    return np.full(t.size, values) if values.ndim == 0 else check_array(owner, "bound", values, (t.size,), finite=False)


def _bounds_by_length(owner: str, bound: object) -> tuple[Floats, Floats, Floats]:
    """Lengths, and the smallest and the largest bound of each."""
    if isinstance(bound, Mapping):
        pairs: Iterable[tuple[object, object]] = bound.items()
    else:
        rows = check_items(owner, "bound", getattr(bound, "rows", bound), "lengths with bounds, or a certificate")
        if not all(hasattr(row, name) for row in rows for name in ("start", "stop", "bound")):
            raise _no_bound(owner, bound)
        pairs = [(row.stop - row.start, row.bound) for row in rows]
    found: dict[int, list[float]] = {}
    for length, value in pairs:
        number = real_number(value)
        if math.isnan(number):
            raise _no_bound(owner, bound)
        found.setdefault(check_count(owner, "bound", length), []).append(number)
    if not found:
        raise _no_bound(owner, bound)
    lengths = sorted(found)
    low, high = ([pick(found[n]) for n in lengths] for pick in (min, max))
    return np.array(lengths, dtype=np.float64), np.array(low), np.array(high)


def _no_bound(owner: str, bound: object) -> InputError:
    return InputError(
        f"The 'bound' parameter of {owner} must map lengths to numbers, or be a certificate, or rows with start, stop "
        f"and bound. Got {short_repr(bound)}."
    )


def _names(owner: str, measured: Sequence[IntervalRegret], labels: Sequence[str] | None) -> list[str]:
    if labels is not None:
        names = [] if isinstance(labels, str) else check_items(owner, "labels", labels, "a list of names")
        if len(names) != len(measured):
            raise InputError(
                f"The 'labels' parameter of {owner} must hold {len(measured)} names. Got {short_repr(labels)}."
            )
        return [short_repr(name) if not isinstance(name, str) else name for name in names]
    kinds = [f"{one.kind} regret" for one in measured]
    return [kind if kinds.count(kind) == 1 else f"{kind} {kinds[: k + 1].count(kind)}" for k, kind in enumerate(kinds)]
