"""Linear models without constraints, as estimators use them: memory, rows in batches and one by one."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg._core.memory import Memory
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_positive, real_number, wrong
from thalweg.estimators._model import BlockModel
from thalweg.parts.linear.plan import WIDEST, LinearLayout, moved
from thalweg.parts.linear.rows import LEVEL, LinearState, play_row, play_rows

LOSSES = "squared_error", "huber", "absolute_error", "quantile"
MANY = 100  # features up to which guests come by themselves


def read_guests(owner: str, guests: object, features: int) -> bool:
    """Whether there are guests with this number of features, by the argument `guests`."""
    choices: tuple[str | bool, ...] = "auto", True, False
    wanted = check_choice(owner, "guests", guests, choices)
    return features <= (MANY if wanted == "auto" else WIDEST) and bool(wanted)


def read_loss(owner: str, loss: object, quantile: object, epsilon: object) -> tuple[str, float]:
    """Return a loss of regression, and its parameter; where it has none, 0.5."""
    loss = check_choice(owner, "loss", loss, LOSSES)
    if loss == "huber":
        return loss, check_positive(owner, "epsilon", epsilon)
    if loss == "quantile" and not 0 < real_number(quantile) < 1:
        raise wrong(owner, "quantile", "a number in (0, 1)", quantile)
    return loss, real_number(quantile) if loss == "quantile" else 0.5


class _Row:
    """The bound call of one row, the arrays that it reads, and the capacity in rows."""

    def __init__(self, memory: Memory, rounds: int) -> None:
        self.rounds, size = rounds, memory.sizes["features"]
        self.at, self.x = np.zeros(size, dtype=np.int64), np.zeros(size)
        self.positions: Sequence[int] = ()  # those in `at`
        self.values: Any = (ctypes.c_double * size).from_buffer(self.x.data)
        self.call = play_row.ready(memory.handle, 0, 0.0, 0.0, False, 0, self.at, self.x)
        self.clock = memory.state.clock.data


class FreeModel(BlockModel[LinearLayout]):
    """A linear model of one target that learns row by row.

    A row is given by the positions of the features that are present, which count from 1, and their values. All rows of
    a call have the same positions. A feature that is absent costs nothing, and has no part in the row: it is as if it
    were at its mean. Nothing is checked here: positions must lie in 1..`features`, numbers be at most 1e100 in size,
    weights >= 0.

    Where features come as they please, begin with an open layout: no position is in use yet, and `used` of a call says
    how many are from then on. A position that is new has coefficients 0. `move` grows the capacity, or drops guests.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators._linear import FreeModel
    >>> from thalweg.parts.linear import LinearLayout
    >>> model = FreeModel(LinearLayout(8, open=True))
    >>> one = np.ones(1)
    >>> for t in range(200):
    ...     x = np.sin([[1.0 * t, 2.0 * t]])
    ...     y = x[:, 0] - 2 * x[:, 1] + 5
    ...     _ = model.learn(x, y, one, np.array([1, 3]), used=3)  # features 1 and 3 are present
    >>> coefficients, intercept = model.coefficients()
    >>> coefficients.round(1), round(intercept, 1)
    (array([ 1.,  0., -2.,  0.,  0.,  0.,  0.,  0.]), 5.0)
    """

    def _forget(self, memory: Memory) -> None:
        features = memory.sizes["features"]
        self._row: _Row | None = None
        self._all, self._positions = np.arange(1, features + 1), range(1, features + 1)

    # ------------------------------------------------------------------ sizes

    @property
    def used(self) -> int:
        """Positions in use."""
        return int(self.memory.state.clock[1]) - 1

    def move(self, features: int, *, guests: bool) -> None:
        """Grow the capacity for features, or drop the guests: the other candidates share their weight."""
        sizes = {**self.memory.sizes, "features": features, "guests": int(guests)}
        self.memory.adopt(moved(self.memory.block, self.layout.plan(sizes)), sizes)

    def _reserve(self, rows: int) -> None:
        """Grow to slots for further rows."""
        memory, needed = self.memory, self.rounds + rows
        if needed > self.layout.rounds(memory.sizes):
            memory.grow({**memory.sizes, "slots": self.layout.slots(needed)})

    # ------------------------------------------------------------------ rows

    def learn(self, X: Floats, y: Floats, weights: Floats, at: Ints | None = None, *, used: int = 0) -> Floats:
        """Learn rows, one after the other; X has a column for each of the positions `at`, all when left out.

        Returns the prediction of each before it was learned. An error or Ctrl-C undoes all of them.
        """
        if at is None and len(X) == 1:
            return np.array([self.play(self._positions, X[0], y.item(0), weights.item(0), True)])
        out = np.empty(len(X))
        with self.memory.all_or_nothing():
            self._reserve(int(np.count_nonzero(weights > 0)))
            play_rows(self.memory.handle, used, self._all if at is None else at, X, y, weights, True, out)
        return out

    def predict(self, X: Floats, at: Ints | None = None) -> Floats:
        """Predict rows; for "log_loss" the probability of +1."""
        if at is None and len(X) == 1:
            return np.array([self.play(self._positions, X[0], 0.0, 0.0, False)])
        out = np.empty(len(X))
        play_rows(self.memory.handle, 0, self._all if at is None else at, X, out, out, False, out)
        return out

    def play(
        self, at: Sequence[int], values: list[float] | Floats, y: float, weight: float, learn: bool, used: int = 0
    ) -> float:
        """Predict one row, and learn it where that is wanted: as many values as positions."""
        row = self._row
        if row is None:
            row = self._row = _Row(self.memory, self.layout.rounds(self.memory.sizes))
        if learn and row.clock[0] >= row.rounds and weight > 0.0:
            with self.memory.all_or_nothing():
                self._reserve(1)
                return self.play(at, values, y, weight, learn, used)
        count, call = len(values), row.call
        if row.positions is not at and row.positions != at:
            row.positions = ()
            row.at[:count] = at
            row.positions = at
        if type(values) is list:
            row.values[:count] = values
        else:
            row.x[:count] = values
        integers, floats = call.integers, call.floats
        integers[1], floats[2], floats[3], integers[4], integers[5] = count, y, weight, learn, used
        said: float = call.run()
        if said != said:
            call.entry.read(said)
        return said

    # ------------------------------------------------------------------ inspection

    @property
    def weights(self) -> Floats:
        """Weights of the candidates: guests, members, the last label."""
        weights: Floats = self.memory.state.jury.weights.copy()
        weights /= weights.sum()
        return weights

    def coefficients(self) -> tuple[Floats, float]:
        """Return the mean of the candidates' coefficients by weight, in the units of the data; and of intercepts."""
        state: LinearState = self.memory.state
        w, K, M = self.weights, len(state.guests.B), state.members.W.shape[1]
        standard = w[:K] @ state.guests.B + state.members.W @ w[K : K + M]
        mean, spread = state.features.mean, state.features.spread
        raw = np.divide(standard, spread, out=np.zeros_like(spread), where=spread > 0)[1:]
        offset = w[:K] @ state.guests.offset + w[K : K + M] @ state.members.offset
        offset += w[K + M :] @ (state.last - state.target[LEVEL])
        level = state.target[LEVEL] + standard[0] + offset
        return raw, float(level - raw @ mean[1:])
