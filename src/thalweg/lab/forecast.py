"""From a table to forecasts: the next steps of every series, and errors by horizon beside simple forecasts.

Every row was forecast from the rows before it. Errors are in the units of the target; those of several series are in
units of the mean absolute step of each, and their mean over series is reported.
"""

from __future__ import annotations

import base64
import html
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from thalweg._core.extras import need
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import visible
from thalweg.estimators._frequencies import DAY
from thalweg.estimators._panel import Panel
from thalweg.estimators.forecaster import Forecaster
from thalweg.estimators.forecasts import Forecast
from thalweg.estimators.long_frames import MEAN, Places, as_backtest, as_forecast, at_cutoffs, cutoffs, play_panel
from thalweg.lab._console import aligned
from thalweg.lab.pictures import BLUE, COLOURS, GREY, VERMILION, legend, panels, save, style
from thalweg.lab.report import Row, number
from thalweg.regret._axes import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAIVE, SEASONAL = "naive", "seasonal naive"
TABLE_HORIZONS = 1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 1000  # horizons of the table, and the last
FANS = 6  # series of a picture
VALUES_SHOWN = 300  # values before a fan, at most


@dataclass(frozen=True)
class Outcome:
    """Forecasts of a panel.

    Attributes
    ----------
    panel : Panel
        The data.
    about : str
        Name of the target and of the file.
    ahead : list of Forecast
        After the last row of each series.
    rows : list of pairs of arrays
        (t, h) of the forecasts of past values, h + 1 steps ahead, made before the value at t.
    parts : list of lists of arrays
        At these places: forecasts, and lower and upper ends for each level.
    others : dict of lists of arrays
        Forecasts of others at the same places, by name.
    forecaster : Forecaster
        That of the last series.
    seasons : list of int
        The season of the seasonal naive forecast of each series; 1 where there is none.
    """

    panel: Panel
    about: str
    ahead: list[Forecast]
    rows: list[Places]
    parts: list[list[Floats]]
    others: dict[str, list[Floats]]
    forecaster: Forecaster
    seasons: list[int]

    def errors(self) -> tuple[list[Row], list[str]]:
        """Return a row for each horizon, and one for all: errors by name, and shares within each level.

        Only places count that every forecast has. Names without any are left out.
        """
        said = {MEAN: [part[0] for part in self.parts], **self.others}
        names = [name for name, parts in said.items() if any(np.isfinite(part).any() for part in parts)]
        H, levels = self.forecaster.horizon, self.forecaster.levels
        losses = np.full((len(names), len(self.panel), H + 1), np.nan)
        inside = np.full((len(levels), len(self.panel), H + 1), np.nan)
        for s, (t, h) in enumerate(self.rows):
            values = self.panel.series(s)[0]
            y, scale = values[t + h], unit(values) if len(self.panel) > 1 else 1.0
            known = np.isfinite(np.array([said[name][s] for name in names])).all(axis=0)
            for step in range(H + 1):
                at = known & (h == step) if step < H else known
                if not at.any():
                    continue
                for k, name in enumerate(names):
                    losses[k, s, step] = self.mean_error(y[at] - said[name][s][at]) / scale
                for v in range(len(levels)):
                    low, high = self.parts[s][1 + 2 * v][at], self.parts[s][2 + 2 * v][at]
                    if (there := np.isfinite(low)).any():
                        inside[v, s, step] = ((low <= y[at]) & (y[at] <= high))[there].mean()
        table = []
        for step in [n - 1 for n in TABLE_HORIZONS if n < H] + [H - 1, H]:
            row: Row = {"step": step + 1 if step < H else "all"}
            row |= {name: _mean(losses[k, :, step]) for k, name in enumerate(names)}
            row |= {f"within {100 * level:g} %": _mean(inside[v, :, step]) for v, level in enumerate(levels)}
            table.append(row)
        return table[1:] if H == 1 else table, names

    def mean_error(self, errors: Floats) -> float:
        """Return the root mean square of errors, or their mean size, whichever the forecaster minimises."""
        return float(np.sqrt((errors**2).mean()) if self.forecaster.loss == "squared" else np.abs(errors).mean())

    def warning(self) -> str | None:
        """Return the advice for a forecast that a simple one has beaten."""
        table, _ = self.errors()
        row = table[-1]
        simple = {name: row[name] for name in (NAIVE, SEASONAL) if row.get(name) is not None}
        if not simple or row[MEAN] is None:
            return None
        best = min(simple, key=lambda name: simple[name])
        if row[MEAN] <= simple[best]:
            return None
        much = f"{number(100 * (row[MEAN] / simple[best] - 1), 2)} % more" if simple[best] > 0 else "more"
        return f"The forecast lost {much} than the {best} one, which is simpler."


