"""OPERA's `Mixture`, for those whose code calls it: the same names, on an `Aggregator`."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_choice
from thalweg.estimators.aggregator.aggregator import Aggregator
from thalweg.estimators.aggregator.result import Combination

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Mixture"]

PICTURES = {
    "plot_weight": "weights",
    "boxplot_weight": "box",
    "dyn_avg_loss": "cumulative",
    "avg_loss": "average",
    "contrib": "contributions",
    "oracle": "oracle",
}
ARRAYS = "experts", "awake", "y", "said", "played"  # of a combination: a row a round


class Mixture:
    """Combine forecasts by OPERA's calls. `aggregator` does the work; it can be saved, this cannot.

    Parameters
    ----------
    y : array (T,) or series
        The observations.
    experts : array (T, K) or data frame
        The forecasts.
    awake : array (T, K), optional
        The experts awake.
    model : str
        "BOA", "MLpol", "MLprod", "EWA" or "FS"; or "Tracker"; or "combined", all of them as `Aggregator` does it.
    loss_type : str
        "mse", "mae", "mape", or another loss of `Aggregator`.
    loss_gradient : bool
        Whether to compete with the best fixed weights, and not with the best expert.

    Notes
    -----
    Rules follow OPERA's R package. Its Python version has constants that depend on the units of y, and other rates.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators import Mixture
    >>> y = np.sin(np.arange(100.0))
    >>> experts = np.c_[y + 0.1, y - 0.2]
    >>> mixture = Mixture(y[:50], experts[:50], model="MLpol", loss_type="mse")
    >>> mixture.update(experts[50:], y[50:])
    >>> mixture.weights.shape, mixture.predict(experts[:3]).shape
    ((100, 2), (3,))
    """

    def __init__(
        self,
        y: object,
        experts: object,
        awake: object = None,
        model: str = "BOA",
        loss_type: str = "mse",
        loss_gradient: bool = True,
    ) -> None:
        rule = None if isinstance(model, str) and model.lower() == "combined" else model
        self.aggregator = Aggregator(loss_type, gradient=loss_gradient, rule=rule)
        self._runs: tuple[Combination, ...] = ()
        self.update(experts, y, awake)

    def update(self, new_experts: object, new_y: object, awake: object = None) -> None:
        """Further rounds. A call that fails leaves everything as it was."""
        aggregator = copy.copy(self.aggregator)
        runs = *self._runs, aggregator.run(new_experts, new_y, awake)
        self.__dict__ = {"aggregator": aggregator, "_runs": runs}  # in one step

    def predict(self, new_experts: object, awake: object = None) -> Floats:
        """Combine forecasts with the present weights, without learning and without waiting for answers."""
        _, X, A = self.aggregator._read("Mixture.predict", new_experts, awake, None)
        w = A * self.w
        lost = w.sum(axis=1) == 0
        w[lost] = A[lost]
        return np.asarray((w * X).sum(axis=1) / w.sum(axis=1))

    @property
    def w(self) -> Floats:
        """The present weights."""
        return self.aggregator.weights_

    @property
    def run(self) -> Combination:
        """All rounds so far."""
        first = self._runs[0]
        whole: dict[str, Any] = {name: np.concatenate([getattr(run, name) for run in self._runs]) for name in ARRAYS}
        return replace(first, came=first.came._replace(frame=None), **whole)

    @property
    def weights(self) -> Floats:
        """Those of all rounds, (T, K)."""
        return self.run.played

    @property
    def predictions(self) -> Floats:
        """Those of all rounds, (T,)."""
        return self.run.said

    def plot_mixture(self, plot_type: str = "plot_weight", *, ax: Axes | None = None) -> Axes:
        """A picture by OPERA's name: plot_weight, boxplot_weight, dyn_avg_loss, avg_loss, contrib; or oracle."""
        return self.run.plot(PICTURES[check_choice("plot_mixture", "plot_type", plot_type, tuple(PICTURES))], ax=ax)
