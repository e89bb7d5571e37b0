"""Results of combining forecasts over many rounds: losses, weights, pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import check_choice
from thalweg._kernels.jit import kernel
from thalweg.errors import InputError
from thalweg.estimators._frames import FrameTable, Native
from thalweg.parts.forecast_losses import CODES, cost
from thalweg.regret._axes import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@kernel
def _costs(kind: int, tau: float, P: Floats, Y: Floats, out: Floats) -> None:
    for t in range(P.shape[0]):
        for i in range(P.shape[1]):
            out[t, i] = cost(kind, tau, P[t, i], Y[t])


def costs(loss: str, tau: float, forecasts: Floats, y: Floats) -> Floats:
    """Return the losses of forecasts: one a row, or a column for each expert."""
    P = np.ascontiguousarray(forecasts.reshape(len(y), math.prod(forecasts.shape[1:])))
    out = np.empty_like(P)
    _costs(CODES[loss], tau, P, y, out)
    return out.reshape(forecasts.shape)


@dataclass(frozen=True, eq=False)
class Combination:
    """Rounds of an `Aggregator`, as `run` returns them.

    Attributes
    ----------
    experts, awake : array (T, K)
        The forecasts (0 where an expert slept), and how far each was awake.
    y : array (T,)
        The observations.
    said : array (T,)
        The combined forecasts.
    played : array (T, K)
        The weights they were made with.
    names : tuple of str
        The experts.
    loss_name, tau
        As for the aggregator.
    title : str
        The name of the combination in pictures.
    """

    experts: Floats = field(repr=False)
    awake: Floats = field(repr=False)
    y: Floats = field(repr=False)
    said: Floats = field(repr=False)
    played: Floats = field(repr=False)
    names: tuple[str, ...]
    loss_name: str
    tau: float
    title: str
    came: FrameTable = field(repr=False)

    @property
    def predictions(self) -> Native:
        """The combined forecasts: an array (T,), or a data frame of the kind that came, column "prediction"."""
        return self.came.like(self.said, ["prediction"])

    @property
    def weights(self) -> Native:
        """The weights of every round: an array (T, K), or a data frame of the kind that came."""
        return self.came.like(self.played, self.names)

    @property
    def losses(self) -> Floats:
        """The loss of each combined forecast."""
        return costs(self.loss_name, self.tau, self.said, self.y)

    def loss(self) -> float:
        """The mean loss; nan without rounds."""
        return float(self.losses.mean()) if len(self.y) else float("nan")

    def expert_losses(self) -> Floats:
        """Return the loss of each expert's forecast, (T, K); nan where it slept."""
        paid = costs(self.loss_name, self.tau, self.experts, self.y)
        return np.where(self.awake > 0, paid, np.nan)

    def plot(self, kind: str = "weights", *, ax: Axes | None = None, most: int = 8) -> Axes:
        """Draw a picture on the Axes given, or on a new figure, and return the Axes.

        Parameters
        ----------
        kind : {"weights", "box", "cumulative", "average", "contributions", "oracle"}
            Weights over time; how they are spread; loss so far, beyond that of the combination; mean loss of each;
            each expert's part of the forecast; mean loss of the best sequence of experts, by how often it changes.
        ax : Axes, optional
            Where to draw.
        most : int
            Experts that are shown one by one, those with the largest weights; the others are summed up.
        """
        from thalweg.estimators.aggregator import pictures

        check_choice("plot", "kind", kind, tuple(pictures.DRAWN))
        if not len(self.y):
            raise InputError("plot needs at least one round. Got none.")
        return pictures.draw(kind, replace(self, names=tuple(map(plain, self.names))), ax, most)
