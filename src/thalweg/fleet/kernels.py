"""The loop over the streams of a batch.

The rows of a stream are a chain: `following[t]` is the row that comes after row t, -1 after the last. A *step* is a
kernel that plays a chain from one of its rows on. It returns DONE, or `stopped(t, why)`: row t was not played.
"""

from typing import Any, NamedTuple

from thalweg._core.state import Ints
from thalweg._kernels.fetching import LINE, fetch
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.pointers import Pointer, call

__all__ = ["DONE", "FULL", "LARGE", "REASONS", "REFUSED", "Mount", "run_fleet", "stopped"]

DONE = -1
REASONS = 4
WORD = 8  # bytes
FULL, LARGE, REFUSED = 0, 1, 2  # no capacity for the row; its gradient is too large; the machine refused it


@inner
def stopped(t: int, why: int) -> int:
    """The result of a step that did not play row t."""
    return REASONS * t + why


class Mount(NamedTuple):
    """How a stream is mounted: base + offset is written into the words of the seat that are addresses of its arrays.

    Each stream has `size` bytes. They are fetched `ahead` streams before it is played, and so are its first rows in the
    batch's arrays: `lines` has the addresses of the cache lines of row 0, `strides` the bytes from row to row.
    """

    words: Ints
    places: Ints
    offsets: Ints
    size: int
    ahead: int
    lines: Ints
    strides: Ints
    following: Ints  # the batch's
    rows: int  # of a stream, fetched ahead of time


@kernel
def run_fleet(step: Pointer, seat: Any, batch: Any, mount: Any, bases: Ints, heads: Ints, ends: Ints) -> None:
    """Play the chains that begin in rows `heads`, of streams whose memory begins at `bases`."""
    words, places, offsets, size, ahead = mount.words, mount.places, mount.offsets, mount.size, mount.ahead
    lines, strides, following = mount.lines, mount.strides, mount.following
    row0 = following.ctypes.data
    for g in range(heads.shape[0]):
        if g + 2 * ahead < heads.shape[0]:
            fetch(row0 + WORD * heads[g + 2 * ahead])
        if g + ahead < heads.shape[0]:
            for line in range(0, size, LINE):
                fetch(bases[g + ahead] + line)
            t = heads[g + ahead]
            for _ in range(mount.rows):
                for i in range(lines.shape[0]):
                    fetch(lines[i] + strides[i] * t)
                t = following[t]
                if t < 0:
                    break
        base = bases[g]
        for i in range(places.shape[0]):
            words[places[i]] = base + offsets[i]
        ends[g] = call(step, seat, batch, heads[g])
