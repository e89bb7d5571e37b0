"""Hashes of keys: XXH64 with the seed that Spark's `xxhash64` has, so that an engine finds the shard of a key itself.

The hash of an integer is that of its 8 bytes; no two integers have the same one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg._core.types import Ints
from thalweg._kernels.jit import inner, kernel

SEED = 42
P1, P2, P3 = -7046029288634856825, -4417276706812531889, 1609587929392839161  # primes of XXH64, as signed words
P4, P5 = -8796714831421723037, 2870177450012600261
Bytes = NDArray[np.uint8]


@inner
def mix(x: Any) -> Any:
    """A one-to-one function of 64 bits whose result depends on all of them (the end of splitmix64)."""
    x ^= (x >> 30) & 0x3_FFFF_FFFF
    x *= -4658895280553007687
    x ^= (x >> 27) & 0x1F_FFFF_FFFF
    x *= -7723592293110705685
    return x ^ ((x >> 31) & 0x1_FFFF_FFFF)


@inner
def _turned(x: Any, bits: int) -> Any:
    """A word whose bits are moved to the left, round and round."""
    return (x << bits) | ((x >> (64 - bits)) & ((1 << bits) - 1))


@inner
def _lane(x: Any, word: Any) -> Any:
    return _turned(x + word * np.int64(P2), 31) * np.int64(P1)


@inner
def _merged(h: Any, lane: Any) -> Any:
    return (h ^ _lane(np.int64(0), lane)) * np.int64(P1) + np.int64(P4)


@inner
def _ended(h: Any) -> Any:
    h = (h ^ ((h >> 33) & 0x7FFF_FFFF)) * np.int64(P2)
    h = (h ^ ((h >> 29) & 0x7_FFFF_FFFF)) * np.int64(P3)
    return h ^ ((h >> 32) & 0xFFFF_FFFF)


@inner
def _with_word(h: Any, word: Any) -> Any:
    return _turned(h ^ _lane(np.int64(0), word), 27) * np.int64(P1) + np.int64(P4)


@inner
def _word(text: Bytes, at: int, count: int) -> Any:
    """The next bytes as a number."""
    word = np.int64(0)
    for j in range(count):
        word |= np.int64(text[at + j]) << np.int64(8 * j)
    return word


@kernel
def hash_integers(numbers: Ints, out: Ints) -> None:
    """out <- hashes of integers."""
    for i in range(numbers.shape[0]):
        out[i] = _ended(_with_word(np.int64(SEED) + np.int64(P5) + np.int64(8), numbers[i]))


@kernel
def hash_texts(text: Bytes, starts: Ints, ends: Ints, out: Ints) -> None:
    """out <- hashes of texts."""
    for i in range(starts.shape[0]):
        at, end = starts[i], ends[i]
        if end - at < 32:
            h = np.int64(SEED) + np.int64(P5)
        else:
            a, b = np.int64(SEED) + np.int64(P1) + np.int64(P2), np.int64(SEED) + np.int64(P2)
            c, d = np.int64(SEED), np.int64(SEED) - np.int64(P1)
            while at + 32 <= end:
                a, b = _lane(a, _word(text, at, 8)), _lane(b, _word(text, at + 8, 8))
                c, d = _lane(c, _word(text, at + 16, 8)), _lane(d, _word(text, at + 24, 8))
                at += 32
            h = _turned(a, 1) + _turned(b, 7) + _turned(c, 12) + _turned(d, 18)
            h = _merged(_merged(_merged(_merged(h, a), b), c), d)
        h += end - starts[i]
        while at + 8 <= end:
            h = _with_word(h, _word(text, at, 8))
            at += 8
        if at + 4 <= end:
            h = _turned(h ^ (_word(text, at, 4) * np.int64(P1)), 23) * np.int64(P2) + np.int64(P3)
            at += 4
        while at < end:
            h = _turned(h ^ (np.int64(text[at]) * np.int64(P5)), 11) * np.int64(P1)
            at += 1
        out[i] = _ended(h)
