"""Seats: ordinary learners whose words are pointed at the memory of one stream after another.

A learner's kernels read everything from rows of words (`thalweg._kernels.handle`). Some of these words are addresses of
arrays inside the learner's block. A seat has a copy of all its rows in one array, and knows which of the words these
are and how far from the beginning of a block they point. So a stream is *mounted* by writing that many sums, and then
the learner's own kernels play it: the same machine code, hence the same bits.

Behind its block a stream has the arrays that a learner keeps outside it and that follow from its state, such as sorted
copies: `spare`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.state import Block, Plan
from thalweg._core.types import Ints
from thalweg._kernels.fetching import LINE
from thalweg._kernels.handle import Closed, Handle, bind
from thalweg._kernels.jit import PLAIN, Kernel
from thalweg._kernels.kinds import address
from thalweg._kernels.pointers import Pointer
from thalweg.fleet.chains import Chains
from thalweg.fleet.kernels import Lineup, Mount, RowsAhead, run_class, run_classes
from thalweg.fleet.shelves import Shelf

WORD = 8  # bytes
NEAR, FARTHEST = 1 << 13, 8  # bytes and streams that are fetched ahead of time
WAITING, MOST_AGAIN = 32 * LINE, 7  # bytes that can be asked for at once, and how often those of a stream are again
WIDEST, MOST_ROWS = 4 * LINE, 8  # bytes of a row of a batch, and rows of a stream, that are fetched ahead of time


STEP = "i8(i8,any,i8)"  # of a seat by the address of its words, a batch and a row
RUN = "i8(i8,i8,i8,i8,any,any,any,i8,i8,i8)"  # `run_class`, with addresses of what a class has


class PlainSeat:
    """A seat where nothing is compiled: the tree in the place of its address."""

    word_kind, address = "i8", 0

    def __init__(self, tree: Any) -> None:
        self.tree = tree


class BoundBatch:
    """A batch as compiled code reads it, and the step that plays its rows; made once for all classes of streams.

    Parameters
    ----------
    step : kernel
        Plays a chain of rows.
    batch : NamedTuple
        Its first field is `following`, the others are data of the rows.
    chains : Chains
        All rows of the batch.
    """

    def __init__(self, step: Kernel[..., Any], batch: Any, chains: Chains) -> None:
        self._step, self.batch, tree = step, batch, bind(batch)
        self._kind, self.closed = tree.kind, Closed(tree)
        rows = min(MOST_ROWS, -(-chains.rows // max(chains.heads.size, 1)))
        self.ahead = bind(RowsAhead(*_lines(batch, chains.rows), chains.following, rows))
        self._steps: dict[str, Pointer] = {}

    def step(self, seat: str) -> Pointer:
        """Return the step for seats of a kind."""
        if seat not in self._steps:
            self._steps[seat] = Pointer(self._step, STEP, (seat, self._kind, "i8"))
        return self._steps[seat]

    def run(self, seat: StreamSeat, shelf: Shelf, playing: Handle) -> Pointer:
        """Return the loop over the streams of a class."""
        kinds = f"@{STEP}", "i8", seat.mount.kind, shelf.where.kind, "any", self.ahead.kind, playing.kind
        return Pointer(run_class, RUN, (*kinds, "i8", "i8", "i8"))


class ClassTurn(NamedTuple):
    """Chains of a batch whose streams are of one class."""

    seat: StreamSeat
    shelf: Shelf
    begin: int  # the first of the chains
    end: int  # and the first after them, where the next turn begins


class StreamSeat:
    """A learner that plays any stream of its sizes.

    There is one for each class of streams, so it keeps the words of the learner and the arrays that streams share, but
    not the learner, unless nothing is compiled.

    Parameters
    ----------
    tree : NamedTuple
        The arguments of steps.
    block : Block
        The learner's own.
    spare : sequence of arrays
        Arrays outside the block that follow from the state.
    owner : object, optional
        The learner itself, to be kept alive where it is played.
    """

    def __init__(self, tree: Any, block: Block, spare: Sequence[NDArray[Any]] = (), owner: object = None) -> None:
        self.width = block.memory.size + sum(one.size for one in spare)
        self._plain = (tree, block, tuple(spare), owner) if PLAIN else None
        handle = bind(tree)
        self.kind = handle.kind
        rows, words, inside = _rows(handle)
        self._words = np.concatenate(words)
        self.address = address(self._words)
        begins = np.cumsum([0, *(row.size for row in words)]).tolist()
        at = {row.address: self.address + WORD * begin for row, begin in zip(rows, begins, strict=False)}
        places, offsets, self._shared = [], [], []
        for row, begin in zip(rows, begins, strict=False):
            arrays, handles = inside[row.address]
            for place, inner in handles:
                self._words[begin + place] = at[inner.address]
            for place, array in arrays:
                offset = _offset(array, block, spare)
                if offset is not None:
                    places.append(begin + place)
                    offsets.append(offset)
                elif array.size:  # an empty one may be a view of the block
                    self._shared.append(array)
        used = _used(block.plan, self.width)
        size = int(np.diff(used).sum())
        ahead, again = max(1, min(FARTHEST, NEAR // size)), min(MOST_AGAIN, size // WAITING)
        self.mount = bind(Mount(self._words, _whole(places), _whole(offsets), WORD * self.width, used, ahead, again))

    def play_plain(self, batch: BoundBatch, shelf: Shelf, playing: Handle, turn: range, count: int) -> int:
        """Play chains as `run_class`, where nothing is compiled: every stream is copied into the learner and back."""
        assert self._plain is not None
        seat: Any = PlainSeat(self._plain[0])
        step, line = batch.step(self.kind), playing.tree
        for g in turn:
            place = line.places[line.owners[g : g + 1]]
            self._enter(shelf.read(place)[0])
            given = step, seat, self.mount, shelf.where, batch.closed, batch.ahead, playing
            count = run_class(*given, g, g + 1, count)
            shelf.write(place, self._left()[None])
        return count

    def _enter(self, words: Ints) -> None:
        """Copy a stream into the learner."""
        assert self._plain is not None
        _, block, spare, _ = self._plain
        begin = block.memory.size
        block.memory[:] = words[:begin]
        for one in spare:
            one.reshape(-1)[:] = words[begin : begin + one.size].view(one.dtype)
            begin += one.size

    def _left(self) -> Ints:
        """Return the words of the stream that was copied into the learner."""
        assert self._plain is not None
        _, block, spare, _ = self._plain
        return np.concatenate([block.memory, *(one.reshape(-1).view(np.int64) for one in spare)])


def _offset(array: NDArray[Any], block: Block, spare: Sequence[NDArray[Any]]) -> int | None:
    """Return how far from the beginning of a stream's memory an array lies; None if it is not there."""
    begin = 0
    for one in (block.memory, *spare):
        away = address(array) - address(one)
        if array.size and 0 <= away < one.nbytes:
            return begin + away
        begin += one.nbytes
    return None


