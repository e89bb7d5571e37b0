"""Regression for scikit-learn that learns row by row, with nothing to tune."""

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.estimators import _sklearn
from thalweg.estimators._fitted import Facts, SavedModels
from thalweg.estimators._frames import first
from thalweg.estimators._linear import read_loss
from thalweg.estimators._sklearn import LinearEstimator, TargetLayout, TargetModel

__all__ = ["TrackingRegressor"]


class TrackingRegressor(LinearEstimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression on a stream that keeps up with changing data, with nothing to tune.

    Features and target are standardised by the rows before, so units do not matter. Several models learn side by side,
    with step sizes from tiny to large; for up to 100 features, least-squares models with long and short memory join
    them. The prediction is their mean, with weights that follow recent accuracy. It lies within the range of the
    targets seen so far, widened by half on both sides, unless a feature is itself that far out and errors have been
    small.

    Parameters
    ----------
    loss : {"squared_error", "huber", "absolute_error", "quantile"}
        The loss to minimise. "quantile": predictions exceed a target with the probability `quantile`.
    constraint : {"nonnegative", "simplex", "ball", "box"} or Domain, optional
        The set of allowed coefficients, in the units of the data. A `thalweg.Tracker` then finds them, and nothing is
        scaled. "nonnegative": each in [0, radius]; "simplex": nonnegative with sum `radius`; "ball": norm at most
        `radius`; "box": each in [-radius, radius].
    radius : float
        The size of a constraint that is given by name.
    fit_intercept : bool
        Whether there is an intercept. A constraint does not apply to it; it then follows from running means of all
        rows, which ignore sample weights.
    quantile : float
        The quantile for loss="quantile", in (0, 1).
    epsilon : float
        For "huber": errors beyond `epsilon` times the running scale of errors count linearly. Under a constraint
        `epsilon` is in units of the target.
    guests : {"auto", True, False}
        Whether least-squares models take part, at O(d^2) a row; "auto": up to 100 features, True: up to 512.

    Attributes
    ----------
    coef_, intercept_ : array (d,), float
        The current mean model, in the units of the data. `predict` differs from it if a feature is more than 10
        spreads from its mean, or if the prediction is clipped.
    n_samples_seen_ : int
        Number of rows learned.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn.

    Notes
    -----
    `fit` restarts and goes through the rows once, in order; `partial_fit` continues. Rows of weight 0 are left out. A
    batch gives the same result as row-by-row updates, to the last bit. `state`, `restore`, `save` and
    `thalweg.load` work as for every learner.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import TrackingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)) * [1.0, 1e-6, 1e6]
    >>> y = X @ [1.0, 2e6, -3e-6] + 10 + 0.1 * rng.normal(size=1000)
    >>> model = TrackingRegressor().fit(X, y)
    >>> (model.coef_ * [1.0, 1e-6, 1e6]).round(1), round(model.intercept_, 1), model.n_samples_seen_
    (array([ 1.,  2., -3.]), 10.0, 1000)
    >>> ahead = model.predict_then_fit(X, -y)  # each row is predicted before it is learned: how fast does it notice?
    >>> bool(np.abs(ahead + y)[:5].mean() > 5), bool(np.abs(ahead + y)[-100:].mean() < 0.3)
    (True, True)
    """

    _prefix = "engine."

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        constraint: str | Domain | None = None,
        radius: float = 1.0,
        fit_intercept: bool = True,
        quantile: float = 0.5,
        epsilon: float = 1.35,
        guests: str | bool = "auto",
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.quantile = quantile
        self.epsilon = epsilon
        self.guests = guests

    # ------------------------------------------------------------------ models

    def _layout(self, features: int) -> TargetLayout:
        """See `LinearEstimator`."""
        return self._layout_for(*read_loss(type(self).__name__, self.loss, self.quantile, self.epsilon), features)

    def _restored(self, facts: Facts, saved: SavedModels) -> tuple[TargetModel, ...]:
        return self._restored_models(1, facts, saved)

    # ------------------------------------------------------------------ rows

    def fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Restart and learn the rows of X (n, d) with targets y (n,), one after the other."""
        self._learn(X, y, sample_weight, True, True)
        return self

    def partial_fit(self, X: object, y: object, sample_weight: object = None) -> Self:
        """Learn further rows, one after the other."""
        self._learn(X, y, sample_weight, not self._is_fitted())
        return self

    def predict_then_fit(self, X: object, y: object, sample_weight: object = None) -> Floats:
        """As `partial_fit`, and return the prediction for each row just before it was learned (n,).

        This measures accuracy on a stream (prequential or progressive validation): no prediction has seen its own
        target or a later one.
        """
        return self._learn(X, y, sample_weight, not self._is_fitted())

    def predict(self, X: object) -> Floats:
        """Predict the rows of X (n, d). Nothing changes."""
        check_is_fitted(self)
        return self._models[0].predict(_sklearn.read_rows(self, X))

    def _learn(self, X: object, y: object, sample_weight: object, restart: bool, whole: bool = False) -> Floats:
        trial, form = self._shadow(), {"reset": restart, "whole": whole, "y_numeric": True}
        rows, y, weights = _sklearn.read_labelled(trial, X, y, sample_weight, **form)
        targets = _sklearn.writable(y)
        if (row := first(~(np.abs(targets) <= LARGEST_ENTRY))) is not None:
            raise InputError(
                f"{type(self).__name__}: y has {targets[row]} in row {row}, counted from 0. It must be at most "
                f"{LARGEST_ENTRY:g} in size."
            )
        return self._teach(trial, rows, [targets], weights, restart)[0]

    @property
    def coef_(self) -> Floats:
        """Current coefficients, in the units of the data."""
        return self._mean_models()[0][0]

    @property
    def intercept_(self) -> float:
        """Current intercept, in the units of the target."""
        return self._mean_models()[0][1]
