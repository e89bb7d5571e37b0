"""The loop over the streams of a batch.

The rows of a stream are a chain: `after(following, t)` is the row that comes after row t, -1 after the last. A *step*
is a kernel that plays a chain from one of its rows on. It returns DONE, or `stopped(t, why)`: row t was not played.
"""

from typing import Any, NamedTuple

from thalweg._core.types import Ints
from thalweg._kernels.fetching import LINE, fetch
from thalweg._kernels.handle import AnyHandle, parts
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


class Mount(NamedTuple):
    """How a stream is mounted: base + offset is written into the words of the seat that are addresses of its arrays.

    Each stream has `size` bytes. Those from used[i, 0] to used[i, 1] are fetched `ahead` streams before it is played,
    and `again` so many times just before it: processors may drop requests for memory when too many are waiting.
    """

    words: Ints
    places: Ints
    offsets: Ints
    size: int
    used: Ints
    ahead: int
    again: int


class Lineup(NamedTuple):
    """Chains that are played one after another."""

    heads: Ints  # their first rows
    owners: Ints  # their streams
    places: Ints  # of all streams, in the memory of their classes
    stops: Ints  # (2, n) indices of chains that stopped, and the results of their steps


class RowsAhead(NamedTuple):
    """The rows of a batch, which are fetched ahead of time like the streams.

    `lines` has the addresses of the cache lines of row 0 in all arrays, `strides` the bytes from row to row. From place
    `last` on they are the last ones of each array: row t + 1 needs no others if row t was fetched.
    """

    lines: Ints
    strides: Ints
    last: int
    following: Ints  # the batch's
    rows: int  # of a stream, fetched ahead of time


@inner
def _base(where: Any, size: int, place: int) -> int:
    """Address of the words in a row."""
    chunk = place >> where.shift
    return int(where.chunks[chunk] + (place - (chunk << where.shift)) * size)


@inner
def _fetch(base: int, used: Ints) -> None:
    """Ask for the memory of a stream."""
    for i in range(used.shape[0]):
        for line in range(base + used[i, 0], base + used[i, 1], LINE):
            fetch(line)


@kernel
def run_class(
    step: Pointer,
    seat: int,
    mounting: AnyHandle,
    where: AnyHandle,
    batch: Any,
    coming: AnyHandle,
    playing: AnyHandle,
    begin: int,
    end: int,
    count: int,
) -> int:
    """Play the chains `begin` to `end` - 1 of a `Lineup`, of streams of one class.

    `seat` is the address of the seat's words; `mounting` has a `Mount`, `where` the `Where` of the streams' memory,
    `coming` a `RowsAhead`. `count` chains stopped before; returns how many did after these.
    """
    mount, rows, chunks = parts(mounting), parts(coming), parts(where)
    words, at, offsets, size, ahead = mount.words, mount.places, mount.offsets, mount.size, mount.ahead
    lines, strides, following = rows.lines, rows.strides, rows.following
    line = parts(playing)
    heads, owners, places, stops, row0 = line.heads, line.owners, line.places, line.stops, following.ctypes.data
    for g in range(begin, end):
        if following.shape[0] > 0 and g + 2 * ahead < end:
            fetch(row0 + WORD * heads[g + 2 * ahead])
            fetch(row0 + WORD * (heads[g + 2 * ahead] + rows.rows))  # rows of a stream often stand together
        if g + ahead < end:
            _fetch(_base(chunks, size, places[owners[g + ahead]]), mount.used)
            t, before = heads[g + ahead], -2
            for _ in range(rows.rows):
                for i in range(rows.last if t == before + 1 else 0, lines.shape[0]):
                    fetch(lines[i] + strides[i] * t)
                t, before = after(following, t), t
                if t < 0:
                    break
        if g + 1 < end:
            for _ in range(mount.again):
                _fetch(_base(chunks, size, places[owners[g + 1]]), mount.used)
        base = _base(chunks, size, places[owners[g]])
        for i in range(at.shape[0]):
            words[at[i]] = base + offsets[i]
        result = call(step, seat, batch, heads[g])
        if result != DONE:
            stops[0, count], stops[1, count] = g, result
            count += 1
    return count


@kernel
def run_classes(run: Pointer, classes: Ints, cuts: Ints, batch: Any, coming: Any, playing: Any) -> int:
    """Play chains class by class: those of the k-th from cuts[k] on. Returns how many stopped.

    `run` is `run_class`, and classes[k] has the addresses of its arguments `step`, `seat`, `mounting` and `where`.
    """
    count = 0
    for k in range(classes.shape[0]):
        step, seat, mounting, where = classes[k, 0], classes[k, 1], classes[k, 2], classes[k, 3]
        count = call(run, step, seat, mounting, where, batch, coming, playing, cuts[k], cuts[k + 1], count)
    return count
