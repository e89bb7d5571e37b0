"""PCA learners with experts on the compact cover: a slot for each level, as many as the run needs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg.errors import StateError
from thalweg.pca._base import PCALearner
from thalweg.pca.guarantee import step_size

__all__ = ["CoverPCA"]

Array = NDArray[np.float64]

LEVELS = 8  # slots of a new learner, for the first 255 rounds
KEPT = ("clock", "seed")  # what neither the levels nor a restart changes


class CoverPCA(PCALearner):
    """Experts that live in the rounds i, .., i + lowbit(i) - 1, in slots by level.

    A new one defines `_layout`, whose arrays hold "born", the round (counted from 1) in which the expert of each level
    started, or 0, and "weights".
    """

    anytime = True

    @abstractmethod
    def _layout(self, K: int) -> dict[str, NDArray[Any]]:
        """Zeros for a state of K levels."""

    def _shape_state(self, K: int = LEVELS) -> None:
        """Arrays for K levels; what a smaller state held is kept."""
        fresh = {key: self._arrays[key] for key in KEPT} | self._layout(K)
        for key in fresh.keys() & self._arrays.keys() - set(KEPT):
            old = self._arrays[key]
            fresh[key][tuple(slice(0, size) for size in old.shape)] = old
        self._arrays = fresh
        self._steps = np.array([step_size(self.dim, self.rank, self.instance_bound, 2**level) for level in range(K)])
        self._r = np.zeros(K)

    def _make_room(self) -> None:
        """A slot for the expert that starts next round."""
        K = self._arrays["born"].size
        if (self.rounds + 2) >> K:
            self._shape_state(K + 1)

    def _clear(self) -> None:
        for key, array in self._arrays.items():
            if key not in KEPT:
                array[...] = 0

    def _read_state(self, saved: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """A longer run has more levels than this learner, or fewer: the state's count holds."""
        before = dict(vars(self))
        try:
            if isinstance(saved, Mapping) and {"born", "clock"} <= saved.keys():
                born = np.asarray(saved["born"])
                if born.ndim == 1 and born.size != self._arrays["born"].size and LEVELS <= born.size < 64:
                    self._arrays = {key: self._arrays[key] for key in KEPT}
                    self._shape_state(born.size)
            read = super()._read_state(saved)
            if int(read["born"].max()) != int(read["clock"][0]) + 1:
                raise StateError(f"{type(self).__name__} cannot restore this state: its experts are of another round.")
            return read
        except StateError:
            vars(self).update(before)
            raise

    @property
    def active(self) -> int:
        """How many experts are alive in the present round."""
        return int(np.count_nonzero(self._arrays["born"]))

    @property
    def born(self) -> NDArray[np.int64]:
        """The rounds, counted from 1, in which those alive started; short-lived ones first."""
        born = self._arrays["born"]
        return born[born > 0]

    @property
    def weights(self) -> Array:
        """p_t, how much each of those alive counts in the decision."""
        return self._arrays["weights"][self._arrays["born"] > 0]
