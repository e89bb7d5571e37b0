"""The loop over the streams of a batch, and the order in which their rows are played.

The rows of a stream are a chain: `following[t]` is the row that comes after row t, -1 after the last. A *step* is a
kernel that plays a chain from one of its rows on. It returns DONE, or `stopped(t, why)`: row t was not played.
"""

from typing import Any, NamedTuple

from thalweg._core.state import Ints
from thalweg._kernels.fetching import LINE, fetch
from thalweg._kernels.jit import inner, kernel
from thalweg._kernels.pointers import Pointer, call

__all__ = ["DONE", "FULL", "LARGE", "REASONS", "REFUSED", "Mount", "chain", "run_fleet", "stopped"]

DONE = -1
REASONS = 4
FULL, LARGE, REFUSED = 0, 1, 2  # no capacity for the row; its gradient is too large; the machine refused it


@inner
def stopped(t: int, why: int) -> int:
    """The result of a step that did not play row t."""
    return REASONS * t + why


class Mount(NamedTuple):
    """How a stream is mounted: base + offset is written into the words of the seat that are addresses of its arrays.

    Each stream has `size` bytes; they are asked for `ahead` streams before it is played.
    """

    words: Ints
    places: Ints
    offsets: Ints
    size: int
    ahead: int


@kernel
def run_fleet(step: Pointer, seat: Any, batch: Any, mount: Any, bases: Ints, heads: Ints, ends: Ints) -> None:
    """Play the chains that begin in rows `heads`, of streams whose memory begins at `bases`."""
    words, places, offsets, size, ahead = mount.words, mount.places, mount.offsets, mount.size, mount.ahead
    for g in range(heads.shape[0]):
        if g + ahead < heads.shape[0]:
            for line in range(0, size, LINE):
                fetch(bases[g + ahead] + line)
        base = bases[g]
        for i in range(places.shape[0]):
            words[places[i]] = base + offsets[i]
        ends[g] = call(step, seat, batch, heads[g])


@kernel
def chain(streams: Ints, order: Ints, last: Ints, following: Ints, heads: Ints) -> int:
    """following <- the chains of a batch, row by row in this `order`; heads <- their first rows. Returns how many.

    Rows of stream -1 are left out. `last` has an entry -1 for every stream, and has again afterwards.
    """
    count = 0
    for i in range(order.shape[0]):
        t = order[i]
        s = streams[t]
        following[t] = -1
        if s < 0:
            continue
        if last[s] < 0:
            heads[count] = t
            count += 1
        else:
            following[last[s]] = t
        last[s] = t
    for k in range(count):
        last[streams[heads[k]]] = -1
    return count
