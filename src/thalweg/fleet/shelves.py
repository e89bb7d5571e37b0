"""Memory of streams: a matrix of words for every capacity class, in chunks that never move."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.state import Block, Plan
from thalweg._core.types import Ints
from thalweg._kernels.handle import Handle, bind
from thalweg._kernels.kinds import address

CHUNK = 1 << 20  # words of a chunk, about: memory is only taken once it is written
WASTE = 1.05  # memory over that of the streams in it, from which on a shelf is worth packing
WORD = 8
NONE = np.zeros(0, dtype=np.int64)


def _pages(size: int, large: bool) -> Ints:
    """Return memory of the system, in large pages if wanted; an allocator would keep it when it is given back."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    try:
        pages = mmap.mmap(-1, size, **private)
    except OSError as error:
        raise MemoryError(f"There is no memory for {size} bytes of streams.") from error
    if large and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a system without large pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=np.int64)


class Where(NamedTuple):
    """Where streams are, for kernels: in the rows of a matrix, whose chunks of 2^shift rows have addresses."""

    chunks: Ints
    shift: int


class Shelf:
    """Rows of one width. Chunks without a stream give their memory back.

    Attributes
    ----------
    width, count : int
        Words of a row, and streams in it.
    rows, shift : int
        Rows of a chunk, 2^shift.
    chunks : array
        The addresses of chunks.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.shift = max(0, min(16, (CHUNK // max(width, 1)).bit_length() - 1))
        self.rows = 1 << self.shift  # of a chunk
        self._chunks: list[Ints | None] = []
        self.chunks = np.zeros(0, dtype=np.int64)
        self._where: Handle | None = None
        self._counts = np.zeros(0, dtype=np.int64)  # streams in each chunk
        self._free, self._top = NONE, 0  # places given back; all from here on were never taken
        self.count = 0

    @property
    def where(self) -> Handle:
        """A `Where` for kernels."""
        if self._where is None or self._where.tree.chunks is not self.chunks:
            self._where = bind(Where(self.chunks, self.shift))
        return self._where

    @property
    def nbytes(self) -> int:
        """Bytes of the streams in it."""
        return WORD * self.width * self.count

    def take(self, count: int) -> Ints:
        """Return places for `count` streams, in ascending order of memory; MemoryError if not all can be had."""
        again = self._free[max(0, self._free.size - count) :][::-1]
        top = self._top + count - again.size
        places = np.concatenate([again, np.arange(self._top, top)])
        known = len(self._chunks)
        more = np.zeros(max(0, -(-top // self.rows) - known), dtype=np.int64)
        self._chunks += [None] * more.size
        self.chunks, self._counts = np.append(self.chunks, more), np.append(self._counts, more)
        fresh = [k for k in np.unique(places // self.rows).tolist() if self._chunks[k] is None]
        try:
            for k in fresh:
                self._allocate(k)
        except MemoryError:
            for k in fresh:
                self._chunks[k], self.chunks[k] = None, 0
            del self._chunks[known:]
            self.chunks, self._counts = self.chunks[:known], self._counts[:known]
            raise
        self._free, self._top = self._free[: self._free.size - again.size], top
        np.add.at(self._counts, places // self.rows, 1)
        self.count += count
        return places

    def give(self, places: Ints) -> None:
        """Give places back."""
        self._free = np.concatenate([self._free, places])
        np.subtract.at(self._counts, places // self.rows, 1)
        self.count -= places.size
        for k in np.unique(places // self.rows).tolist():
            if self._counts[k] == 0:
                self._chunks[k], self.chunks[k] = None, 0

    def loose(self) -> bool:
        """Whether `pack` would free memory."""
        chunks = sum(one is not None for one in self._chunks)
        return chunks > 1 and (chunks - 1) * self.rows > WASTE * self.count

    def pack(self, places: Ints) -> Ints:
        """Move all streams, which have these places, to the first ones; returns their new places."""
        far, least = places >= places.size, np.ones(places.size, dtype=np.bool_)
        least[places[~far]] = False
        found = places.copy()
        found[far] = np.flatnonzero(least)
        words = self.read(places[far])
        for k in np.unique(found[far] >> self.shift).tolist():
            self._allocate(k)
        self._counts[:] = 0
        np.add.at(self._counts, found >> self.shift, 1)
        self.write(found[far], words)
        for k in np.flatnonzero(self._counts == 0).tolist():
            self._chunks[k], self.chunks[k] = None, 0
        self._free, self._top = NONE, places.size
        return found

    def _allocate(self, k: int) -> None:
        if self._chunks[k] is None:
            large = k > 0  # a shelf with few streams would take 2 MB for them
            chunk = _pages(WORD * self.rows * self.width, large).reshape(self.rows, self.width)
            self._chunks[k], self.chunks[k] = chunk, address(chunk)

    def _chunked(self, places: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield chunks, the rows wanted of each, and their indices in `places`."""
        chunk = places // self.rows
        order = np.argsort(chunk, kind="stable")
        found = np.unique(chunk)
        cuts = np.searchsorted(chunk[order], [*found, np.iinfo(np.int64).max])
        for n, k in enumerate(found.tolist()):
            mine = order[cuts[n] : cuts[n + 1]]
            memory = self._chunks[k]
            assert memory is not None
            yield memory, places[mine] - k * self.rows, mine

    def read(self, places: Ints) -> Ints:
        """Return copies of the words of these streams (n, width)."""
        out = np.empty((places.size, self.width), dtype=np.int64)
        for memory, rows, mine in self._chunked(places):
            out[mine] = memory[rows]
        return out

    def column(self, places: Ints, at: int) -> Ints:
        """Return one word of each of these streams."""
        out = np.empty(places.size, dtype=np.int64)
        for memory, rows, mine in self._chunked(places):
            out[mine] = memory[rows, at]
        return out

    def write(self, places: Ints, words: Ints) -> None:
        """Write words (n, width), or one row for all."""
        for memory, rows, mine in self._chunked(places):
            memory[rows] = words if words.ndim == 1 else words[mine]


Arrays = Sequence[NDArray[Any]]


def shift(old: Plan, new: Plan, old_spare: Arrays, new_spare: Arrays) -> tuple[Ints, Ints, Ints]:
    """Return how words move when a stream changes its size: from which, to which, and the words that all begin with.

    Behind its block a stream has spare arrays, which have these shapes.
    """
    begin = Block(new)
    for name, value in new.starts():
        begin.arrays[name][...] = value
    number = Block(old, np.arange(old.words))
    target = Block(new, np.arange(new.words))
    pairs = [(number.arrays[name].view(np.int64), theirs.view(np.int64)) for name, theirs in target.arrays.items()]
    pairs += zip(_numbered(old_spare, old.words), _numbered(new_spare, new.words), strict=True)
    sources, targets = [NONE], [NONE]
    for mine, theirs in pairs:
        both = tuple([slice(0, min(n)) for n in zip(mine.shape, theirs.shape, strict=True)])
        sources.append(mine[both].ravel())
        targets.append(theirs[both].ravel())
    blank = np.zeros(sum(one.size for one in new_spare), dtype=np.int64)
    return np.concatenate(sources), np.concatenate(targets), np.concatenate([begin.memory, blank])


def _numbered(arrays: Arrays, first: int) -> Iterator[Ints]:
    """Yield arrays of these shapes that number their words, from `first` on."""
    for one in arrays:
        yield np.arange(first, first + one.size).reshape(one.shape)
        first += one.size
