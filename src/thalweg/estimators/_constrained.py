"""Linear models under a constraint: a `thalweg.Tracker` on the coefficients as they are; nothing is scaled.

With an intercept, rows and labels are centred by the means m of the rows before them, and the intercept follows:

    prediction = m_y + <w, x - m_x>,  intercept = m_y - <w, m_x>,  w = the Tracker's decision                      (1)

Labels of classes are -1 and +1. In the place of m_y they have the log odds of the labels seen, or 0 for hinge.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np

from thalweg._core.memory import Saved, Sizes
from thalweg._core.rules import counter_field, magnitude
from thalweg._core.saving import inside, unfit
from thalweg._core.state import Block, Plan, field
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import LARGEST_ENTRY
from thalweg.algorithms.tracker import Tracker
from thalweg.domains._base import Domain
from thalweg.errors import InputError
from thalweg.estimators._model import BlockModel
from thalweg.losses import absolute, hinge, huber, logistic, pinball, squared
from thalweg.play import play
from thalweg.problems.linear_model import LinearModel

PROBLEMS: dict[str, tuple[ModuleType, str, str | None]] = {  # kernels; the problem by name, and its parameter
    "squared_error": (squared, "squared", None),
    "huber": (huber, "huber", "delta"),
    "absolute_error": (absolute, "absolute", None),
    "quantile": (pinball, "pinball", "tau"),
    "log_loss": (logistic, "", None),
    "hinge": (hinge, "", None),
}


class ConstrainedState(NamedTuple):
    """Sums that means follow from; coefficients are the learner's."""

    sums: Floats = field("S", magnitude(LARGEST_ENTRY * 2.0**62))  # of the features, then of the label
    clock: Ints = counter_field(1)  # rows learned


@dataclass(frozen=True)
class ConstrainedLayout:
    """A linear model of one target with coefficients in a domain.

    Attributes
    ----------
    domain : Domain
        Of the coefficients.
    loss : str
        A key of `KINDS`.
    par : float
        tau of "quantile", delta of "huber" in units of the label; else it does not matter.
    intercept : bool
        Whether rows and labels are centred.
    """

    domain: Domain
    loss: str
    par: float = 0.5
    intercept: bool = True

    def sizes(self) -> dict[str, int]:
        """None can change."""
        return {}

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """None can change."""
        return {}

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """Return the one plan."""
        return Plan(ConstrainedState, (), {"S": self.domain.dim + 1})


class ConstrainedModel(BlockModel[ConstrainedLayout]):
    """A linear model of one target under a constraint; see `thalweg.estimators._linear.FreeModel`."""

    def __init__(self, layout: ConstrainedLayout, start: tuple[Block, Sizes] | None = None) -> None:
        super().__init__(layout, start)
        self._follow(Tracker(layout.domain))

    def _follow(self, learner: Tracker) -> None:
        self.learner = learner
        self.memory.guests = {"learner.": learner}

    @classmethod
    def restored(cls, owner: object, layout: ConstrainedLayout, saved: Mapping[str, object]) -> Self:
        """Return one in a saved state of `owner`."""
        made = super().restored(owner, layout, saved)
        made.learner.restore(inside(saved, "learner."))
        if made.learner.rounds != made.rounds:
            raise unfit(owner, "its learner has not played as many rounds as there were rows")
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "learner": self.learner}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        super().__setstate__(kept)
        self._follow(kept["learner"])

    # ------------------------------------------------------------------ rows

    def learn(self, X: Floats, y: Floats, weights: Floats) -> Floats:
        """Learn rows, one after the other. Returns the prediction of each before it was learned."""
        try:
            with self.memory.all_or_nothing(), np.errstate(over="ignore", invalid="ignore"):
                if PROBLEMS[self.layout.loss][1] and (weights == 1).all():
                    return self._play(X, y)
                return np.array([self._row(*row) for row in zip(X, y, weights, strict=True)])
        except InputError as error:
            raise InputError(
                "A model with a constraint scales nothing, and a row is too large for it: choose other units of X and "
                f"y, or smaller weights. {error}"
            ) from error

    def predict(self, X: Floats) -> Floats:
        """Predict rows; for "log_loss" the probability of +1."""
        w, mean = self.learner.decision.ravel(), self._means()
        # as `learn` computes it, bit for bit
        return self._predictions(self._level(mean[-1]) + ((X - mean[:-1]) * w).sum(axis=1))

    def coefficients(self) -> tuple[Floats, float]:
        """(1)."""
        w, mean = self.learner.decision.ravel(), self._means()
        return w, self._level(mean[-1]) - float(w @ mean[:-1])

    def _predictions(self, scores: Floats) -> Floats:
        return 0.5 * (1.0 + np.tanh(0.5 * scores)) if self.layout.loss == "log_loss" else scores

    def _means(self) -> Floats:
        means: Floats = self.memory.state.sums / max(self.rounds, 1)
        return means

    def _level(self, mean: float) -> float:
        """m_y, or log odds."""
        if self.layout.loss == "log_loss" and self.layout.intercept:
            n = self.rounds
            return math.log((n * (1 + mean) + 1) / (n * (1 - mean) + 1))
        return 0.0 if self.layout.loss == "hinge" else float(mean)

    def _play(self, X: Floats, y: Floats) -> Floats:
        """Rows of weight 1, in compiled code where the domain is."""
        state: ConstrainedState = self.memory.state
        rows = np.column_stack([X, y])
        sums = np.cumsum(np.vstack([state.sums, rows * self.layout.intercept]), axis=0)
        means = sums[:-1] / np.maximum(self.rounds + np.arange(len(X)), 1)[:, None]
        centred = rows - means
        _, problem, parameter = PROBLEMS[self.layout.loss]
        A = np.ascontiguousarray(centred[:, :-1])
        features, options = A.reshape(-1, *self.layout.domain.shape), {parameter: self.layout.par} if parameter else {}
        run = play(self.learner, LinearModel(features, centred[:, -1], problem, **options), decisions=True)
        if run.interrupted:
            raise KeyboardInterrupt
        state.sums[:] = sums[-1]
        state.clock[0] = self.learner.rounds
        played = np.asarray(run.decisions).reshape(A.shape)
        return np.asarray(means[:, -1] + (A * played).sum(axis=1))

    def _row(self, x: Floats, y: float, weight: float) -> float:
        """A row of any weight."""
        state: ConstrainedState = self.memory.state
        kernels, _, parameter = PROBLEMS[self.layout.loss]
        par = self.layout.par if parameter else 0.0
        mean = self._means()
        a, level = x - mean[:-1], self._level(mean[-1])
        score = level + float((a * self.learner.decision.ravel()).sum())
        if weight > 0:
            slope, value = kernels.slope(score, y, par), kernels.value(score, y, par)
            self.learner.update((weight * slope * a).reshape(self.layout.domain.shape), weight * value)
            if self.layout.intercept:
                state.sums[:] += [*x, y]
            state.clock[0] += 1
        return float(self._predictions(np.array(score)))
