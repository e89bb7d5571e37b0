"""Linear models for river, with nothing to tune: features come and go by name, and only those present cost time."""

import math
from collections.abc import Callable, Hashable, Iterable, Sized
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from river import base

from thalweg._core.extras import need
from thalweg._core.interrupts import interrupts
from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_flag, check_items, real_number, short_repr
from thalweg.errors import InputError
from thalweg.estimators._fitted import FactReaders, Facts, Fitted, SavedModels, read_names
from thalweg.estimators._frames import column, table
from thalweg.estimators._linear import FreeModel, read_guests, read_loss
from thalweg.parts.linear.plan import LinearLayout

__all__ = ["TrackingLogistic", "TrackingRegression"]

FIRST_CAPACITY = 8  # capacity for features at first
PLAIN = {float}
Features = dict[Hashable, Any]
Label = bool | str | int  # as river has it; here it must be True or False


class NamedFeatures(Fitted):
    """A mixin for linear models for river: one model, and the positions of the features by name."""

    _facts: ClassVar[FactReaders] = {"_names": read_names}
    _prefix = "engine."
    fit_intercept: bool
    guests: str | bool
    _models: tuple[FreeModel, ...]
    _names: dict[Hashable, int]

    def _loss(self) -> tuple[str, float]:
        """Return the loss and its parameter, checked."""
        raise NotImplementedError

    # ------------------------------------------------------------------ names and models

    def _sizes(self, count: int) -> tuple[int, bool]:
        """Return the capacity for a number of features, and whether there are guests."""
        guests = read_guests(type(self).__name__, self.guests, count)
        return max(FIRST_CAPACITY, 1 << max(count - 1, 0).bit_length()), guests

    def _layout(self, count: int) -> LinearLayout:
        """Return the layout of a model of a number of features; arguments are checked here."""
        intercept = check_flag(type(self).__name__, "fit_intercept", self.fit_intercept)
        (loss, par), (features, guests) = self._loss(), self._sizes(count)
        last = intercept and loss not in ("quantile", "log_loss")
        return LinearLayout(features, loss, par, intercept, guests, open=True, last=last)

    def _restored(self, facts: Facts, saved: SavedModels) -> tuple[FreeModel, ...]:
        count = len(facts["_names"])
        model = FreeModel.restored(self, self._layout(count), saved(0))
        if model.used != count:
            raise ValueError(f"it has {count} names of features and {model.used} features")
        return (model,)

    def _learn_with(self, names: Iterable[Hashable], learn: Callable[[FreeModel, dict[Hashable, int]], object]) -> None:
        """Learn rows with names that may be new: they get positions with coefficients 0. Among many, guests leave.

        `learn` gets the model and the names, and says to the model how many positions are in use from then on. Names of
        a call that fails are forgotten: the model says which are in use.
        """
        first = not self._is_fitted()
        model = FreeModel(self._layout(0)) if first else self._models[0]
        places = {} if first else self._names
        fresh = {name: None for name in names if name not in places}
        memory = model.memory
        features, guests = self._sizes(len(places) + len(fresh))
        guests = guests and bool(memory.sizes["guests"])  # they do not come back
        try:
            for name in fresh:
                places[name] = len(places) + 1
            if (features, int(guests)) == (memory.sizes["features"], memory.sizes["guests"]):
                learn(model, places)
            else:
                with memory.all_or_nothing():
                    model.move(features, guests=guests)
                    learn(model, places)
        except BaseException:
            with interrupts():  # a second Ctrl-C waits
                while len(places) > model.used:
                    places.popitem()
            raise
        if first:
            self._learned(self, _models=(model,), _names=places)

    # ------------------------------------------------------------------ rows

    def _predict(self, x: Features, before: float) -> float:
        """Predict a row; features that were never learned have no part in it. `before` if none was learned."""
        values = _values(self, x)
        try:
            model, places = self._models[0], self._names
        except AttributeError:
            return before
        try:
            at = [places[name] for name in x]
        except KeyError:
            values = [value for value, name in zip(values, x, strict=True) if name in places]
            at = [places[name] for name in x if name in places]
        return model.play(at, values, 0.0, 0.0, False)

    def _learn(self, x: Features, y: float, w: float) -> None:
        """Learn a row; one of weight 0 is left out."""
        values = _values(self, x)
        if w == 0.0:
            return
        try:
            model, places = self._models[0], self._names
            at = [places[name] for name in x]
        except (KeyError, AttributeError):
            self._learn_with(x, lambda m, p: m.play([p[name] for name in x], values, y, w, True, len(p)))
            return
        model.play(at, values, y, w, True)

    def _learn_many(self, X: object, y: Floats) -> None:
        values, names = _many(self, X)
        if len(values) != len(y):
            raise InputError(f"{type(self).__name__}.learn_many: X has {len(values)} rows and y has {len(y)}.")

        def learn(model: FreeModel, places: dict[Hashable, int]) -> None:
            at = np.array([places[name] for name in names], dtype=np.int64)
            model.learn(values, y, np.ones(len(y)), at, used=len(places))

        self._learn_with(names, learn)

    def _predict_many(self, X: Sized, before: float) -> Floats:
        """Predict the rows of a data frame; `before` for each before the first row is learned."""
        values, names = _many(self, X)
        if not self._is_fitted():
            return np.full(len(X), before)
        places = self._names
        known = [name in places for name in names]
        at = np.array([places[name] for name in names if name in places], dtype=np.int64)
        return self._models[0].predict(np.ascontiguousarray(values[:, known]), at)

    # ------------------------------------------------------------------ inspection

    @property
    def weights(self) -> dict[Hashable, float]:
        """Coefficients by feature, in the units of the data: the mean of all models by their weights."""
        if not self._is_fitted():
            return {}
        coefficients = self._models[0].coefficients()[0].tolist()
        return {name: coefficients[place - 1] for name, place in self._names.items()}

    @property
    def intercept(self) -> float:
        """In the units of the target."""
        return self._models[0].coefficients()[1] if self._is_fitted() else 0.0


