"""The engine: a linear model of one target, with its candidates and their weights."""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.scaling import new_spread
from thalweg._recorded import build
from thalweg._sound import shares
from thalweg._types import Array
from thalweg._validate import LARGEST
from thalweg.estimators._engine import Engine
from thalweg.estimators._jury import begin_jury, look_jury, new_jury
from thalweg.estimators._linear.guests import BELIEVED as BELIEVED_GUESTS
from thalweg.estimators._linear.guests import FORGET, begin_guests, new_guests
from thalweg.estimators._linear.losses import HINGE, HUBER, LOG, QUANTILE, SQUARED
from thalweg.estimators._linear.members import BELIEVED, RATES, new_members
from thalweg.estimators._linear.rows import GAUGE, LEVEL, UNIT, Linear, LinearRoom, play_row, play_rows
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
BY_CANDIDATE = ("jury.records.A", "jury.records.p", "jury.weights", "shares.beliefs")  # arrays with a column for each
GUESTS = 0.7  # what all guests together are believed at the start


class _Row:
    """The call of one row, and the arrays that it reads."""

    def __init__(self, engine: "LinearEngine") -> None:
        size = engine.features
        self.at, self.x = np.zeros(size, dtype=np.int64), np.zeros(size)
        self.positions: Sequence[int] = ()  # those in `at`
        self.values: Any = (ctypes.c_double * size).from_buffer(self.x.data)
        self.call = play_row.ready(engine._handle, 0, 0.0, 0.0, False, self.at, self.x)


