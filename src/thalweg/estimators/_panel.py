"""Long frames: rows of one or many series, by name and time, as arrays on a regular grid of time.

Rows may come in any order. A time that has no row is a missing value. Whatever is wrong is named by series and row.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from thalweg._core.extras import need
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_items, check_text
from thalweg.errors import GapWarning, InputError
from thalweg.estimators._frames import Flags, Native, first
from thalweg.estimators._frequencies import COUNTED, Anchors, Frequency, infer, read_frequency
from thalweg.estimators._rows import Clock, FrameRows, Label, said

if TYPE_CHECKING:
    from thalweg.estimators._frames import Backend, Series

DENSEST = 100  # grid times for each row: beyond, the frequency is taken to be wrong


@dataclass(frozen=True)
class Panel:
    """Series on a regular grid, one behind the other in flat arrays.

    Attributes
    ----------
    names : tuple of str
        Columns for the name of a series (None where there is none), time and target.
    ids, labels : Series, list
        The names of series: as a column, and as plain values.
    ends : array (S + 1,)
        The grid of series s lies between ends[s] and ends[s + 1].
    values : array (N,)
        The target; nan where it is missing.
    columns, rows : tuple of str, array (N, d)
        Further columns, with nan where a cell is empty.
    """

    names: tuple[str | None, str, str]
    ids: Series | None
    labels: list[Label]
    ends: Ints
    values: Floats
    columns: tuple[str, ...]
    rows: Floats
    frequency: Frequency
    anchors: Anchors
    clock: Clock
    backend: Backend
    absent: int  # grid times without a row

    def __len__(self) -> int:
        return len(self.labels)

    def series(self, s: int) -> tuple[Floats, Floats]:
        """Return values and columns of one series."""
        part = slice(self.ends[s], self.ends[s + 1])
        return self.values[part], self.rows[part]

    @property
    def sizes(self) -> Ints:
        """Return the lengths of all series."""
        return np.diff(self.ends)

    def times(self, series: Ints, places: Ints) -> Ints:
        """Return times on the grids of these series."""
        return self.frequency.times(places, self.anchors.of(series))

    def frame(self, series: Ints, places: dict[str, Ints], columns: dict[str, Floats], name: str) -> Native:
        """Return a native frame: names, times at places of the grids, and columns. Empty cells are null, or nan."""
        nw = need("narwhals", "frames", name)
        made = [] if self.ids is None else [self.ids[series].alias(str(self.names[0]))]
        made += [self.clock.column(key, self.times(series, at), self.backend) for key, at in places.items()]
        made += [nw.new_series(key, numbers, nw.Float64, backend=self.backend) for key, numbers in columns.items()]
        keys = [one.name for one in made]
        whole = nw.from_dict(dict(zip(keys, made, strict=True)))
        if self.ids is not None and hasattr(whole.to_native(), "reset_index"):  # names brought the index of their rows
            whole = nw.from_native(whole.to_native().reset_index(drop=True))
        filled = [nw.when(~nw.col(key).is_nan()).then(nw.col(key)).alias(key) for key in columns]
        return whole.with_columns(*filled).to_native()


def read_panel(
    owner: str,
    frame: object,
    id_col: str | None,
    time_col: str | None,
    target_col: str,
    columns: Sequence[str] | None,
    freq: object,
    first_row: int = 0,
    in_order: bool = False,
) -> Panel:
    """Read a long frame; rows are counted from `first_row` in messages. `in_order`: refuse times that go back."""
    for name, key in (("id_col", id_col), ("time_col", time_col), ("target_col", target_col)):
        if key is not None or name == "target_col":
            check_text(owner, name, key)
    named = [key for key in (id_col, time_col, target_col) if key is not None]
    if len(set(named)) < len(named):
        raise InputError(f"{owner}: id_col, time_col and target_col must be different columns. Got {', '.join(named)}.")
    table = FrameRows(owner, "frame", frame, first_row)
    ids = table.read_ids(id_col)
    instants, local, clock = table.read_times(time_col)
    chosen = _choose(owner, table.keys, named, columns)
    also = ", or name the columns to use: columns=[...]" if columns is None else ""
    numbers = table.read_numbers(target_col, "target_col", "")
    rows = np.zeros((numbers.size, len(chosen)))
    for k, key in enumerate(chosen):
        rows[:, k] = table.read_numbers(key, "columns", also)
    order, starts, series = table.sort(ids, instants)
    if time_col is None:
        instants = local = np.empty_like(instants)
        instants[order] = np.arange(order.size) - starts[series]
    else:
        check = table.refuse_disorder if in_order else table.refuse_repeats
        check(time_col, instants[order], order, series, clock)
    frequency, clock, anchors, places = _lay_out(table, freq, instants, local, clock, order, starts, series)
    sizes = places[np.r_[starts[1:] - 1, order.size - 1]] + 1
    _check_density(table, frequency, sizes, starts, order)
    ends = np.r_[0, np.cumsum(sizes)]
    at = ends[series] + places
    values, wide = np.full(int(ends[-1]), np.nan), np.full((int(ends[-1]), len(chosen)), np.nan)
    values[at], wide[at] = numbers[order], rows[order]
    panel = Panel(
        names=(id_col, time_col or "ds", target_col),
        ids=None if ids is None else ids[order[starts]],
        labels=table.labels_of(order[starts]),
        ends=ends,
        values=values,
        columns=tuple(chosen),
        rows=wide,
        frequency=frequency,
        anchors=anchors,
        clock=clock,
        backend=table.backend,
        absent=int(ends[-1]) - order.size,
    )
    if (s := first(np.add.reduceat(~np.isnan(values), ends[:-1]) == 0)) is not None:
        raise table.error(int(order[starts[s]]), f"all values of {target_col!r} are missing. Leave the series out.")
    if panel.absent:
        _warn_of_gaps(owner, panel, places, starts, series)
    return panel


def _choose(owner: str, keys: list[str], named: list[str], columns: Sequence[str] | None) -> list[str]:
    """Return the names of further columns."""
    if columns is None:
        return [key for key in keys if key not in named]
    chosen = [check_text(owner, "columns", key) for key in check_items(owner, "columns", columns, "a list of names")]
    for key in chosen:
        if key in named or chosen.count(key) > 1:
            raise InputError(f"{owner}: the column {key!r} is named twice. Leave it out of columns.")
    return chosen


def _lay_out(
    table: FrameRows, freq: object, instants: Ints, local: Ints, clock: Clock, order: Ints, starts: Ints, series: Ints
) -> tuple[Frequency, Clock, Anchors, Ints]:
    """Return frequency, clock, anchors, and the place of each sorted row on the grid of its series."""
    frequency = read_frequency(table.owner, freq, clock.counted)
    same = series[1:] == series[:-1]
    if frequency is None:
        frequency = infer(instants[order], same, clock.counted)
        if frequency is not None and frequency.local and clock.zone is not None:
            frequency = infer(local[order], same, False)
    if frequency is None:
        if clock.counted:
            frequency = Frequency(COUNTED, 1)
        else:
            raise InputError(
                f"{table.owner}: every series has a single row, so the step between times is not known. Give freq='h', "
                "'D', 'MS', ..."
            )
    tries = [True, False] if clock.zone is not None and frequency.local else [False]
    found: list[tuple[Clock, Anchors, Ints, Flags]] = []
    for wall in tries:
        times = (local if wall else instants)[order]
        anchors = frequency.anchors(times, starts)
        places, fits = frequency.places(times, anchors.of(series))
        found.append((replace(clock, local=wall), anchors, places, fits))
        if fits.all():
            return frequency, *found[-1][:3]
    chosen, anchors, places, fits = found[0]
    k = int(np.argmax(~fits))
    row, begin = int(order[k]), int(anchors.first[series[k]])
    times = local if chosen.local else instants
    if freq == "infer" and not fits[series == series[k]][1:].any():
        advice = f"The usual step is {frequency}: forecast series of other steps apart, with freq= for each"
    else:
        advice = "Correct it, or give another freq="
    raise table.error(
        row,
        f"{chosen.text(int(times[row]))} is no whole number of steps of {frequency} after the first time, "
        f"{chosen.text(begin)}. {advice}.",
    )


def _check_density(table: FrameRows, frequency: Frequency, sizes: Ints, starts: Ints, order: Ints) -> None:
    """Refuse a grid that is nearly empty."""
    counts = np.diff(np.r_[starts, order.size])
    if (s := first(sizes > DENSEST * counts + 1000)) is not None:
        raise table.error(
            int(order[starts[s]]),
            f"a step of {frequency} leaves {sizes[s] - counts[s]} of {sizes[s]} times of this series without a row. "
            "Give the freq= that it has, or correct its times.",
        )


def _warn_of_gaps(owner: str, panel: Panel, places: Ints, starts: Ints, series: Ints) -> None:
    steps = np.diff(places)
    steps[series[1:] != series[:-1]] = 1
    k = int(np.argmax(steps))
    s = int(series[k])
    before = panel.times(np.array([s]), places[k : k + 1])[0]
    count = np.unique(series[1:][steps > 1]).size
    of = f" in {count} of {len(panel)} series" if panel.ids is not None else ""
    warnings.warn(
        f"{owner}: {panel.absent} of {panel.values.size} rows are missing{of} and count as missing values; the longest "
        f"gap, of {int(steps[k]) - 1}, is in {said(panel.labels[s])} after {panel.clock.text(int(before))}.",
        GapWarning,
        stacklevel=4,
    )


def read_future(
    owner: str, future: object, panel: Panel, time_col: str | None, horizon: int, first_row: int = 0
) -> Floats:
    """Return the columns of the next `horizon` steps of every series, (S, H, d)."""
    table = FrameRows(owner, "future", future, first_row)
    ids = table.read_ids(panel.names[0])
    instants, local, clock = table.read_times(time_col)
    if (clock.counted, clock.zone) != (panel.clock.counted, panel.clock.zone):
        raise InputError(f"{owner}: {time_col!r} of future must be of the type and time zone that frame has.")
    rows = np.column_stack([table.read_numbers(key, "columns", "") for key in panel.columns])
    order, starts, series = table.sort(ids, instants)
    known = {label: s for s, label in enumerate(panel.labels)}
    mine = np.array([known.get(label, -1) for label in table.labels_of(order[starts])])[series]
    order, series, starts_of = order[mine >= 0], mine[mine >= 0], starts[series][mine >= 0]
    if time_col is None:
        places = panel.sizes[series] + np.flatnonzero(mine >= 0) - starts_of
    else:
        times = (local if panel.clock.local else instants)[order]
        table.refuse_repeats(time_col, times, order, series, clock)
        places, fits = panel.frequency.places(times, panel.anchors.of(series))
        if (k := first(~fits)) is not None:
            raise table.error(
                int(order[k]),
                f"{clock.text(int(times[k]))} is no time of frame's grid, whose step is {panel.frequency}. Correct it.",
            )
    ahead = places - panel.sizes[series]
    wanted = (ahead >= 0) & (ahead < horizon)
    there = np.zeros((len(panel), horizon), dtype=bool)
    found = np.full((len(panel), horizon, len(panel.columns)), np.nan)
    there[series[wanted], ahead[wanted]] = True
    found[series[wanted], ahead[wanted]] = rows[order[wanted]]
    if not there.all():
        s, h = (int(i) for i in np.argwhere(~there)[0])
        time = panel.times(np.array([s]), panel.sizes[s : s + 1] + h)[0]
        raise InputError(
            f"{owner}: future has no row for {said(panel.labels[s])} at {panel.clock.text(int(time))}, step {h + 1} of "
            f"{horizon}. Add it with the columns {', '.join(panel.columns)}; an empty cell is a value not known."
        )
    return found
