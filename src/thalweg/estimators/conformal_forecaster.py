"""Any forecaster with intervals around what it says: a function, a model of scikit-learn or one of river."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from thalweg._validate import ask, check_flag, real_array, told, wrong
from thalweg.errors import InputError
from thalweg.estimators.conformal import ConformalTracker

__all__ = ["ConformalForecaster"]


class ConformalForecaster:
    """A model that predicts intervals, and learns from every answer where it can.

    Parameters
    ----------
    model : callable, or object with predict_one (river) or predict (scikit-learn)
        What forecasts one number from x: `model(x)`, `model.predict_one(x)` or `model.predict([x])`.
    tracker : ConformalTracker, optional
        What makes the intervals; one with coverage 0.9 when left out. Its horizon says how late answers may come.
    learn : bool
        Whether each answer goes on to the model, after the tracker has used it: `learn_one(x, y)` or
        `partial_fit([x], [y])`, where the model has it.

    Notes
    -----
    It is pickled with its model. `tracker.save` writes the tracker alone to a file.

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
        if not (hasattr(model, "predict_one") or hasattr(model, "predict") or callable(model)):
            raise wrong(name, "model", "a function of x, or an object with predict_one or predict", model)
        if tracker is not None and not isinstance(tracker, ConformalTracker):
            raise wrong(name, "tracker", "a ConformalTracker", tracker)
        self.model, self.tracker = model, ConformalTracker() if tracker is None else tracker
        if self.tracker.waiting:
            raise InputError(
                f"{name} needs a tracker none of whose predictions waits for an answer. Call update first."
            )
        self.learn = check_flag(name, "learn", learn)
        self._waiting: deque[Any] = deque()  # x of the predictions that wait

    def __repr__(self) -> str:
        return f"ConformalForecaster({self.model!r}, {self.tracker!r})"

    def predict_interval(self, x: Any) -> tuple[float, float]:
        """An interval (low, high) around the model's forecast for x."""
        interval = self.tracker.predict_interval(self.predict(x))
        self._waiting.append(x)
        return interval

    def predict(self, x: Any) -> float:
        """The model's forecast alone. Nothing waits for an answer to it."""
        name = type(self).__name__
        if hasattr(self.model, "predict_one"):
            said = ask(name, "model", self.model.predict_one, x)
        elif hasattr(self.model, "predict"):
            said = ask(name, "model", self.model.predict, _row(x))
        else:
            said = ask(name, "model", self.model, x)
        numbers = real_array(said)
        if numbers is None or numbers.size != 1 or not np.isfinite(numbers).all():
            raise InputError(f"The 'model' of {name} must forecast one finite number. Got {told(said)}.")
        return float(numbers.reshape(-1)[0])

    def update(self, y: float) -> None:
        """What came, for the first prediction that waits. A call that is refused changes nothing."""
        self.tracker._error(y)  # refuses what it must before the model learns
        name, x = type(self).__name__, self._waiting[0]
        if self.learn and hasattr(self.model, "learn_one"):
            ask(name, "model", self.model.learn_one, x, y)
        elif self.learn and hasattr(self.model, "partial_fit"):
            ask(name, "model", self.model.partial_fit, _row(x), np.array([y], dtype=np.float64))
        self.tracker.update(y)
        self._waiting.popleft()


def _row(x: Any) -> Any:
    """One row for scikit-learn: a data frame with one row as it is."""
    return x if getattr(x, "ndim", 1) == 2 or hasattr(x, "columns") else np.asarray(x).reshape(1, -1)