class LinearEngine(Engine):
    """A linear model of one target that learns row by row.

    A row is given by the positions of the features that are present, which count from 1, and their values. All rows of
    a call have the same positions. What is absent costs nothing, and has no part in the row: it is as if it were at
    its mean. Nothing is checked here: positions must lie in 1..`used`, numbers be at most 1e100 in size, weights >= 0.

    Where features come as they please, begin with `open=True`: no position is in use yet. `use(n)` takes the first n
    into use; a position that is new has coefficients 0. `rebuilt` gives one with more room or without guests.

    Parameters
    ----------
    features : int
        How many positions there is room for.
    loss : str
        A key of `KINDS`. Labels of "log_loss" and "hinge" are -1 and +1.
    par : float
        tau of "quantile", epsilon of "huber"; else it does not matter.
    intercept : bool
        Whether there is one. Without, features and labels are not centred.
    guests : bool
        Whether there are guests; a row then costs O(used^2), without O(present).
    open : bool
        Whether no position is in use yet.

    Examples
    --------
    >>> import numpy as np
    >>> from thalweg.estimators._linear import LinearEngine
    >>> engine = LinearEngine(8, open=True)
    >>> engine.use(3)
    >>> one = np.ones(1)
    >>> for t in range(200):
    ...     x = np.sin([[1.0 * t, 2.0 * t]])
    ...     y = x[:, 0] - 2 * x[:, 1] + 5
    ...     _ = engine.learn(x, y, one, np.array([1, 3]))  # features 1 and 3 are present
    >>> coefficients, intercept = engine.coefficients()
    >>> coefficients.round(1), round(intercept, 1)
    (array([ 1.,  0., -2.,  0.,  0.,  0.,  0.,  0.]), 5.0)
    """

    def __init__(
        self,
        features: int,
        loss: str = "squared_error",
        *,
        par: float = 0.5,
        intercept: bool = True,
        guests: bool = True,
        open: bool = False,
    ) -> None:
        self.features, self.loss, self.intercept, self.open = features, loss, bool(intercept), open
        self._all = np.arange(1, features + 1)
        self._positions = range(1, features + 1)
        D, K, M = features + 1, len(FORGET) if guests else 0, RATES.size
        N = K + M
        priors = np.r_[GUESTS * BELIEVED_GUESTS, (1.0 - GUESTS) * BELIEVED] if guests else BELIEVED
        jury, jury_room = new_jury(priors)
        state = Linear(
            features=new_spread(D),
            label=new_spread(1),
            members=new_members(D),
            guests=new_guests(K, D),
            jury=jury,
            shares=new_shares(priors),
            target=np.zeros(7),
            clock=np.zeros(2, dtype=np.int64),
        )
        room = LinearRoom(
            kind=KINDS[loss],
            par=0.5 if loss == "absolute_error" else float(par),
            intercept=self.intercept,
            jury=jury_room,
            priors=priors,
            at=np.zeros(D, dtype=np.int64),
            z=np.zeros(D),
            p=np.zeros(N),
            other=np.zeros(1),
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
        state.clock[1] = 1 if self.open else self.features + 1

    @property
    def used(self) -> int:
        """Positions in use."""
        return int(self._parts[0].clock[1]) - 1

    def use(self, count: int) -> None:
        """Take the first `count` positions into use; those that are, stay."""
        self._parts[0].clock[1] = max(self.used, count) + 1

    def rebuilt(self, features: int, *, guests: bool) -> "LinearEngine":
        """Another one that knows the same, with more room, or without its guests: the others share their weight."""
        other: LinearEngine = build(type(self), self._given | {"features": features, "guests": guests})
        gone = self.weights.size - other.weights.size
        for name, array in self._arrays.items():
            mine = array[..., gone:] if name in BY_CANDIDATE else array
            if mine.size and other._arrays[name].size:
                other._arrays[name][tuple(map(slice, mine.shape))] = mine
        for name in BY_CANDIDATE[1:] if gone else ():
            weights = other._arrays[name]
            total = weights.sum(axis=-1, keepdims=True)
            weights[...] = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1.0 / weights.shape[-1])
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {"given": self._given, "arrays": self._arrays}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(
            vars(build(type(self), kept["given"]))
        )  # arrays of its own: those of a pickle may be read only
        self._write(kept["arrays"])

    def learn(self, X: Array, y: Array, weights: Array, at: NDArray[np.int64] | None = None) -> Array:
        """Learn rows, one after the other; X has a column for each of the positions `at`, all when left out.

        Returns what each was predicted before it was learned.
        """
        if at is None and len(X) == 1:
            return np.array([self.play(self._positions, X[0], y.item(0), weights.item(0), True)])
        out = np.empty(len(X))
        play_rows(self._handle, self._all if at is None else at, X, y, weights, True, out)
        return out

    def predict(self, X: Array, at: NDArray[np.int64] | None = None) -> Array:
        """What rows are predicted; for "log_loss" the probability of +1."""
        if at is None and len(X) == 1:
            return np.array([self.play(self._positions, X[0], 0.0, 0.0, False)])
        out = np.empty(len(X))
        play_rows(self._handle, self._all if at is None else at, X, out, out, False, out)
        return out

    def play(self, at: Sequence[int], values: list[float] | Array, y: float, weight: float, learn: bool) -> float:
        """`predict` for one row, and `learn` where that is wanted: as many values as positions."""
        row: _Row = self._calls
        count, call = len(values), row.call
        if row.positions is not at and row.positions != at:
            row.positions = ()
            row.at[:count] = at
            row.positions = at
        if type(values) is list:
            row.values[:count] = values
        else:
            row.x[:count] = values
        call.integers[1], call.floats[2], call.floats[3], call.integers[4] = count, y, weight, learn
        said: float = call.run()
        if said != said:
            call.entry.read(said)
        return said

    def _prepare(self) -> _Row:
        return _Row(self)

    @property
    def weights(self) -> Array:
        """Of the candidates, guests first."""
        weights: Array = self._parts[0].jury.weights.copy()
        weights /= weights.sum()
        return weights

    def coefficients(self) -> tuple[Array, float]:
        """The mean of the candidates' coefficients by weight, in the units of the data; and of their intercepts."""
        state: Linear = self._parts[0]
        w, K = self.weights, len(state.guests.B)
        standard = w[:K] @ state.guests.B + state.members.W @ w[K:]
        mean, spread = state.features.mean, state.features.spread
        raw = np.divide(standard, spread, out=np.zeros_like(spread), where=spread > 0)[1:]
        offset = w[:K] @ state.guests.offset + w[K:] @ state.members.offset
        level = state.target[LEVEL] + standard[0] + offset
        return raw, float(level - raw @ mean[1:])

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        rows, used = (int(n) for n in read["clock"])
        yield "positions", 1 + (not self.open) * self.features <= used <= self.features + 1
        for name in ("features", "label"):
            seen, squares, mean = (read[f"{name}.{key}"] for key in ("seen", "squares", "mean"))
            yield f"{name} seen", bool(((seen >= 0) & (seen <= rows) & (seen % 1 == 0)).all())
            known = rows == 1 and self.intercept  # later on, one that is seldom present need not be centred
            yield f"{name} seen", bool((squares >= 0).all() and (squares[seen <= known] == 0).all())
            yield f"{name} seen", not mean[(seen == 0) | (not self.intercept)].any()
            yield f"{name} seen", np.allclose(read[f"{name}.spread"] ** 2 * seen, squares, rtol=1e-9, atol=0.0)
            yield f"{name} seen", bool((np.abs(mean) <= LARGEST).all() and (squares <= rows * 4 * LARGEST**2).all())
        yield "squared gradients", bool(((read["members.G"] >= 0) & (read["members.G"] <= LARGEST**3)).all())
        for name in ("members.W", "guests.B", "members.offset", "guests.offset"):
            yield "coefficients", bool((np.abs(read[name]) <= LARGEST**1.5).all())
        yield "errors left over", bool((read["guests.left"] >= 0).all() and (read["members.left"] >= 0).all())
        yield "covariances", bool((np.abs(read["guests.S"]) <= LARGEST**1.4).all())
        for weights in (read["shares.trust"][None], read["shares.beliefs"]):
            yield "shares", shares(weights, np.ones(weights.shape, dtype=np.bool_))
        yield "jury", int(read["jury.heard"][0]) <= rows
        yield from look_jury(read)
        level, unit, low, high, scale, gauge, _ = read["target"]
        yield "labels", bool(min(unit, scale, gauge) >= 0 and low <= high and max(-low, high, abs(level)) <= LARGEST)
        classes = KINDS[self.loss] in (LOG, HINGE)
        yield "labels", bool((unit == gauge == 1.0) if classes else (unit == read["label.spread"][0]))