def _values(self: object, x: Features) -> list[float]:
    """Return the numbers of a row, checked."""
    try:
        values = given = [*x.values()]
    except (AttributeError, TypeError):
        raise InputError(
            f"{type(self).__name__}: x must be a dict of features by name, {{'a': 1.0, 'b': 2.0}}. Got {short_repr(x)}."
        ) from None
    if {*map(type, given)} != PLAIN:
        try:
            array = np.array(given)
        except (ValueError, TypeError):  # lists among them, or objects that cannot be asked
            array = np.array(None)
        if array.dtype != np.float64 or array.ndim != 1:
            array = _numbers(self, x, array)
        values = array.tolist()
    if not math.hypot(*values) <= LARGEST_ENTRY:  # or nan
        for name, value in zip(x, values, strict=True):
            if not abs(value) <= LARGEST_ENTRY:
                what = "NaN" if math.isnan(value) else short_repr(x[name])
                raise InputError(
                    f"{type(self).__name__}: feature {short_repr(name)} is {what}. It must be a finite number of at "
                    f"most {LARGEST_ENTRY:g} in size. Leave it out of the row where it is not known."
                )
    return values


def _numbers(self: object, x: Features, values: NDArray[np.generic]) -> Floats:
    """Return numbers that are not all floats."""
    if values.dtype.kind in "iubf" and values.ndim == 1:
        return values.astype(np.float64)
    for name, value in x.items():
        number = isinstance(value, bool | float) or not math.isnan(real_number(value))
        if isinstance(value, str | bytes) or not number:
            raise InputError(
                f"{type(self).__name__}: feature {short_repr(name)} must be a number. Got {short_repr(value)}. "
                "Encode it before, for instance with river.preprocessing.OneHotEncoder, or leave it out."
            )
    return np.array([float(value) if isinstance(value, bool) else real_number(value) for value in x.values()])


def _many(self: object, X: object) -> tuple[Floats, list[Hashable]]:
    rows = table(type(self).__name__, "X", X)
    return rows.values, list(range(rows.values.shape[1])) if rows.names is None else list(rows.names)


def _series(X: object, values: object) -> Any:
    pandas = need("pandas", "river", "predict_many")
    kind, index = pandas.DataFrame if isinstance(values, dict) else pandas.Series, getattr(X, "index", None)
    return kind(values, index=None if callable(index) else index)  # a list has a method of that name


def _weight(self: object, w: object) -> float:
    weight = real_number(w)
    if not 0 <= weight <= LARGEST_ENTRY:
        raise InputError(f"{type(self).__name__}: w must be a number >= 0. Got {short_repr(w)}.")
    return weight


