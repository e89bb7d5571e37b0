"""The command `thalweg forecast`: forecast a file or rows that arrive, print tables and write results."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from thalweg.errors import GapWarning, InputError
from thalweg.estimators import Forecaster
from thalweg.estimators._frequencies import read_frequency
from thalweg.estimators._panel import Panel, read_future, read_panel
from thalweg.estimators.forecaster import AUTO
from thalweg.estimators.long_frames import maker
from thalweg.files import load
from thalweg.lab import forecast as lab
from thalweg.lab._console import echo, notify, shows_progress
from thalweg.lab._kept import KeptSeries
from thalweg.lab._options import ForecastOptions, names_in, read_lags, read_levels, read_season
from thalweg.lab._store import refuse_to_overwrite, write_file
from thalweg.lab.beside import BESIDE
from thalweg.lab.columns import listed, read_long
from thalweg.lab.live import live
from thalweg.lab.pictures import save as to_image

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

USUAL = {"horizon": 1, "levels": (0.8, 0.95), "lags": AUTO, "loss": "squared"}
WINDOWS = 5  # that other libraries are fitted for


class Asked:
    """What was asked for: the options of the command, those that need it read."""

    def __init__(self, source: str, given: ForecastOptions) -> None:
        self.source, self.target, self.id, self.time = source, given.target, given.id, given.time
        self.save, self.resume, self.decimal = given.save, given.resume, given.decimal
        options = {
            "horizon": given.horizon,
            "levels": read_levels(given.levels),
            "lags": None if given.lags is None else read_lags(given.lags),
            "loss": given.loss.value if given.loss else None,
        }
        self.options = {key: value for key, value in options.items() if value is not None}  # that were typed
        self.columns = names_in(given.columns)
        self.freq = int(given.freq) if given.freq.isdigit() else given.freq
        self.season = read_season(given.season)

    def kept(self) -> Forecaster | None:
        """Return the forecaster that --save kept, if it goes with the options that were typed."""
        if self.resume is None or self.id is not None:
            return None
        if self.resume.is_dir():
            raise InputError(f"{self.resume} is a folder of many series. Name the column of their names with --id.")
        kept = load(self.resume)
        if not isinstance(kept, Forecaster):
            raise InputError(f"{self.resume} holds a {type(kept).__name__}, no forecaster that --save kept.")
        self.check(kept)
        return kept

    def many(self, make: Callable[[], Forecaster]) -> KeptSeries | None:
        """Return the forecasters of many series that --save keeps or kept; None for one series, or without both."""
        if self.id is None or (self.save is None and self.resume is None):
            return None
        names = {"id_col": self.id, "time_col": self.time, "target_col": self.target}
        return KeptSeries(self.save, self.resume, make, self.check, names)

    def check(self, kept: Forecaster) -> None:
        """Refuse options that differ from those of a kept forecaster."""
        if list(kept.columns) != self.columns:
            theirs, mine = (", ".join(names) or "none" for names in (kept.columns, self.columns))
            raise InputError(f"{self.resume} was kept for other columns: {theirs}. Here they are: {mine}.")
        season = {} if self.season is None else {"season": self.season}
        other = Forecaster(**kept._arguments() | self.options | season)._settings()
        for key, value in kept._settings().items():
            if other[key] != value:
                raise InputError(f"{self.resume} was kept with {key} = {value}. Leave --{key} out to go on.")


def forecast_file(source: str, given: ForecastOptions) -> None:
    """Forecast all series of a file."""
    asked = Asked(source, given)
    out, backtest, plot, future = given.out, given.backtest, given.plot, given.future
    tables = (".csv", ".parquet", ".json")
    for word, path, endings in (
        ("--out", out, tables),
        ("--backtest", backtest, tables),
        ("--plot", plot, (".png", ".html")),
    ):
        if path is not None and path.suffix.lower() not in endings:
            raise InputError(f"{word} must end in {', '.join(endings)}. Got {path}.")
    written = [path for path in (out, backtest, plot, asked.save) if path is not None]
    refuse_to_overwrite(asked.source, *written)
    if future is not None:
        refuse_to_overwrite(future, *written)
        if not asked.columns:
            raise InputError("--future has the columns of rows to come: name them with --columns.")
    others = None if given.beside is None else BESIDE[given.beside.value]()
    table = read_long(asked.source, asked.target, id=asked.id, time=asked.time, columns=asked.columns,
                      decimal=asked.decimal, rows=given.rows)  # fmt: skip
    panel, remarks = _panel(asked, table.name, table.frame)
    remarks += table.rest
    if table.unused:
        remarks.append(f"not used: {listed(table.unused)}. Name those that are known in advance with --columns")
    kept = asked.kept()
    make = maker(panel, AUTO if asked.season is None else asked.season, **USUAL | asked.options)
    many = asked.many(make)
    first = make() if kept is None else kept
    if many is not None:
        first, labels, made = many.first, iter(panel.labels), {}

        def make() -> Forecaster:
            label = next(labels)
            made[label] = many.of(label)
            return made[label]

    ahead = None
    if future is not None:
        rest = read_long(future, None, id=asked.id, time=asked.time, columns=asked.columns, decimal=asked.decimal)
        ahead = _named(lambda: read_future(rest.name, rest.frame, panel, asked.time, first.horizon, 1), "future, ")
    elif asked.columns:
        unknown = f"{', '.join(asked.columns)} of the next {first.horizon} row(s) are not known"
        remarks.append(f"{unknown}: give them with --future FILE")
    count = given.windows or (WINDOWS if others is not None else None)
    if count is not None and (panel.sizes <= count * first.horizon).any():
        raise InputError(
            f"{table.name}: {count} windows of {first.horizon} steps need series of more than {count * first.horizon} "
            "times. Type a smaller --windows."
        )
    for remark in remarks:
        notify(remark)
    outcome = lab.play(
        panel, make if kept is None else lambda: first, f"{asked.target} of {table.name}", ahead=ahead, windows=count,
        beside=others, progress=shows_progress(given.progress),
    )  # fmt: skip
    echo(json.dumps(lab.summary(outcome), indent=2) if given.as_json else lab.in_words(outcome))
    for path, past in ((out, False), (backtest, True)):
        if path is not None:
            write_file(path, lab.as_table(outcome, path.suffix.lower(), past))
    if plot is not None:
        page = plot.suffix.lower() == ".html"
        write_file(plot, lab.as_page(outcome) if page else to_image(lab.picture(outcome), "png"))
    if asked.save is not None:
        outcome.forecaster.save(asked.save) if many is None else many.write(made)


def _panel(asked: Asked, name: str, frame: pl.DataFrame) -> tuple[Panel, list[str]]:
    """Return the panel, and remarks on its gaps."""
    with warnings.catch_warnings(record=True, action="always", category=GapWarning) as said:
        panel = _named(lambda: read_panel(
            name, frame, asked.id, asked.time, asked.target, asked.columns, asked.freq, 1, in_order=True
        ), "frame, ")  # fmt: skip
    return panel, [str(warning.message) for warning in said]


def _named(read: Callable[[], T], where: str) -> T:
    """Call a reader of frames; its words for arguments become those of the command line."""
    try:
        return read()
    except InputError as error:
        text = str(error).replace(f": {where}", ", ")
        for argument, word in (("columns=[...]", "--columns"), ("freq=", "--freq "), (" for id_col", " for --id"),
                               (" for time_col", " for --time")):  # fmt: skip
            text = text.replace(argument, word)
        raise InputError(text.replace("--freq  for each", "--freq for each").replace("--freq .", "--freq.")) from None


def forecast_live(source: str, given: ForecastOptions) -> None:
    """Forecast rows as they arrive on stdin."""
    asked = Asked(source, given)
    of_a_file = given.out, given.backtest, given.plot, given.as_json, given.rows, given.future, given.windows
    if any(of_a_file) or given.beside:
        raise InputError(
            "From stdin forecasts go to stdout as they are made: leave out --out, --backtest, --plot, --json, --rows, "
            "--future, --windows and --beside."
        )
    if sys.stdin is None:
        raise InputError("The standard input is closed. Name a file instead of -.")

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    frequency = read_frequency("thalweg forecast", asked.freq, isinstance(asked.freq, int))
    if frequency is not None and asked.time is None:
        raise InputError("--freq is the step of the times in a column: name it with --time.")
    kept, save = asked.kept(), asked.save
    season: str | Sequence[int] | None = asked.season
    if season is None:
        season = (frequency.seasons if frequency is not None else ()) or AUTO

    def make() -> Forecaster:
        return Forecaster(asked.columns, season=season, **USUAL | asked.options) if kept is None else kept

    many = asked.many(make)
    keep = None
    if save is not None and many is None:
        keep = lambda label, forecaster: forecaster.save(save)  # noqa: E731
    elif save is not None and many is not None:
        many.open()
        keep = many.put
    try:
        live(
            sys.stdin,
            write,
            asked.target,
            many.of if many is not None else lambda label: make(),
            levels=(make() if many is None else many.first).levels,
            id=asked.id,
            time=asked.time,
            columns=asked.columns,
            frequency=frequency,
            decimal=asked.decimal,
            keep=keep,
            note=notify,
        )
    finally:
        if many is not None:
            many.close()
