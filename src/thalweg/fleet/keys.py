"""Keys of streams, integers or strings, and the table that finds their numbers.

The table is compiled open addressing. Integers are mixed by a function that is one to one, so two different ones never
have the same mark. Strings are compared byte by byte wherever their hashes agree: a collision costs a comparison and
nothing else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.types import Ints
from thalweg._core.validate import check_count, short_repr
from thalweg._kernels.fetching import fetch
from thalweg._kernels.jit import inner, kernel
from thalweg.errors import InputError
from thalweg.fleet.hashing import hash_integers, hash_texts, mix

INTEGERS, STRINGS = "integers", "strings"
EMPTY, GONE = -1, -2  # of the slots of a table
FEWEST = 1024  # slots
SLOT = 16  # bytes
AHEAD = 64  # keys whose slots are asked for ahead of time
Bytes = NDArray[np.uint8]
_NONE = np.zeros(0, dtype=np.int64)
_NO_TEXT = np.zeros(0, dtype=np.uint8)
_NO_KEYS = np.zeros(0, dtype=np.int32)


class Mark(NamedTuple):
    """A table before keys were added."""

    next: int
    free: Ints
    kind: str | None
    slots: Ints
    filled: int
    direct: NDArray[np.int32]


class Keys(NamedTuple):
    """Keys of the rows of a batch."""

    kind: str
    numbers: Ints  # integers themselves; or hashes of strings
    text: Bytes  # of strings, one after the other, in UTF-8
    starts: Ints
    ends: Ints

    @property
    def size(self) -> int:
        """The number of keys."""
        return self.numbers.size

    def key(self, row: int) -> Any:
        """Return the key of a row."""
        if self.kind == INTEGERS:
            return int(self.numbers[row])
        return self.text[self.starts[row] : self.ends[row]].tobytes().decode()

    def rows(self, chosen: NDArray[Any]) -> Keys:
        """Return the keys of some rows."""
        if self.kind == INTEGERS:
            return self._replace(numbers=np.ascontiguousarray(self.numbers[chosen]))
        numbers, starts, ends = (np.ascontiguousarray(one[chosen]) for one in (self.numbers, self.starts, self.ends))
        return Keys(self.kind, numbers, self.text, starts, ends)

    def strings(self) -> tuple[Ints, Bytes]:
        """Return the lengths of strings, and their text without gaps."""
        lengths = self.ends - self.starts
        return lengths, text_at(self.text, self.starts, lengths)

    @classmethod
    def of_integers(cls, numbers: Ints) -> Keys:
        """Return integers as keys."""
        return cls(INTEGERS, numbers, _NO_TEXT, _NONE, _NONE)

    @classmethod
    def of_strings(cls, lengths: Ints, text: Bytes) -> Keys:
        """Return strings as keys: the inverse of `strings`."""
        ends = np.cumsum(lengths)
        return _texts(text, ends - lengths, ends)


def text_at(text: Bytes, starts: Ints, lengths: Ints) -> Bytes:
    """Return pieces of a text, one after the other."""
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    found: Bytes = text[np.repeat(starts, lengths) + within]
    return found


# ------------------------------------------------------------------------------------------------------------- reading


def read_keys(owner: str, name: str, given: Any) -> tuple[Keys, dict[int, str]]:
    """Return keys, and the rows whose key is missing with the reason. Other kinds of keys are refused by name."""
    values = given.tolist() if isinstance(given, np.ndarray) and given.dtype.kind in "OT" else given
    array = values if isinstance(values, np.ndarray) else None
    if array is None:
        try:
            if isinstance(values, str | bytes):
                raise TypeError
            values = list(values)
        except Exception:  # of any object's
            raise InputError(f"{owner}: {name} must be a list of keys. Got {short_repr(given)}.") from None
    elif array.ndim != 1:
        raise InputError(f"{owner}: {name} must have one axis. Got shape {array.shape}.")
    if array is not None and array.dtype.kind == "U":
        values, array = array.tolist(), None
    if array is not None:
        if array.dtype.kind not in "iu":
            raise InputError(f"{owner}: {name} must be integers or strings. Got {array.dtype}. Convert them.")
        if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
            row = int(np.argmax(array >= 2**63))
            raise InputError(f"{owner}: {name} has {array[row]} in row {row}. Integer keys are below 2**63.")
        return Keys.of_integers(np.require(array, np.int64, ["C", "W"])), {}
    return _of_list(owner, name, values)


def _of_list(owner: str, name: str, values: list[Any]) -> tuple[Keys, dict[int, str]]:
    bad: dict[int, str] = {}
    try:
        joined = "\0".join(values)
    except TypeError:
        return _of_mixed(owner, name, values)
    try:
        text = np.frombuffer(joined.encode(), dtype=np.uint8)
    except UnicodeEncodeError:
        row = next(row for row, value in enumerate(values) if not _encodes(value))
        raise InputError(f"{owner}: {name} has a key in row {row} that is no valid Unicode: {values[row]!r}.") from None
    cuts = np.flatnonzero(text == 0)
    if cuts.size != max(len(values) - 1, 0):
        row = next(row for row, value in enumerate(values) if "\0" in value)
        raise InputError(f"{owner}: {name} has a key with a zero character in row {row}: {values[row]!r}. Remove it.")
    starts, ends = np.concatenate([[0], cuts + 1]), np.concatenate([cuts, [text.size]])
    if not values:
        starts = ends = _NONE
    return _texts(np.array(text), starts, ends), bad


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_mixed(owner: str, name: str, values: list[Any]) -> tuple[Keys, dict[int, str]]:
    """Read a list that is not of strings only: integers, or something is missing."""
    bad = {row: f"{name} is missing" for row, value in enumerate(values) if _missing(value)}
    kinds = {str: STRINGS, int: INTEGERS}
    found: str | None = None
    for row, value in enumerate(values):
        if row in bad:
            continue
        if isinstance(value, np.integer | np.str_):
            value = values[row] = value.item()
        kind = kinds.get(type(value))
        if kind is None or (found is not None and kind != found):
            raise InputError(
                f"{owner}: {name} must be integers or strings, all of one kind. Got {short_repr(value)} in row {row}."
            )
        if kind == INTEGERS and not -(2**63) <= value < 2**63:
            raise InputError(f"{owner}: {name} has {value} in row {row}. Integer keys are of 64 bits.")
        found = kind
    if found == INTEGERS:
        return Keys.of_integers(np.array([0 if row in bad else value for row, value in enumerate(values)])), bad
    return _of_list(owner, name, ["" if row in bad else value for row, value in enumerate(values)])[0], bad


def _missing(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _texts(text: Bytes, starts: Ints, ends: Ints) -> Keys:
    hashes = np.empty(starts.size, dtype=np.int64)
    hash_texts(text, starts, ends, hashes)
    return Keys(STRINGS, hashes, text, starts, ends)


def shard_of(keys: Any, shards: int) -> Ints:
    """Return the shard of each of these keys, 0 to shards - 1: pmod(xxhash64(key), shards) in Spark's words.

    Integers are hashed as numbers of 64 bits, strings as UTF-8.

    Examples
    --------
    >>> shard_of(["tea", "coffee", "tea"], 8).tolist()
    [3, 2, 3]
    """
    owner = "shard_of"
    count = check_count(owner, "shards", shards, most=2**31 - 1)
    names, bad = read_keys(owner, "keys", keys)
    if bad:
        raise InputError(f"{owner}: the key in row {min(bad)} is missing.")
    hashes = names.numbers
    if names.kind == INTEGERS:
        hashes = np.empty(names.size, dtype=np.int64)
        hash_integers(names.numbers, hashes)
    found: Ints = hashes % count
    return found


# ------------------------------------------------------------------------------------------------------------- kernels


@inner
def _equal(text: Bytes, start: int, end: int, other: Bytes, first: int, length: int) -> bool:
    if end - start != length:
        return False
    for j in range(length):  # noqa: SIM110  # kernels have no generators
        if text[start + j] != other[first + j]:
            return False
    return True


class Known(NamedTuple):
    """A table as kernels see it."""

    slots: Ints  # (2^k, 2) the number of a stream, or EMPTY, or GONE; and its mark
    marks: Ints  # (streams,) integers, or hashes of strings
    text: Bytes
    firsts: Ints  # (streams,) places of strings in `text`
    lengths: Ints
    strings: bool


@inner
def _slot(known: Known, at: int, mark: int, text: Bytes, start: int, end: int) -> int:
    """The slot of a key, searched from slot `at` on; or, below 0, -1 - the slot where it would be."""
    slots = known.slots
    mask = slots.shape[0] - 1
    vacant = -1
    while slots[at, 0] != EMPTY:
        s = slots[at, 0]
        if s == GONE:
            if vacant < 0:
                vacant = at
        elif slots[at, 1] == mark and (
            not known.strings or _equal(text, start, end, known.text, known.firsts[s], known.lengths[s])
        ):
            return int(at)
        at = (at + 1) & mask
    return int(-1 - (at if vacant < 0 else vacant))


@kernel
def find(known: Known, marks: Ints, text: Bytes, starts: Ints, ends: Ints, out: Ints) -> None:
    """out <- the numbers of streams, -1 where there is none."""
    slots, count = known.slots, marks.shape[0]
    mask, base = slots.shape[0] - 1, slots.ctypes.data
    for i in range(-AHEAD, count):
        if i + AHEAD < count:
            out[i + AHEAD] = mix(marks[i + AHEAD]) & mask  # until it is found
            fetch(base + SLOT * out[i + AHEAD])
        if i < 0:
            continue
        start, end = (starts[i], ends[i]) if known.strings else (0, 0)
        if (
            i > 0
            and marks[i] == marks[i - 1]
            and (not known.strings or _equal(text, start, end, text, starts[i - 1], ends[i - 1] - starts[i - 1]))
        ):
            out[i] = out[i - 1]  # the same key
            continue
        at = _slot(known, out[i], marks[i], text, start, end)
        out[i] = slots[at, 0] if at >= 0 else -1


@kernel
def look_up(direct: NDArray[np.int32], marks: Ints, out: Ints) -> int:
    """out <- the numbers of streams whose keys are positions in `direct`. Returns how many keys are none."""
    strange, base, count, size = 0, direct.ctypes.data, marks.shape[0], direct.shape[0]
    for i in range(count):
        if i + AHEAD < count:
            fetch(base + 4 * marks[i + AHEAD])
        if 0 <= marks[i] < size:
            out[i] = direct[marks[i]]
        else:
            strange += 1
    return strange


@kernel
def enter(known: Known, marks: Ints, text: Bytes, starts: Ints, ends: Ints, free: Ints, top: int, out: Ints) -> int:
    """Give a number from `free` to every key whose entry of `out` is -1. Capacity must suffice. Returns how many.

    Texts are appended at `top`.
    """
    count, mask = 0, known.slots.shape[0] - 1
    for i in range(marks.shape[0]):
        if out[i] != -1:
            continue
        start, end = (starts[i], ends[i]) if known.strings else (0, 0)
        at = _slot(known, mix(marks[i]) & mask, marks[i], text, start, end)
        if at >= 0:
            out[i] = known.slots[at, 0]
            continue
        s = free[count]
        count += 1
        known.slots[-1 - at, 0] = out[i] = s
        known.slots[-1 - at, 1] = marks[i]
        known.marks[s] = marks[i]
        if known.strings:
            known.firsts[s], known.lengths[s] = top, end - start
            for j in range(start, end):
                known.text[top] = text[j]
                top += 1
    return count


@kernel
def leave(known: Known, streams: Ints) -> None:
    """Remove the keys of these streams."""
    mask = known.slots.shape[0] - 1
    for i in range(streams.shape[0]):
        s = streams[i]
        mark = known.marks[s]
        at = mix(mark) & mask
        while known.slots[at, 0] != s:
            at = (at + 1) & mask
        known.slots[at, 0] = GONE


@kernel
def spread(known: Known, streams: Ints) -> None:
    """Enter these streams, whose keys all differ, into a table that is empty."""
    mask = known.slots.shape[0] - 1
    for i in range(streams.shape[0]):
        mark = known.marks[streams[i]]
        at = mix(mark) & mask
        while known.slots[at, 0] != EMPTY:
            at = (at + 1) & mask
        known.slots[at, 0], known.slots[at, 1] = streams[i], mark


# --------------------------------------------------------------------------------------------------------------- table


def grown(array: NDArray[Any], size: int, value: int = 0) -> NDArray[Any]:
    """Return the array, or a larger copy with capacity for `size` entries; new ones have this value."""
    if size <= len(array):
        return array
    larger = np.full((max(size, len(array) + len(array) // 4, 16), *array.shape[1:]), value, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


class KeyTable:
    """Numbers of streams by their keys. Numbers that were given back are used again.

    Where all keys are integers from 0 on, below the number of slots, their streams are also in `_direct`, each at the
    position that its key is: reading them takes half as long as a search.
    """

    def __init__(self) -> None:
        self.kind: str | None = None
        self.alive = np.zeros(0, dtype=np.bool_)  # by number
        self._slots = np.full((FEWEST, 2), EMPTY, dtype=np.int64)
        self._filled = 0  # slots that are not EMPTY
        self._direct = _NO_KEYS  # as many as slots, or none
        self._marks = self._firsts = self._lengths = np.zeros(0, dtype=np.int64)
        self._text, self._top, self._waste = np.zeros(0, dtype=np.uint8), 0, 0
        self._next = 0  # numbers from here on were never given
        self._free = np.zeros(0, dtype=np.int64)
        self.count = 0

    @property
    def _known(self) -> Known:
        return Known(self._slots, self._marks, self._text, self._firsts, self._lengths, self.kind == STRINGS)

    @property
    def top(self) -> int:
        """All numbers given are below it."""
        return self._next

    @property
    def nbytes(self) -> int:
        """Bytes of the table and of the keys."""
        arrays = self._slots, self._direct, self._marks, self._firsts, self._lengths, self._text, self.alive, self._free
        return sum(one.nbytes for one in arrays)

    def check(self, owner: str, keys: Keys) -> None:
        """Refuse keys of another kind."""
        if self.count and keys.kind != self.kind and keys.size:
            raise InputError(f"{owner}: the keys of this fleet are {self.kind}. Got {keys.kind}: {keys.key(0)!r}.")

    def find(self, keys: Keys) -> Ints:
        """Return numbers; -1 where a key is unknown."""
        if not self.count:
            return np.full(keys.size, -1, dtype=np.int64)
        out = np.empty(keys.size, dtype=np.int64)
        if self._direct.size and not look_up(self._direct, keys.numbers, out):
            return out
        find(self._known, keys.numbers, keys.text, keys.starts, keys.ends, out)
        return out

    def add(self, keys: Keys, out: Ints) -> Ints:
        """Give numbers to unknown keys, those of rows where `out` is -1; writes them there and returns them."""
        unknown = out == -1
        most = int(unknown.sum())
        if not most:
            return np.zeros(0, dtype=np.int64)
        if not self.count:
            self.kind = keys.kind
        slots = self._slots
        self._reserve(
            most, int((keys.ends - keys.starts)[unknown].sum()) if keys.kind == STRINGS else 0, self._next + most
        )
        fresh = np.arange(self._next, self._next + max(0, most - self._free.size))
        free = np.concatenate([self._free[::-1][:most], fresh])
        count = int(enter(self._known, keys.numbers, keys.text, keys.starts, keys.ends, free, self._top, out))
        new = free[:count]
        reused = min(count, self._free.size)
        self._free = self._free[: self._free.size - reused]
        self._next += count - reused
        if self.kind == STRINGS:
            self._top += int(self._lengths[new].sum())
        self._filled += count  # at most: a slot that was GONE is used again
        self.count += count
        self.alive[new] = True
        self._index(new, slots)
        return new

    def _reserve(self, streams: int, text: int, top: int) -> None:
        self._marks, self.alive = grown(self._marks, top), grown(self.alive, top)
        if self.kind == STRINGS:
            self._firsts, self._lengths = grown(self._firsts, top), grown(self._lengths, top)
            if self._waste > self._top // 2 + 4096:
                self._compact()
            self._text = grown(self._text, self._top + text)
        if 2 * (self._filled + streams) > len(self._slots):
            size = 1 << max(FEWEST.bit_length() - 1, (3 * (self.count + streams)).bit_length())
            self._slots = np.full((size, 2), EMPTY, dtype=np.int64)
            spread(self._known, np.flatnonzero(self.alive))
            self._filled = self.count

    def _index(self, new: Ints, slots: Ints) -> None:
        """Keep `_direct` after these streams were added; it is built again when the slots are others than before."""
        again = self._slots is not slots
        if self.kind != INTEGERS or not (again or self._direct.size):
            return
        streams = np.flatnonzero(self.alive) if again else new
        keys = self._marks[streams]
        dense = keys.size > 0 and keys.min() >= 0 and keys.max() < len(self._slots)
        if again or not dense:
            self._direct = np.full(len(self._slots) if dense else 0, -1, dtype=np.int32)
        if dense:
            self._direct[keys] = streams

    # ------------------------------------------------------------------ loading

    def begin(self, top: int) -> None:
        """Begin to restore keys whose numbers are below `top`."""
        self._next, self._free = top, _NONE
        self._marks, self.alive = grown(self._marks, top), grown(self.alive, top)

    def restore(self, keys: Keys, streams: Ints) -> None:
        """Give these numbers to these keys, which all differ."""
        self.kind = keys.kind
        text, slots = int((keys.ends - keys.starts).sum()) if keys.kind == STRINGS else 0, self._slots
        self._reserve(streams.size, text, self._next)
        out = np.full(keys.size, -1, dtype=np.int64)
        enter(self._known, keys.numbers, keys.text, keys.starts, keys.ends, streams, self._top, out)
        self._top += text
        self._filled += streams.size
        self.count += streams.size
        self.alive[streams] = True
        self._index(streams, slots)

    def rebuild_free(self) -> None:
        """Collect the free numbers, after the last `restore`: those without a key."""
        self._free = np.flatnonzero(~self.alive[: self._next])[::-1].copy()

    def _compact(self) -> None:
        """Drop the texts of keys that are gone."""
        alive = np.flatnonzero(self.alive)
        keys = self.keys(alive)
        joined = np.frombuffer("".join(keys).encode(), dtype=np.uint8)
        self._firsts[alive] = np.cumsum(self._lengths[alive]) - self._lengths[alive]
        self._text, self._top, self._waste = joined.copy(), joined.size, 0

    def remove(self, streams: Ints) -> None:
        """Forget the keys of these streams; their numbers are free."""
        if not streams.size:
            return
        leave(self._known, streams)
        self._forget(streams)
        self._free = np.concatenate([self._free, streams])

    def _forget(self, streams: Ints) -> None:
        self.alive[streams] = False
        self.count -= streams.size
        if self._direct.size:
            self._direct[self._marks[streams]] = -1
        if self.kind == STRINGS:
            self._waste += int(self._lengths[streams].sum())

    def mark(self) -> Mark:
        """Return the present state, for `undo`."""
        return Mark(self._next, self._free, self.kind, self._slots, self._filled, self._direct)

    def undo(self, streams: Ints, mark: Mark) -> None:
        """Forget keys that were added since a mark."""
        if self._slots is mark.slots:
            leave(self._known, streams)
        else:  # the slots before do not have these keys
            self._slots, self._filled = mark.slots, mark.filled
        self._forget(streams)
        self._next, self._free, self.kind, self._direct = mark.next, mark.free, mark.kind, mark.direct

    def keys(self, streams: Ints) -> list[Any]:
        """Return the keys of these streams."""
        if self.kind != STRINGS:
            found: list[Any] = self._marks[streams].tolist()
            return found
        text = self._text.tobytes()
        firsts, lengths = self._firsts[streams].tolist(), self._lengths[streams].tolist()
        return [text[first : first + length].decode() for first, length in zip(firsts, lengths, strict=True)]

    def some(self, streams: Ints) -> Keys:
        """Return the keys of these streams as those of a batch."""
        if self.kind != STRINGS:
            return Keys.of_integers(self._marks[streams])
        lengths = self._lengths[streams]
        return Keys.of_strings(lengths, text_at(self._text, self._firsts[streams], lengths))
