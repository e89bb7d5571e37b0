"""Options of commands: those that several share, groups of them, and the data and settings they describe."""

import functools
import inspect
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from typing import Annotated

import typer

from thalweg.errors import InputError
from thalweg.lab.columns import MISSING, READERS
from thalweg.lab.report import Row
from thalweg.lab.streams import STREAMS
from thalweg.lab.tables import DOMAIN, LOSSES

__all__ = [
    "Data", "Engine", "ForecastOptions", "Json", "Progress", "Scheduler", "Workers", "grouped", "names_in", "read_lags",
    "read_levels", "read_season",
]  # fmt: skip


class Empty(StrEnum):
    """Treatment of empty cells."""

    raise_, drop, previous = MISSING


class LossChoice(StrEnum):
    """Losses of a prediction."""

    squared, absolute, logistic, huber, pinball, hinge = LOSSES


Beside = StrEnum("Beside", ["statsforecast"])
Errors = StrEnum("Errors", ["squared", "absolute"])

Decimal = Annotated[str, typer.Option(help="Decimal mark of a CSV file.", metavar="MARK")]
Rows = Annotated[int | None, typer.Option(help="Only the first N rows of a file.", min=1, metavar="N")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Progress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Progress on stderr. [default: on a terminal]", show_default=False),
]
Engine = Annotated[str, typer.Option(help="serial, local or dask.", metavar="NAME")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler.", metavar="ADDRESS")]
Workers = Annotated[int | None, typer.Option(help="Processes. [default: one per core]", min=1, metavar="N")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take options in groups: a parameter that is a dataclass stands for one option for each field."""
    own = inspect.signature(command)
    kinds = {name: p.annotation for name, p in own.parameters.items()}
    groups = {name: kind for name, kind in kinds.items() if isinstance(kind, type) and is_dataclass(kind)}
    options = {name: inspect.signature(kind).parameters for name, kind in groups.items()}
    flat = [one for p in own.parameters.values() for one in options.get(p.name, {p.name: p}).values()]

    @functools.wraps(command)
    def called(**given: object) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{key: given.pop(key) for key in options[name]})
        command(**given)

    vars(called)["__signature__"] = own.replace(parameters=[p.replace(kind=p.KEYWORD_ONLY) for p in flat])
    called.__annotations__ = {p.name: p.annotation for p in flat}
    return called


# ----------------------------------------------------------------------------------------------------- data to play on


@dataclass(frozen=True, kw_only=True)
class Data:
    """A stream, or a file and how it is read."""

    target: Annotated[
        list[str] | None, typer.Option(help="Column to predict, for a file.", metavar="COLUMN", show_default=False)
    ] = None
    features: Annotated[
        str | None, typer.Option(help="Columns to use. [default: all with numbers]", metavar="A,B,C")
    ] = None
    lags: Annotated[str | None, typer.Option(help="Past targets as features: 24 or 1,2,24,168.", metavar="N|A,B,C")] = (
        None
    )
    time: Annotated[str | None, typer.Option(help="Column of times; they must not decrease.", metavar="COLUMN")] = None
    missing: Annotated[
        Empty, typer.Option(help=f"Empty cells: {', '.join(MISSING)}.", metavar="HOW", show_default=False)
    ] = Empty.raise_
    decimal: Decimal = "."
    loss: Annotated[
        LossChoice | None,
        typer.Option(help=f"For a file: {', '.join(LOSSES)}. [default: {LOSSES[0]}]", metavar="NAME"),
    ] = None
    domain: Annotated[
        str | None,
        typer.Option(
            help=f"Set of decisions: see 'thalweg list domains'. [default: {DOMAIN} for a file]", metavar="SET"
        ),
    ] = None
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="Add a column of ones.")] = True
    scale: Annotated[bool, typer.Option("--scale/--no-scale", help="Scale columns to [-1, 1].")] = True
    horizon: Annotated[int | None, typer.Option(help="Rounds of a synthetic stream.", min=1, metavar="N")] = None
    rows: Rows = None

    def of(self, source: str) -> Row:
        """Return the data to play on, in plain values: see `thalweg.lab.compare.open_data`."""
        if source in STREAMS:
            of_a_file = self.target, self.features, self.loss, self.lags, self.time, self.rows, self.missing != "raise"
            if any(of_a_file) or not (self.intercept and self.scale):
                raise InputError(
                    f"{source!r} is a stream of its own: --target, --features, --loss, --lags, --time, --missing, "
                    "--rows, --no-intercept and --no-scale are for files."
                )
            return {"stream": source, "horizon": self.horizon, "domain": self.domain}
        if self.horizon is not None:
            raise InputError(
                "--horizon is the length of a synthetic stream. For the first "
                f"{self.horizon} rows of a file type --rows {self.horizon}."
            )
        path = pathlib.Path(source)
        if source != "-" and not path.suffix and not path.exists():
            raise InputError(
                f"{source!r} is neither a stream nor a file. The streams are {', '.join(STREAMS)}. Files end in "
                f"{', '.join(READERS)}."
            )
        if self.target and len(self.target) > 1:
            raise InputError(f"The target is given twice: {' and '.join(self.target)}. Give one --target.")
        return {
            "source": source,
            "target": self.target[0] if self.target else None,
            "features": names_in(self.features) if self.features else None,
            "loss": self.loss.value if self.loss else "squared",
            "domain": self.domain or DOMAIN,
            "intercept": self.intercept,
            "scale": self.scale,
            "rows": self.rows,
            "lags": read_lags(self.lags),
            "time": self.time,
            "missing": self.missing.value,
            "decimal": self.decimal,
        }


# --------------------------------------------------------------------------------------------------------- a forecast


@dataclass(frozen=True, kw_only=True)
class ForecastOptions:
    """Options of `thalweg forecast`, as they were typed; None where one was left out."""

    target: Annotated[str, typer.Option(help="Column to forecast.", metavar="COLUMN", show_default=False)]
    id: Annotated[str | None, typer.Option(help="Column with the names of the series.", metavar="COLUMN")] = None
    time: Annotated[
        str | None, typer.Option(help="Column of times. [default: rows in file order]", metavar="COLUMN")
    ] = None
    horizon: Annotated[int | None, typer.Option(help="Steps ahead. [default: 1]", min=1, metavar="N")] = None
    levels: Annotated[str | None, typer.Option(help="Coverage in percent. [default: 80,95]", metavar="A,B,C")] = None
    columns: Annotated[str | None, typer.Option(help="Columns known in advance.", metavar="A,B,C")] = None
    future: Annotated[str | None, typer.Option(help="Their values for the rows to come.", metavar="FILE")] = None
    freq: Annotated[
        str, typer.Option(help="Time step: 15min, h, D, B, W, MS or a number.", metavar="STEP", show_default=False)
    ] = "infer"
    season: Annotated[
        str | None, typer.Option(help="Season in steps: 24 or 24,168. [default: auto]", metavar="N|A,B|none")
    ] = None
    lags: Annotated[
        str | None, typer.Option(help="Past values to use: 8 or 1,2,24. [default: 4]", metavar="N|A,B,C")
    ] = None
    loss: Annotated[
        Errors | None, typer.Option(help="squared or absolute errors. [default: squared]", metavar="NAME")
    ] = None
    decimal: Decimal = "."
    rows: Rows = None
    windows: Annotated[int | None, typer.Option(help="Measure errors on the last N windows.", min=1, metavar="N")] = (
        None
    )
    beside: Annotated[Beside | None, typer.Option(help="Also fit the models of statsforecast.", metavar="NAME")] = None
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Write the forecasts: .csv, .parquet or .json.", metavar="FILE")
    ] = None
    backtest: Annotated[
        pathlib.Path | None, typer.Option(help="Write the forecasts of the past to a file.", metavar="FILE")
    ] = None
    plot: Annotated[pathlib.Path | None, typer.Option(help="Draw the forecasts: .png or .html.", metavar="FILE")] = None
    save: Annotated[
        pathlib.Path | None, typer.Option(help="Save the forecaster; with --id, a folder.", metavar="PATH")
    ] = None
    resume: Annotated[
        pathlib.Path | None, typer.Option(help="Continue what --save kept with new rows.", metavar="PATH")
    ] = None
    as_json: Json = False
    progress: Progress = None


# ------------------------------------------------------------------------------------------------- numbers as typed


def names_in(text: str | None) -> list[str]:
    """Return names as they are typed: a,b,c."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def read_numbers(word: str, text: str | None) -> list[int] | None:
    """Return whole numbers as they are typed: 24 or 1,2,24."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{word} must be a number, as 24, or a list of them, as 1,2,24. Got {text!r}.") from None


def read_levels(text: str | None) -> tuple[float, ...] | None:
    """Return levels as they are typed, in percent."""
    if text is None:
        return None
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        found = (0.0,)
    if not all(1 <= level <= 99.9 for level in found) or len(set(found)) < len(found):
        raise InputError(f"--levels must be percentages from 1 to 99.9, as 80,95. Got {text!r}.")
    return tuple(level / 100 for level in found)


def read_season(text: str | None) -> list[int] | tuple[()] | str | None:
    """Return a season as it is typed; None where it is left out."""
    if text is None or text == "auto":
        return text
    return () if text == "none" else read_numbers("--season", text)


def read_lags(lags: str | None) -> int | list[int]:
    """Return lags as they are typed."""
    numbers = read_numbers("--lags", lags) or [0]
    return numbers[0] if len(numbers) == 1 and "," not in (lags or "") else numbers
