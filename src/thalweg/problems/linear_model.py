r"""Problems whose loss depends on the decision through one prediction a round.

.. math:: f_t(w) = \phi(\langle a_t, w \rangle, b_t)

Features and labels are two arrays, so compiled loops run over them and bounds are computed for all rounds at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thalweg import losses
from thalweg._kernels import losses as kernels
from thalweg._validate import check_array, check_choice
from thalweg.errors import InputError
from thalweg.problems._base import Problem

if TYPE_CHECKING:
    from thalweg.domains import Domain

__all__ = ["AbsoluteRegression", "LinearLosses", "LinearModel", "LinearRegression", "LogisticRegression"]

Array = NDArray[np.float64]

KINDS: dict[str, type[losses.PredictionLoss]] = {
    "squared": losses.Squared,
    "logistic": losses.Logistic,
    "absolute": losses.Absolute,
    "linear": losses.Linear,
}


class LinearModel(Problem):
    r"""Predict a label from features, every round anew: :math:`f_t(w) = \phi(\langle a_t, w \rangle, b_t)`.

    Parameters
    ----------
    features : array (T, d) or (T, \*shape)
        a_t, one row a round. A decision has the shape of a row.
    labels : array (T,)
        b_t.
    loss : "squared", "logistic", "absolute" or "linear"
        :math:`\phi`, see `thalweg.losses`. Logistic labels are -1 or +1; linear labels are offsets.
    comparators : array (T, d) or (T, \*shape), optional
        The moving optimum w*_t, where it is known: what regret is measured against.

    Attributes
    ----------
    features, labels : array (T, dim), array (T,)
        The data, C-contiguous float64, each decision flattened to dim numbers.
    comparators : array (T, dim) or None
        As given.
    loss, code : str, int
        The loss by name, and in compiled loops.
    nonnegative : bool
        Whether every f_t >= 0, as small-loss bounds ask for.

    Examples
    --------
    >>> from thalweg.problems import LinearModel
    >>> problem = LinearModel([[1.0, 2.0], [3.0, 4.0]], [1.0, -1.0], loss="absolute")
    >>> len(problem), problem[1].value([1.0, 0.0]), problem.losses_of([1.0, 0.0])
    (2, 4.0, array([0., 4.]))
    """

    features: Array
    labels: Array
    comparators: Array | None

    def __init__(
        self, features: ArrayLike, labels: ArrayLike, loss: str = "squared", *, comparators: ArrayLike | None = None
    ) -> None:
        self.loss = check_choice(type(self).__name__, "loss", loss, tuple(KINDS))
        self._read(features, labels, comparators)

    def _read(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        comparators: ArrayLike | None,
        names: tuple[str, str] = ("features", "labels"),
    ) -> None:
        """Check the data and record it."""
        owner = type(self).__name__
        rows = check_array(owner, names[0], features)
        if rows.ndim < 2 or rows.size == 0:
            raise InputError(
                f"The '{names[0]}' parameter of {owner} must have one non-empty row a round: shape (T, d) or "
                f"(T, *shape), T >= 1. Got shape {rows.shape}."
            )
        self.horizon, self.shape = len(rows), rows.shape[1:]
        self.features = rows.reshape(len(rows), -1)
        self.labels = check_array(owner, names[1], labels, shape=(len(rows),))
        if self.code == kernels.LOGISTIC:
            losses.check_signs(owner, self.labels)
        self.comparators = None
        if comparators is not None:
            self.comparators = check_array(owner, "comparators", self._flat(comparators), shape=self.features.shape)

    def _flat(self, points: ArrayLike) -> Array:
        """Decisions of all rounds with each one flattened, if they came in the shape of a decision."""
        array = np.asarray(points)
        return array.reshape(self.features.shape) if array.shape == (self.horizon, *self.shape) else array

    def _round(self, t: int) -> losses.PredictionLoss:
        return KINDS[self.loss].trusted(self.features[t].reshape(self.shape), float(self.labels[t]))

    def _part(self, rounds: slice) -> Self:
        if not range(len(self))[rounds]:
            raise InputError(f"{type(self).__name__} has {len(self)} rounds, and {rounds} selects none of them.")
        part = object.__new__(type(self))
        part.loss, part.shape = self.loss, self.shape
        part.features = np.ascontiguousarray(self.features[rounds])
        part.labels = np.ascontiguousarray(self.labels[rounds])
        part.horizon = len(part.labels)
        part.comparators = None if self.comparators is None else np.ascontiguousarray(self.comparators[rounds])
        return part

    @property
    def dim(self) -> int:
        """Number of entries of a decision."""
        return math.prod(self.shape)

    @property
    def code(self) -> int:
        """The loss in compiled loops (`thalweg._kernels.losses`)."""
        return KINDS[self.loss].code

    parameter = 0.0

    @property
    def nonnegative(self) -> bool:
        """Whether every f_t >= 0."""
        return KINDS[self.loss].nonnegative

    @property
    def smoothness(self) -> float | None:
        """L that holds in every round: the curvature of phi times the largest ||a_t||^2. None if not smooth."""
        curvature = KINDS[self.loss].curvature
        return (
            None if curvature is None else curvature * float(np.einsum("td,td->t", self.features, self.features).max())
        )

    def gradient_bound(self, domain: Domain) -> float:
        """At least ||grad f_t(w)|| for every round and every w of the domain (see `thalweg.losses`)."""
        slopes = np.empty((2, len(self)))
        for z, out in zip(self._range(domain), slopes, strict=True):
            kernels.slopes(self.code, z, self.labels, out)
        return float((np.abs(slopes).max(axis=0) * self._norms()).max())

    def loss_bound(self, domain: Domain) -> float:
        """At least f_t(w) for every round and every w of the domain (see `thalweg.losses`)."""
        return max(float(self._values(z).max()) for z in self._range(domain))

    def losses_of(self, decisions: ArrayLike) -> Array:
        """f_t(w_t) of every round for the decisions w_t (one row a round), or for one fixed decision."""
        w = check_array(type(self).__name__, "decisions", decisions)
        if w.shape == self.shape:
            return self._values(self.features @ w.ravel())
        w = self._flat(w)
        if w.shape != self.features.shape:
            raise InputError(
                f"{type(self).__name__} has {self.horizon} rounds and decisions of shape {self.shape}. Pass one "
                f"decision, or one a round: shape {(self.horizon, *self.shape)}. Got shape {w.shape}."
            )
        return self._values(np.einsum("td,td->t", self.features, w))

    def _values(self, z: Array) -> Array:
        """phi(z_t, b_t) of every round."""
        out = np.empty(len(self))
        kernels.values(self.code, z, self.labels, out)
        return out

    def _norms(self) -> Array:
        """||a_t|| of every round."""
        norms: Array = np.linalg.norm(self.features, axis=1)
        return norms

    def _range(self, domain: Domain) -> tuple[Array, Array]:
        """The smallest and largest <a_t, w> of every round over the enclosing ball of the domain."""
        if domain.shape != self.shape:
            raise InputError(
                f"{type(self).__name__} has decisions of shape {self.shape}. Got the domain {domain!r}, whose points "
                f"have shape {domain.shape}."
            )
        middle, norms = self.features @ domain.center.ravel(), self._norms()
        spread = np.multiply(norms, domain.radius, where=norms > 0, out=np.zeros_like(norms))  # never 0 * inf
        return middle - spread, middle + spread

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{self.horizon} rounds of shape {self.shape}, {self.loss} loss>)"


class LinearRegression(LinearModel):
    r"""Regression with half the squared error: :math:`f_t(w) = (\langle x_t, w \rangle - y_t)^2 / 2`.

    Parameters
    ----------
    features : array (T, d) or (T, \*shape)
        x_t.
    labels : array (T,)
        y_t.
    comparators : array (T, d) or (T, \*shape), optional
        The moving optimum, where it is known.

    Examples
    --------
    >>> from thalweg.domains import Ball
    >>> from thalweg.problems import LinearRegression
    >>> problem = LinearRegression([[3.0, 4.0], [1.0, 0.0]], [0.0, 1.0])
    >>> ball = Ball(2, radius=2.0)
    >>> problem.smoothness, problem.gradient_bound(ball), problem.loss_bound(ball)
    (25.0, 50.0, 50.0)
    """

    def __init__(self, features: ArrayLike, labels: ArrayLike, *, comparators: ArrayLike | None = None) -> None:
        super().__init__(features, labels, "squared", comparators=comparators)


class LogisticRegression(LinearModel):
    r"""Classification with the logistic loss: :math:`f_t(w) = \log(1 + \exp(-y_t \langle x_t, w \rangle))`.

    Parameters
    ----------
    features : array (T, d) or (T, \*shape)
        x_t.
    labels : array (T,)
        y_t, -1 or +1.
    comparators : array (T, d) or (T, \*shape), optional
        The moving optimum, where it is known.

    Examples
    --------
    >>> from thalweg.problems import LogisticRegression
    >>> problem = LogisticRegression([[3.0, 4.0], [1.0, 0.0]], [-1, +1])
    >>> problem.losses_of([0.0, 0.0]).round(3), problem.smoothness
    (array([0.693, 0.693]), 6.25)
    """

    def __init__(self, features: ArrayLike, labels: ArrayLike, *, comparators: ArrayLike | None = None) -> None:
        super().__init__(features, labels, "logistic", comparators=comparators)


class AbsoluteRegression(LinearModel):
    r"""Regression with the absolute error: :math:`f_t(w) = |\langle x_t, w \rangle - y_t|`. Not smooth.

    Parameters
    ----------
    features : array (T, d) or (T, \*shape)
        x_t.
    labels : array (T,)
        y_t.
    comparators : array (T, d) or (T, \*shape), optional
        The moving optimum, where it is known.

    Examples
    --------
    >>> from thalweg.problems import AbsoluteRegression
    >>> AbsoluteRegression([[3.0, 4.0], [1.0, 0.0]], [0.0, 1.0]).losses_of([1.0, 1.0])
    array([7., 0.])
    """

    def __init__(self, features: ArrayLike, labels: ArrayLike, *, comparators: ArrayLike | None = None) -> None:
        super().__init__(features, labels, "absolute", comparators=comparators)


class LinearLosses(LinearModel):
    r"""Linear losses: :math:`f_t(w) = \langle g_t, w \rangle + o_t`. They may be negative.

    Parameters
    ----------
    costs : array (T, d) or (T, \*shape)
        g_t.
    offsets : array (T,), optional
        o_t, 0 when left out.
    comparators : array (T, d) or (T, \*shape), optional
        The moving optimum, where it is known.

    Examples
    --------
    >>> from thalweg.problems import LinearLosses
    >>> LinearLosses([[3.0, 4.0], [-1.0, 0.0]]).losses_of([1.0, 1.0])
    array([ 7., -1.])
    """

    def __init__(
        self, costs: ArrayLike, offsets: ArrayLike | None = None, *, comparators: ArrayLike | None = None
    ) -> None:
        self.loss = "linear"
        costs = check_array(type(self).__name__, "costs", costs)
        if offsets is None:
            offsets = np.zeros(costs.shape[:1])
        self._read(costs, offsets, comparators, names=("costs", "offsets"))

    @property
    def costs(self) -> Array:
        """g_t, one flat row a round."""
        return self.features

    @property
    def offsets(self) -> Array:
        """o_t."""
        return self.labels
