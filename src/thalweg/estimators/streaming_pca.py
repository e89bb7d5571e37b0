"""Principal components that follow a stream, as a scikit-learn transformer. Equations: `thalweg.parts.subspace`."""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from thalweg._core.types import Floats
from thalweg.errors import InputError
from thalweg.estimators import _sklearn
from thalweg.estimators._fitted import Facts, SavedModels
from thalweg.estimators._sklearn import FittedRows
from thalweg.estimators._subspace import SubspaceModel, read_layout
from thalweg.parts.subspace import LARGEST_FEATURE, SubspaceLayout

__all__ = ["StreamingPCA"]

LEAST_ENTRY = 1e-50  # of an entry that is not taken for 0: fourth powers of its rounding can still be added up


class StreamingPCA(FittedRows, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal component analysis of a stream whose subspace, mean and scale may move. There is nothing to tune.

    A bank of covariances forgets the past at different speeds, from a memory of two rows to one of all. Each is judged
    by the energy it loses, one row ahead. The components are the directions of most energy in a mixture of those that
    lose least, by weights that learn fast or by weights that trust no single row, whichever has lost less. The mean
    has weights of its own: its best memory need not be that of the subspace.

    Components keep their sign and their place from row to row, so that a model behind them is not shaken: where the
    variances of two components cross, they do not change places. `fit` puts them in the order of their variances;
    `partial_fit` does so in the first 10 (k + 1) rows, and not later.

    Parameters
    ----------
    n_components : int
        k, at most the number of features.
    halflives : sequence of float
        After how many rows each member of the bank has forgotten half; `math.inf` forgets nothing. A single number
        in it makes a plain exponentially weighted PCA.
    center : bool
        Whether the mean is followed and taken off. If not, `mean_` is 0, and variances are mean squares.

    Attributes
    ----------
    components_ : array (k, d)
        Orthonormal directions.
    mean_ : array (d,)
    explained_variance_, explained_variance_ratio_ : array (k,)
        Along each component, as the bank sees it by its present weights, and as a share of that of all directions.
    weights_ : array
        Of the members in the covariance that is played, in the order of `halflives`.
    n_samples_seen_ : int
    n_features_in_ : int
    feature_names_in_ : array (d,)
        Where the rows came as a data frame whose columns have names.

    See Also
    --------
    thalweg.EfficientPCA : the method with a guarantee on every interval; docs/pca.md says when to use which.

    Notes
    -----
    Rows are learned one after the other, so it makes no difference in which batches they come. A row costs
    O(M d^2 k) for M members, and no eigendecomposition: with d = 100 and k = 10 half a millisecond.
    Components do not depend on the unit of the features, as long as it is the same for all. Entries may be up to 1e70
    in size; one below 1e-50 counts as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import StreamingPCA
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((600, 1)) * [3.0, 0.0, 0.0] + 0.1 * rng.standard_normal((600, 3))
    >>> rows[300:] = rows[300:, ::-1]                       # the direction jumps from the first axis to the last
    >>> pca = StreamingPCA(n_components=1)
    >>> lost = pca.update(rows)                             # of each row, before it is learned
    >>> np.abs(pca.components_).round(1)
    array([[0., 0., 1.]])
    >>> lost[100:300].mean().round(2), lost[350:].mean().round(2)
    (np.float64(0.02), np.float64(0.02))
    >>> pca.transform(rows[-2:]).shape
    (2, 1)
    """

    _prefix = "engine."
    _models: tuple[SubspaceModel, ...]

    def __init__(
        self,
        n_components: int = 2,
        *,
        halflives: Sequence[float] = (2.0, 6.5, 20.0, 65.0, 200.0, 650.0, math.inf),
        center: bool = True,
    ) -> None:
        self.n_components = n_components
        self.halflives = halflives
        self.center = center

    # ---------------------------------------------------------------------------------------------------------- learn

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Forget everything and learn the rows of X (n, d), one after the other. Returns the estimator."""
        del y
        self._begin(X, ordered=True)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the rows of X (n, d), one after the other. If one is refused, none was learned."""
        del y
        self.update(X)
        return self

    def update(self, X: ArrayLike) -> Floats:
        """Learn as `partial_fit` does, and return the loss of each row just before it was learned: (n,).

        That is its squared distance to the mean plus the span of the components, ||(I - P)(x - mean)||^2: the error of
        a forecast, to compare with other methods. The very first row loses nothing where the mean is subtracted,
        since there is none yet.
        """
        if not self._is_fitted():
            return self._begin(X)
        rows = self._rows(X)
        if self._settings() != self._fitted_with:
            raise InputError("StreamingPCA: its parameters were changed after the first rows. Call fit to restart.")
        return self._models[0].learn(rows)

    def _begin(self, X: ArrayLike, *, ordered: bool = False) -> Floats:
        """Learn the first rows with a model of its own, which replaces the present one when all is done."""
        trial = self._shadow()
        rows = trial._rows(X, reset=True)
        model = SubspaceModel(self._layout(rows.shape[1]))
        lost = model.learn(rows)
        if ordered:
            model.put_in_order()
        self._learned(trial, _models=(model,))
        return lost

    def _rows(self, X: ArrayLike, *, reset: bool = False) -> Floats:
        """Return the rows of a table as a new array; refuse numbers that are not finite or too large."""
        read = _sklearn.validated(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        rows = np.array(read, dtype=np.float64, order="C")
        fine = np.abs(rows) <= LARGEST_FEATURE  # false for nan
        if not fine.all():
            row, column = (int(i) for i in np.argwhere(~fine)[0])
            names = getattr(self, "feature_names_in_", getattr(X, "columns", None))
            place = f"row {row}, column {column}" + (f" ({names[column]!r})" if names is not None else "")
            found = rows[row, column]
            what = (
                "NaN" if np.isnan(found) else "infinity" if np.isinf(found) else f"{found:g}, above {LARGEST_FEATURE:g}"
            )
            raise InputError(f"StreamingPCA: X has {what} in {place}, counted from 0. Remove the row or fill it in.")
        rows[np.abs(rows) < LEAST_ENTRY] = 0.0
        return rows

    def _layout(self, features: int) -> SubspaceLayout:
        return read_layout(features, self.n_components, self.halflives, self.center)

    def _restored(self, facts: Facts, saved: SavedModels) -> tuple[SubspaceModel, ...]:
        self._check_names(facts)
        return (SubspaceModel.restored(self, self._layout(facts["n_features_in_"]), saved(0)),)

    # ------------------------------------------------------------------------------------------------------------ use

    def transform(self, X: ArrayLike) -> Floats:
        """Coordinates of the rows of X along the components, (n, k), with the mean taken off."""
        check_is_fitted(self)
        return (self._rows(X) - self.mean_) @ self.components_.T

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Rows of features (n, d) from coordinates (n, k)."""
        check_is_fitted(self)
        coordinates = _sklearn.tried(
            self, "X must be rows of numbers", lambda _: check_array(X, dtype=np.float64, estimator=self)
        )
        if coordinates.shape[1] != self._n_features_out:
            raise InputError(
                f"StreamingPCA.inverse_transform needs rows of {self._n_features_out} coordinates. "
                f"Got shape {coordinates.shape}."
            )
        rows: Floats = coordinates @ self.components_ + self.mean_
        return rows

    def _model_array(self, name: str) -> Floats:
        check_is_fitted(self)
        array: Floats = getattr(self._models[0].state, name)
        return array.copy()

    @property
    def components_(self) -> Floats:
        """Orthonormal directions, (k, d)."""
        return self._model_array("F")

    @property
    def mean_(self) -> Floats:
        """The mean that is subtracted, (d,)."""
        return self._model_array("mean")

    @property
    def explained_variance_(self) -> Floats:
        """Along each component, (k,)."""
        return self._model_array("variances")

    @property
    def explained_variance_ratio_(self) -> Floats:
        """As a share of that of all directions, (k,)."""
        total = self._model_array("total")[0]
        return self.explained_variance_ / (total if total > 0.0 else 1.0)

    @property
    def weights_(self) -> Floats:
        """Of the members of the bank, in the order of `halflives`."""
        check_is_fitted(self)
        return self._models[0].weights

    @property
    def _n_features_out(self) -> int:
        """The number of outputs, for scikit-learn's feature names."""
        return self._models[0].layout.rank
