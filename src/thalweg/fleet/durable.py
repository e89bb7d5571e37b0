"""Fleets as bytes: their streams in segments, and the keys of calls in a journal."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from thalweg._core.types import Ints
from thalweg.errors import StateError
from thalweg.fleet.families.base import SizeClass, Sizes
from thalweg.fleet.keys import INTEGERS, Keys
from thalweg.fleet.segments import ClassToWrite, Segment, SegmentNames, read_segment, write_segment
from thalweg.fleet.shelves import Shelf

if TYPE_CHECKING:
    from thalweg.fleet.playing import Player
    from thalweg.fleet.streams import Streams

_NONE = np.zeros(0, dtype=np.int64)


def write_streams(memory: Streams, file: BinaryIO, streams: Ints, gone: Ints, facts: dict[str, Any]) -> int:
    """Write streams as a segment, class by class; returns its length."""
    streams = streams[np.argsort(memory.kind[streams], kind="stable")]
    classes = []
    for number in np.unique(memory.kind[streams]).tolist():
        kind, shelf = memory.classes[number]
        places = memory.place[streams[memory.kind[streams] == number]]
        classes.append(ClassToWrite(kind.sizes, kind.words, places.size, partial(_block_words, kind, shelf, places)))
    names = SegmentNames(streams, memory.latest[streams], memory.seen[streams], memory.table.some(streams), gone)
    return write_segment(file, facts, names, classes)


def _block_words(kind: SizeClass, shelf: Shelf, places: Ints, first: int, last: int) -> Ints:
    """Return the words of some blocks, without the arrays behind them."""
    return shelf.read(places[first:last])[:, : kind.words]


def load_segments(memory: Streams, segments: Iterable[Segment], top: int) -> list[tuple[Any, int]]:
    """Put the streams of segments, newest first, into a memory that has none; returns keys and numbers of damaged ones.

    All numbers of streams are below `top`. A stream is that of the newest segment it is in.
    """
    known = np.zeros(top, dtype=np.bool_)
    lost: list[tuple[Any, int]] = []
    memory.table.begin(top)
    memory.enroll()
    for segment in segments:
        names = segment.names
        if names.streams.size and int(names.streams.max()) >= top:
            raise StateError("A segment has more streams than the manifest says. Restore both from one backup.")
        for sizes, first, words, sound in segment.words():
            here = slice(first, first + len(words))
            streams = names.streams[here]
            mine = ~known[streams]
            lost += [(names.keys.key(first + i), int(streams[i])) for i in np.flatnonzero(mine & ~sound).tolist()]
            chosen = np.flatnonzero(mine & sound)
            if chosen.size:
                _place(memory, sizes, words[chosen], streams[chosen])
                memory.latest[streams[chosen]] = names.latest[here][chosen]
                memory.seen[streams[chosen]] = names.seen[here][chosen]
                memory.table.restore(names.keys.rows(chosen + first), streams[chosen])
        known[names.streams] = True
        known[names.gone] = True
    memory.table.rebuild_free()
    return lost


def _place(memory: Streams, sizes: Sizes, words: Ints, streams: Ints) -> None:
    """Give streams their memory."""
    number = memory.class_of(sizes)
    kind, shelf = memory.classes[number]
    if words.shape[1] != kind.words:
        raise StateError(f"Streams of {words.shape[1]} words do not fit this version of thalweg.")
    if shelf.width != words.shape[1]:  # arrays beside the block follow from it
        words = np.stack([memory.family.words(memory.family.learner(sizes, one)) for one in words])
    places = shelf.take(streams.size)
    shelf.write(places, words)
    memory.kind[streams], memory.place[streams] = number, places


# -------------------------------------------------------------------------------------------------------- whole fleets


def to_bytes(player: Player) -> bytes:
    """Return all streams as bytes, for `from_bytes`."""
    file, memory = io.BytesIO(), player.streams
    facts = {
        "batches": memory.batches,
        "clock": player.clock,
        "top": memory.table.top,
        "settings": player.family.template._settings(),
    }
    write_streams(memory, file, memory.alive, _NONE, facts)
    return file.getvalue()


def from_bytes(owner: str, player: Player, data: bytes) -> None:
    """Put the streams from `to_bytes` into a player that has none."""
    segment = read_segment(owner, data)
    facts = segment.facts
    if facts["settings"] != player.family.template._settings():
        raise StateError(f"{owner}: these streams have other arguments than the template.")
    lost = load_segments(player.streams, [segment], facts["top"])
    if lost or segment.damage:
        raise StateError(f"{owner}: the bytes are damaged, {len(lost)} streams are lost.")
    player.streams.batches, player.clock = facts["batches"], facts["clock"]


# ----------------------------------------------------------------------------------------------------- keys as arrays


def keys_as_arrays(keys: Keys) -> dict[str, NDArray[Any]]:
    """Return the keys of a batch as arrays for a journal."""
    if keys.kind == INTEGERS:
        return {"keys": keys.numbers}
    lengths, text = keys.strings()
    return {"lengths": lengths.astype("<u4"), "text": text}


def keys_of_arrays(arrays: Mapping[str, NDArray[Any]]) -> Keys:
    """Return the keys of a batch again."""
    if "keys" in arrays:
        return Keys.of_integers(arrays["keys"])
    return Keys.of_strings(arrays["lengths"].astype(np.int64), arrays["text"])
