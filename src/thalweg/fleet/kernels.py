"""The loop over the streams of a batch.

The rows of a stream are a chain: `after(following, t)` is the row that comes after row t, -1 after the last. A *step*
is a kernel that plays a chain from one of its rows on. It returns DONE, or `stopped(t, why)`: row t was not played.
"""

from typing import Any, NamedTuple

from thalweg._core.types import Ints
from thalweg._kernels.fetching import LINE, fetch
from thalweg._kernels.handle import Handle, parts
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.pointers import Pointer, call
from thalweg.fleet.chains import after

DONE = -1
REASONS = 4
WORD = 8  # bytes
FULL, LARGE, REFUSED = 0, 1, 2  # no capacity for the row; its gradient is too large; the machine refused it


@inner
def stopped(t: int, why: int) -> int:
    """The result of a step that did not play row t."""
    return REASONS * t + why


class Where(NamedTuple):
    """Where the words of streams are: in row `places[s]` of a matrix, whose chunks of 2^shift rows have addresses."""

    places: Ints  # by the streams' numbers
    chunks: Ints
    shift: int


class Mount(NamedTuple):
    """How a stream is mounted: base + offset is written into the words of the seat that are addresses of its arrays.

    Each stream has `size` bytes. They are fetched `ahead` streams before it is played, and `again` so many times just
    before it: processors may drop requests for memory when too many are waiting.
    """

    words: Ints
    places: Ints
    offsets: Ints
    size: int
    ahead: int
    again: int


class RowsAhead(NamedTuple):
    """The rows of a batch, which are fetched ahead of time like the streams.

    `lines` has the addresses of the cache lines of row 0 in all arrays, `strides` the bytes from row to row.
    """

    lines: Ints
    strides: Ints
    following: Ints  # the batch's
    rows: int  # of a stream, fetched ahead of time


@inner
def _base(where: Where, size: int, stream: int) -> int:
    """Address of a stream's words."""
    place = where.places[stream]
    chunk = place >> where.shift
    return int(where.chunks[chunk] + (place - (chunk << where.shift)) * size)


@inner
def _fetch(base: int, size: int) -> None:
    """Ask for the memory of a stream."""
    for line in range(0, size, LINE):
        fetch(base + line)


@kernel
def run_fleet(
    step: Pointer,
    seat: Any,
    batch: Any,
    mounting: Handle,
    coming: Handle,
    where: Any,
    heads: Ints,
    owners: Ints,
    stops: Ints,
) -> int:
    """Play the chains that begin in rows `heads`, of these streams.

    `mounting` has a `Mount`, `coming` a `RowsAhead`. Returns how many stopped; `stops` (2, n) has their indices and
    the results of their steps.
    """  # fmt: skip
    mount, rows = parts(mounting), parts(coming)
    words, places, offsets, size, ahead = mount.words, mount.places, mount.offsets, mount.size, mount.ahead
    lines, strides, following = rows.lines, rows.strides, rows.following
    row0, count = following.ctypes.data, 0
    for g in range(heads.shape[0]):
        if following.shape[0] > 0 and g + 2 * ahead < heads.shape[0]:
            fetch(row0 + WORD * heads[g + 2 * ahead])
        if g + ahead < heads.shape[0]:
            _fetch(_base(where, size, owners[g + ahead]), size)
            t = heads[g + ahead]
            for _ in range(rows.rows):
                for i in range(lines.shape[0]):
                    fetch(lines[i] + strides[i] * t)
                t = after(following, t)
                if t < 0:
                    break
        if g + 1 < heads.shape[0]:
            for _ in range(mount.again):
                _fetch(_base(where, size, owners[g + 1]), size)
        base = _base(where, size, owners[g])
        for i in range(places.shape[0]):
            words[places[i]] = base + offsets[i]
        end = call(step, seat, batch, heads[g])
        if end != DONE:
            stops[0, count], stops[1, count] = g, end
            count += 1
    return count
