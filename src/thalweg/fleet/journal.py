"""The journal: rows of batches since the last checkpoint, on disk before their answers are given.

Rounds are deterministic, so the rows are all that is needed to play them again. An entry is its length, its checksum,
a header in JSON and raw arrays. An entry that was torn off at the end of the file was never answered.
"""

from __future__ import annotations

import json
import os
import struct
import weakref
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thalweg.errors import StateError

HEAD = struct.Struct("<QI")
Arrays = Mapping[str, NDArray[Any]]


class Journal:
    """An open journal to append to."""

    def __init__(self, path: Path, end: int) -> None:
        self.path, self._end, self._broken = path, end, False
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._close = weakref.finalize(self, os.close, self._file)
        os.ftruncate(self._file, end)

    @property
    def size(self) -> int:
        """Bytes in it."""
        return self._end

    def append(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        """Write an entry, and wait until it is on disk. If that fails, the file is as before."""
        if self._broken:
            raise OSError(f"The journal {self.path} could not be written before. Open the fleet again.")
        data = entry(facts, arrays)
        try:
            _write(self._file, data, self._end)
            os.fsync(self._file)
        except OSError:
            self._broken = True
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
            self._broken = False
            raise
        self._end += len(data)

    def close(self) -> None:
        """Close the file."""
        self._close()

    def sync(self) -> None:
        """Wait until it is on disk."""
        os.fsync(self._file)


def _write(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(file, view, at)
        view, at = view[done:], at + done


def entry(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Return an entry."""
    shapes = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    head = json.dumps({**facts, "arrays": shapes}).encode()
    parts = [struct.pack("<I", len(head)), head, *(np.ascontiguousarray(one).tobytes() for one in arrays.values())]
    body = b"".join(parts)
    return HEAD.pack(len(body), zlib.crc32(body)) + body


def entries(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[Any]], int]]:
    """Yield the entries of a journal and where each ends; raise StateError at one that is damaged, not torn off."""
    if path.exists():
        yield from read_entries(str(path), path.read_bytes())


def read_entries(name: str, given: bytes) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[Any]], int]]:
    """Yield entries of bytes, as `entries` does."""
    data, at = memoryview(given), 0
    while at + HEAD.size <= len(data):
        length, crc = HEAD.unpack(data[at : at + HEAD.size])
        end = at + HEAD.size + length
        body = data[at + HEAD.size : end]
        if len(body) < length or zlib.crc32(body) != crc:
            if end < len(data):
                raise StateError(f"{name} is damaged at byte {at}: {len(data) - at} bytes from there on are lost.")
            return
        size = struct.unpack("<I", body[:4])[0]
        facts, place, arrays = json.loads(bytes(body[4 : 4 + size])), 4 + size, {}
        for part, kind, shape in facts.pop("arrays"):
            count = int(np.prod(shape))
            dtype = np.dtype(kind)
            arrays[part] = np.frombuffer(body, dtype, count, place).reshape(shape).copy()
            place += count * dtype.itemsize
        yield facts, arrays, end
        at = end
