"""PCA learners with experts on the compact cover: a slot for each level, as many as the run needs."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.clock import ROUNDS
from thalweg._kernels.handle import Handle, bind
from thalweg._kernels.parts import clear
from thalweg._sound import Past, born, shares
from thalweg._stateful import named_arrays, refill
from thalweg._types import Array
from thalweg.metas import AdaptMLProd
from thalweg.pca._base import PCALearner
from thalweg.pca.guarantee import step_size

__all__ = ["CoverPCA"]

LEVELS = 8  # slots of a new learner, for the first 255 rounds


class CoverPCA(PCALearner):
    """Experts that live in the rounds i, .., i + lowbit(i) - 1, in slots by level, under a meta-learner.

    A new one defines `_build`, whose state has `meta`, `weights` and `born`, the round (counted from 1) in which the
    expert of each level started, or 0; and `_begin_first`. Its constructor ends with `_shape(LEVELS)` and `_restart()`.
    """

    anytime = True
    _parts: tuple[Any, Any]  # state and settings
    _bound: Handle | None = None

    @abstractmethod
    def _build(self, K: int) -> tuple[Any, Any]:
        """State, all zeros but for clock and seed, and settings of K levels."""

    @abstractmethod
    def _begin_first(self) -> None:
        """Begin the first round, in a state of zeros."""

    def _steps(self, K: int) -> Array:
        """Step sizes by level."""
        return np.array([step_size(self.dim, self.rank, self.gradient_bound, 2**level) for level in range(K)])

    # ------------------------------------------------------------------ state: a slot per level

    def _shape(self, K: int, *, keep: bool = True) -> None:
        """Take over a machine of K levels; what a smaller one held is kept, unless it is to be written over."""
        state, settings = self._build(K)
        arrays = named_arrays(state)
        for key, old in self._arrays.items():
            if keep and arrays[key] is not old:
                arrays[key][tuple(slice(0, size) for size in old.shape)] = old
        self._bound = None
        self._parts, self._arrays = (state, settings), arrays  # in this order: `_write` looks at `_parts`

    @property
    def _handle(self) -> Handle:
        if self._bound is None:
            self._bound = bind(self._parts)
        return self._bound

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_bound": None}  # a handle cannot be copied; it is made anew

    @property
    def _full(self) -> bool:
        """Whether there is no slot for the expert that starts next round."""
        return bool((self.rounds + 2) >> self._parts[0].born.size)

    def _make_room(self) -> None:
        """A slot for the expert that starts next round."""
        if self._full:
            self._shape(self._parts[0].born.size + 1)

    def _restart(self) -> None:
        if self._parts[0].born.size != LEVELS:
            self._shape(LEVELS, keep=False)
        for key, array in self._arrays.items():
            if key not in ("clock", "seed"):
                array[...] = 0
        state, settings = self._parts
        clear(state.meta, settings.meta, 0)
        self._begin_first()

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """A longer run has more levels than this learner, or fewer: the state's count holds."""
        self._check_kind(saved)
        t, K = int(self._read_array(saved, "clock", self._clock)[ROUNDS]) + 1, self._length(saved, "born")
        if not 0 < K <= max(LEVELS, (t + 1).bit_length()):
            raise self._unfit(f"it has {K} levels in round {t}")
        if t >> K:
            raise self._unfit(f"it has {K} levels, and round {t} needs {t.bit_length()}")
        read = self._read_arrays(saved, named_arrays(self._build(K)[0]))
        if read["born"].tolist() != born(t, K):
            raise self._unfit(f"its experts are of another round than {t}")
        return self._sound(read)

    def _look(self, read: dict[str, NDArray[Any]]) -> Iterator[tuple[str, bool]]:
        yield from super()._look(read)
        K, t = read["born"].size, int(read["clock"][ROUNDS])
        state, settings = self._build(K)
        s = refill(state, read)
        alive = s.born[None] > 0
        past = Past(alive, s.born[None], t + 1 - s.born[None], t, np.inf)
        yield from AdaptMLProd.look(s.meta, settings.meta, past)
        yield "weights", shares(s.weights, alive[0])
        yield from self._look_at(s, settings, alive[0])

    @abstractmethod
    def _look_at(self, s: Any, c: Any, alive: NDArray[np.bool_]) -> Iterator[tuple[str, bool]]:
        """`_look` at the experts, those alive, and at their combination."""

    def _write(self, read: dict[str, NDArray[Any]]) -> None:
        if read["born"].size != self._parts[0].born.size:
            self._shape(read["born"].size, keep=False)
        super()._write(read)

    # ------------------------------------------------------------------ what it tells

    @property
    def active(self) -> int:
        """How many experts are alive in the present round."""
        return int(np.count_nonzero(self._parts[0].born))

    @property
    def born(self) -> NDArray[np.int64]:
        """The rounds, counted from 1, in which those alive started; short-lived ones first."""
        born: NDArray[np.int64] = self._parts[0].born
        return born[born > 0]

    @property
    def weights(self) -> Array:
        """p_t, how much each of those alive counts in the decision."""
        state = self._parts[0]
        weights: Array = state.weights[state.born > 0]
        return weights
