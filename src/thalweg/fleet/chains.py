"""The order in which the rows of a batch are played: stream by stream, and each stream from its first row to its last.

Streams that are born together lie next to each other, so memory is walked through forwards, whatever the order of the
rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.types import Ints
from thalweg._kernels.fetching import fetch
from thalweg._kernels.jit import inner, kernel

SPARSE = 16  # streams of the fleet for each row, from which on only those of the batch are counted
AHEAD, ENTRY = 32, 4  # rows whose streams are asked for ahead of time, and bytes of an entry of `first`
NONE = np.zeros(0, dtype=np.int64)


class Chains(NamedTuple):
    """The rows of each stream of a batch, by the stream's number."""

    rows: int  # of the batch
    following: Ints  # (rows,) the row after each row, -1 after the last of a stream; empty if no stream has two
    heads: Ints  # (m,) the first rows
    owners: Ints  # (m,) the streams

    def some(self, chosen: slice | Ints) -> Chains:
        """Return some of the chains."""
        return self._replace(heads=self.heads[chosen], owners=self.owners[chosen])


@inner
def after(following: Ints, t: int) -> int:
    """The row after row t of its stream, or -1."""
    return int(following[t]) if following.shape[0] > 0 else -1


def chains_of(streams: Ints, top: int, order: Ints | None = None) -> Chains:
    """Return the chains of rows of these streams, below `top`, in the given order; rows of stream -1 are left out."""
    rows, names = streams.size, None
    if SPARSE * rows < top:
        names, streams = np.unique(streams, return_inverse=True)
        streams = streams - np.count_nonzero(names < 0)
        names = names[names >= 0]
        top = names.size
    first, following = np.full(top, -1, dtype=np.int32), np.empty(rows, dtype=np.int64)
    heads, owners = np.empty((2, min(rows, top) + 1), dtype=np.int64)
    if not link_rows(streams, NONE if order is None else order, first, following):
        following = NONE
    count = list_heads(first, heads, owners)
    heads, owners = heads[:count], owners[:count]
    return Chains(rows, following, heads, owners if names is None else names[owners])


@kernel
def link_rows(streams: Ints, order: Ints, first: NDArray[np.int32], following: Ints) -> int:
    """Find the chains, whose first rows `first` has; it is -1 before. Returns how many rows follow another one."""
    count, base = 0, first.ctypes.data
    for i in range(streams.shape[0] - 1, -1, -1):
        t = order[i] if order.shape[0] > 0 else i
        if t >= AHEAD:
            fetch(base + ENTRY * streams[t - AHEAD])
        s = streams[t]
        if s < 0:
            following[t] = -1
            continue
        following[t] = first[s]
        count += first[s] >= 0
        first[s] = t
    return count


@kernel
def list_heads(first: NDArray[np.int32], heads: Ints, owners: Ints) -> int:
    """Write the first row of each stream that has one, and the stream. Returns how many there are.

    Streams without one are overwritten, so `heads` and `owners` have an entry more than is needed.
    """
    count = 0
    for s in range(first.shape[0]):
        heads[count], owners[count] = first[s], s
        count += first[s] >= 0
    return count
