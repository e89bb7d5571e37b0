"""Forecasts of several experts combined, round by round: weights that follow who is right."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from thalweg._extras import need
from thalweg._recorded import describe, parameters
from thalweg._types import Array
from thalweg._validate import (
    check_choice,
    check_count,
    check_entries,
    check_flag,
    check_items,
    real_array,
    real_number,
    told,
    wrong,
)
from thalweg.errors import InputError
from thalweg.estimators._combination import Combination
from thalweg.estimators._combiner import LARGEST, Combiner
from thalweg.estimators._forecast_losses import CLOSEST, CODES
from thalweg.estimators._frames import Table, column, table
from thalweg.estimators._oracles import Oracle, oracle
from thalweg.estimators._rules import COVARIANCE, FAMILIES, Row
from thalweg.estimators._saved import Saved

__all__ = ["Aggregator", "read_loss", "read_rule"]

OPERA = {"mse": "square", "mae": "absolute", "mape": "percentage"}  # its names of losses
USUAL = "BOA", "recent", "covariance"
MANY = 50  # experts: weights by covariance cost their third power, and are not usual for more


def read_loss(owner: str, loss: Any) -> str:
    """A loss by its name or by OPERA's."""
    name = loss.lower() if isinstance(loss, str) else loss
    return check_choice(owner, "loss", OPERA.get(name, name) if isinstance(name, str) else name, tuple(CODES))


def read_rule(owner: str, name: str, rule: Any) -> str:
    """The name of a rule, in whatever case."""
    known = {key.lower(): key for key in (*FAMILIES, "Tracker")}
    if not isinstance(rule, str) or rule.lower() not in known:
        raise wrong(owner, name, "one of " + ", ".join(map(repr, known.values())), rule)
    return known[rule.lower()]


