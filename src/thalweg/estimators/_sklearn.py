"""What the linear estimators for scikit-learn have in common: rows in, engines, and refusals that change nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from thalweg._types import Array
from thalweg._validate import LARGEST, check_choice, check_flag, check_positive, told
from thalweg.domains import Ball, Box, Domain, Simplex
from thalweg.errors import InputError
from thalweg.estimators._constrained import ConstrainedEngine
from thalweg.estimators._linear import LinearEngine
from thalweg.estimators._saved import Saved

__all__ = ["LinearEstimator", "writable"]

MANY = 100  # features up to which guests come by themselves
CONSTRAINTS = ("nonnegative", "simplex", "ball", "box")


def writable(array: Any) -> Array:
    """The array for compiled code, which has one type of arrays; a copy of what is read only."""
    return np.require(array, np.float64, ["C", "W"])


class LinearEstimator(Saved, BaseEstimator):  # type: ignore[misc]
    """`TrackingRegressor` and `TrackingClassifier`: the part that does not know what a label is."""

    constraint: str | Domain | None
    radius: float
    fit_intercept: bool
    guests: str | bool
    n_features_in_: int

    # ------------------------------------------------------------------ engines

    def _one_engine(self, loss: str, par: float, features: int) -> LinearEngine | ConstrainedEngine:
        """For one target, by the arguments, which are checked here."""
        name = type(self).__name__
        intercept = check_flag(name, "fit_intercept", self.fit_intercept)
        choices: tuple[str | bool, ...] = "auto", True, False
        guests = check_choice(name, "guests", self.guests, choices)
        domain = self._domain(name, features)
        if domain is not None:
            return ConstrainedEngine(domain, loss, par=par, intercept=intercept)
        wanted = features <= MANY if guests == "auto" else bool(guests)
        return LinearEngine(features, loss, par=par, intercept=intercept, guests=wanted)

    def _domain(self, name: str, features: int) -> Domain | None:
        if self.constraint is None:
            return None
        if isinstance(self.constraint, Domain):
            if self.constraint.dim != features:
                raise InputError(
                    f"The 'constraint' of {name} has {self.constraint.dim} coefficients, X has {features} features."
                )
            return self.constraint
        if self.constraint not in CONSTRAINTS:
            words = ", ".join(map(repr, CONSTRAINTS))
            raise InputError(
                f"The 'constraint' parameter of {name} must be None, a thalweg Domain or one of {words}. "
                f"Got {told(self.constraint)}."
            )
        r = check_positive(name, "radius", self.radius)
        if self.constraint == "simplex":
            return Simplex(features, r)
        if self.constraint == "ball":
            return Ball(features, r)
        return Box(0.0 if self.constraint == "nonnegative" else -r, r, shape=features)

    # ------------------------------------------------------------------ rows

    @contextmanager
    def _unless_refused(self) -> Iterator[None]:
        """What a refused call has changed is undone; engines look after themselves."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _rows(self, X: Any, reset: bool = False) -> Array:
        """Checked rows."""
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": False, "reset": reset}
        return self._sound_rows(validate_data(self, X, **options))

    def _sound_rows(self, rows: Any) -> Array:
        X = writable(rows)
        bad = ~(np.abs(X) <= LARGEST)
        if bad.any():
            row, column = map(int, np.argwhere(bad)[0])
            names = getattr(self, "feature_names_in_", None)
            what = "NaN" if np.isnan(X[row, column]) else str(X[row, column])
            where = f"column {column if names is None else names[column]!r}, row {row}"
            raise InputError(
                f"{type(self).__name__}: X has {what} in {where}, counted from 0. It must be finite, neither NaN nor "
                f"inf, and at most {LARGEST:g} in size. Remove the row or fill it in."
            )
        return X

    def _weights(self, X: Array, sample_weight: Any) -> Array:
        if sample_weight is None:
            return np.ones(len(X))
        weights: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not (weights <= LARGEST).all():
            raise InputError(
                f"{type(self).__name__}: sample_weight must be at most {LARGEST:g}. Got {weights.max():g}."
            )
        return writable(weights)

    def __sklearn_is_fitted__(self) -> bool:
        return "_engine" in vars(self)

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned since `fit`, or since the first `partial_fit`."""
        check_is_fitted(self)
        return self.rounds