def play(turns: Sequence[ClassTurn], batch: BoundBatch, chains: Chains, places: Ints) -> Ints:
    """Play chains; returns the indices of those that stopped and the results of their steps (2, k).

    `places` are those of all streams on their shelves.
    """
    cuts = _whole([turns[0].begin, *[turn.end for turn in turns]])
    stops = np.empty((2, int(cuts[-1] - cuts[0])), dtype=np.int64)
    playing = bind(Lineup(chains.heads, chains.owners, places, stops))
    classes = np.zeros((0 if PLAIN else len(turns), 4), dtype=np.int64)
    for k in range(len(classes)):
        seat, shelf, _, _ = turns[k]
        classes[k] = batch.step(seat.kind).address, seat.address, seat.mount.address, shelf.where.address
    run = batch.run(turns[0].seat, turns[0].shelf, playing)
    count = run_classes(run, classes, cuts, batch.closed, Closed(batch.ahead), Closed(playing))
    for seat, shelf, begin, end in turns if PLAIN else ():
        count = seat.play_plain(batch, shelf, playing, range(begin, end), count)
    return stops[:, :count]


def _lines(batch: Any, rows: int) -> tuple[Ints, Ints, int]:
    """Return `lines`, `strides` and `last` of a batch's `RowsAhead`."""
    found = []
    for one in batch[1:]:  # without `following`
        if isinstance(one, np.ndarray) and one.ndim and one.size and len(one) == rows:
            size = one.strides[0]
            away = sorted({*range(0, min(size, WIDEST), LINE), max(0, min(size, WIDEST) - WORD)})
            found += [(line == away[-1], address(one) + line, size) for line in away]
    table = _whole(sorted(found)).reshape(-1, 3)
    return table[:, 1].copy(), table[:, 2].copy(), int((table[:, 0] == 0).sum())


def _whole(numbers: Sequence[object]) -> Ints:
    return np.array(numbers, dtype=np.int64)


def _used(plan: Plan, width: int) -> Ints:
    """Return the ranges of bytes (n, 2) that are fetched for a round of a stream: all but those of sparse fields."""
    used = np.ones(width, dtype=np.bool_)
    for said, shape, first in plan.places.fields.values():
        used[first : first + math.prod(shape)] = not said.sparse
    return WORD * np.flatnonzero(np.diff(used, prepend=False, append=False)).reshape(-1, 2)


Found = tuple[list[tuple[int, NDArray[Any]]], list[tuple[int, Handle]]]  # arrays and handles, by the places of words


def _rows(handle: Handle) -> tuple[list[Handle], list[Ints], Mapping[int, Found]]:
    """Return a handle and all handles in its tree, copies of their words, and the arrays and handles in each."""
    rows: list[Handle] = []
    found: dict[int, Found] = {}
    waiting = [handle]
    while waiting:
        one = waiting.pop()
        if one.address in found:
            continue
        arrays: list[tuple[int, NDArray[Any]]] = []
        handles: list[tuple[int, Handle]] = []
        _look(one.tree, 0, arrays, handles)
        rows.append(one)
        found[one.address] = arrays, handles
        waiting += [inner for _, inner in handles]
    return rows, [np.frombuffer(bytes(one._row), dtype=np.int64, count=len(one._row) // WORD) for one in rows], found


def _look(value: Any, at: int, arrays: list[tuple[int, NDArray[Any]]], handles: list[tuple[int, Handle]]) -> int:
    """Note the arrays and handles of a tree whose words begin at `at`; returns the place after its last word."""
    if isinstance(value, np.ndarray):
        arrays.append((at, value))
        return at + 1 + value.ndim * (1 if value.flags.c_contiguous else 2)
    if isinstance(value, tuple):
        for item in value:
            at = _look(item, at, arrays, handles)
        return at
    if isinstance(value, Handle | Closed):
        handles.append((at, value.handle if isinstance(value, Closed) else value))
    return at if value is None else at + 1