class Aggregator(Saved):
    """Combine forecasts of several experts, with nothing to tune.

    Weights that sum to 1 follow who is right: those of a `Tracker` on the simplex and of other rules, the guests, are
    mixed by what they gained. An expert may sleep, appear or leave; answers may come late.

    Parameters
    ----------
    loss : {"square", "absolute", "percentage", "pinball", "log"}
        What an error costs; OPERA's names "mse", "mae" and "mape" will do. For "log" the experts' forecasts are
        probabilities of y = 1, kept 1e-9 away from 0 and 1, and y is 0 or 1.
    tau : float
        The quantile that "pinball" is for.
    gradient : bool
        Compete with the best fixed weights (True) or with the best expert (False).
    horizon : int
        How many rounds a forecast may be ahead of the answers. Rounds are shared by so many copies that take turns.
    guests : "auto" or sequence
        Other rules in the mixture: "BOA", "MLpol", "MLprod", "EWA", "FS" (fixed share), "recent" (BOA that forgets,
        with half-lives of 4 to 256 rounds), "covariance" (weights from how the experts' errors go together, of all
        rounds and with a half-life of 64), "Bayes" (for "log"), or objects of your own with `weights(experts, awake)`
        and `update(experts, awake, y)`; to save them, also `state()` and `restore(saved)`. "auto": BOA, recent and
        covariance (for up to 50 experts: it costs their third power), FS where `gradient` is False, Bayes for "log".
    rule : str, optional
        One of these names or "Tracker": play that rule alone.

    Attributes
    ----------
    weights_ : array
        Those of the next forecast, if everybody is awake.
    n_experts_, expert_names_
        How many experts there are, since the first call; their names, if they came in a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import Aggregator
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=300).cumsum()
    >>> experts = y[:, None] + rng.normal(size=(300, 3)) * [1.0, 2.0, 4.0]
    >>> aggregator = Aggregator()
    >>> run = aggregator.run(experts, y)                     # or predict(row) and update(y), one round at a time
    >>> bool(run.loss() < ((experts - y[:, None])**2).mean(axis=0).min())
    True
    >>> aggregator.weights_.round(1).tolist(), round(aggregator.oracle(experts, y, "convex").loss, 2)
    ([0.8, 0.2, 0.0], 0.73)
    """

    _noun = "aggregator"
    _facts = ("n_experts_", "expert_names_")
    _engine: Combiner
    n_experts_: int

    def __init__(
        self,
        loss: str = "square",
        *,
        tau: float = 0.5,
        gradient: bool = True,
        horizon: int = 1,
        guests: Any = "auto",
        rule: str | None = None,
    ) -> None:
        name = type(self).__name__
        self.loss, self.tau, self.gradient, self.horizon, self.guests, self.rule = (
            read_loss(name, loss),
            real_number(tau),
            check_flag(name, "gradient", gradient),
            check_count(name, "horizon", horizon, most=2**12),
            guests,
            None if rule is None else read_rule(name, "rule", rule),
        )
        if not 0 < self.tau < 1:
            raise wrong(name, "tau", "a number between 0 and 1", tau)
        self._plain = self.loss not in ("percentage", "log")  # any finite answer will do
        self._candidates()

    def _candidates(self, experts: int = 1) -> tuple[bool, list[Row], list[Any]]:
        """Whether the Tracker is one, the rules that are, and the guests of the user's own."""
        name = type(self).__name__
        if self.rule is not None:
            return self.rule == "Tracker", [*FAMILIES.get(self.rule, ())], []
        usual = [name for name in USUAL if experts <= MANY or name != "covariance"]
        usual += ["FS"] * (not self.gradient) + ["Bayes"] * (self.loss == "log")
        guests = usual if isinstance(self.guests, str) and self.guests == "auto" else self.guests
        rows: list[Row] = []
        own: list[Any] = []
        for guest in check_items(name, "guests", guests, "names of rules or objects"):
            if isinstance(guest, str):
                rows += FAMILIES.get(read_rule(name, "guests", guest), ())
            elif callable(getattr(guest, "weights", None)) and callable(getattr(guest, "update", None)):
                own.append(guest)
            else:
                raise wrong(name, "guests", "names of rules, or objects with weights() and update()", guest)
        return True, rows, own

    def _new_engine(self, facts: Mapping[str, Any]) -> Combiner:
        name = type(self).__name__
        K = check_count(name, "n_experts_", facts["n_experts_"], most=2**20)
        tracked, rows, own = self._candidates(K)
        check_entries(name, "horizon", self.horizon, self.horizon * (len(rows) + 1) * K)
        if any(row.kind == COVARIANCE for row in rows):
            which = "guests" if self.rule is None else "rule"
            check_entries(name, which, getattr(self, which), 4 * K * K)
        return Combiner(
            K,
            loss=self.loss,
            tau=self.tau,
            gradient=self.gradient,
            horizon=self.horizon,
            tracked=tracked,
            rows=rows,
            guests=own,
        )

    # ------------------------------------------------------------------ rounds

    def predict(self, experts: Any, awake: Any = None, *, time: str | None = None) -> Any:
        """Combine forecasts of the next round, or of a few rounds, which then wait for `update`.

        Parameters
        ----------
        experts : array (K,), array (n, K) or data frame
            A forecast of each expert; nan where one sleeps. A column that a later frame does not have sleeps.
        awake : array or data frame of the same shape, optional
            How much of each expert is awake, from 0 to 1.
        time : str, optional
            The column of the frame that holds the time, which must not go backwards.

        Returns
        -------
        float, array (n,), or data frame with the column "prediction"
        """
        engine = vars(self).get("_engine")
        if engine is not None and awake is None and time is None:
            said = engine.take(experts, *((CLOSEST, 1 - CLOSEST) if self.loss == "log" else (-LARGEST, LARGEST)))
            if said is not None:
                return said
        who = f"{type(self).__name__}.predict"
        one = _one_row(experts)
        came, X, A = self._read(who, experts if one is None else one, awake if one is None else _row(awake), time)
        engine = self._engine_for(X.shape[1])
        if len(X) + engine.waiting > self.horizon:
            raise InputError(
                f"{who}: {engine.waiting} forecasts wait for an answer and {len(X)} more were asked for, but horizon = "
                f"{self.horizon}. Call update(y) first, or build Aggregator(horizon={len(X) + engine.waiting})."
            )
        self._keep(who, came, engine)
        answers = np.array([engine.predict(x, a) for x, a in zip(X, A, strict=True)])
        return float(answers[0]) if one is not None else came.like(answers, ["prediction"])

    def update(self, y: Any) -> None:
        """What came true: one number, or one a round, for the forecasts that have waited longest."""
        engine = vars(self).get("_engine")
        if isinstance(y, float) and abs(y) <= LARGEST and engine is not None and engine.waiting and self._plain:
            engine.update(y)
            return
        who = f"{type(self).__name__}.update"
        Y = self._read_answers(who, np.reshape(y, 1) if np.ndim(y) == 0 and real_array(y) is not None else y)
        waiting = self._engine.waiting if "_engine" in vars(self) else 0
        if len(Y) > waiting:
            raise InputError(f"{who}: {len(Y)} answers came, but {waiting} forecasts wait for one. Call predict first.")
        for value in Y.tolist():
            self._engine.update(value)

    def run(self, experts: Any, y: Any, awake: Any = None, *, time: str | None = None) -> Combination:
        """Many rounds: `predict` and `update` for each row, in compiled code.

        No forecast knows more than the answers up to `horizon` rounds before it.

        Parameters
        ----------
        experts, awake, time
            As for `predict`, a row a round.
        y : array (n,), or a series
            What came true.

        Returns
        -------
        Combination
            Predictions, weights and losses, and pictures of them.
        """
        who = f"{type(self).__name__}.run"
        came, X, A = self._read(who, experts, awake, time)
        Y = self._read_answers(who, y)
        if len(Y) != len(X):
            raise InputError(f"{who}: experts have {len(X)} rows, y has {len(Y)}. Give an answer for each row.")
        engine = self._engine_for(X.shape[1])
        if engine.waiting:
            raise InputError(f"{who}: {engine.waiting} forecasts still wait for their answer. Call update(y) first.")
        self._keep(who, came, engine)
        P, W = engine.run(X, A, Y)
        return Combination(X, A, Y, P, W, self._names(), self.loss, self.tau, self.rule or "combined", came)

    @property
    def weights_(self) -> Array:
        """Weights of the next forecast, if everybody is awake."""
        if "_engine" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no weights_ before the first call of predict or run.")
        return self._engine.weights()

    def oracle(self, experts: Any, y: Any, model: str = "convex", awake: Any = None) -> Oracle:
        """The best in hindsight by the loss of this aggregator; see `thalweg.estimators.oracle`."""
        return oracle(experts, y, model, loss=self.loss, tau=self.tau, awake=awake)

    # ------------------------------------------------------------------ what it tells

    def reset(self) -> None:
        """Back to before the first round."""
        for name in ("n_experts_", "expert_names_", "_engine"):
            vars(self).pop(name, None)

    def clone(self) -> Self:
        """A fresh one with the same arguments."""
        return type(self)(**{key: copy.deepcopy(value) for key, value in self._arguments().items()})

    def __repr__(self) -> str:
        usual = parameters(Aggregator)
        given = [f"{k}={v!r}" for k, v in self._arguments().items() if describe(v) != describe(usual[k].default)]
        return f"{type(self).__name__}({', '.join(given)}{'; ' * bool(given)}{self.rounds} rounds played)"

    def _names(self) -> tuple[str, ...]:
        if hasattr(self, "expert_names_"):
            return tuple(self.expert_names_)
        return tuple(f"expert {i + 1}" for i in range(self.n_experts_))

    # ------------------------------------------------------------------ checks, before anything changes

    def _read(self, who: str, experts: Any, awake: Any, time: str | None) -> tuple[Table, Array, Array]:
        """The table as it came, forecasts (0 for nan) and who is awake, in the order of the experts."""
        came = table(who, "experts", experts, time=time, empty=True)
        names = tuple(self.expert_names_) if hasattr(self, "expert_names_") else came.names
        X = _columns(who, "experts", came, names)
        if X.shape[1] == 0:
            raise InputError(f"{who}: experts must have a column for each expert. Got none.")
        if hasattr(self, "n_experts_") and X.shape[1] != self.n_experts_:
            raise InputError(
                f"{who}: there are {self.n_experts_} experts since the first call. Got {X.shape[1]} columns. Keep a "
                "column for an expert that has left, with nan in it, and have one from the start for each to come."
            )
        A = np.where(np.isnan(X), 0.0, 1.0)
        if awake is not None:
            given = _columns(who, "awake", table(who, "awake", awake), names)
            if given.shape != X.shape:
                raise InputError(f"{who}: awake has shape {given.shape}, experts {X.shape}. Give one a forecast.")
            if not ((given >= 0) & (given <= 1)).all():
                raise InputError(f"{who}: awake must hold numbers from 0 to 1. Got {given.min():g} to {given.max():g}.")
            A *= given
        nobody = ~(A > 0).any(axis=1)
        if nobody.any():
            row = int(np.argmax(nobody))
            raise InputError(
                f"{who}: nobody is awake in row {row}, counted from 0. Leave the round out, or add an expert that "
                "always has a forecast, such as the last value."
            )
        X = np.where(A > 0, X, 0.0)
        if self.loss == "log":
            if not ((X >= 0) & (X <= 1)).all():
                raise InputError(f"{who}: for loss='log' forecasts must be probabilities of y = 1, from 0 to 1.")
            X = np.clip(X, CLOSEST, 1 - CLOSEST)
        elif (np.abs(X) > LARGEST).any():
            raise InputError(f"{who}: a forecast is larger than {LARGEST:g}. Choose other units.")
        return came, X, A

    def _read_answers(self, who: str, y: Any) -> Array:
        Y = np.array(column(who, "y", y))  # for compiled code: contiguous, and not read-only
        if (np.abs(Y) > LARGEST).any():
            raise InputError(f"{who}: an answer is larger than {LARGEST:g}. Choose other units.")
        if self.loss == "percentage" and (np.abs(Y) < 1 / LARGEST).any():
            raise InputError(f"{who}: y is 0 in row {int(np.argmin(np.abs(Y)))}; a percentage of it says nothing.")
        if self.loss == "log" and not ((Y == 0) | (Y == 1)).all():
            raise InputError(f"{who}: for loss='log' y must be 0 or 1. Got {told(Y[(Y != 0) & (Y != 1)][0].item())}.")
        return Y

    def _engine_for(self, count: int) -> Combiner:
        """The engine, or one for what came first; it is kept once all is checked."""
        return self._engine if "_engine" in vars(self) else self._new_engine({"n_experts_": count})

    def _keep(self, who: str, came: Table, engine: Combiner) -> None:
        """Remember the time, and at the first call who the experts are."""
        if came.time is not None and len(came.values):
            first, last = _moments(came)
            if engine._time[0] and first < engine._time[1]:
                raise InputError(
                    f"{who}: experts[{came.time!r}] goes backwards from the call before. Give rows in order."
                )
            engine._time[:] = 1.0, last
        if "_engine" not in vars(self):
            self._engine, self.n_experts_ = engine, engine.count
            if came.names is not None:
                self.expert_names_ = np.array(came.names, dtype=object)


