"""Rows, weights and models of the linear estimators for scikit-learn: the part that is the same for all labels.

Functions take the estimator first. It has the arguments `constraint`, `radius`, `fit_intercept` and `guests`.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any, Protocol, TypeVar

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from thalweg._core.saving import unfit
from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY, check_count, check_flag, check_positive, short_repr
from thalweg.domains._base import Domain
from thalweg.domains.ball import Ball
from thalweg.domains.box import Box
from thalweg.domains.simplex import Simplex
from thalweg.errors import InputError
from thalweg.estimators._constrained import ConstrainedLayout, ConstrainedModel
from thalweg.estimators._fitted import FactReaders, Facts, Fitted, SavedModels, Words, is_fitted, rounds, words
from thalweg.estimators._linear import FreeModel, read_guests
from thalweg.parts.linear.plan import LinearLayout

__all__ = [
    "FACTS", "TargetLayout", "TargetModel", "check_feature_names", "layout", "mean_models", "new_model",
    "read_labelled", "read_rows", "restored_models", "samples_seen", "tried", "validated", "writable",
]  # fmt: skip

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


class LinearEstimator(Fitted, Protocol):
    """An estimator with the arguments that all linear ones have, as they were given."""

    constraint: object
    radius: object
    fit_intercept: object
    guests: object

    @property
    def _models(self) -> tuple[TargetModel, ...]: ...


def writable(array: object) -> Floats:
    """Return the array for compiled code, which has one type of arrays; a copy of one that is read only."""
    return np.require(array, np.float64, ["C", "W"])


# --------------------------------------------------------------------------------------------------------------- models


def layout(self: LinearEstimator, loss: str, par: float, features: int) -> TargetLayout:
    """Return the layout of a model of one target, by the arguments, which are checked here."""
    name = type(self).__name__
    intercept = check_flag(name, "fit_intercept", self.fit_intercept)
    guests = read_guests(name, self.guests, features)
    domain = _domain(self, name, features)
    if domain is not None:
        return ConstrainedLayout(domain, loss, par, intercept)
    return LinearLayout(features, loss, par, intercept, guests)


def new_model(described: TargetLayout) -> TargetModel:
    """Return a model before its first row."""
    return FreeModel(described) if isinstance(described, LinearLayout) else ConstrainedModel(described)


def restored_models(
    self: LinearEstimator,
    count: int,
    facts: Facts,
    saved: SavedModels,
    described: Callable[[int], TargetLayout],
) -> tuple[TargetModel, ...]:
    """Return models in saved states; `described` gives the layout for a number of features.

    That number is compared with the arrays before anything is made for it.
    """
    features, first = facts["n_features_in_"], saved(0)
    sums = first.get("sums" if self.constraint is not None else "features.mean")
    if getattr(sums, "shape", None) != (features + 1,):
        raise unfit(self, f"it was saved with {features} features and arrays for others")
    check_feature_names(self, facts)
    one = described(features)
    if isinstance(one, LinearLayout):
        return tuple(FreeModel.restored(self, one, saved(i)) for i in range(count))
    return tuple(ConstrainedModel.restored(self, one, saved(i)) for i in range(count))


def check_feature_names(self: object, facts: Facts) -> None:
    """Refuse a saved state with names of more or fewer features than there are."""
    features, names = facts["n_features_in_"], facts.get("feature_names_in_")
    if names is not None and len(names) != features:
        raise unfit(self, f"it was saved with {features} features and {len(names)} names of them")


def _domain(self: LinearEstimator, name: str, features: int) -> Domain | None:
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
        raise InputError(
            f"The 'constraint' parameter of {name} must be None, a thalweg Domain or one of {kinds}. "
            f"Got {short_repr(constraint)}."
        )
    r = check_positive(name, "radius", self.radius)
    if constraint == "simplex":
        return Simplex(features, r)
    if constraint == "ball":
        return Ball(features, r)
    return Box(0.0 if constraint == "nonnegative" else -r, r, shape=features)


# ----------------------------------------------------------------------------------------------------------------- rows


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


def mean_models(self: LinearEstimator) -> list[tuple[Floats, float]]:
    """Return coefficients and intercept of each model."""
    if not is_fitted(self):
        raise AttributeError(f"{type(self).__name__} has no coefficients before it is fitted.")
    return [model.coefficients() for model in self._models]


def samples_seen(self: Fitted) -> int:
    """Rows learned since `fit`, or since the first `partial_fit`."""
    check_is_fitted(self)
    return rounds(self)
