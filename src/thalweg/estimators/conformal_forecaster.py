"""Any forecaster with intervals around it: one of a series, a function, a model of scikit-learn or one of river."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from thalweg._core.interrupts import interrupts
from thalweg._core.memory import Memory, together
from thalweg._core.types import Ints
from thalweg._core.validate import ask, check_flag, real_array, short_repr, wrong
from thalweg.errors import InputError
from thalweg.estimators.conformal import ConformalTracker
from thalweg.estimators.forecaster import Forecaster, is_missing
from thalweg.parts.conformal import ANSWERED, ASKED

__all__ = ["ConformalForecaster"]


class ConformalForecaster:
    """A model that predicts intervals, and learns from every answer where it can.

    Parameters
    ----------
    model : Forecaster, callable, or object with predict_one or forecast (river) or predict (scikit-learn)
        Forecasts one number from x: `model(x)`, `model.predict_one(x)` or `model.predict([x])`. Of a `Forecaster`
        or one of river's it is the next value, and x holds the columns of its round, None where there are none.
    tracker : ConformalTracker, optional
        The tracker of the intervals; one with coverage 0.9 when left out. Its horizon says how late answers may come.
    learn : bool
        Whether each answer goes on to the model, after the tracker has used it: `update(y)` of a `Forecaster`,
        `learn_one` or `partial_fit([x], [y])`, where the model has it.

    Notes
    -----
    It is pickled and copied with its model. `tracker.save` writes the tracker alone to a file.
    A forecaster of a series gets its answers one by one, so the tracker's horizon is 1. An answer that is missing, None
    or nan, lets the time pass. Before the first value its interval is (-inf, inf).
    Whenever Ctrl-C comes, a call has been made or has not. A model of this package that fails to learn is as before the
    call. With any other model the first Ctrl-C waits until the model and the tracker have learned; one that fails while
    it learns may have changed, and the tracker then waits for the same answer again.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import SGDRegressor
    >>> from thalweg.estimators import ConformalForecaster
    >>> rng = np.random.default_rng(0)
    >>> model = ConformalForecaster(SGDRegressor(random_state=0).partial_fit([[0.0, 0.0]], [0.0]))
    >>> inside = 0
    >>> for t in range(500):
    ...     x = rng.normal(size=2)
    ...     y = x[0] - x[1] + rng.normal()
    ...     low, high = model.predict_interval(x)
    ...     inside += low <= y <= high
    ...     model.update(y)
    >>> round(float(inside) / 500, 2)
    0.9
    """

    def __init__(self, model: Any, tracker: ConformalTracker | None = None, *, learn: bool = True) -> None:
        name = type(self).__name__
        if not (hasattr(model, "predict_one") or hasattr(model, "predict") or _of_series(model) or callable(model)):
            raise wrong(name, "model", "a function of x, or an object with predict_one or predict", model)
        if tracker is not None and not isinstance(tracker, ConformalTracker):
            raise wrong(name, "tracker", "a ConformalTracker", tracker)
        self.model, self.tracker = model, ConformalTracker() if tracker is None else tracker
        if self.tracker.waiting:
            raise InputError(
                f"{name} needs a tracker none of whose predictions waits for an answer. Call update first."
            )
        if _of_series(model) and self.tracker.horizon > 1:
            raise InputError(
                f"{name} around a forecaster of a series needs a tracker with horizon=1. Got {self.tracker.horizon}. "
                "For intervals of several steps use Forecaster(horizon=..., levels=...)."
            )
        self.learn = check_flag(name, "learn", learn)
        self._rows: dict[int, Any] = {}  # x of the predictions that wait, by the number of the round
        self._blind = False  # whether the last interval was that of a forecaster without any value

    def __repr__(self) -> str:
        return f"ConformalForecaster({self.model!r}, {self.tracker!r})"

    def predict_interval(self, x: Any = None) -> tuple[float, float]:
        """An interval (low, high) around the model's forecast for x."""
        said, clock = self.predict(x), self._clock
        self._blind = said != said and clock[ASKED] == clock[ANSWERED]
        if self._blind:
            return -np.inf, np.inf
        if len(self._rows) > clock[ASKED] - clock[ANSWERED]:  # left by calls that were interrupted
            for t in [t for t in self._rows if not clock[ANSWERED] <= t < clock[ASKED]]:
                del self._rows[t]
        self._rows[int(clock[ASKED])] = x  # before the round exists: a row without a round is never read
        return self.tracker.predict_interval(said)

    @property
    def _clock(self) -> Ints:
        clock: Ints = self.tracker._memory.state.clock
        return clock

    def predict(self, x: Any = None) -> float:
        """The model's forecast alone. Nothing waits for an answer to it. nan before the first value of a series."""
        name = type(self).__name__
        if isinstance(self.model, Forecaster):
            return self.model.predict(x)
        if _of_series(self.model):
            if getattr(self.model, "rounds", None) == 0:
                return np.nan
            said = ask(name, "model", self.model.forecast, 1, None if x is None else [x])
        elif hasattr(self.model, "predict_one"):
            said = ask(name, "model", self.model.predict_one, x)
        elif hasattr(self.model, "predict"):
            said = ask(name, "model", self.model.predict, _row(x))
        else:
            said = ask(name, "model", self.model, x)
        numbers = real_array(said)
        if numbers is None or numbers.size != 1 or not np.isfinite(numbers).all():
            raise InputError(f"The 'model' of {name} must forecast one finite number. Got {short_repr(said)}.")
        return float(numbers.reshape(-1)[0])

    def update(self, y: float | None) -> None:
        """Take the observation of the first prediction that waits. A refused call changes nothing."""
        missing = _of_series(self.model) and is_missing(y)
        if self._blind:
            self._teach(None, y)
            self._blind = False
            return
        self.tracker._error(0.0 if missing else y)  # raises for invalid y before the model learns
        t = int(self._clock[ANSWERED])
        if t not in self._rows:
            raise InputError(f"{type(self).__name__}: the tracker waits for an answer to a prediction made without it.")
        with _together(self.model, self.tracker):
            self._teach(self._rows[t], y)
            if missing:
                self.tracker._skip()
            else:
                self.tracker.update(y)  # type: ignore[arg-type]  # a number
        self._rows.pop(t, None)

    def _teach(self, x: Any, y: float | None) -> None:
        name = type(self).__name__
        if self.learn and isinstance(self.model, Forecaster):
            self.model.update(y)
        elif self.learn and _of_series(self.model):
            ask(name, "model", self.model.learn_one, y, x)
        elif self.learn and hasattr(self.model, "learn_one"):
            ask(name, "model", self.model.learn_one, x, y)
        elif self.learn and hasattr(self.model, "partial_fit"):
            ask(name, "model", self.model.partial_fit, _row(x), np.array([y], dtype=np.float64))

    def __copy__(self) -> Self:
        """Return one with a model and a tracker of its own."""
        return copy.deepcopy(self)


