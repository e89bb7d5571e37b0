"""Pictures of intervals: how much they cover over time, how wide they are, and how they lie around the series.

Every function takes intervals as `ConformalTracker.run` returns them, an array (T, 2) or a data frame with the columns
low and high, and returns matplotlib Axes. Nothing global changes, nothing is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_count, real_number, wrong
from thalweg.errors import InputError
from thalweg.estimators._frames import column, named
from thalweg.regret._axes import axes, colors, describe, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["band", "coverage_over_time", "width_over_time"]

RED, GREY = "#d55e00", "0.35"
FAR = 30.0  # widths whose largest is this many times the smallest get a logarithmic axis


def coverage_over_time(
    y: object, bands: object, *, coverage: float = 0.9, window: int = 100, ax: Axes | None = None
) -> Axes:
    """The share of the last `window` answers that were inside, with the target.

    Between the grey lines lie 95 % of such shares where every round is inside with the wanted chance, by itself.

    Parameters
    ----------
    y : array or series
        The observations.
    bands : array (T, 2), data frame, or a mapping of names to them
        The intervals.
    coverage : float
        The coverage asked for.
    window : int
        Rounds that a share is taken of.
    ax : Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import ConformalTracker, interval_plots
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> ax = interval_plots.coverage_over_time(y, ConformalTracker().run(np.zeros(1000), y))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['intervals', 'asked for: 0.9', '95 % by chance alone']
    """
    owner = "coverage_over_time"
    came, found = _read(owner, y, bands)
    n = check_count(owner, "window", window, most=max(came.size, 1))
    asked = real_number(coverage)
    if not 0 < asked < 1:
        raise wrong(owner, "coverage", "a number between 0 and 1", coverage)
    ax, own = axes(owner, ax)
    inside = {name: (limits[:, 0] <= came) & (came <= limits[:, 1]) for name, limits in found.items()}
    _draw_means(ax, inside, n)
    ax.axhline(asked, color="black", linestyle="--", linewidth=1.2, label=f"asked for: {asked:g}")
    away = 1.96 * math.sqrt(asked * (1 - asked) / n)
    for place, label in ((asked - away, "95 % by chance alone"), (min(asked + away, 1.0), None)):
        ax.axhline(place, color="0.6", linewidth=0.8, label=label, zorder=0)
    return _finished(ax, own, f"share inside, last {n} rounds", "Local coverage")


def width_over_time(bands: object, *, window: int = 100, ax: Axes | None = None) -> Axes:
    """The mean width of the last `window` intervals.

    Parameters
    ----------
    bands, window, ax
        As for `coverage_over_time`.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import ConformalTracker, interval_plots
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> interval_plots.width_over_time(ConformalTracker().run(np.zeros(1000), y)).get_ylabel()
    'mean width, last 100 rounds'
    """
    owner = "width_over_time"
    _, found = _read(owner, None, bands)
    T = min(limits.shape[0] for limits in found.values())
    n = check_count(owner, "window", window, most=max(T, 1))
    ax, own = axes(owner, ax)
    widths = _draw_means(ax, {name: limits[:, 1] - limits[:, 0] for name, limits in found.items()}, n)
    if 0 < min(map(np.min, widths)) < max(map(np.max, widths)) / FAR:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0.0)
    return _finished(ax, own, f"mean width, last {n} rounds", "Width")


def band(y: object, limits: object, *, first: int = 0, last: int | None = None, ax: Axes | None = None) -> Axes:
    """Draw the series with the intervals around it, and the points missed.

    Parameters
    ----------
    y : array or series
        The observations.
    limits : array (T, 2) or data frame
        The intervals.
    first, last : int
        Which rounds to draw, counted from 0; all when left out.
    ax : Axes, optional
        Where to draw; a new figure when left out.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import ConformalTracker, interval_plots
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=300))
    >>> ax = interval_plots.band(y[1:], ConformalTracker().run(y[:-1], y[1:]), first=200)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['interval', 'inside', 'missed: 9 of 99']
    """
    owner = "band"
    came, found = _read(owner, y, limits)
    if len(found) != 1:
        raise wrong(owner, "limits", "one array (T, 2) or data frame", len(found))
    edges = next(iter(found.values()))
    a = check_count(owner, "first", first, least=0, most=max(came.size - 1, 0))
    b = came.size if last is None else check_count(owner, "last", last, least=a + 1, most=came.size)
    rounds, came, edges = np.arange(a, b), came[a:b], edges[a:b]
    missed = (came < edges[:, 0]) | (came > edges[:, 1])
    ax, own = axes(owner, ax)
    size = 3.5 if b - a <= 400 else 2.0
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0}
    ax.fill_between(
        rounds, edges[:, 0], edges[:, 1], color="#0072b2", alpha=0.25, linewidth=0, step="mid", label="interval"
    )
    ax.plot(rounds[~missed], came[~missed], color=GREY, markersize=size, label="inside", **dots)
    label = f"missed: {missed.sum():,} of {b - a:,}"
    ax.plot(rounds[missed], came[missed], color=RED, markersize=2 * size, label=label, **dots)
    return _finished(ax, own, "y", "Intervals")


def _draw_means(ax: Axes, values: Mapping[str, NDArray[np.generic]], n: int) -> list[Floats]:
    """Draw means of n in a row, a line for each name, and return them."""
    found: list[Floats] = []
    for (name, one), (color, style) in zip(values.items(), colors(ax), strict=False):
        sums = np.concatenate([[0.0], np.cumsum(one, dtype=np.float64)])
        found.append((sums[n:] - sums[:-n]) / n)
        ax.plot(np.arange(n, one.size + 1), found[-1], color=color, linestyle=style, linewidth=1.3, label=name)
    return found


def _finished(ax: Axes, own: bool, what: str, title: str) -> Axes:
    describe(ax, "round", what, title)
    ax.margins(x=0.01)
    legend(ax, own)
    return ax


def _read(owner: str, y: object, bands: object) -> tuple[Floats, dict[str, Floats]]:
    """What came, where it is given, and the intervals by name; as many of each."""
    by_name = bands if isinstance(bands, Mapping) else {"intervals": bands}
    found = {str(name): _limits(owner, limits) for name, limits in by_name.items()}
    if not found:
        raise InputError(f"{owner} needs intervals. Got an empty mapping.")
    came = np.zeros(0) if y is None else column(owner, "y", y)
    for name, limits in found.items():
        if limits.shape[0] == 0 or (y is not None and limits.shape[0] != came.size):
            raise InputError(f"{owner}: {name!r} has {limits.shape[0]} intervals, and y has {came.size} rows.")
    return came, found


def _limits(owner: str, value: object) -> Floats:
    found = named(owner, "bands", value, ("low", "high"))
    limits = check_array(owner, "bands", value if found is None else found, ndim=2)
    if limits.shape[1] != 2:
        raise InputError(f"{owner} needs intervals of two numbers, low and high. Got shape {limits.shape}.")
    return limits
