"""The owner of a block: hands it to compiled code once, swaps it, grows it and rolls it back.

Learners, estimators, PCA learners and controllers *have* one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from thalweg._core.guests import remember, return_to
from thalweg._core.interrupts import interrupts
from thalweg._core.state import Block, Plan
from thalweg._core.types import AnyArray, Ints
from thalweg._kernels.handle import Handle, Unbound, bind
from thalweg._kernels.jit import AnyKernel, Call

Sizes = Mapping[str, int]
Saved = Mapping[str, AnyArray]  # the arrays of a saved state, by name
Snapshot = tuple[Block, Sizes, Ints]


class Layout(Protocol):
    """Plans of one state in all its sizes: those that can grow are numbers by name."""

    def sizes(self) -> Sizes:
        """Return the sizes of a fresh state."""

    def plan(self, sizes: Sizes) -> Plan:
        """Return the plan for these sizes."""

    def sizes_of(self, saved: Saved) -> Sizes:
        """Return the sizes of a saved state; raise ValueError with the reason if no run can have them."""


def whole_numbers(saved: Saved, key: str, entries: int) -> list[int]:
    """Return a saved array of counters, from which sizes are read; raise ValueError if it is none."""
    array = saved[key]
    if array.dtype.kind != "i" or array.shape != (entries,):
        raise ValueError(f"'{key}' must be int64 of shape ({entries},). Got {array.dtype} of shape {array.shape}")
    return array.tolist()  # type: ignore[no-any-return]


class Fixed:
    """A layout whose sizes never change."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def sizes(self) -> Sizes:
        """Return no sizes: none can change."""
        return {}

    def plan(self, sizes: Sizes) -> Plan:
        """Return the one plan."""
        return self._plan

    def sizes_of(self, saved: Saved) -> Sizes:
        """Return no sizes: none can change."""
        return {}


def _pair(block: Block) -> tuple[object, ...]:
    return block.state, block.settings


class Memory:
    """A block, its handle, and calls that are bound to it.

    Parameters
    ----------
    layout : Layout
        How large the block can be.
    tree : callable
        Block -> the handle that kernels take; (state, settings) when left out.
    moved : callable, optional
        Called with this memory whenever the arrays are others or were rolled back: forget views and shown values.
    guests : mapping, optional
        Objects outside the block with `state` and `restore`, by the prefix of their names in saved states. Where one
        has `snapshot` and `roll_back`, these are used to undo rounds and to copy it. An owner whose guests follow from
        its state sets others in `moved`.
    start : tuple of Block and sizes, optional
        The first block; a fresh one when left out.
    """

    __slots__ = (
        "_calls", "_first", "_handle", "_moved", "_tree", "block", "guests", "layout", "settings", "sizes", "state",
    )  # fmt: skip

    def __init__(
        self,
        layout: Layout,
        tree: Callable[[Block], tuple[object, ...]] = _pair,
        moved: Callable[[Memory], None] | None = None,
        guests: Mapping[str, Any] | None = None,
        start: tuple[Block, Sizes] | None = None,
    ) -> None:
        given: object = layout
        if isinstance(given, Plan):
            raise TypeError("Memory needs a layout: Memory(Fixed(plan)). Got a plan.")
        self.layout, self._tree, self._moved, self.guests = layout, tree, moved, guests or {}
        self.block: Block
        self.state: Any
        self.settings: Any
        self.sizes: Sizes
        self._first: Ints | None  # the words of a fresh block, once `rewind` has needed them
        if start is None:
            sizes = layout.sizes()
            start = Block.fresh(layout.plan(sizes)), sizes
        self.adopt(*start)

    def reset(self) -> None:
        """Start over with a fresh block of the first sizes. Guests are not touched."""
        sizes = self.layout.sizes()
        plan = self.block.plan if sizes == self.sizes else self.layout.plan(sizes)
        self.adopt(Block.fresh(plan), sizes)

    def rewind(self) -> bool:
        """Write the state before the first round into the present block, in one step; False if the sizes do not fit.

        Handles and calls stay bound, and the owner is not notified.
        """
        if self.guests or self.layout.sizes() != self.sizes:
            return False
        if self._first is None:
            self._first = Block.fresh(self.block.plan).memory
        self.block.memory[:] = self._first
        return True

    def adopt(self, block: Block, sizes: Sizes) -> None:
        """Swap: from here on this block is the state."""
        self._handle: Handle | None = None
        self._calls: dict[AnyKernel, Call] = {}
        self._first = None
        self.block, self.state, self.settings, self.sizes = block, block.state, block.settings, sizes
        if self._moved is not None:
            self._moved(self)

    def grow(self, sizes: Sizes) -> None:
        """Move to a larger block: the same numbers, and more capacity."""
        self.adopt(self.block.moved(self.layout.plan(sizes)), sizes)

    # ------------------------------------------------------------------ compiled code

    @property
    def handle(self) -> Handle:
        """The handle for kernels; made at the first call after a move."""
        if self._handle is None:
            self._handle = bind(self._tree(self.block))
        return self._handle

    @property
    def unbound(self) -> Unbound:
        """The same as the handle, for kernels' functions called in Python."""
        return Unbound(self._tree(self.block))

    def call(self, kernel: AnyKernel, *arguments: object) -> Call:
        """Return a call of `kernel(handle, *arguments)` that is bound once and kept until the block moves.

        Arguments are bound at the first call: arrays that belong to this memory's owner for good, and numbers, which
        are set again through `Call.floats` and `Call.integers`. For arrays made for the call use `Kernel.ready`.
        """
        call = self._calls.get(kernel)
        if call is None:
            call = self._calls[kernel] = kernel.ready(self.handle, *arguments)
        return call

    # ------------------------------------------------------------------ a round that fails has not been

    def snapshot(self) -> Snapshot:
        """Return the block, its sizes and a copy of its words."""
        return self.block, self.sizes, self.block.memory.copy()

    def roll_back(self, snapshot: Snapshot) -> None:
        """Return to a snapshot. Calls are bound again: arrays outside the block that they knew may be others now."""
        block, sizes, words = snapshot
        block.memory[:] = words
        self.adopt(block, sizes)

    def all_or_nothing(self) -> AbstractContextManager[None]:
        """Undo everything if the body raises, Ctrl-C included: block, sizes and guests are restored."""
        return together((self,))

    def _remember(self) -> Remembered:
        """Return a snapshot, and the guests with theirs."""
        return self, self.snapshot(), self.guests, {name: remember(guest) for name, guest in self.guests.items()}

    def _return_to(self, before: Remembered) -> None:
        owner, (block, sizes, words), theirs, guests = before
        if owner is self:
            self.guests = theirs
        else:  # of an object that took the place of the remembered one: its block and guests stay its own
            block = Block(self.layout.plan(sizes))
        self.roll_back((block, sizes, words))
        for name, guest in self.guests.items():
            return_to(guest, guests[name])


Remembered = tuple[Memory, Snapshot, Mapping[str, Any], dict[str, Any]]  # whose it is, and the guests with theirs


@contextmanager
def together(memories: Iterable[Memory]) -> Iterator[None]:
    """As `Memory.all_or_nothing`, for several memories that change together."""
    before = [(memory, memory._remember()) for memory in memories]
    try:
        yield
    except BaseException:
        with interrupts():  # a second Ctrl-C waits
            for memory, kept in before:
                memory._return_to(kept)
        raise