def _of_series(model: object) -> bool:
    """Whether a model forecasts a series: `Forecaster`, or one that is called as those of river are."""
    last = getattr(model, "_last_step", model)  # a pipeline of river has `forecast` whatever it ends with
    return isinstance(model, Forecaster) or (hasattr(last, "forecast") and hasattr(model, "learn_one"))


def _memories(model: object) -> list[Memory]:
    """Return the memories of a model of this package; of any other, none."""
    models = getattr(model, "_models", ())
    found = [getattr(model, "_memory", None), *(getattr(one, "memory", None) for one in models)]
    return [one for one in found if isinstance(one, Memory)]


@contextmanager
def _together(model: object, tracker: ConformalTracker) -> Iterator[None]:
    """Let a model and a tracker learn, or neither, where the model is one of this package; else Ctrl-C waits."""
    if not type(model).__module__.startswith("thalweg."):
        with interrupts() as stop:
            yield
        if stop.asked:
            raise KeyboardInterrupt
        return
    before = dict(vars(model))
    with together((*_memories(model), tracker._memory)):
        try:
            yield
        except BaseException:
            model.__dict__ = before
            raise


def _row(x: object) -> object:
    """One row for scikit-learn: a data frame with one row as it is."""
    return x if getattr(x, "ndim", 1) == 2 or hasattr(type(x), "columns") else np.asarray(x).reshape(1, -1)
