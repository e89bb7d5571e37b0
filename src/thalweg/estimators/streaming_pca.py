"""Principal components that follow a stream, as a scikit-learn transformer. `_subspace` has the equations."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from thalweg._extras import need
from thalweg._types import Array
from thalweg.errors import InputError
from thalweg.estimators._saved import Saved
from thalweg.estimators._subspace import LARGEST, Subspace

need("sklearn", "sklearn", "StreamingPCA")

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin  # noqa: E402
from sklearn.utils.validation import check_array, check_is_fitted, validate_data  # noqa: E402

__all__ = ["StreamingPCA"]


class StreamingPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Saved, BaseEstimator):  # type: ignore[misc]
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
    Components do not depend on the unit of the features, as long as it is the same for all.

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

    _engine: Subspace

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

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Forget everything and learn the rows of X (n, d), one after the other. Returns the estimator."""
        del y
        self._learn(X, anew=True)
        self._engine.put_in_order()
        return self

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn the rows of X (n, d), one after the other. If one is refused, none was learned."""
        del y
        self._learn(X)
        return self

    def update(self, X: ArrayLike) -> Array:
        """Learn as `partial_fit` does, and tell what each row lost just before it was learned: (n,).

        That is its squared distance to the mean plus the span of the components, ||(I - P)(x - mean)||^2: the error of
        a forecast, to compare with other methods. The very first row loses nothing where the mean is taken off,
        since there is none yet.
        """
        return self._learn(X)

    def _learn(self, X: ArrayLike, anew: bool = False) -> Array:
        first = anew or not self.__sklearn_is_fitted__()
        rows = self._read(X, first)
        if first:
            engine = self._new_engine({"n_features_in_": rows.shape[1]})
            validate_data(self, X, reset=True, skip_check_array=True)
            self._engine = engine
        elif not self._unchanged():
            raise InputError("StreamingPCA: its parameters were changed after the first rows. Call fit to start anew.")
        return self._engine.learn(rows)

    def _unchanged(self) -> bool:
        """Whether the parameters are those that the engine was built with."""
        given, mine = self._engine._given, (self.n_components, self.halflives, self.center)
        built = given["rank"], given["halflives"], given["center"]
        if type(self.halflives) is tuple and all(a is b for a, b in zip(mine, built, strict=True)):
            return True
        return [*self._settings().values()] == [*self._engine._settings().values()][1:]

    def _read(self, X: ArrayLike, first: bool) -> Array:
        """The rows of a table, as a new array."""
        options: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False}
        read = check_array(X, estimator=self, **options) if first else validate_data(self, X, reset=False, **options)
        rows = np.array(read, dtype=np.float64, order="C")
        fine = np.abs(rows) <= LARGEST  # false for nan
        if not fine.all():
            row, column = (int(i) for i in np.argwhere(~fine)[0])
            names = getattr(self, "feature_names_in_", getattr(X, "columns", None))
            place = f"row {row}, column {column}" + (f" ({names[column]!r})" if names is not None else "")
            found = rows[row, column]
            what = "NaN" if np.isnan(found) else "infinity" if np.isinf(found) else f"{found:g}, above {LARGEST:g}"
            raise InputError(f"StreamingPCA: X has {what} in {place}, counted from 0. Remove the row or fill it in.")
        return rows

    def _new_engine(self, facts: Mapping[str, Any]) -> Subspace:
        return Subspace(facts["n_features_in_"], self.n_components, self.halflives, self.center)

    # ------------------------------------------------------------------------------------------------------------ use

    def transform(self, X: ArrayLike) -> Array:
        """Coordinates of the rows of X along the components, (n, k), with the mean taken off."""
        check_is_fitted(self)
        return (self._read(X, False) - self.mean_) @ self.components_.T

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Rows of features (n, d) from coordinates (n, k)."""
        check_is_fitted(self)
        coordinates = check_array(X, dtype=np.float64, estimator=self)
        if coordinates.shape[1] != self._n_features_out:
            raise InputError(
                f"StreamingPCA.inverse_transform needs rows of {self._n_features_out} coordinates. "
                f"Got shape {coordinates.shape}."
            )
        rows: Array = coordinates @ self.components_ + self.mean_
        return rows

    def __sklearn_is_fitted__(self) -> bool:
        return "_engine" in vars(self)

    def _told(self, name: str) -> Array:
        check_is_fitted(self)
        array: Array = self._engine._arrays[name]
        return array.copy()

    @property
    def components_(self) -> Array:
        """Orthonormal directions, (k, d)."""
        return self._told("F")

    @property
    def mean_(self) -> Array:
        """What is taken off, (d,)."""
        return self._told("mean")

    @property
    def explained_variance_(self) -> Array:
        """Along each component, (k,)."""
        return self._told("variances")

    @property
    def explained_variance_ratio_(self) -> Array:
        """As a share of that of all directions, (k,)."""
        total = self._told("total")[0]
        return self.explained_variance_ / (total if total > 0.0 else 1.0)

    @property
    def weights_(self) -> Array:
        """Of the members of the bank, in the order of `halflives`."""
        check_is_fitted(self)
        return self._engine.weights

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned so far."""
        check_is_fitted(self)
        return self.rounds

    @property
    def _n_features_out(self) -> int:
        """For scikit-learn's names of what comes out."""
        return len(self._engine._arrays["F"])
