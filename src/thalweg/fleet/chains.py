"""The order in which the rows of a batch are played: stream by stream, and each stream from its first row to its last.

Rows are sorted by the numbers of their streams. Streams that are born together lie next to each other, so memory is
walked through forwards, whatever the order of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from thalweg._core.state import Ints
from thalweg._kernels.jit import kernel

__all__ = ["Chains", "chains_of"]

ROW_BITS = 32  # of a word that has the number of a stream above that of a row
DIGIT = 11  # bits sorted by at a time
NONE = np.zeros(0, dtype=np.int64)


class Chains(NamedTuple):
    """The rows of each stream of a batch, by the stream's number."""

    following: Ints  # (n,) the row after each row, -1 after the last of a stream
    heads: Ints  # (m,) the first rows
    owners: Ints  # (m,) the streams


def chains_of(streams: Ints, order: Ints | None = None) -> Chains:
    """Return the chains of rows of these streams, in the given order; rows of stream -1 are left out."""
    n = streams.size
    words, spare = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    following = np.full(n, -1)
    top = int(pack_rows(streams, NONE if order is None else order, words))
    if top:  # 0: they are sorted
        counts = np.empty(1 << DIGIT, dtype=np.int64)
        for shift in range(ROW_BITS, ROW_BITS + top.bit_length(), DIGIT):
            sort_rows(words, spare, counts, shift)
            words, spare = spare, words
    count = int(link_rows(words, spare, following))
    return Chains(following, spare[:count], words[:count])


@kernel
def pack_rows(streams: Ints, order: Ints, words: Ints) -> int:
    """words <- number of the stream + 1 and row, in this order. Returns the largest number + 1; 0 if sorted already."""
    top, last, ascends = 0, 0, True
    for i in range(streams.shape[0]):
        t = order[i] if order.shape[0] > 0 else i
        s = streams[t] + 1
        words[i] = (s << ROW_BITS) | t
        ascends = ascends and s >= last
        last = s
        top = max(top, s)
    return 0 if ascends else top


@kernel
def sort_rows(words: Ints, out: Ints, counts: Ints, shift: int) -> None:
    """out <- words by DIGIT of their bits, otherwise in the same order."""
    mask = counts.shape[0] - 1
    for k in range(counts.shape[0]):
        counts[k] = 0
    for i in range(words.shape[0]):
        counts[(words[i] >> shift) & mask] += 1
    begin = 0
    for k in range(counts.shape[0]):
        count = counts[k]
        counts[k] = begin
        begin += count
    for i in range(words.shape[0]):
        digit = (words[i] >> shift) & mask
        out[counts[digit]] = words[i]
        counts[digit] += 1


@kernel
def link_rows(words: Ints, heads: Ints, following: Ints) -> int:
    """Find the chains in sorted words, which become their streams. `following` is -1 before. Returns their number."""
    count, last, before = 0, -1, -1
    for i in range(words.shape[0]):
        s = (words[i] >> ROW_BITS) - 1
        t = words[i] & ((1 << ROW_BITS) - 1)
        if s >= 0 and s == last:
            following[before] = t
        elif s >= 0:
            heads[count], words[count] = t, s
            count += 1
        last, before = s, t
    return count
