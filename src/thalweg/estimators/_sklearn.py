"""Estimators for scikit-learn: their rows and weights, and what all linear ones share, whatever their labels."""

from collections.abc import Callable
from contextlib import nullcontext
from inspect import signature
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from thalweg._core.memory import together
from thalweg._core.saving import unfit
from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_count, check_flag, check_positive, wrong
from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball
from thalweg.domains.box import Box
from thalweg.domains.simplex import Simplex
from thalweg.errors import InputError
from thalweg.estimators._constrained import ConstrainedLayout, ConstrainedModel
from thalweg.estimators._fitted import FactReaders, Facts, Fitted, SavedModels, Words, words
from thalweg.estimators._linear import FreeModel, read_guests
from thalweg.parts.linear.plan import LinearLayout

T = TypeVar("T")
AS_ROWS = {"dtype": np.float64, "order": "C", "ensure_all_finite": False}  # how scikit-learn is to read a table
CONSTRAINTS = ("nonnegative", "simplex", "ball", "box")
# Some versions refuse weights that are all 0; rows of a stream may have them.
ZEROS = {key: True for key in signature(_check_sample_weight).parameters if key == "allow_all_zero_weights"}
TargetModel = FreeModel | ConstrainedModel
TargetLayout = LinearLayout | ConstrainedLayout
FACTS: FactReaders = {
    "n_features_in_": lambda value: check_count("X", "n_features_in_", value),
    "feature_names_in_": words,
}


class FittedRows(Fitted):
    """A mixin for an estimator of scikit-learn's kind."""

    _facts: ClassVar[FactReaders] = FACTS
    n_features_in_: int

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_fitted()

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned since `fit`, or since the first `partial_fit`."""
        check_is_fitted(self)
        return self.rounds

    def _check_names(self, facts: Facts) -> None:
        """Refuse a saved state with names of more or fewer features than there are."""
        features, names = facts["n_features_in_"], facts.get("feature_names_in_")
        if names is not None and len(names) != features:
            raise unfit(self, f"it was saved with {features} features and {len(names)} names of them")


class LinearEstimator(FittedRows):
    """A mixin for linear models, one for each target. Arguments are as they were given."""

    constraint: object
    radius: object
    fit_intercept: object
    guests: object
    _models: tuple[TargetModel, ...]

    def _layout(self, features: int) -> TargetLayout:
        """Return the layout of the model of one target; arguments are checked here."""
        raise NotImplementedError

    def _layout_for(self, loss: str, par: float, features: int) -> TargetLayout:
        """Return the layout for a loss, by the arguments that all linear estimators have, which are checked here."""
        name = type(self).__name__
        intercept = check_flag(name, "fit_intercept", self.fit_intercept)
        guests = read_guests(name, self.guests, features)
        domain = self._domain(name, features)
        if domain is not None:
            return ConstrainedLayout(domain, loss, par, intercept)
        return LinearLayout(features, loss, par, intercept, guests)

    def _domain(self, name: str, features: int) -> Domain | None:
        constraint = self.constraint
        if constraint is None:
            return None
        if isinstance(constraint, Domain):
            if constraint.dim != features:
                raise InputError(
                    f"The 'constraint' of {name} has {constraint.dim} coefficients, X has {features} features."
                )
            return constraint
        if not isinstance(constraint, str) or constraint not in CONSTRAINTS:
            kinds = ", ".join(map(repr, CONSTRAINTS))
            raise wrong(name, "constraint", f"None, a thalweg Domain or one of {kinds}", constraint)
        r = check_positive(name, "radius", self.radius)
        if constraint == "simplex":
            return Simplex(features, r)
        if constraint == "ball":
            return Ball(features, r)
        return Box(0.0 if constraint == "nonnegative" else -r, r, shape=features)

    def _restored_models(self, count: int, facts: Facts, saved: SavedModels) -> tuple[TargetModel, ...]:
        """Return models in saved states.

        The number of features is compared with the arrays before anything is made for it.
        """
        features, first = facts["n_features_in_"], saved(0)
        sums = first.get("sums" if self.constraint is not None else "features.mean")
        if getattr(sums, "shape", None) != (features + 1,):
            raise unfit(self, f"it was saved with {features} features and arrays for others")
        self._check_names(facts)
        layout = self._layout(features)
        if isinstance(layout, LinearLayout):
            return tuple(FreeModel.restored(self, layout, saved(i)) for i in range(count))
        return tuple(ConstrainedModel.restored(self, layout, saved(i)) for i in range(count))

    def _teach(self, trial: Self, X: Floats, targets: list[Floats], weights: Floats, restart: bool) -> list[Floats]:
        """Let the model of each target learn its column, or none: new models, with the facts of `trial`, at a restart.

        Returns the predictions of each before it learned.
        """
        models = self._models if not restart else self._new_models(trial.n_features_in_, len(targets))
        alone = restart or len(models) == 1  # then each call is all or nothing by itself
        with nullcontext() if alone else together(model.memory for model in models):
            said = [model.learn(X, y, weights) for model, y in zip(models, targets, strict=True)]
        if restart:
            self._learned(trial, _models=models)
        return said

    def _new_models(self, features: int, count: int) -> tuple[TargetModel, ...]:
        layout = self._layout(features)
        if isinstance(layout, LinearLayout):
            return tuple(FreeModel(layout) for _ in range(count))
        return tuple(ConstrainedModel(layout) for _ in range(count))

    def _mean_models(self) -> list[tuple[Floats, float]]:
        """Return coefficients and intercept of each model."""
        if not self._is_fitted():
            raise AttributeError(f"{type(self).__name__} has no coefficients before it is fitted.")
        return [model.coefficients() for model in self._models]


# ----------------------------------------------------------------------------------------------------------------- rows


def writable(array: object) -> Floats:
    """Return the array for compiled code, which has one type of arrays; a copy of one that is read only."""
    return np.require(array, np.float64, ["C", "W"])


def validated(self: object, *tables: object, **options: object) -> Any:
    """As scikit-learn's `validate_data`; errors of NumPy or of objects become an InputError."""
    return tried(self, "X and y must be arrays of numbers, all rows of one length", validate_data, *tables, **options)


