"""Classification for scikit-learn that learns row by row, with nothing to tune."""

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY, check_choice, short_repr
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.estimators import _sklearn
from thalweg.estimators._fitted import FactReaders, Facts, SavedModels, Words, words
from thalweg.estimators._frames import first
from thalweg.estimators._sklearn import LinearEstimator, TargetLayout, TargetModel

__all__ = ["TrackingClassifier", "weights_of_classes"]

LOSSES = ("log_loss", "hinge")


def _read_classes(value: object) -> Words:
    """Read saved classes."""
    classes = words(value)
    if len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
        raise ValueError(f"classes must be two or more, different and in order. Got {short_repr(classes)}")
    return classes


def _gives_chances(model: "TrackingClassifier") -> bool:
    if model.loss != "log_loss":
        raise AttributeError(f"predict_proba needs loss='log_loss'. Got loss={model.loss!r}.")
    return True


class TrackingClassifier(LinearEstimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear classification on a stream: it keeps up when the data change, and there is nothing to tune.

    As `TrackingRegressor`, for classes: logistic models, or support vector machines, that learn side by side under
    weights that follow the models that were right lately. More than two classes are handled one against the rest.

    Parameters
    ----------
    loss : {"log_loss", "hinge"}
        "log_loss" gives probabilities.
    constraint, radius, fit_intercept, guests
        As for `TrackingRegressor`. The constraint holds for the coefficients of every class.
    class_weight : dict or "balanced", optional
        Weights of the rows of a class, times `sample_weight`; 1 for a class that a dict does not name. "balanced": rows
        divided by (classes times rows of the class), which only `fit` can know.

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

    _facts: ClassVar[FactReaders] = {**_sklearn.FACTS, "classes_": _read_classes}
    _prefix = "engine.{}."
    classes_: Words

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        constraint: str | Domain | None = None,
        radius: float = 1.0,
        fit_intercept: bool = True,
        guests: str | bool = "auto",
        class_weight: Mapping[object, float] | str | None = None,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.guests = guests
        self.class_weight = class_weight

    # ------------------------------------------------------------------ models

    def _layout(self, features: int) -> TargetLayout:
        """See `LinearEstimator`."""
        loss = check_choice(type(self).__name__, "loss", self.loss, LOSSES)
        return self._layout_for(loss, 0.0, features)

    def _restored(self, facts: Facts, saved: SavedModels) -> tuple[TargetModel, ...]:
        return self._restored_models(len(_positive(facts["classes_"])), facts, saved)

    # ------------------------------------------------------------------ learning

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Restart and learn the rows of X (n, d) with classes y (n,), one after the other."""
        self._learn(X, y, None, sample_weight, True, True)
        return self

    def partial_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Self:
        """Learn further rows, one after the other. The first call needs all `classes` there will be."""
        self._learn_on(X, y, classes, sample_weight)
        return self

    def predict_then_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Floats:
        """As `partial_fit`, and return the prediction for each row just before it was learned.

        Probabilities (n, classes) for "log_loss", else scores as in `decision_function`. This is how good the model is
        on a stream: nothing returned has seen its own class, nor a later one.
        """
        said = self._learn_on(X, y, classes, sample_weight)
        return self._chances(said) if self._gives_probabilities() else self._scores(said)

    def _learn_on(self, X: object, y: object, classes: object, sample_weight: object) -> Floats:
        restart = not self._is_fitted()
        if restart and classes is None:
            raise InputError(f"{type(self).__name__}.partial_fit needs all classes at its first call: classes=[...].")
        return self._learn(X, y, classes, sample_weight, restart)

    def _learn(
        self, X: object, y: object, classes: object, sample_weight: object, restart: bool, whole: bool = False
    ) -> Floats:
        trial = self._shadow()
        rows, y, weights = _sklearn.read_labelled(trial, X, y, sample_weight, reset=restart, whole=whole)
        with np.errstate(invalid="ignore"):  # it tries whether huge numbers are whole
            check_classification_targets(y)
        if restart:
            trial.classes_ = self._read_all_classes(y if classes is None else classes)
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise InputError(
                f"{type(self).__name__}.partial_fit: classes must stay {short_repr(self.classes_.tolist())}. "
                f"Got {short_repr(classes)}. To begin with others, call fit."
            )
        if (row := first(~np.isin(y, trial.classes_))) is not None:
            raise InputError(
                f"{type(self).__name__}: y has the class {y[row]!r} in row {row}, counted from 0, which is none of "
                f"{short_repr(trial.classes_.tolist())}. Name all classes at the first partial_fit, or call fit."
            )
        codes = np.searchsorted(trial.classes_, y)
        if self.class_weight is not None:
            weights = self._weigh_classes(trial.classes_, y, codes, weights, whole)
        signs = [np.where(codes == c, 1.0, -1.0) for c in _positive(trial.classes_)]
        return np.stack(self._teach(trial, rows, signs, weights, restart), axis=1)

    def _weigh_classes(self, classes: Words, y: Words, codes: Ints, weights: Floats, whole: bool) -> Floats:
        """Return the weights of rows, with those of their classes."""
        name, balanced = type(self).__name__, isinstance(self.class_weight, str)
        if balanced and not whole:
            raise InputError(
                f"{name}: class_weight='balanced' needs all rows at once, as fit has them. Give partial_fit and "
                "predict_then_fit a dict, or sample_weight."
            )
        return _sklearn.writable(np.minimum(weights * weights_of_classes(self, classes, y)[codes], LARGEST_ENTRY))

    def _read_all_classes(self, given: object) -> Words:
        classes: Words = np.unique(np.asarray(given))
        if len(classes) < 2:
            raise InputError(
                f"{type(self).__name__} needs at least two classes. Got one class: {classes.tolist()}. "
                "Where it is a matter of time, name all classes at the first partial_fit."
            )
        if (classes != classes).any():
            raise InputError(f"{type(self).__name__}: classes must not be NaN. Got {short_repr(classes.tolist())}.")
        return classes

    # ------------------------------------------------------------------ predictions

    def decision_function(self, X: object) -> Floats:
        """Scores (n,) of the second of two classes, or (n, classes): log odds for "log_loss"."""
        return self._scores(self._said(X))

    @available_if(_gives_chances)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> Floats:
        """Probabilities (n, classes). Only for "log_loss"."""
        return self._chances(self._said(X))

    def predict(self, X: object) -> Words:
        """Return the most probable class of each row of X (n, d). Nothing changes."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        predicted: Words = self.classes_[chosen]
        return predicted

    def _said(self, X: object) -> Floats:
        check_is_fitted(self)
        rows = _sklearn.read_rows(self, X)
        return np.stack([model.predict(rows) for model in self._models], axis=1)

    def _gives_probabilities(self) -> bool:
        """Whether models say probabilities: they were fitted with that loss."""
        return self._models[0].layout.loss == "log_loss"

    def _scores(self, said: Floats) -> Floats:
        if self._gives_probabilities():
            with np.errstate(divide="ignore"):
                said = np.log(said) - np.log1p(-said)
        return said[:, 0] if said.shape[1] == 1 else said

    def _chances(self, said: Floats) -> Floats:
        return np.hstack([1.0 - said, said]) if said.shape[1] == 1 else said / said.sum(axis=1, keepdims=True)

    @property
    def coef_(self) -> Floats:
        """Coefficients at present, in the units of the data."""
        return np.stack([w for w, _ in self._mean_models()])

    @property
    def intercept_(self) -> Floats:
        """Intercepts at present."""
        return np.array([b for _, b in self._mean_models()])


def weights_of_classes(self: TrackingClassifier, classes: Words, y: Words) -> Floats:
    """Return the weight of each class in rows y, by the argument `class_weight`."""
    weights: Floats = compute_class_weight(self.class_weight, classes=classes, y=y)
    if not ((weights >= 0) & (weights <= LARGEST_ENTRY)).all():
        raise InputError(
            f"{type(self).__name__}: class_weight must be numbers from 0 to {LARGEST_ENTRY:g}. Got "
            f"{short_repr(self.class_weight)}."
        )
    return weights


def _positive(classes: Words) -> range:
    """Return the classes, by number, that are +1 for a model: of two the second, else each for one."""
    return range(1 if len(classes) == 2 else 0, len(classes))
