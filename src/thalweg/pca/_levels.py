"""PCA learners with experts on the compact cover: a slot for each level, as many as the run needs."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._kernels.clock import ROUNDS
from thalweg._kernels.handle import Handle, bind
from thalweg._kernels.parts import clear
from thalweg._stateful import named_arrays
from thalweg._types import Array
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

    def _shape(self, K: int) -> None:
        """Take over a machine of K levels; what a smaller one held is kept."""
        state, settings = self._build(K)
        arrays = named_arrays(state)
        for key, old in self._arrays.items():
            if arrays[key] is not old:
                arrays[key][tuple(slice(0, size) for size in old.shape)] = old
        vars(self).update(_parts=(state, settings), _arrays=arrays, _bound=None)  # all at once: Ctrl-C may come

    @property
    def _handle(self) -> Handle:
        if self._bound is None:
            self._bound = bind(self._parts)
        return self._bound

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_bound": None}  # a handle cannot be copied; it is made anew

    def _make_room(self) -> None:
        """A slot for the expert that starts next round."""
        K = self._parts[0].born.size
        if (self.rounds + 2) >> K:
            self._shape(K + 1)

    def _restart(self) -> None:
        for key, array in self._arrays.items():
            if key not in ("clock", "seed"):
                array[...] = 0
        state, settings = self._parts
        clear(state.meta, settings.meta, 0)
        self._begin_first()

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """A longer run has more levels than this learner, or fewer: the state's count holds."""
        self._check_kind(saved)
        K = np.asarray(saved.get("born")).size
        if not 0 < K < 64:
            raise self._unfit(f"it has {K} levels")
        read = self._read_arrays(saved, named_arrays(self._build(K)[0]))
        t = int(read["clock"][ROUNDS]) + 1
        if t >> K:
            raise self._unfit(f"it has {K} levels, and round {t} needs {t.bit_length()}")
        if read["born"].tolist() != [(t >> level << level) * (t >> level & 1) for level in range(K)]:
            raise self._unfit(f"its experts are of another round than {t}")
        return read

    def _write(self, read: dict[str, NDArray[Any]]) -> None:
        if read["born"].size != self._parts[0].born.size:
            self._arrays = {}
            self._shape(read["born"].size)
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
