"""Linear models for river, with nothing to tune: features come and go by name, and only those present cost time."""

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._extras import need
from thalweg._types import Array
from thalweg._validate import LARGEST, check_choice, check_flag, check_positive, real_number, told, wrong
from thalweg.errors import InputError, StateError
from thalweg.estimators._frames import column, table
from thalweg.estimators._linear import LinearEngine
from thalweg.estimators._saved import Saved

need("river", "river", "TrackingRegression")

from river import base  # noqa: E402

__all__ = ["TrackingLogistic", "TrackingRegression"]

MANY = 100  # features up to which guests come by themselves
LEAST = 8  # features there is room for at first
PLAIN = {float}
Features = dict[Hashable, Any]
Label = bool | str | int  # as river has it; here it must be True or False


class _Linear(Saved):
    """What both share: names of features to positions of the engine, and rows of dicts to arrays."""

    _facts = ("_names",)
    _engine: LinearEngine
    fit_intercept: bool
    guests: str | bool

    @abstractmethod
    def _loss(self) -> tuple[str, float]:
        """The loss by the engine's name, and its parameter; arguments are checked here."""

    # ------------------------------------------------------------------ names and engines

    def _new_engine(self, facts: Mapping[str, Any]) -> LinearEngine:
        name, names = type(self).__name__, facts["_names"]
        if len(set(names)) < len(names):
            raise InputError(f"{name}: two features have one name.")
        intercept = check_flag(name, "fit_intercept", self.fit_intercept)
        (loss, par), (room, guests) = self._loss(), self._sizes(len(names))
        return LinearEngine(room, loss, par=par, intercept=intercept, guests=guests, open=True)

    def _sizes(self, count: int) -> tuple[int, bool]:
        """How many features an engine has room for that has so many, and whether it has guests."""
        choices: tuple[str | bool, ...] = "auto", True, False
        guests = check_choice(type(self).__name__, "guests", self.guests, choices)
        return max(LEAST, 1 << max(count - 1, 0).bit_length()), count <= MANY if guests == "auto" else bool(guests)

    @property
    def _names(self) -> NDArray[np.object_]:
        """Names of the features, by position."""
        names = np.empty(len(self._places), dtype=object)
        names[:] = list(self._places)
        return names

    @property
    def _places(self) -> dict[Hashable, int]:
        """Positions of the features by name."""
        found: dict[Hashable, int] = vars(self).setdefault("_index", {})
        return found

    def _admit(self, names: Any) -> None:
        """Features that are new get positions, with coefficients 0; where there are many, guests leave."""
        places = self._places
        if "_engine" not in vars(self):
            self._engine = self._new_engine({"_names": []})
        fresh = [name for name in names if name not in places]
        given = self._engine._given
        room, guests = self._sizes(len(places) + len(fresh))
        if (room, guests) != (given["features"], given["guests"]):
            self._engine = self._engine.rebuilt(room, guests=guests)
        for name in fresh:
            places[name] = len(places) + 1
        self._engine.use(len(places))

    # ------------------------------------------------------------------ rows

    def _values(self, x: Features) -> list[float]:
        """The numbers of a row, checked."""
        values = given = [*x.values()]
        if {*map(type, given)} != PLAIN:
            try:
                array = np.array(given)
            except ValueError:  # lists among them
                array = np.array(None)
            if array.dtype != np.float64:
                array = self._numbers(x, array)
            values = array.tolist()
        if not math.hypot(*given) <= LARGEST:  # or nan
            for name, value in x.items():
                if not abs(value) <= LARGEST:
                    what = "NaN" if math.isnan(value) else str(value)
                    raise InputError(
                        f"{type(self).__name__}: feature {name!r} is {what}. It must be a finite number of at most "
                        f"{LARGEST:g} in size. Leave it out of the row where it is not known."
                    )
        return values

    def _numbers(self, x: Features, values: NDArray[Any]) -> Array:
        """Those that are not all floats."""
        if values.dtype.kind in "iubf" and values.ndim == 1:
            return values.astype(np.float64)
        for name, value in x.items():
            number = isinstance(value, bool | float) or not math.isnan(real_number(value))
            if isinstance(value, str | bytes) or not number:
                raise InputError(
                    f"{type(self).__name__}: feature {name!r} must be a number. Got {told(value)}. "
                    "Encode it before, for instance with river.preprocessing.OneHotEncoder, or leave it out."
                )
        return np.array([float(value) for value in x.values()])

    def _predict(self, x: Features) -> float:
        """What a row is predicted; features that were never learned have no part in it."""
        values = self._values(x)
        if "_engine" not in vars(self):
            return math.nan
        places = self._places
        try:
            at = [places[name] for name in x]
        except KeyError:
            values = [value for value, name in zip(values, x, strict=True) if name in places]
            at = [places[name] for name in x if name in places]
        return self._engine.play(at, values, 0.0, 0.0, False)

    def _learn(self, x: Features, y: float, w: float) -> None:
        values = self._values(x)
        places = vars(self).get("_index", {})
        try:
            at = [places[name] for name in x]
            engine = self._engine
        except (KeyError, AttributeError):
            self._admit(x)
            places, engine = self._places, self._engine
            at = [places[name] for name in x]
        engine.play(at, values, y, w, True)

    def _many(self, X: Any) -> tuple[Array, list[Hashable]]:
        rows = table(type(self).__name__, "X", X)
        return rows.values, list(range(rows.values.shape[1])) if rows.names is None else list(rows.names)

    def _learn_many(self, X: Any, y: Array) -> None:
        values, names = self._many(X)
        if len(values) != len(y):
            raise InputError(f"{type(self).__name__}.learn_many: X has {len(values)} rows and y has {len(y)}.")
        self._admit(names)
        at = np.array([self._places[name] for name in names], dtype=np.int64)
        self._engine.learn(values, y, np.ones(len(y)), at)

    def _predict_many(self, X: Any) -> Array:
        values, names = self._many(X)
        if "_engine" not in vars(self):
            return np.full(len(values), math.nan)
        known = [name in self._places for name in names]
        at = np.array([self._places[name] for name in names if name in self._places], dtype=np.int64)
        return self._engine.predict(np.ascontiguousarray(values[:, known]), at)

    @staticmethod
    def _series(X: Any, values: Any, name: Any = None) -> Any:
        pandas = need("pandas", "river", "predict_many")
        kind = pandas.DataFrame if isinstance(values, dict) else pandas.Series
        made = kind(values, index=getattr(X, "index", None))
        return made if name is None else made.rename(name)

    # ------------------------------------------------------------------ what it tells

    @property
    def weights(self) -> dict[Hashable, float]:
        """Coefficients by feature, in the units of the data: the mean of all models by their weights."""
        if "_engine" not in vars(self):
            return {}
        return {name: float(self._engine.coefficients()[0][place - 1]) for name, place in self._places.items()}

    @property
    def intercept(self) -> float:
        """In the units of the target."""
        return self._engine.coefficients()[1] if "_engine" in vars(self) else 0.0

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state, bit for bit. A state of another class is refused and nothing changes."""
        other = type(self)(**self._arguments())
        Saved.restore(other, saved)
        learned = vars(other)
        names = learned.pop("_names", [])
        if "_engine" in learned and learned["_engine"].used != len(names):
            raise StateError(f"{type(self).__name__} cannot restore this state: it has {len(names)} names of features.")
        learned["_index"] = {name: place + 1 for place, name in enumerate(names)}
        vars(self).clear()
        vars(self).update(learned)


class TrackingRegression(_Linear, base.MiniBatchRegressor):
    """Linear regression on a stream: it keeps up when the data change, and there is nothing to tune.

    The same as `thalweg.estimators.TrackingRegressor`, for river: features are named, and may come and go. Features and
    target are standardised inside, so no scaler is needed before it.

    A feature that is new has the coefficient 0. One that varies and is there in half of the rows or more is centred:
    where it is missing it counts as being at its mean. Any other, such as a word of a text, counts as 0 where it is
    missing. Up to 100 features, least squares with long and short memory take part.

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
        Whether least-squares models take part, at O(d^2) a row; "auto": up to 100 features.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from thalweg.estimators import TrackingRegression
    >>> model = TrackingRegression()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.2...
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
        name = type(self).__name__
        loss = check_choice(name, "loss", self.loss, ("squared_error", "huber", "absolute_error", "quantile"))
        if loss == "huber":
            return loss, check_positive(name, "epsilon", self.epsilon)
        if loss == "quantile" and not 0 < real_number(self.quantile) < 1:
            raise wrong(name, "quantile", "a number in (0, 1)", self.quantile)
        return loss, real_number(self.quantile) if loss == "quantile" else 0.5

    def learn_one(self, x: Features, y: float, w: float = 1.0) -> None:
        """Learn a row of features by name, with its target; `w` is its weight."""
        target, weight = real_number(y), real_number(w)
        if not abs(target) <= LARGEST:
            raise InputError(
                f"{type(self).__name__}: y must be a number of at most {LARGEST:g} in size. Got {told(y)}."
            )
        if not 0 <= weight <= LARGEST:
            raise InputError(f"{type(self).__name__}: w must be a number >= 0. Got {told(w)}.")
        self._learn(x, target, weight)

    def predict_one(self, x: Features) -> float:
        """Predict a row; 0 before the first one is learned. Nothing changes."""
        found = self._predict(x)
        return found if found == found else 0.0

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, one after the other."""
        self._learn_many(X, column(type(self).__name__, "y", y))

    def predict_many(self, X: Any) -> Any:
        """Predict the rows of a data frame: a pandas Series."""
        return self._series(X, np.nan_to_num(self._predict_many(X)))


class TrackingLogistic(_Linear, base.MiniBatchClassifier):
    """Logistic regression on a stream: it keeps up when the data change, and there is nothing to tune.

    Two classes, True and False. Features come and go by name, as in `TrackingRegression`, and need no scaler.

    Parameters
    ----------
    fit_intercept
        Whether there is an intercept.
    guests
        Whether Kalman filters take part, at O(d^2) a row; "auto": up to 100 features.

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

    def _label(self, y: Any) -> float:
        if isinstance(y, bool | np.bool_) or (isinstance(y, int | np.integer) and y in (0, 1)):
            return 1.0 if y else -1.0
        raise InputError(f"{type(self).__name__}: y must be True or False. Got {told(y)}.")

    def learn_one(self, x: Features, y: Label, w: float = 1.0) -> None:
        """Learn a row of features by name, with its label; `w` is its weight."""
        weight = real_number(w)
        if not 0 <= weight <= LARGEST:
            raise InputError(f"{type(self).__name__}: w must be a number >= 0. Got {told(w)}.")
        self._learn(x, self._label(y), weight)

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Label, float]:
        """The probabilities of False and True; 1/2 each before the first row is learned. Nothing changes."""
        found = self._predict(x)
        found = found if found == found else 0.5
        return {False: 1.0 - found, True: found}

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, one after the other."""
        self._learn_many(X, np.array([self._label(label) for label in y]))

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of False and True for the rows of a data frame: a pandas DataFrame."""
        found = np.nan_to_num(self._predict_many(X), nan=0.5)
        return self._series(X, {False: 1.0 - found, True: found})

    def predict_many(self, X: Any) -> Any:
        """The more probable label of the rows of a data frame: a pandas Series."""
        return self._series(X, np.nan_to_num(self._predict_many(X), nan=0.5) > 0.5)
