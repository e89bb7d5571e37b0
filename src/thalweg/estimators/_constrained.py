"""The engine under a constraint: a `thalweg.Tracker` on the coefficients as they are; nothing is scaled.

With an intercept, rows and labels are centred by the means m of the rows before them, and the intercept follows:

    prediction = m_y + <w, x - m_x>,  intercept = m_y - <w, m_x>,  w = the Tracker's decision                      (1)

Labels of classes are -1 and +1. In the place of m_y they have the log odds of what was seen, or 0 for hinge.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._recorded import build
from thalweg._stateful import Stateful, inside
from thalweg._types import Array
from thalweg._validate import LARGEST
from thalweg.algorithms import Tracker
from thalweg.domains import Domain
from thalweg.losses import absolute, hinge, huber, logistic, pinball, squared
from thalweg.play import play
from thalweg.problems import LinearModel

__all__ = ["ConstrainedEngine"]

KINDS: dict[str, tuple[Any, str, str | None]] = {  # kernels; the problem by name, and its parameter
    "squared_error": (squared, "squared", None),
    "huber": (huber, "huber", "delta"),
    "absolute_error": (absolute, "absolute", None),
    "quantile": (pinball, "pinball", "tau"),
    "log_loss": (logistic, "", None),
    "hinge": (hinge, "", None),
}


class ConstrainedEngine(Stateful):
    """A linear model of one target with coefficients in a domain.

    Parameters
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

    _noun = "estimator"

    def __init__(self, domain: Domain, loss: str, *, par: float = 0.5, intercept: bool = True) -> None:
        self.domain, self.loss, self.par, self.intercept = domain, loss, float(par), intercept
        self.learner = Tracker(domain)
        self._sums = np.zeros(domain.dim + 1)  # of the features, then of the label
        self._arrays = {"sums": self._sums}

    def _restart(self) -> None:
        self.learner.reset()
        self._sums[:] = 0.0

    @property
    def rounds(self) -> int:
        """Rows learned so far."""
        return self.learner.rounds

    # ------------------------------------------------------------------ rows

    def learn(self, X: Array, y: Array, weights: Array) -> Array:
        """Learn rows, one after the other. Returns what each was predicted before it was learned."""
        with self._all_or_nothing():
            if KINDS[self.loss][1] and (weights == 1).all():
                return self._play(X, y)
            return np.array([self._row(*row) for row in zip(X, y, weights, strict=True)])

    def predict(self, X: Array) -> Array:
        """What rows are predicted; for "log_loss" the probability of +1."""
        w, b = self.coefficients()
        return self._told((X * w).sum(axis=1) + b)

    def coefficients(self) -> tuple[Array, float]:
        """(1)."""
        w, mean = self.learner.decision.ravel(), self._means()
        return w, self._level(mean[-1]) - float(w @ mean[:-1])

    def _told(self, scores: Array) -> Array:
        return 0.5 * (1.0 + np.tanh(0.5 * scores)) if self.loss == "log_loss" else scores

    def _means(self) -> Array:
        return self._sums / max(self.rounds, 1)

    def _level(self, mean: float) -> float:
        """m_y, or log odds."""
        if self.loss == "log_loss" and self.intercept:
            n = self.rounds
            return math.log((n * (1 + mean) + 1) / (n * (1 - mean) + 1))
        return 0.0 if self.loss == "hinge" else float(mean)

    def _play(self, X: Array, y: Array) -> Array:
        """Rows of weight 1, in compiled code where the domain is."""
        rows = np.column_stack([X, y])
        sums = np.cumsum(np.vstack([self._sums, rows]), axis=0) if self.intercept else np.zeros((1, 1))
        means = sums[:-1] / np.maximum(self.rounds + np.arange(len(X)), 1)[:, None] if self.intercept else sums
        centred = rows - means
        _, name, parameter = KINDS[self.loss]
        A = np.ascontiguousarray(centred[:, :-1])
        problem = LinearModel(
            A.reshape(-1, *self.domain.shape), centred[:, -1], name, **({parameter: self.par} if parameter else {})
        )
        run = play(self.learner, problem, decisions=True)
        if run.interrupted:
            raise KeyboardInterrupt
        if self.intercept:
            self._sums[:] = sums[-1]
        played = np.asarray(run.decisions).reshape(A.shape)
        return np.asarray(means[:, -1] + (A * played).sum(axis=1))

    def _row(self, x: Array, y: float, weight: float) -> float:
        """A row of any weight."""
        kernels, par = KINDS[self.loss][0], self.par if KINDS[self.loss][2] else 0.0
        mean = self._means()
        a, level = x - mean[:-1], self._level(mean[-1])
        score = level + float((a * self.learner.decision.ravel()).sum())
        if weight > 0:
            slope, value = kernels.slope(score, y, par), kernels.value(score, y, par)
            self.learner.update((weight * slope * a).reshape(self.domain.shape), weight * value)
            if self.intercept:
                self._sums += [*x, y]
        return float(self._told(np.array(score)))

    # ------------------------------------------------------------------ stop and resume

    def __getstate__(self) -> dict[str, Any]:
        return {"given": self._given, "state": self.state()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(vars(build(type(self), kept["given"])))
        self.restore(kept["state"])

    def state(self) -> dict[str, Any]:
        """As `Stateful.state`, with the learner's under `learner.`."""
        return super().state() | {f"learner.{key}": value for key, value in self.learner.state().items()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """As `Stateful.restore`."""
        saved = self._migrated(saved)
        read, within = self._read_state(saved), inside(saved, "learner.")
        with self._all_or_nothing():
            self.learner.restore(within)
            self._write(read)

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield "sums", bool((np.abs(read["sums"]) <= LARGEST * 2.0**62).all())

    def _remember(self) -> Any:
        return super()._remember(), self.learner._remember()

    def _return_to(self, before: Any) -> None:
        arrays, learner = before
        self.learner._return_to(learner)
        super()._return_to(arrays)
