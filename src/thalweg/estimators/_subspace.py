"""A subspace that follows a stream, as `StreamingPCA` uses it: arguments, memory, rows in batches and one by one."""

from typing import NamedTuple

import numpy as np

from thalweg._core.memory import Memory
from thalweg._core.types import Floats
from thalweg._core.validate import check_count, check_entries, check_flag, check_items, real_number, wrong
from thalweg._kernels.jit import Call
from thalweg.errors import InputError
from thalweg.estimators._model import BlockModel
from thalweg.parts.subspace import SubspaceLayout, SubspaceState, learn_rows, put_in_order, weights


def read_layout(dim: object, rank: object, halflives: object, center: object) -> SubspaceLayout:
    """Return the layout for the arguments of `StreamingPCA`, checked."""
    name = "StreamingPCA"
    d = check_count(name, "n_features", dim)
    k = check_count(name, "n_components", rank)
    if k > d:
        raise wrong(name, "n_components", f"at most the number of features, n_features = {d}", k)
    what = "a list of numbers > 0, in rows"
    lives = tuple(real_number(life) for life in check_items(name, "halflives", halflives, what))
    if not lives or not all(life >= 1e-3 for life in lives):
        raise wrong(name, "halflives", what, halflives)
    center = check_flag(name, "center", center)
    check_entries(name, "n_features", d, len(lives) * d * d)
    return SubspaceLayout(d, k, lives, center)


class _BoundRow(NamedTuple):
    """The bound call of one row, and its arrays."""

    call: Call
    x: Floats  # (1, d)
    lost: Floats  # (1,)


class SubspaceModel(BlockModel[SubspaceLayout]):
    """A subspace that follows the rows."""

    def _forget(self, memory: Memory) -> None:
        self._row: _BoundRow | None = None

    @property
    def state(self) -> SubspaceState:
        """The present arrays."""
        found: SubspaceState = self.memory.state
        return found

    @property
    def weights(self) -> Floats:
        """Weights of the members in the combination that is played, (M,)."""
        return weights(self.state)

    def learn(self, X: Floats) -> Floats:
        """Learn the rows of X (n, d), one after the other; return the loss of each before it was learned.

        An error or Ctrl-C undoes all of them.
        """
        memory, d = self.memory, self.layout.dim
        if X.ndim != 2 or X.shape[1] != d:
            raise InputError(f"StreamingPCA needs rows of {d} numbers. Got shape {X.shape}.")
        needed = self.rounds + len(X)
        if len(X) == 1 and needed <= self.layout.rounds(memory.sizes):
            row = self._row = self._row or self._bind()
            row.x[:] = X
            row.call.entry.read(row.call.run())
            return row.lost.copy()
        lost = np.empty(len(X))
        with memory.all_or_nothing():
            if needed > self.layout.rounds(memory.sizes):
                memory.grow({"slots": self.layout.slots(needed)})
            learn_rows(memory.handle, X, lost)
        return lost

    def _bind(self) -> _BoundRow:
        x, lost = np.zeros((1, self.layout.dim)), np.zeros(1)
        return _BoundRow(learn_rows.ready(self.memory.handle, x, lost), x, lost)

    def put_in_order(self) -> None:
        """Sort directions by their variances, the largest first."""
        put_in_order(self.state.F, self.state.variances)
