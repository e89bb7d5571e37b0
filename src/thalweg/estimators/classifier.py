"""Classification for scikit-learn that learns row by row, with nothing to tune."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from thalweg._stateful import Stateful, inside
from thalweg._types import Array
from thalweg._validate import check_choice, told
from thalweg.domains import Domain
from thalweg.errors import InputError
from thalweg.estimators._sklearn import LinearEstimator

__all__ = ["TrackingClassifier"]

LOSSES = ("log_loss", "hinge")


class EachClass(Stateful):
    """An engine for each class against the rest; one for two classes.

    Parameters
    ----------
    engines : list
        Engines of one target each.
    """

    _noun = "estimator"

    def __init__(self, engines: list[Any]) -> None:
        self.engines = engines
        self._arrays = {}

    def _arguments(self) -> dict[str, Any]:
        return {}  # they are the estimator's

    def _restart(self) -> None:
        for engine in self.engines:
            engine.reset()

    @property
    def rounds(self) -> int:
        """Rows learned so far."""
        return int(self.engines[0].rounds)

    def learn(self, X: Array, codes: NDArray[np.int64], weights: Array) -> Array:
        """Learn rows of these classes. Returns what each engine said of each just before, (n, engines)."""
        with ExitStack() as stack:
            for engine in self.engines:
                stack.enter_context(engine._all_or_nothing())
            ahead = [engine.learn(X, np.where(codes == c, 1.0, -1.0), weights) for c, engine in self._by_class()]
        return np.stack(ahead, axis=1)

    def predict(self, X: Array) -> Array:
        """What each engine says of each row, (n, engines)."""
        return np.stack([engine.predict(X) for engine in self.engines], axis=1)

    def _by_class(self) -> list[tuple[int, Any]]:
        first = 1 if len(self.engines) == 1 else 0  # of two classes the second is +1
        return list(enumerate(self.engines, start=first))

    def state(self) -> dict[str, Any]:
        """Of all engines."""
        parts = [{f"{i}.{key}": value for key, value in e.state().items()} for i, e in enumerate(self.engines)]
        return super().state() | {key: value for part in parts for key, value in part.items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Of all engines, which are new: they come into use when all is well."""
        saved = self._migrated(saved)
        self._check_kind(saved)
        for i, engine in enumerate(self.engines):
            engine.restore(inside(saved, f"{i}."))
        if len({engine.rounds for engine in self.engines}) > 1:
            raise self._unfit("its classes have not learned the same number of rows")


def _gives_chances(model: Any) -> bool:
    if model.loss != "log_loss":
        raise AttributeError(f"predict_proba needs loss='log_loss'. Got loss={model.loss!r}.")
    return True