def tried(self: object, expected: str, check: Callable[..., T], *tables: object, **options: object) -> T:
    """Call a check of scikit-learn's; see `validated`."""
    try:
        with np.errstate(over="ignore"):  # of a longer float: infinite, which is refused later
            return check(self, *tables, **options)
    except (ValueError, TypeError) as error:
        if "inhomogeneous" not in str(error) and "array element with a sequence" not in str(error):
            raise
        raise InputError(f"{type(self).__name__}: {expected}. {error}") from None
    except Exception as error:  # whatever an object raises that is asked for its numbers
        raise InputError(f"{type(self).__name__}: {expected}. {type(error).__name__}: {error}") from error


def read_rows(self: object, X: object) -> Floats:
    """Return checked rows for a fitted model."""
    return _sound_rows(self, validated(self, X, reset=False, **AS_ROWS))


def _sound_rows(self: object, rows: object) -> Floats:
    """Return rows for compiled code; refuse numbers that are not finite or too large, with their place."""
    X = writable(rows)
    bad = ~(np.abs(X) <= LARGEST_ENTRY)
    if bad.any():
        row, column = map(int, np.argwhere(bad)[0])
        names = getattr(self, "feature_names_in_", None)
        what = "NaN" if np.isnan(X[row, column]) else str(X[row, column])
        where = f"column {column if names is None else names[column]!r}, row {row}"
        raise InputError(
            f"{type(self).__name__}: X has {what} in {where}, counted from 0. It must be finite, neither NaN nor "
            f"inf, and at most {LARGEST_ENTRY:g} in size. Remove the row or fill it in."
        )
    return X


def _check_weights(self: object, X: Floats, sample_weight: object, whole: bool) -> Floats:
    """Return the weights of rows; those of a whole `fit` must not all be 0."""
    if sample_weight is None:
        return np.ones(len(X))
    options = {"dtype": np.float64, "ensure_non_negative": True, **ZEROS}
    weights: Floats = tried(
        self, "sample_weight must be an array of numbers", lambda _: _check_sample_weight(sample_weight, X, **options)
    )
    if whole and not weights.any():
        raise InputError(f"{type(self).__name__}: Sample weights must contain at least one non-zero number.")
    if not (weights <= LARGEST_ENTRY).all():
        raise InputError(
            f"{type(self).__name__}: sample_weight must be at most {LARGEST_ENTRY:g}. Got {weights.max():g}."
        )
    return writable(weights)


def read_labelled(
    trial: T, X: object, y: object, sample_weight: object, *, reset: bool, whole: bool, **options: object
) -> tuple[Floats, Words, Floats]:
    """Return rows, labels and weights, checked; `reset`: they are the first ones, and `trial` gets the facts."""
    X, labels = validated(trial, X, y, reset=reset, **AS_ROWS, **options)
    rows = _sound_rows(trial, X)
    return rows, labels, _check_weights(trial, rows, sample_weight, whole)
