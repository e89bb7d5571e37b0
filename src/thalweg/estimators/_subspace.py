"""A subspace that follows a stream, as `StreamingPCA` uses it: arguments, memory, rows in batches and one by one."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from thalweg._core.memory import Memory
from thalweg._core.saving import read
from thalweg._core.state import Block
from thalweg._kernels.jit import Call
from thalweg._types import Array
from thalweg._validate import check_count, check_entries, check_flag, check_items, real_number, wrong
from thalweg.errors import InputError
from thalweg.parts.subspace import SubspaceLayout, SubspaceState, learn_rows, put_in_order, weights

__all__ = ["SubspaceModel", "read_layout"]


def read_layout(dim: object, rank: object, halflives: object, center: object) -> SubspaceLayout:
    """Return the layout for the arguments of `StreamingPCA`, checked."""
    name = "StreamingPCA"
    d = check_count(name, "n_features", dim)
    k = check_count(name, "n_components", rank)
    if k > d:
        raise InputError(
            f"The 'n_components' parameter of {name} must be at most the number of features, n_features = {d}. Got {k}."
        )
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
    x: Array  # (1, d)
    lost: Array  # (1,)


class SubspaceModel:
    """A subspace and its memory.

    Parameters
    ----------
    layout : SubspaceLayout
        Features, directions, half-lives.
    start : tuple of Block and sizes, optional
        A saved state.
    """

    def __init__(self, layout: SubspaceLayout, start: tuple[Block, Mapping[str, int]] | None = None) -> None:
        self.layout = layout
        self.memory = Memory(layout, moved=self._forget, start=start)

    @classmethod
    def restored(cls, owner: object, layout: SubspaceLayout, saved: Mapping[str, object]) -> Self:
        """Return one in a saved state of `owner`; nothing is allocated before all shapes are as they should be."""
        return cls(layout, read(owner, layout, saved))

    def _forget(self, memory: Memory) -> None:
        self._row: _BoundRow | None = None

    def __getstate__(self) -> dict[str, Any]:
        memory = self.memory
        return {"layout": self.layout, "sizes": dict(memory.sizes), "words": memory.block.memory.copy()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        layout: SubspaceLayout = kept["layout"]
        block = Block(layout.plan(kept["sizes"]), np.array(kept["words"]))  # of its own: a pickle's may be read only
        SubspaceModel.__init__(self, layout, (block, kept["sizes"]))

    @property
    def state(self) -> SubspaceState:
        """The present arrays."""
        found: SubspaceState = self.memory.state
        return found

    @property
    def rounds(self) -> int:
        """Rows learned so far."""
        return int(self.state.clock[0])

    @property
    def weights(self) -> Array:
        """Weights of the members in the combination that is played, (M,)."""
        return weights(self.state)

    def learn(self, X: Array) -> Array:
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
