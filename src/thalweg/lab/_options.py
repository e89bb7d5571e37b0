"""Options of commands: those that several share, groups of them, and the data and settings they describe."""

import functools
import inspect
import pathlib
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from typing import Annotated

import typer
from typer.models import OptionInfo

from thalweg.errors import InputError
from thalweg.lab.columns import MISSING, READERS
from thalweg.lab.report import Row
from thalweg.lab.streams import STREAMS
from thalweg.lab.tables import DOMAIN, LOSSES


class Empty(StrEnum):
    """Treatment of empty cells."""

    raise_, drop, previous = MISSING


class LossChoice(StrEnum):
    """Losses of a prediction."""

    squared, absolute, logistic, huber, pinball, hinge = LOSSES


Beside = StrEnum("Beside", ["statsforecast"])
Errors = StrEnum("Errors", ["squared", "absolute"])


def described(text: str, metavar: str, *, least: int | None = None, shown: bool = True) -> OptionInfo:
    """Return an option with a value: its help, the word for the value, and whether the help shows its default."""
    found: OptionInfo = typer.Option(help=text, metavar=metavar, min=least, show_default=shown)
    return found


Decimal = Annotated[str, described("Decimal mark of a CSV file.", "MARK")]
Rows = Annotated[int | None, described("Only the first N rows of a file.", "N", least=1)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Progress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Progress on stderr. [default: on a terminal]", show_default=False),
]
Engine = Annotated[str, described("serial, local or dask.", "NAME")]
Scheduler = Annotated[str | None, described("Address of a Dask scheduler.", "ADDRESS")]
Workers = Annotated[int | None, described("Processes. [default: one per core]", "N", least=1)]


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

    target: Annotated[list[str] | None, described("Column to predict, for a file.", "COLUMN", shown=False)] = None
    features: Annotated[str | None, described("Columns to use. [default: all with numbers]", "A,B,C")] = None
    lags: Annotated[str | None, described("Past targets as features: 24 or 1,2,24,168.", "N|A,B,C")] = None
    time: Annotated[str | None, described("Column of times; they must not decrease.", "COLUMN")] = None
    missing: Annotated[Empty, described(f"Empty cells: {', '.join(MISSING)}.", "HOW", shown=False)] = Empty.raise_
    decimal: Decimal = "."
    loss: Annotated[
        LossChoice | None, described(f"For a file: {', '.join(LOSSES)}. [default: {LOSSES[0]}]", "NAME")
    ] = None
    domain: Annotated[
        str | None, described(f"Set of decisions: see 'thalweg list domains'. [default: {DOMAIN} for a file]", "SET")
    ] = None
    intercept: Annotated[bool, typer.Option("--intercept/--no-intercept", help="Add a column of ones.")] = True
    scale: Annotated[bool, typer.Option("--scale/--no-scale", help="Scale columns to [-1, 1].")] = True
    horizon: Annotated[int | None, described("Rounds of a synthetic stream.", "N", least=1)] = None
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

    target: Annotated[str, described("Column to forecast.", "COLUMN", shown=False)]
    id: Annotated[str | None, described("Column with the names of the series.", "COLUMN")] = None
    time: Annotated[str | None, described("Column of times. [default: rows in file order]", "COLUMN")] = None
    horizon: Annotated[int | None, described("Steps ahead. [default: 1]", "N", least=1)] = None
    levels: Annotated[str | None, described("Coverage in percent. [default: 80,95]", "A,B,C")] = None
    columns: Annotated[str | None, described("Columns known in advance.", "A,B,C")] = None
    future: Annotated[str | None, described("Their values for the rows to come.", "FILE")] = None
    freq: Annotated[str, described("Time step: 15min, h, D, B, W, MS or a number.", "STEP", shown=False)] = "infer"
    season: Annotated[str | None, described("Season in steps: 24 or 24,168. [default: auto]", "N|A,B|none")] = None
    lags: Annotated[str | None, described("Past values to use: 8 or 1,2,24. [default: 4]", "N|A,B,C")] = None
    loss: Annotated[Errors | None, described("squared or absolute errors. [default: squared]", "NAME")] = None
    decimal: Decimal = "."
    rows: Rows = None
    windows: Annotated[int | None, described("Measure errors on the last N windows.", "N", least=1)] = None
    beside: Annotated[Beside | None, described("Also fit the models of statsforecast.", "NAME")] = None
    out: Annotated[pathlib.Path | None, described("Write the forecasts: .csv, .parquet or .json.", "FILE")] = None
    backtest: Annotated[pathlib.Path | None, described("Write the forecasts of the past to a file.", "FILE")] = None
    plot: Annotated[pathlib.Path | None, described("Draw the forecasts: .png or .html.", "FILE")] = None
    save: Annotated[pathlib.Path | None, described("Save the forecaster; with --id, a folder.", "PATH")] = None
    resume: Annotated[pathlib.Path | None, described("Continue what --save kept with new rows.", "PATH")] = None
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
