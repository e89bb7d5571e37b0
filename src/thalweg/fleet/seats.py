"""Seats: ordinary learners whose words are pointed at the memory of one stream after another.

A learner's kernels read everything from rows of words (`thalweg._kernels.handle`). Some of these words are addresses of
arrays inside the learner's block. A seat has a copy of all its rows in one array, and knows which of the words these
are and how far from the beginning of a block they point. So a stream is *mounted* by writing that many sums, and then
the learner's own kernels play it: the same machine code, hence the same bits.

Behind its block a stream has the arrays that a learner keeps outside it and that follow from its state, such as sorted
copies: `spare`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._core.state import Block, Ints
from thalweg._kernels.fetching import LINE
from thalweg._kernels.handle import Closed, Handle, bind
from thalweg._kernels.jit import PLAIN
from thalweg._kernels.kinds import address
from thalweg._kernels.pointers import Pointer
from thalweg.fleet.kernels import Mount, run_fleet

__all__ = ["StreamSeat"]

WORD = 8  # bytes
NEAR, FARTHEST = 1 << 13, 8  # bytes and streams that are fetched ahead of time
WIDEST, MOST_ROWS = 4 * LINE, 8  # bytes of a row of a batch, and rows of a stream, that are fetched ahead of time


class StreamSeat:
    """A learner that plays any stream of its sizes.

    Parameters
    ----------
    tree : NamedTuple
        The arguments of steps.
    block : Block
        The learner's own, in the state before the first round.
    spare : sequence of arrays
        Arrays outside the block that follow from the state.
    owner : object, optional
        The learner itself, to be kept alive.
    """

    def __init__(self, tree: Any, block: Block, spare: Sequence[NDArray[Any]] = (), owner: Any = None) -> None:
        self.tree, self.block, self.spare, self._owner = tree, block, tuple(spare), owner
        self.width = block.memory.size + sum(one.size for one in self.spare)
        self._ahead = max(1, min(FARTHEST, NEAR // (WORD * self.width)))
        rows, words, self._inside = _rows(bind(tree))
        self._words = np.concatenate(words)
        begins = np.cumsum([0, *(row.size for row in words)])
        at = {row.address: address(self._words) + WORD * int(begin) for row, begin in zip(rows, begins, strict=False)}
        for place, inner in self._handles(rows, begins):
            self._words[place] = at[inner.address]
        self._seat = Closed(rows[0])
        self._seat.address = address(self._words)
        places, offsets = [], []
        for row, begin in zip(rows, begins.tolist(), strict=False):
            for place, array in self._inside[row.address][0]:
                offset = self._offset(array)
                if offset is not None:
                    places.append(begin + place)
                    offsets.append(offset)
        self._places, self._offsets = np.array(places, dtype=np.int64), np.array(offsets, dtype=np.int64)

    def _handles(self, rows: list[Handle], begins: NDArray[np.int64]) -> Iterator[tuple[int, Handle]]:
        for row, begin in zip(rows, begins.tolist(), strict=False):
            for place, inner in self._inside[row.address][1]:
                yield begin + place, inner

    def _offset(self, array: NDArray[Any]) -> int | None:
        """Return how far from the beginning of a stream's memory an array lies; None if it is not there."""
        if not array.size:
            return None
        begin = WORD * self.block.memory.size
        away = address(array) - address(self.block.memory)
        if 0 <= away < begin:
            return away
        for one in self.spare:
            away = address(array) - address(one)
            if 0 <= away < one.nbytes:
                return begin + away
            begin += one.nbytes
        return None

    def play(self, step: Pointer, batch: Any, rows: NDArray[np.int64] | None, bases: Ints, heads: Ints) -> Ints:
        """Play the chains that begin in these rows; returns the results of their steps.

        `bases` are the addresses of the streams' words. Where nothing is compiled, `rows` are these words.
        """
        ends = np.empty(heads.size, dtype=np.int64)
        closed = Closed(bind(batch))
        rows_each = min(MOST_ROWS, -(-batch.following.size // max(heads.size, 1)))
        mount = Mount(
            self._words,
            self._places,
            self._offsets,
            WORD * self.width,
            self._ahead,
            *_lines(batch),
            batch.following,
            rows_each,
        )
        if not PLAIN:
            run_fleet(step, self._seat, closed, mount, bases, heads, ends)
            return ends
        assert rows is not None
        for g in range(heads.size):
            self._enter(rows[g])
            one = slice(g, g + 1)
            run_fleet(step, self._seat, closed, mount, bases[one], heads[one], ends[one])
            rows[g] = self.words()
        return ends

    def _enter(self, words: Ints) -> None:
        """Copy a stream into the learner."""
        begin = self.block.memory.size
        self.block.memory[:] = words[:begin]
        for one in self.spare:
            one.reshape(-1)[:] = words[begin : begin + one.size].view(one.dtype)
            begin += one.size

    def words(self) -> Ints:
        """Return the words of the stream in the learner itself: a fresh one, or the last that was copied into it."""
        parts = [self.block.memory, *(one.reshape(-1).view(np.int64) for one in self.spare)]
        return np.concatenate(parts)


def _lines(batch: Any) -> tuple[Ints, Ints]:
    """Return the addresses of the cache lines of row 0 in all arrays of a batch, and the bytes from row to row."""
    lines, strides = [], []
    for one in batch[1:]:  # without `following`
        if isinstance(one, np.ndarray) and one.ndim and one.size and len(one) == len(batch.following):
            size = one.strides[0]
            for away in sorted({*range(0, min(size, WIDEST), LINE), min(size, WIDEST) - 1}):
                lines.append(address(one) + away)
                strides.append(size)
    return np.array(lines, dtype=np.int64), np.array(strides, dtype=np.int64)


Found = tuple[list[tuple[int, NDArray[Any]]], list[tuple[int, Handle]]]  # arrays and handles, by the places of words


def _rows(handle: Handle) -> tuple[list[Handle], list[NDArray[np.int64]], Mapping[int, Found]]:
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
