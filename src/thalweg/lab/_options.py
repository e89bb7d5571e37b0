"""Options that several commands share, and the data they describe."""

from __future__ import annotations

import pathlib
from enum import StrEnum
from typing import Annotated, Any

import typer

from thalweg.errors import InputError
from thalweg.lab.columns import MISSING, READERS
from thalweg.lab.streams import STREAMS
from thalweg.lab.tables import DOMAIN, LOSSES

__all__ = [
    "Decimal", "Domain", "Empty", "Engine", "Features", "ForecastColumns", "Horizon", "Intercept", "Lags", "Levels",
    "LossName", "Missing", "Progress", "Rows", "Scale", "Scheduler", "Season", "Target", "Time", "Workers",
    "describe_data", "read_lags", "read_levels", "read_season",
]  # fmt: skip


class Empty(StrEnum):
    """Treatment of empty cells."""

    raise_, drop, previous = MISSING


class LossChoice(StrEnum):
    """Losses of a prediction."""

    squared, absolute, logistic, huber, pinball, hinge = LOSSES


Target = Annotated[
    list[str] | None, typer.Option(help="Column to predict, for a file.", metavar="COLUMN", show_default=False)
]
Features = Annotated[
    str | None,
    typer.Option(help="Columns to use. [default: all with numbers]", metavar="A,B,C"),
]
LossName = Annotated[
    LossChoice | None,
    typer.Option(help=f"For a file: {', '.join(LOSSES)}. [default: {LOSSES[0]}]", metavar="NAME"),
]
Domain = Annotated[
    str | None,
    typer.Option(help=f"Set of decisions: see 'thalweg list domains'. [default: {DOMAIN} for a file]", metavar="SET"),
]
Intercept = Annotated[bool, typer.Option("--intercept/--no-intercept", help="Add a column of ones.")]
Scale = Annotated[bool, typer.Option("--scale/--no-scale", help="Scale columns to [-1, 1].")]
Missing = Annotated[Empty, typer.Option(help=f"Empty cells: {', '.join(MISSING)}.", metavar="HOW", show_default=False)]
Time = Annotated[
    str | None,
    typer.Option(help="Column of times; they must not decrease.", metavar="COLUMN"),
]
Decimal = Annotated[str, typer.Option(help="Decimal mark of a CSV file.", metavar="MARK")]
Lags = Annotated[
    str | None,
    typer.Option(
        help="Past targets as features: 24 or 1,2,24,168.",
        metavar="N|A,B,C",
    ),
]
Horizon = Annotated[int | None, typer.Option(help="Rounds of a synthetic stream.", min=1, metavar="N")]
Rows = Annotated[int | None, typer.Option(help="Only the first N rows of a file.", min=1, metavar="N")]
Progress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="Progress on stderr. [default: on a terminal]", show_default=False),
]
Engine = Annotated[str, typer.Option(help="serial, local or dask.", metavar="NAME")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler.", metavar="ADDRESS")]
Workers = Annotated[int | None, typer.Option(help="Processes. [default: one per core]", min=1, metavar="N")]


ForecastColumns = Annotated[str | None, typer.Option("--columns", help="Columns known in advance.", metavar="A,B,C")]
Levels = Annotated[str | None, typer.Option(help="Coverage in percent. [default: 80,95]", metavar="A,B,C")]
Season = Annotated[
    str | None,
    typer.Option(
        help="Season in steps: 24 or 24,168. [default: auto]",
        metavar="N|A,B|none",
    ),
]


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


def describe_data(
    source: str,
    target: list[str] | None,
    features: str | None,
    loss: LossChoice | None,
    domain: str | None,
    intercept: bool,
    scale: bool,
    horizon: int | None,
    *,
    rows: int | None = None,
    lags: str | None = None,
    time: str | None = None,
    missing: Empty = Empty.raise_,
    decimal: str = ".",
) -> dict[str, Any]:
    """The data to play on, in plain values: see `thalweg.lab.compare.open_data`."""
    if source in STREAMS:
        if target or features or loss or not intercept or not scale or lags or time or missing != "raise" or rows:
            raise InputError(
                f"{source!r} is a stream of its own: --target, --features, --loss, --lags, --time, --missing, --rows, "
                "--no-intercept and --no-scale are for files."
            )
        return {"stream": source, "horizon": horizon, "domain": domain}
    if horizon is not None:
        raise InputError(
            "--horizon is the length of a synthetic stream. For the first "
            f"{horizon} rows of a file type --rows {horizon}."
        )
    path = pathlib.Path(source)
    if source != "-" and not path.suffix and not path.exists():
        raise InputError(
            f"{source!r} is neither a stream nor a file. The streams are {', '.join(STREAMS)}. Files end in "
            f"{', '.join(READERS)}."
        )
    if target and len(target) > 1:
        raise InputError(f"The target is given twice: {' and '.join(target)}. Give one --target.")
    return {
        "source": source,
        "target": target[0] if target else None,
        "features": [name.strip() for name in features.split(",") if name.strip()] if features else None,
        "loss": loss.value if loss else "squared",
        "domain": domain or DOMAIN,
        "intercept": intercept,
        "scale": scale,
        "rows": rows,
        "lags": read_lags(lags),
        "time": time,
        "missing": missing.value,
        "decimal": decimal,
    }


def read_lags(lags: str | None) -> int | list[int]:
    """Return lags as they are typed."""
    numbers = read_numbers("--lags", lags) or [0]
    return numbers[0] if len(numbers) == 1 and "," not in (lags or "") else numbers
