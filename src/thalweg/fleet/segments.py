"""Segments: streams as bytes, with a checksum for every part, so that damage is found and affects only its own part.

    magic, header, keys, [words of a class, checksums of its streams] for every class, keys, header, magic

The header is JSON: how many streams of which sizes, and the length of each section. Header and keys are there twice:
whatever else is damaged, a segment says which streams it held.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.types import Ints
from thalweg.errors import StateError
from thalweg.fleet.families.base import Sizes
from thalweg.fleet.keys import STRINGS, Keys

FORMAT = 1
MAGIC = b"TWFLEET1"
FRAME = struct.Struct("<QI")  # length and checksum of a section
AT_ONCE = 1 << 22  # bytes that are written or checked together


class ClassToWrite(NamedTuple):
    """Streams of one class to be written."""

    sizes: Sizes
    width: int  # words of each
    streams: int
    read: Callable[[int, int], Ints]  # first, last -> their words


class SegmentNames(NamedTuple):
    """The keys in a segment, class by class; and those removed since the one before."""

    streams: Ints  # their numbers
    latest: Ints
    seen: Ints
    keys: Keys
    gone: Ints


# ------------------------------------------------------------------------------------------------------------- writing


def write_segment(file: BinaryIO, facts: dict[str, Any], names: SegmentNames, classes: list[ClassToWrite]) -> int:
    """Write a segment; returns its length. `facts` are kept in the header."""
    body = _pack(names)
    listed = [{"sizes": list(map(list, one.sizes)), "width": one.width, "count": one.streams} for one in classes]
    said = {"format": FORMAT, "kind": names.keys.kind, "count": names.streams.size, "gone": names.gone.size}
    header = json.dumps({**said, "text": _text_size(names.keys), "classes": listed, "facts": facts}).encode()
    written = file.write(MAGIC) + _section(file, header) + _section(file, body)
    for one in classes:
        sums = np.empty(one.streams, dtype="<u4")
        step = max(1, AT_ONCE // max(1, 8 * one.width))
        for first in range(0, one.streams, step):
            last = min(one.streams, first + step)
            words = np.ascontiguousarray(one.read(first, last), dtype="<i8")
            sums[first:last] = _checksums(words)
            written += file.write(words.data)
        written += file.write(sums.data)
    written += _section(file, body)
    file.write(header)
    return written + len(header) + file.write(FRAME.pack(len(header), zlib.crc32(header)) + MAGIC)


def _section(file: BinaryIO, data: bytes) -> int:
    return file.write(FRAME.pack(len(data), zlib.crc32(data))) + file.write(data)


def _checksums(words: Ints) -> NDArray[np.uint32]:
    """Return a checksum of every row."""
    crc, view = zlib.crc32, words.reshape(-1).view(np.uint8).data
    size = 8 * words.shape[1]
    return np.array([crc(view[at : at + size]) for at in range(0, size * len(words), size)], dtype="<u4")


def _text_size(keys: Keys) -> int:
    return int((keys.ends - keys.starts).sum()) if keys.kind == STRINGS else 0


def _pack(names: SegmentNames) -> bytes:
    keys = names.keys
    parts = [names.streams.astype("<u4"), names.latest.astype("<i8"), names.seen.astype("<u4")]
    if keys.kind == STRINGS:
        lengths, text = keys.strings()
        parts += [lengths.astype("<u4"), text]
    else:
        parts.append(keys.numbers.astype("<i8"))
    return b"".join(one.tobytes() for one in (*parts, names.gone.astype("<u4")))


# ------------------------------------------------------------------------------------------------------------- reading


class Segment(NamedTuple):
    """An open segment: its keys, and the positions of their words."""

    facts: dict[str, Any]
    names: SegmentNames
    classes: list[tuple[Sizes, int, int, int]]  # sizes, width, count, and where their words begin
    data: memoryview
    damage: list[str]  # sections of which the second copy was needed

    def words(self) -> Iterator[tuple[Sizes, int, Ints, NDArray[np.bool_]]]:
        """Yield for every class its sizes, its first stream, the words of all, and which of them are sound."""
        first = 0
        for sizes, width, count, at in self.classes:
            size = 8 * width * count
            room = max(0, min(count, (len(self.data) - at) // max(1, 8 * width)))
            words = np.zeros((count, width), dtype=np.int64)
            if room:
                words[:room] = np.frombuffer(self.data, "<i8", room * width, at).reshape(room, width)
            sound = np.zeros(count, dtype=np.bool_)
            if at + size + 4 * count <= len(self.data):
                sound = np.frombuffer(self.data, "<u4", count, at + size) == _checksums(words)
            yield sizes, first, words, sound
            first += count


def read_segment(name: str, data: bytes | memoryview) -> Segment:
    """Return a segment; raise StateError where neither copy of its header, or of its keys, can be read."""
    view = memoryview(data)
    damage: list[str] = []
    header, at = _front(view, len(MAGIC)) if bytes(view[: len(MAGIC)]) == MAGIC else (None, 0)
    end = len(view) - FRAME.size - len(MAGIC)
    if header is None:
        header, at, damage = _back(view, end), -1, ["header"]
    if header is None:
        raise StateError(f"{name} is damaged from end to end: it cannot even say which streams it held.")
    said = json.loads(header)
    if said["format"] != FORMAT:
        raise StateError(f"{name} has format {said['format']}; this version of thalweg reads format {FORMAT}.")
    if at < 0:
        at = len(MAGIC) + FRAME.size + len(header)
    words = sum((8 * one["width"] + 4) * one["count"] for one in said["classes"])
    body, begin = _front(view, at)
    begin = at + FRAME.size + _names_size(said)
    if body is None:
        damage.append("keys")
        body, _ = _front(view, begin + words)
    if body is None:
        raise StateError(f"{name} is damaged: both copies of its keys. It held {said['count']} streams.")
    classes = []
    for one in said["classes"]:
        classes.append((tuple((key, size) for key, size in one["sizes"]), one["width"], one["count"], begin))
        begin += (8 * one["width"] + 4) * one["count"]
    return Segment(said["facts"], _unpack(said, body), classes, view, damage)


def _front(view: memoryview, at: int) -> tuple[bytes | None, int]:
    """Return a section and the place behind it; None where it is damaged."""
    if at + FRAME.size > len(view):
        return None, at
    length, crc = FRAME.unpack(view[at : at + FRAME.size])
    data = bytes(view[at + FRAME.size : at + FRAME.size + length]) if length <= len(view) else b""
    if len(data) != length or zlib.crc32(data) != crc:
        return None, at
    return data, at + FRAME.size + length


def _back(view: memoryview, end: int) -> bytes | None:
    if end < 0 or bytes(view[end + FRAME.size :]) != MAGIC:
        return None
    length, crc = FRAME.unpack(view[end : end + FRAME.size])
    data = bytes(view[end - length : end]) if length <= end else b""
    return data if len(data) == length and zlib.crc32(data) == crc else None


def _names_size(said: dict[str, Any]) -> int:
    keys = 8 * said["count"] if said["kind"] != STRINGS else 4 * said["count"] + said["text"]
    return 16 * int(said["count"]) + int(keys) + 4 * int(said["gone"])


def _unpack(said: dict[str, Any], body: bytes) -> SegmentNames:
    n, at = said["count"], 0

    def take(kind: str, count: int) -> Ints:
        nonlocal at
        found = np.frombuffer(body, kind, count, at)
        at += found.nbytes
        return found.astype(np.int64)

    streams, latest, seen = take("<u4", n), take("<i8", n), take("<u4", n)
    if said["kind"] == STRINGS:
        lengths = take("<u4", n)
        keys = Keys.of_strings(lengths, np.frombuffer(body, np.uint8, said["text"], at).copy())
        at += keys.text.size
    else:
        keys = Keys.of_integers(take("<i8", n))
    return SegmentNames(streams, latest, seen, keys, take("<u4", said["gone"]))
