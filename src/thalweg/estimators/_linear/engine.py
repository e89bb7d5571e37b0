"""The engine: a linear model of one target, with its candidates and their weights."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.scaling import new_spread
from thalweg._types import Array
from thalweg.estimators._engine import Engine
from thalweg.estimators._jury import begin_jury, new_jury
from thalweg.estimators._linear.guests import FORGET, begin_guests, new_guests
from thalweg.estimators._linear.losses import HINGE, HUBER, LOG, QUANTILE, SQUARED
from thalweg.estimators._linear.members import RATES, new_members
from thalweg.estimators._linear.rows import GAUGE, LEVEL, UNIT, Linear, LinearRoom, play_rows
from thalweg.estimators._shares import begin_shares, new_shares

__all__ = ["KINDS", "LinearEngine"]

KINDS = {
    "squared_error": SQUARED,
    "huber": HUBER,
    "absolute_error": QUANTILE,
    "quantile": QUANTILE,
    "hinge": HINGE,
    "log_loss": LOG,
}
GUESTS = 0.5  # what all guests together are believed at the start


class LinearEngine(Engine):
    """A linear model of one target that learns row by row.

    A row is given by positions and values: `learn([2, 5], [[0.1, 3.0]], [1.0])` is a row in which features 2 and 5 are
    present. Positions count from 1 to `features`. Features that never came cost nothing.

    Parameters
    ----------
    features : int
        How many positions there is room for.
    loss : str
        A key of `KINDS`. Labels of "log_loss" and "hinge" are -1 and +1.
    par : float
        tau of "quantile", epsilon of "huber".
    intercept : bool
        Whether there is one. Without, features and labels are not centred.
    guests : bool
        Whether there are guests; a row then costs O(features^2).
    """

    def __init__(
        self, features: int, loss: str = "squared_error", *, par: float = 0.5, intercept: bool = True, guests: bool = True
    ) -> None:
        D, K, M = features + 1, len(FORGET) if guests else 0, RATES.size
        N = K + M
        priors = np.r_[np.full(K, GUESTS / max(K, 1)), np.full(M, (1.0 - GUESTS * (K > 0)) / M)]
        jury, jury_room = new_jury(priors)
        state = Linear(
            features=new_spread(D),
            label=new_spread(1),
            members=new_members(D),
            guests=new_guests(K, D),
            jury=jury,
            shares=new_shares(priors),
            target=np.zeros(6),
            clock=np.zeros(2, dtype=np.int64),
        )
        room = LinearRoom(
            kind=KINDS[loss],
            par=0.5 if loss == "absolute_error" else float(par),
            intercept=bool(intercept),
            jury=jury_room,
            priors=priors,
            at=np.zeros(D, dtype=np.int64),
            z=np.zeros(D),
            p=np.zeros(N),
            q=np.zeros(N),
            steps=np.zeros((D, M)),
            slopes=np.zeros(M),
            widths=np.zeros(M),
            f=np.zeros(D),
        )
        self._adopt(state, room)
        self._restart()

    def _restart(self) -> None:
        state, room = self._parts
        for array in self._arrays.values():
            array[...] = 0
        begin_guests(state.guests, room.kind == LOG)
        begin_jury(state.jury, room.jury)
        begin_shares(state.shares, room.priors)
        state.target[UNIT] = state.target[GAUGE] = 1.0 if room.kind in (LOG, HINGE) else 0.0
        state.clock[1] = self.features + 1

    def learn(self, at: NDArray[np.int64], X: Array, y: Array, weights: Array) -> Array:
        """Learn rows, one after the other. Returns what each was predicted before it was learned."""
        out = np.empty(len(X))
        play_rows(self._handle, at, X, y, weights, True, out)
        return out

    def predict(self, at: NDArray[np.int64], X: Array) -> Array:
        """What rows are predicted; for "log_loss" the probability of +1."""
        out = np.empty(len(X))
        play_rows(self._handle, at, X, out, out, False, out)
        return out

    @property
    def weights(self) -> Array:
        """Of the candidates, guests first."""
        weights: Array = self._parts[0].jury.weights
        return weights / weights.sum()

    def coefficients(self) -> tuple[Array, float]:
        """The mean of the candidates' coefficients by weight, in the units of the data; and of their intercepts."""
        state: Linear = self._parts[0]
        w, K = self.weights, len(state.guests.B)
        standard = w[:K] @ state.guests.B + state.members.W @ w[K:]
        mean, spread = state.features.mean, state.features.spread
        raw = np.divide(standard, spread, out=np.zeros_like(spread), where=spread > 0)[1:]
        level = state.target[LEVEL] + standard[0] + w[:K] @ state.guests.offset
        return raw, float(level - raw @ mean[1:])

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield "positions", bool(read["clock"][1] == self.features + 1)
        for name in ("features", "label"):
            count, squares = read[f"{name}.count"], read[f"{name}.squares"]
            yield f"{name} seen", bool(((count >= 0) & (count <= read["clock"][0]) & (count % 1 == 0)).all())
            yield f"{name} seen", bool((squares >= 0).all() and (squares[count == 0] == 0).all())
            yield f"{name} seen", np.allclose(read[f"{name}.spread"] ** 2 * count, squares, rtol=1e-9, atol=0.0)
        yield "squared gradients", bool((read["members.G"] >= 0).all())
        yield "guests", bool((read["guests.left"] >= 0).all())
        for name in ("jury.weights", "shares.trust", "shares.beliefs"):
            w = read[name]
            yield name, bool((w >= 0).all() and (np.abs(w.sum(axis=-1) - 1) <= 1e-9).all())
        _, unit, low, high, scale, gauge = read["target"]
        yield "labels", bool(min(unit, scale, gauge) >= 0 and low <= high)