class TrackingClassifier(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """Linear classification on a stream: it keeps up when the data change, and there is nothing to tune.

    As `TrackingRegressor`, for classes: logistic models, or support vector machines, that learn side by side under
    weights that follow who has been right lately. More than two classes are each told from the rest.

    Parameters
    ----------
    loss : {"log_loss", "hinge"}
        "log_loss" gives probabilities.
    constraint, radius, fit_intercept, guests
        As of `TrackingRegressor`. The constraint holds for the coefficients of every class.

    Attributes
    ----------
    classes_ : array
        The classes.
    coef_, intercept_ : array (1, d) or (classes, d), array (1,) or (classes,)
        The mean model at present, in the units of the data: scores of the second of two classes, or of each.
    n_samples_seen_ : int
        Rows learned.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn.

    Notes
    -----
    All classes must be known at the first `partial_fit`, by its `classes`. Probabilities are a mean of those of several
    models, so `decision_function`, their log odds, is not linear in a row.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import TrackingClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "up", "down")
    >>> model = TrackingClassifier()
    >>> for rows in np.split(np.arange(500), 5):
    ...     model = model.partial_fit(X[rows], y[rows], classes=["down", "up"])
    >>> model.predict([[1.0, -1.0], [-1.0, 1.0]]), model.predict_proba([[1.0, -1.0]]).round(2)
    (array(['up', 'down'], dtype='<U4'), array([[0., 1.]]))
    """

    _facts: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_", "classes_")
    _engine: EachClass
    classes_: NDArray[Any]

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        constraint: str | Domain | None = None,
        radius: float = 1.0,
        fit_intercept: bool = True,
        guests: str | bool = "auto",
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.guests = guests

    def _new_engine(self, facts: Mapping[str, Any]) -> EachClass:
        loss = check_choice(type(self).__name__, "loss", self.loss, LOSSES)
        count = len(facts["classes_"])
        return EachClass([
            self._one_engine(loss, 0.0, int(facts["n_features_in_"])) for _ in range(1 if count == 2 else count)
        ])  # fmt: skip

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Start anew and learn the rows of X (n, d) with classes y (n,), one after the other."""
        self._learn(X, y, None, sample_weight, True)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn further rows, one after the other. The first call needs all `classes` there will be."""
        self._learn_on(X, y, classes, sample_weight)
        return self

    def predict_then_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """As `partial_fit`, and return what was said of each row just before it was learned.

        Probabilities (n, classes) for "log_loss", else scores as of `decision_function`. This is how good the model is
        on a stream: nothing returned has seen its own class, nor a later one.
        """
        said = self._learn_on(X, y, classes, sample_weight)
        return self._chances(said) if self.loss == "log_loss" else self._scores(said)

    def _learn_on(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Array:
        first = not self.__sklearn_is_fitted__()
        if first and classes is None:
            raise InputError(f"{type(self).__name__}.partial_fit needs all classes at its first call: classes=[...].")
        return self._learn(X, y, classes, sample_weight, first)

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any, anew: bool) -> Array:
        with self._unless_refused():
            X, y = validate_data(self, X, y, reset=anew, dtype=np.float64, order="C", ensure_all_finite=False)
            rows, weights = self._sound_rows(X), self._weights(X, sample_weight)
            check_classification_targets(y)
            if anew:
                self.classes_ = np.unique(y if classes is None else np.asarray(classes))
                if len(self.classes_) < 2:
                    raise InputError(
                        f"{type(self).__name__} needs at least two classes. Got one class: {self.classes_.tolist()}. "
                        "Where it is a matter of time, name all classes at the first partial_fit."
                    )
            elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
                raise InputError(
                    f"{type(self).__name__}.partial_fit: classes must stay {told(self.classes_.tolist())}. "
                    f"Got {told(classes)}. To begin with others, call fit."
                )
            strange = ~np.isin(y, self.classes_)
            if strange.any():
                row = int(np.argmax(strange))
                raise InputError(
                    f"{type(self).__name__}: y has the class {y[row]!r} in row {row}, counted from 0, which is none of "
                    f"{told(self.classes_.tolist())}. Name all classes at the first partial_fit, or call fit."
                )
            facts = {"n_features_in_": self.n_features_in_, "classes_": self.classes_}
            engine = self._new_engine(facts) if anew else self._engine
            said = engine.learn(rows, np.searchsorted(self.classes_, y), weights)
            self._engine = engine
            return said

    # ------------------------------------------------------------------ predictions

    def decision_function(self, X: Any) -> Array:
        """Scores (n,) of the second of two classes, or (n, classes): log odds for "log_loss"."""
        return self._scores(self._said(X))

    @available_if(_gives_chances)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, classes). Only for "log_loss"."""
        return self._chances(self._said(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row of X (n, d), by what was learned so far. Nothing changes."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[chosen]
        return predicted

    def _said(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._engine.predict(self._rows(X))

    def _scores(self, said: Array) -> Array:
        if self.loss == "log_loss":
            with np.errstate(divide="ignore"):
                said = np.log(said) - np.log1p(-said)
        return said[:, 0] if said.shape[1] == 1 else said

    def _chances(self, said: Array) -> Array:
        return np.hstack([1.0 - said, said]) if said.shape[1] == 1 else said / said.sum(axis=1, keepdims=True)

    @property
    def coef_(self) -> Array:
        """Coefficients at present, in the units of the data."""
        return np.stack([w for w, _ in self._models()])

    @property
    def intercept_(self) -> Array:
        """Intercepts at present."""
        return np.array([b for _, b in self._models()])

    def _models(self) -> list[tuple[Array, float]]:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no coefficients before it is fitted.")
        return [engine.coefficients() for engine in self._engine.engines]
