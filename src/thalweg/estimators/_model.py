"""Models that estimators for other libraries consist of: a layout, and the memory of a state in it."""

from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

import numpy as np

from thalweg._core.memory import Layout, Memory, Sizes
from thalweg._core.saving import read
from thalweg._core.state import Block

L = TypeVar("L", bound=Layout)


class BlockModel(Generic[L]):
    """A model whose whole state is one block. Pickles hold its words; calls and scratch space are made again.

    Parameters
    ----------
    layout : Layout
        How large the block can be.
    start : tuple of Block and sizes, optional
        A saved state.
    """

    def __init__(self, layout: L, start: tuple[Block, Sizes] | None = None) -> None:
        self.layout = layout
        self.memory = Memory(layout, moved=self._forget, start=start)

    @classmethod
    def restored(cls, owner: object, layout: L, saved: Mapping[str, object]) -> Self:
        """Return one in a saved state of `owner`; nothing is allocated before all shapes are as they should be."""
        return cls(layout, read(owner, layout, saved))

    def _forget(self, memory: Memory) -> None:
        """Drop everything that is bound to earlier arrays."""

    def __getstate__(self) -> dict[str, Any]:
        memory = self.memory
        return {"layout": self.layout, "sizes": dict(memory.sizes), "words": memory.block.memory.copy()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        layout: L = kept["layout"]
        block = Block(layout.plan(kept["sizes"]), np.array(kept["words"]))  # of its own: a pickle's may be read only
        BlockModel.__init__(self, layout, (block, kept["sizes"]))

    @property
    def rounds(self) -> int:
        """Rows learned so far."""
        return int(self.memory.state.clock[0])