def _one_row(experts: Any) -> Array | None:
    """One round's forecasts as a row, where they came so."""
    if type(experts) is np.ndarray:
        return experts.reshape(1, -1) if experts.ndim == 1 else None
    if isinstance(experts, list | tuple) and experts and np.ndim(experts[0]) == 0:
        array = real_array(experts)
        return None if array is None else array.reshape(1, -1)
    return None


def _row(awake: Any) -> Any:
    array = None if awake is None else real_array(np.asarray(awake) * 1.0)
    return awake if array is None or array.ndim != 1 else array.reshape(1, -1)


def _columns(who: str, what: str, came: Table, names: tuple[str, ...] | None) -> Array:
    """The columns of these experts: by name where they have names, nan where one is missing."""
    if came.names is None or names is None:
        return came.values
    new = [name for name in came.names if name not in names]
    if new:
        raise InputError(
            f"{who}: {what} has a column {new[0]!r}, but the experts are {', '.join(names)}, since the first call. "
            "Have a column for each from the start, empty until it appears."
        )
    empty = np.full(len(came.values), np.nan if what == "experts" else 1.0)
    return np.stack([came.values[:, came.names.index(n)] if n in came.names else empty for n in names], axis=1)


def _moments(came: Table) -> tuple[float, float]:
    """The first and the last time of a table, as numbers."""
    nw = need("narwhals", "frames", "A data frame")
    times = came.frame[came.time]
    if not times.dtype.is_numeric():
        times = times.cast(nw.Datetime("us")).dt.timestamp("us")
    return float(times[0]), float(times[len(times) - 1])
