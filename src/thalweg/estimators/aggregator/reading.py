"""Forecasts and answers as users give them: checked, as arrays for kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_choice, real_array, short_repr
from thalweg.errors import InputError
from thalweg.estimators._frames import FrameTable, column, first, table
from thalweg.parts.covariance import LARGEST_FORECAST
from thalweg.parts.forecast_losses import CLOSEST, CODES

OPERA = {"mse": "square", "mae": "absolute", "mape": "percentage"}  # its names of losses


class Rows(NamedTuple):
    """Forecasts of some rounds, in the order of the experts."""

    came: FrameTable  # as it was given
    X: Floats  # (n, K); 0 where an expert sleeps
    A: Floats  # (n, K) how much of each is awake


def read_loss(owner: str, loss: object) -> str:
    """Return a loss by its name or by OPERA's."""
    name = loss.lower() if isinstance(loss, str) else loss
    return check_choice(owner, "loss", OPERA.get(name, name) if isinstance(name, str) else name, tuple(CODES))


def read_rows(
    who: str,
    experts: object,
    awake: object,
    time: str | None,
    *,
    loss: str,
    count: int = 0,
    names: tuple[str, ...] | None = None,
) -> Rows:
    """Return forecasts and the experts awake.

    Parameters
    ----------
    who : str
        The call, for messages.
    experts, awake, time
        As for `Aggregator.predict`.
    loss : str
        That of the aggregator.
    count, names
        How many experts there are since the first call (0 before it), and their names.
    """
    came = _named(who, "experts", table(who, "experts", experts, time=time, empty=True))
    names = came.names if names is None else names
    X = _columns(who, "experts", came, names)
    if X.shape[1] == 0:
        raise InputError(f"{who}: experts must have a column for each expert. Got none.")
    if count and X.shape[1] != count:
        raise InputError(
            f"{who}: there are {count} experts since the first call. Got {X.shape[1]} columns. Keep a "
            "column for an expert that has left, with nan in it, and have one from the start for each to come."
        )
    A = np.where(np.isnan(X), 0.0, 1.0)
    if awake is not None:
        given = _columns(who, "awake", _named(who, "awake", table(who, "awake", awake)), names)
        if given.shape != X.shape:
            raise InputError(f"{who}: awake has shape {given.shape}, experts {X.shape}. Give one a forecast.")
        if not ((given >= 0) & (given <= 1)).all():
            raise InputError(f"{who}: awake must hold numbers from 0 to 1. Got {given.min():g} to {given.max():g}.")
        A *= given
    if (row := first(A.max(axis=1) <= 0)) is not None:
        raise InputError(
            f"{who}: no expert is awake in row {row}, counted from 0. Leave the round out, or add "
            "an expert that always has a forecast, such as the last value."
        )
    X = np.where(A > 0, X, 0.0)
    if loss == "log":
        if not ((X >= 0) & (X <= 1)).all():
            raise InputError(f"{who}: for loss='log' forecasts must be probabilities of y = 1, from 0 to 1.")
        X = np.clip(X, CLOSEST, 1 - CLOSEST)
    elif (np.abs(X) > LARGEST_FORECAST).any():
        raise InputError(f"{who}: a forecast is larger than {LARGEST_FORECAST:g}. Choose other units.")
    return Rows(came, X, A)


def read_answers(who: str, y: object, loss: str, rounds: int | None = None) -> Floats:
    """Return one number a round, for compiled code: contiguous, and not read-only. `rounds`: as many as forecasts."""
    Y = np.array(column(who, "y", y))
    if (np.abs(Y) > LARGEST_FORECAST).any():
        raise InputError(f"{who}: an answer is larger than {LARGEST_FORECAST:g}. Choose other units.")
    if loss == "percentage" and (np.abs(Y) < 1 / LARGEST_FORECAST).any():
        raise InputError(f"{who}: y is 0 in row {int(np.argmin(np.abs(Y)))}; a percentage of it says nothing.")
    if loss == "log" and not ((Y == 0) | (Y == 1)).all():
        raise InputError(f"{who}: for loss='log' y must be 0 or 1. Got {short_repr(Y[(Y != 0) & (Y != 1)][0].item())}.")
    if rounds is not None and len(Y) != rounds:
        raise InputError(f"{who}: experts have {rounds} rows, y has {len(Y)}. Give an answer for each row.")
    return Y


def one_row(experts: object) -> Floats | None:
    """Return one round's forecasts as a row; None if they are anything else."""
    if type(experts) is np.ndarray:
        return experts.reshape(1, -1) if experts.ndim == 1 else None
    array = real_array(experts) if isinstance(experts, list | tuple) and experts else None
    return None if array is None or array.ndim != 1 else array.reshape(1, -1)


def as_row(awake: object) -> object:
    """Return one round's `awake` as a row."""
    given = awake
    if isinstance(awake, list | tuple):
        given = [float(one) if isinstance(one, bool) else one for one in awake]
    elif getattr(awake, "dtype", None) == np.bool_:
        given = np.asarray(awake, dtype=np.float64)
    array = real_array(given)
    return awake if array is None or array.ndim != 1 else array.reshape(1, -1)


def _named(who: str, what: str, came: FrameTable) -> FrameTable:
    """Return the table with names that are text; whole numbers are written out."""
    if came.names is None:
        return came
    strange = [name for name in came.names if not isinstance(name, str | int)]
    if strange:
        raise InputError(
            f"{who}: columns of {what} must be named by text or whole numbers. Got {short_repr(strange[0])}. Rename "
            'them, for instance by frame.columns = ["_".join(name) for name in frame.columns].'
        )
    names = tuple(map(str, came.names))
    if len(set(names)) < len(names):
        raise InputError(
            f"{who}: two columns of {what} have one name, as text: {short_repr(list(came.names))}. Rename one."
        )
    return came._replace(names=names)


def _columns(who: str, what: str, came: FrameTable, names: tuple[str, ...] | None) -> Floats:
    """Return the columns of these experts: by name where they have names, nan where one is missing."""
    if came.names is None or not names:
        return came.values
    new = [name for name in came.names if name not in names]
    if new:
        raise InputError(
            f"{who}: {what} has a column {new[0]!r}, but the experts are {', '.join(names)}, since the first call. "
            "Have a column for each from the start, empty until it appears."
        )
    empty = np.full(len(came.values), np.nan if what == "experts" else 1.0)
    return np.stack([came.values[:, came.names.index(n)] if n in came.names else empty for n in names], axis=1)
