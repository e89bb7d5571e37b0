"""PCA learners with experts on the compact cover: a slot for each level, as many as the run needs."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from thalweg._core.memory import Saved
from thalweg._core.rules import born, shares
from thalweg._core.state import Past, Plan
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import MOST_COUNTED
from thalweg._kernels.covers import COMPACT, place_marker
from thalweg._kernels.jit import inner
from thalweg._kernels.parts import admit, clear
from thalweg.pca._base import PCALearner
from thalweg.pca.guarantee import step_size

__all__ = ["CoverPCA", "LevelsLayout", "enter"]

LEVELS = 8  # slots of a new learner, for the first 255 rounds


@inner
def enter(s: Any, c: Any, t: int) -> int:
    """Round t begins: experts whose interval is over leave, one enters. Returns its slot; its place is still to set."""
    newest = place_marker(COMPACT, t, s.born)
    admit(s.meta, c.meta, 0, newest, t)
    return newest


class LevelsLayout:
    """The layout of a state with K slots, one for each level of the compact cover.

    Parameters
    ----------
    plan : callable
        The number of slots -> a plan.
    """

    def __init__(self, plan: Callable[[int], Plan]) -> None:
        self._plan = plan

    def sizes(self) -> dict[str, int]:
        """Return the slots of a new learner."""
        return {"K": LEVELS}

    def plan(self, sizes: Mapping[str, int]) -> Plan:
        """Return the plan for a number of slots."""
        return self._plan(sizes["K"])

    def sizes_of(self, saved: Saved) -> dict[str, int]:
        """Return the slots of a saved state: those its round needs, and at most one more."""
        t, K = int(saved["clock"].flat[0]) + 1, saved["born"].size
        if not 0 < t <= MOST_COUNTED + 1:
            raise ValueError("its counters are negative, or too large")
        if not 0 < K <= max(LEVELS, (t + 1).bit_length()):
            raise ValueError(f"it has {K} levels in round {t}")
        if t >> K:
            raise ValueError(f"it has {K} levels, and round {t} needs {t.bit_length()}")
        return {"K": K}


class CoverPCA(PCALearner):
    """Experts that live in the rounds i, .., i + lowbit(i) - 1, in slots by level, under a meta-learner.

    The state of a new one has `meta`, `weights` and `born`, the round (counted from 1) in which the expert of each
    level started, or 0. Its constructor ends with `self._allocate(LevelsLayout(plan))`.
    """

    anytime = True

    def _steps(self, K: int) -> Floats:
        """Return step sizes by level."""
        return np.array([step_size(self.dim, self.rank, self.gradient_bound, 2**level) for level in range(K)])

    # ------------------------------------------------------------------ state: a slot per level

    @property
    def _full(self) -> bool:
        """Whether there is no slot for the expert that starts next round."""
        return bool((self.rounds + 2) >> self._memory.state.born.size)

    def _add_slot(self) -> None:
        """Add a slot for the expert that starts next round, if there is none."""
        if self._full:
            self._memory.grow({"K": self._memory.sizes["K"] + 1})

    def _pasts(self, s: Any, c: object, past: Past) -> Mapping[str, Past]:
        births = s.born[None]
        return {"meta": Past(births > 0, births, past.rounds + 1 - births, past.rounds, past.square)}

    def _begin(self, s: Any, c: Any) -> None:
        super()._begin(s, c)
        clear(s.meta, c.meta, 0)

    def _holds(self, s: Any, c: Any, past: Past) -> Iterator[tuple[str, bool]]:
        yield from super()._holds(s, c, past)
        yield "births", s.born.tolist() == born(past.rounds + 1, s.born.size)
        yield "weights", shares(s.weights, s.born > 0)

    # ------------------------------------------------------------------ inspection

    @property
    def active(self) -> int:
        """How many experts are alive in the present round."""
        return int(np.count_nonzero(self._memory.state.born))

    @property
    def born(self) -> Ints:
        """The rounds, counted from 1, in which those alive started; short-lived ones first."""
        born: Ints = self._memory.state.born
        return born[born > 0]

    @property
    def weights(self) -> Floats:
        """p_t, how much each of those alive counts in the decision."""
        state = self._memory.state
        weights: Floats = state.weights[state.born > 0]
        return weights