class TrackingRegression(NamedFeatures, base.MiniBatchRegressor):
    """Linear regression on a stream: it keeps up when the data change, and there is nothing to tune.

    As `thalweg.estimators.TrackingRegressor`, for river: features are named, and may come and go. Features and
    target are standardised inside, so no scaler is needed before it.

    A feature that is new has the coefficient 0. One that varies and is there in half of the rows or more is centred:
    where it is missing it counts as being at its mean. Any other, such as a word of a text, counts as 0 where it is
    missing. Up to 100 features, least squares with long and short memory take part.

    Repeating the last label is one more model, with coefficients 0 and the label as its intercept: on streams that
    hardly move from row to row, or whose labels come late, nothing else may be as good. It is left out without an
    intercept, and for quantiles.

    Parameters
    ----------
    loss
        "squared_error", "huber", "absolute_error" or "quantile".
    fit_intercept
        Whether there is an intercept.
    quantile
        In (0, 1), for that loss.
    epsilon
        For "huber": errors beyond `epsilon` times the running scale of errors count linearly.
    guests
        Whether least-squares models take part, at O(d^2) a row; "auto": up to 100 features, True: up to 512.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from thalweg.estimators import TrackingRegression
    >>> model = TrackingRegression()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.195...
    >>> sorted(model.weights)
    ['gallup', 'ipsos', 'morning_consult', 'ordinal_date', 'rasmussen', 'you_gov']
    """

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        fit_intercept: bool = True,
        quantile: float = 0.5,
        epsilon: float = 1.35,
        guests: str | bool = "auto",
    ) -> None:
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.quantile = quantile
        self.epsilon = epsilon
        self.guests = guests

    def _loss(self) -> tuple[str, float]:
        return read_loss(type(self).__name__, self.loss, self.quantile, self.epsilon)

    def learn_one(self, x: Features, y: float, w: float = 1.0) -> None:
        """Learn a row of features by name, with its target; `w` is its weight; one of weight 0 is left out."""
        target = real_number(y)
        if not abs(target) <= LARGEST_ENTRY:
            raise InputError(
                f"{type(self).__name__}: y must be a number of at most {LARGEST_ENTRY:g} in size. Got {short_repr(y)}."
            )
        self._learn(x, target, _weight(self, w))

    def predict_one(self, x: Features) -> float:
        """Predict a row; 0 before the first one is learned. Nothing changes."""
        return self._predict(x, 0.0)

    def learn_many(self, X: object, y: object) -> None:
        """Learn the rows of a data frame, one after the other."""
        self._learn_many(X, column(type(self).__name__, "y", y))

    def predict_many(self, X: Sized) -> Any:
        """Predict the rows of a data frame: a pandas Series."""
        return _series(X, self._predict_many(X, 0.0))


class TrackingLogistic(NamedFeatures, base.MiniBatchClassifier):
    """Logistic regression on a stream: it keeps up when the data change, and there is nothing to tune.

    Two classes, True and False. Features come and go by name, as in `TrackingRegression`, and need no scaler.

    Parameters
    ----------
    fit_intercept
        Whether there is an intercept.
    guests
        Whether Kalman filters take part, at O(d^2) a row; "auto": up to 100 features, True: up to 512.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from thalweg.estimators import TrackingLogistic
    >>> evaluate.progressive_val_score(datasets.Phishing(), TrackingLogistic(), metrics.Accuracy())
    Accuracy: 8...%
    """

    def __init__(self, *, fit_intercept: bool = True, guests: str | bool = "auto") -> None:
        self.fit_intercept = fit_intercept
        self.guests = guests

    @property
    def _multiclass(self) -> bool:
        return False

    def _loss(self) -> tuple[str, float]:
        return "log_loss", 0.5

    def _label(self, y: object) -> float:
        if isinstance(y, bool | np.bool_) or (isinstance(y, int | np.integer) and y in (0, 1)):
            return 1.0 if y else -1.0
        raise InputError(f"{type(self).__name__}: y must be True or False. Got {short_repr(y)}.")

    def learn_one(self, x: Features, y: Label, w: float = 1.0) -> None:
        """Learn a row of features by name, with its label; `w` is its weight; one of weight 0 is left out."""
        weight = _weight(self, w)
        self._learn(x, self._label(y), weight)

    def predict_proba_one(self, x: Features, **kwargs: object) -> dict[Label, float]:
        """The probabilities of False and True; 1/2 each before the first row is learned. Nothing changes."""
        found = self._predict(x, 0.5)
        return {False: 1.0 - found, True: found}

    def learn_many(self, X: object, y: object) -> None:
        """Learn the rows of a data frame, one after the other."""
        labels = check_items(type(self).__name__, "y", y, "a list of truth values")
        self._learn_many(X, np.array([self._label(label) for label in labels]))

    def predict_proba_many(self, X: Sized) -> Any:
        """The probabilities of False and True for the rows of a data frame: a pandas DataFrame."""
        found = self._predict_many(X, 0.5)
        return _series(X, {False: 1.0 - found, True: found})

    def predict_many(self, X: Sized) -> Any:
        """The more probable label of the rows of a data frame: a pandas Series."""
        return _series(X, self._predict_many(X, 0.5) > 0.5)