def unit(values: Floats) -> float:
    """Return the mean absolute step of a series; 1 where it does not move."""
    steps = np.abs(np.diff(values[~np.isnan(values)]))
    return float(steps.mean()) or 1.0 if steps.size else 1.0


def _mean(numbers: Floats) -> float | None:
    known = numbers[np.isfinite(numbers)]
    return float(known.mean()) if known.size else None


def repeated(values: Floats, season: int, t: Ints, h: Ints) -> Floats:
    """Return the last known value before t that lies whole seasons before t + h; nan where there is none."""
    rows = -(-values.size // season)
    padded = np.full(rows * season, np.nan)
    padded[: values.size] = values
    grid = padded.reshape(rows, season)
    latest = np.maximum.accumulate(np.where(np.isnan(grid), -1, np.arange(rows)[:, None]), axis=0)
    filled = np.where(latest < 0, np.nan, np.take_along_axis(grid, np.maximum(latest, 0), axis=0)).ravel()
    at = t + h - season * (h // season + 1)
    return np.where(at < 0, np.nan, filled[np.maximum(at, 0)])


def play(
    panel: Panel,
    make: Callable[[], Forecaster],
    about: str,
    *,
    ahead: Floats | None = None,
    windows: int | None = None,
    beside: Callable[[Panel, int, int, list[int]], dict[str, Floats]] | None = None,
    progress: bool = False,
) -> Outcome:
    """Forecast every series of a panel, and all its past values; only those of the last `windows`, where it is given.

    `beside(panel, horizon, windows, seasons)` returns forecasts of others, (S, windows, H) by name.
    """
    made: list[Forecaster] = []

    def keep() -> Forecaster:
        made[:] = [make()]
        return made[0]

    rows, parts, said, seasons = [], [], [], []
    for s, (run, after) in enumerate(play_panel(panel, keep, ahead, progress, "thalweg forecast")):
        forecaster = made[0]
        H = forecaster.horizon
        at = cutoffs(panel.series(s)[0], H, 1 if windows is None else H, windows)
        rows.append(at)
        parts.append(at_cutoffs(run, at))
        said.append(after)
        seasons.append((*forecaster.seasons, *forecaster.found, 1)[0])
    others = {NAIVE: [repeated(panel.series(s)[0], 1, *at) for s, at in enumerate(rows)]}
    if max(seasons) > 1:
        others[SEASONAL] = [repeated(panel.series(s)[0], seasons[s], *at) for s, at in enumerate(rows)]
    if beside is not None and windows is not None:
        begin = [size - windows * H for size in panel.sizes]
        for name, found in beside(panel, H, windows, seasons).items():
            others[name] = [found[s, (t - begin[s]) // H, h] for s, (t, h) in enumerate(rows)]
    return Outcome(panel, about, said, rows, parts, others, forecaster, seasons)


# ------------------------------------------------------------------------------------------------------------- to read


def in_words(outcome: Outcome) -> str:
    """Return the tables that a user sees."""
    panel, forecaster = outcome.panel, outcome.forecaster
    table, names = outcome.errors()
    H, one = forecaster.horizon, len(panel) == 1
    steps = "1 step" if H == 1 else f"1 to {H} steps"
    each = "rows" if panel.clock.dtype is None else f"times, {panel.frequency} apart"
    of = "" if one else f" of {len(panel)} series"
    lines = [f"{outcome.about}: {panel.values.size} {each}{of}; forecast {steps} ahead"]
    seasons = forecaster.seasons or (forecaster.found if one else ())
    season_text = f"seasons {' and '.join(map(str, seasons))}" if seasons else "seasons are looked for in each series"
    season_text = "no season" if not seasons and (one or not forecaster._layout.search) else season_text
    lines.append(f"from its past, {season_text}" + (f", and {', '.join(panel.columns)}" if panel.columns else ""))
    lines += ["", *_errors_in_words(outcome, table, names)]
    if one:
        lines += ["", *_ahead_in_words(outcome)]
    if (warning := outcome.warning()) is not None:
        lines += ["", warning]
    return "\n".join(map(visible, lines))


def _errors_in_words(outcome: Outcome, table: list[Row], names: list[str]) -> list[str]:
    kind = "root mean square" if outcome.forecaster.loss == "squared" else "mean absolute"
    unit = "" if len(outcome.panel) == 1 else ", in mean steps of each series"
    levels = [key for key in table[0] if key.startswith("within")]
    cells = []
    for row in table:
        step = "all steps" if row["step"] == "all" else f"{row['step']} ahead"
        cells.append([step, *(_cell(row[name], ".5g") for name in names), *(_cell(row[key], ".1%") for key in levels)])
    return [f"{kind} errors{unit}", *aligned(["", *names, *levels], cells).split("\n")]


def _cell(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _ahead_in_words(outcome: Outcome) -> list[str]:
    """Return the forecasts after the last row, at the horizons of the table."""
    panel, said = outcome.panel, outcome.ahead[0]
    H, levels = said.mean.size, tuple(said.lower)
    steps = np.array([n - 1 for n in TABLE_HORIZONS if n < H] + [H - 1])
    times = time_texts(panel, np.zeros(steps.size, dtype=np.int64), panel.sizes[0] + steps)
    ends = [ends[level][steps] for level in levels for ends in (said.lower, said.upper)]
    numbers = np.column_stack([said.mean[steps], *ends])
    cells = [
        [time, *(_cell(None if np.isnan(x) else float(x), ".6g") for x in row)]
        for time, row in zip(times, numbers, strict=True)
    ]
    heads = ["next", "forecast", *(text for level in levels for text in (f"{100 * level:g} % from", "to"))]
    return aligned(heads, cells).split("\n")


def time_texts(panel: Panel, series: Ints, places: Ints) -> list[str]:
    """Return times as text: dates where all are, and an offset where there is a time zone."""
    times = panel.times(series, places)
    if panel.clock.counted:
        return [str(time + (panel.clock.dtype is None)) for time in times.tolist()]  # rows are counted from 1
    column = panel.clock.column("time", times, panel.backend)
    form = "%Y-%m-%d" if not (times % DAY).any() and panel.clock.zone is None else "%Y-%m-%d %H:%M"
    form += ":%S" * bool((times % 60_000_000).any()) + "%z" * (panel.clock.zone is not None)
    texts: list[str] = column.dt.to_string(form).to_list()
    return texts


def summary(outcome: Outcome) -> Row:
    """Return the tables for programs."""
    table, _ = outcome.errors()
    panel, f = outcome.panel, outcome.forecaster
    return {
        "about": outcome.about, "series": len(panel), "rows": panel.values.size,
        "missing": int(np.isnan(panel.values).sum()), "step": str(panel.frequency), "horizon": f.horizon,
        "levels": f.levels, "seasons": f.seasons, "columns": panel.columns, "errors": table,
        "warning": outcome.warning(),
    }  # fmt: skip


def as_table(outcome: Outcome, ending: str, past: bool = False) -> bytes:
    """Return forecasts after the last row, or of all past values, as .csv, .parquet or .json."""
    panel = outcome.panel
    if past:
        frame = as_backtest(panel, outcome.rows, outcome.parts, outcome.forecaster.levels)
        t, h = (np.concatenate([one[k] for one in outcome.rows]) for k in range(2))
        series = np.repeat(np.arange(len(panel)), [t.size for t, _ in outcome.rows])
        places = {panel.names[1]: t + h, "cutoff": t - 1}
    else:
        frame, H = as_forecast(panel, outcome.ahead), outcome.forecaster.horizon
        series = np.repeat(np.arange(len(panel)), H)
        places = {panel.names[1]: panel.sizes[series] + np.tile(np.arange(H), len(panel))}
    if ending == ".parquet":
        file = io.BytesIO()
        frame.write_parquet(file)
        return file.getvalue()
    if not panel.clock.counted or panel.clock.dtype is None:
        texts = {key: time_texts(panel, series, at) for key, at in places.items()}
        polars = panel.backend
        whole = polars.Int64 if panel.clock.dtype is None else polars.String
        frame = frame.with_columns(polars.Series(key, column).cast(whole) for key, column in texts.items())
    if ending == ".json":
        return (json.dumps(frame.to_dict(as_series=False)) + "\n").encode()
    text: str = frame.write_csv()
    return text.encode()


# ----------------------------------------------------------------------------------------------------------- to look at


def picture(outcome: Outcome) -> Figure:
    """Draw the last values with the forecasts before and after the last row, and errors by horizon for one series."""
    count = min(len(outcome.panel), FANS)
    rows = -(-count // 2)
    with style():
        if count == 1:
            figure, axes = panels(9.0, 6.4, rows=2)
            _curves(outcome, axes[1, 0])
        else:
            figure, axes = panels(10.0, 2.3 * rows + 0.4, rows=rows, columns=2)
            for axis in axes.flat[count:]:
                axis.set_axis_off()
        for s in range(count):
            _fan(outcome, axes.flat[s], s)
        legend(figure, axes[0, 0], "upper center", 4)
    return figure


def _moments(panel: Panel, s: int, places: Ints) -> Ints | NDArray[np.datetime64]:
    times = panel.times(np.full(places.size, s), places)
    return times + (panel.clock.dtype is None) if panel.clock.counted else times.astype("M8[us]")


def _fan(outcome: Outcome, axis: Axes, s: int) -> None:
    """Draw the end of a series, its last forecast with all answers, and the one after it."""
    panel, said, H = outcome.panel, outcome.ahead[s], outcome.forecaster.horizon
    values = panel.series(s)[0]
    T = values.size
    tail = np.arange(max(0, T - max(min(VALUES_SHOWN, 6 * H), 60)), T)
    levels = sorted(said.lower, reverse=True)
    fans = [(T, said.mean, [(said.lower[level], said.upper[level]) for level in levels])]
    last = outcome.rows[s][0] == T - H
    if H > 1 and last.sum() == H:
        index = [outcome.forecaster.levels.index(level) for level in levels]
        ends = [(outcome.parts[s][1 + 2 * v][last], outcome.parts[s][2 + 2 * v][last]) for v in index]
        fans.append((T - H, outcome.parts[s][0][last], ends))
    for k, (begin, mean, ends) in enumerate(fans):
        x = _moments(panel, s, np.arange(begin, begin + H))
        for level, (low, high), shade in zip(levels, ends, np.linspace(0.15, 0.35, len(levels)), strict=True):
            label = f"{100 * level:g} %" if k == 0 else None
            if H > 1:
                axis.fill_between(x, low, high, color=VERMILION, alpha=shade, linewidth=0, label=label)
            else:
                axis.errorbar(x, mean, [mean - low, high - mean], color=VERMILION, alpha=2 * shade, label=label)
        axis.plot(
            x,
            mean,
            color=VERMILION,
            linewidth=1.4,
            marker="." if H == 1 else None,
            label="forecast" if k == 0 else None,
        )
    axis.plot(_moments(panel, s, tail), values[tail], color="0.2", linewidth=1.2, label=plain(panel.names[2]))
    axis.axvline(_moments(panel, s, np.array([T - 1]))[0], color="0.6", linewidth=0.8, linestyle=":")
    name = panel.labels[s]
    title = f"{outcome.about}: the last {tail.size} values and the next {H}" if name is None else str(name)
    axis.set_title(visible(title), loc="left", fontsize=10, parse_math=False)
    axis.grid(alpha=0.3)
    axis.margins(x=0.01)
    if not panel.clock.counted:
        dates = need("matplotlib.dates", "lab", "A picture")
        places = dates.AutoDateLocator(maxticks=8)
        axis.xaxis.set_major_locator(places)
        axis.xaxis.set_major_formatter(dates.ConciseDateFormatter(places))


def _curves(outcome: Outcome, axis: Axes) -> None:
    """Draw errors by horizon."""
    said = {MEAN: outcome.parts[0][0], **{name: parts[0] for name, parts in outcome.others.items()}}
    (t, h), H = outcome.rows[0], outcome.forecaster.horizon
    y = outcome.panel.series(0)[0][t + h]
    looks = {MEAN: (VERMILION, "o"), NAIVE: (GREY, "s"), SEASONAL: (BLUE, "^")}
    for k, (name, p) in enumerate(said.items()):
        known = np.isfinite(p)
        if not known.any():
            continue
        e = [(y - p)[known & (h == step)] for step in range(H)]
        loss = [outcome.mean_error(x) if x.size else np.nan for x in e]
        colour, mark = looks.get(name, (COLOURS[k % len(COLOURS)], "x"))
        axis.plot(np.arange(1, H + 1), loss, color=colour, marker=mark, markersize=4, linewidth=1.2, label=name)
    kind = "Root mean square" if outcome.forecaster.loss == "squared" else "Mean absolute"
    axis.set_title(f"{kind} error by steps ahead", loc="left", fontsize=10)
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=9)


def as_page(outcome: Outcome) -> bytes:
    """Return a page of its own: the tables and the picture."""
    image = base64.b64encode(save(picture(outcome), "png")).decode()
    title = html.escape(visible(outcome.about))
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>"
        "<meta name='viewport' content='width=device-width'>"
        "<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "img{max-width:100%}pre{overflow-x:auto}</style>"
        f"<h1>{title}</h1><pre>{html.escape(in_words(outcome))}</pre>"
        f"<img alt='the last values with fans of forecasts' src='data:image/png;base64,{image}'></html>\n"
    ).encode()
