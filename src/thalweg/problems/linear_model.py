r"""Problems whose loss depends on the decision through one prediction a round.

.. math:: f_t(w) = \phi(\langle a_t, w \rangle, b_t)

Features and labels are two arrays, so compiled loops run over them and bounds are computed for all rounds at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._core.validate import check_array, check_choice
from thalweg.domains._base import read_domain
from thalweg.errors import InputError
from thalweg.losses._base import KINDS, PredictionLoss, predictions
from thalweg.losses._phi import Phi, each
from thalweg.problems._base import Problem

if TYPE_CHECKING:
    from thalweg.domains._base import Domain

__all__ = ["LinearModel"]


class LinearModel(Problem):
    r"""Predict a label from features in every round: :math:`f_t(w) = \phi(\langle a_t, w \rangle, b_t)`.

    Parameters
    ----------
    features : array (T, d) or (T, \*shape)
        a_t, one row a round. A decision has the shape of a row.
    labels : array (T,)
        b_t.
    loss : str
        :math:`\phi` by name: "squared", "logistic", "absolute", "linear", "huber", "pinball", "hinge" or "log" (see
        `thalweg.losses`). Labels of "logistic" and "hinge" are -1 or +1; those of "linear" and "log" are offsets.
    comparators : array (T, d) or (T, \*shape), optional
        The moving optimum w*_t, where it is known, as comparators of the regret.
    **parameter : float
        The parameter of the loss, by its name: `delta` of "huber" (1 when left out), `tau` of "pinball" (0.5).

    Attributes
    ----------
    features, labels : array (T, dim), array (T,)
        The data, C-contiguous float64, each decision flattened to dim numbers.
    comparators : array (T, dim) or None
        As given.
    loss, phi, parameter : str, Phi, float
        The loss by name, and in compiled loops with the number it may depend on (0 if none).
    nonnegative : bool
        Whether every f_t >= 0, as small-loss bounds ask for.

    Examples
    --------
    >>> from thalweg.problems import LinearModel
    >>> problem = LinearModel([[1.0, 2.0], [3.0, 4.0]], [1.0, -1.0], loss="absolute")
    >>> len(problem), problem[1].value([1.0, 0.0]), problem.losses_of([1.0, 0.0])
    (2, 4.0, array([0., 4.]))
    >>> LinearModel([[1.0, 2.0], [3.0, 4.0]], [1.0, -1.0], "huber", delta=0.5).losses_of([1.0, 0.0])
    array([0.   , 1.875])
    """

    features: Floats
    labels: Floats
    comparators: Floats | None
    loss: str
    parameter: float
    _arguments: ClassVar[tuple[str, str]] = ("features", "labels")

    def __init__(
        self,
        features: ArrayLike,
        labels: ArrayLike,
        loss: str = "squared",
        *,
        comparators: ArrayLike | None = None,
        **parameter: float,
    ) -> None:
        owner, names = type(self).__name__, self._arguments
        self.loss = check_choice(owner, "loss", loss, tuple(KINDS))
        self.parameter = self._kind.read_parameter(owner, parameter)
        rows = check_array(owner, names[0], features)
        if rows.ndim < 2 or rows.size == 0:
            raise InputError(
                f"The '{names[0]}' parameter of {owner} must have one non-empty row a round: shape (T, d) or "
                f"(T, *shape), T >= 1. Got shape {rows.shape}."
            )
        self.horizon, self.shape = len(rows), rows.shape[1:]
        self.features = rows.reshape(len(rows), -1)
        self.labels = check_array(owner, names[1], labels, shape=(len(rows),), largest=math.inf)
        self._kind.check_data(owner, self.features, self.labels)
        self.comparators = None
        if comparators is not None:
            points = check_array(owner, "comparators", comparators)
            points = points.reshape(self.features.shape) if points.shape == rows.shape else points
            self.comparators = check_array(owner, "comparators", points, shape=self.features.shape)

    def _round(self, t: int) -> PredictionLoss:
        return self._kind.trusted(self.features[t].reshape(self.shape), float(self.labels[t]), self.parameter)

    def _part(self, rounds: slice) -> Self:
        if not range(len(self))[rounds]:
            raise InputError(f"{type(self).__name__} has {len(self)} rounds, and {rounds} selects none of them.")
        part = object.__new__(type(self))
        part.loss, part.parameter, part.shape = self.loss, self.parameter, self.shape
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
    def _kind(self) -> type[PredictionLoss]:
        if self.loss not in KINDS:  # unpickled where nothing has defined it
            raise InputError(f"LinearModel: import the module that defines the loss {self.loss!r}.")
        return KINDS[self.loss]

    @property
    def phi(self) -> Phi:
        """The loss in compiled loops (`thalweg.losses._phi`)."""
        return self._kind.phi

    @property
    def nonnegative(self) -> bool:
        """Whether every f_t >= 0."""
        return self._kind.nonnegative

    @property
    def kinked(self) -> bool:
        """Whether the slope of the loss jumps."""
        return self._kind.kinked

    @property
    def smoothness(self) -> float | None:
        """L that holds in every round: the curvature of phi times the largest ||a_t||^2. None if not smooth."""
        curvature = self._kind.curvature
        return (
            None if curvature is None else curvature * float(np.einsum("td,td->t", self.features, self.features).max())
        )

    def smoothness_on(self, domain: Domain) -> float | None:
        """As `smoothness`, on the domain alone: of the gradients in `domain.directions`. None if not smooth there."""
        curvatures = self._kind.curvature_from(self._range(domain)[0], self.labels)
        return None if curvatures is None else float((curvatures * self._norms(domain) ** 2).max())

    def gradient_bound(self, domain: Domain) -> float:
        """At least ||grad f_t(w)|| for every round and every w of the domain (see `thalweg.losses`).

        On a domain without inner points, such as a simplex, only the part in `domain.directions` counts.
        """
        return float(self._lengths(domain, self._norms(domain)).max())

    def _lengths(self, domain: Domain, norms: Floats) -> Floats:
        """The largest |phi'| of every round on the domain, times `norms`."""
        steepest = np.maximum(*(np.abs(self._slopes(z)) for z in self._range(domain)))
        return np.multiply(norms, steepest, where=norms > 0, out=np.zeros_like(norms))  # never 0 * inf

    def loss_bound(self, domain: Domain) -> float:
        """At least f_t(w) for every round and every w of the domain (see `thalweg.losses`)."""
        return max(float(self._values(z).max()) for z in self._range(domain))

    def _losses_at(self, w: Floats) -> Floats:
        if w.shape == self.shape:
            return self._values(self.features @ w.ravel())
        return self._values(np.einsum("td,td->t", self.features, w.reshape(self.features.shape)))

    def _values(self, z: Floats) -> Floats:
        """phi(z_t, b_t) of every round."""
        out = np.empty(len(self))
        each(self.phi.value, z, self.labels, self.parameter, out)
        return out

    def _slopes(self, z: Floats) -> Floats:
        """The slope of phi at z_t, b_t of every round."""
        out = np.empty(len(self))
        each(self.phi.slope, z, self.labels, self.parameter, out)
        return out

    def _steepness(self, domain: Domain) -> Floats:
        """The largest |phi'| there is; where slopes have no bound, the one at the centre of the domain."""
        ends = np.full(len(self), np.inf)
        largest = np.maximum(np.abs(self._slopes(-ends)), np.abs(self._slopes(ends)))
        middle = np.abs(self._slopes(self.features @ domain.center.ravel()))
        return np.where(np.isfinite(largest), largest, np.where(np.isfinite(middle), middle, 1.0))

    def _norms(self, domain: Domain) -> Floats:
        """The length of a_t in the directions of the domain, of every round."""
        norms: Floats = np.linalg.norm(self._fit(domain)._directions(self.features), axis=1)
        return norms

    def _range(self, domain: Domain) -> tuple[Floats, Floats]:
        """The smallest and largest <a_t, w> of every round over the domain, or over a larger set."""
        return predictions(self.features, self._fit(domain), self._kind.barrier)

    def _fit(self, domain: Domain) -> Domain:
        """A domain whose points are decisions of this problem, or an error."""
        if read_domain(type(self).__name__, domain).shape != self.shape:
            raise InputError(
                f"{type(self).__name__} has decisions of shape {self.shape}. Got the domain {domain!r}, whose points "
                f"have shape {domain.shape}."
            )
        return domain

    def __repr__(self) -> str:
        parameter = f", {self._kind.parameter_name}={self.parameter:g}" if self._kind.parameter_name else ""
        return f"{type(self).__name__}(<{self.horizon} rounds of shape {self.shape}, {self.loss} loss{parameter}>)"
