"""The folder of a fleet: segments, a manifest that is replaced in one step, a journal, and a lock against two writers.

A checkpoint writes one segment with the streams that changed. Where the segments together hold more than twice the
streams that are alive, it also holds those that still live in the oldest ones: they are in memory, nothing is read, and
the old files can go. It is there once the manifest names it: a crash leaves the old manifest or the new one.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import weakref
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from thalweg._core.types import Ints
from thalweg.errors import InputError, StateError
from thalweg.fleet.journal import Journal
from thalweg.fleet.segments import Segment, read_segment

MANIFEST, LOCK, TEMPLATE = "MANIFEST", "LOCK", "template.npz"
FORMAT = 1
LIMIT = 2.0  # streams in all segments, over those alive


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a fleet's folder."""
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{folder} has no fleet: there is no {MANIFEST}. Make one: Fleet(..., folder=...).") from None
    line, _, body = data.partition(b"\n")
    try:
        if int(line, 16) != zlib.crc32(body):
            raise ValueError
        found: dict[str, Any] = json.loads(body)
    except ValueError:
        raise StateError(f"{path} is damaged. Restore it from a backup.") from None
    if found["format"] != FORMAT:
        raise StateError(f"{path} has format {found['format']}; this version of thalweg reads format {FORMAT}.")
    return found


class FleetStore:
    """An open folder, locked.

    Attributes
    ----------
    generation : int
        Checkpoints so far.
    home : array
        The generation of the newest segment that each stream is in; 0: none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.generation = 0
        self.segments: list[list[Any]] = []  # generation, streams in it, bytes; oldest first
        self.home = np.zeros(0, dtype=np.int64)
        self.journal: Journal | None = None
        self._unlock = weakref.finalize(self, os.close, _locked(folder))  # also where a fleet is simply dropped

    # ------------------------------------------------------------------ names

    def segment(self, generation: int) -> Path:
        """Path of a segment."""
        return self.folder / f"{generation:012d}.segment"

    def journal_path(self, generation: int) -> Path:
        """Path of the journal that follows a checkpoint."""
        return self.folder / f"{generation:012d}.journal"

    # ------------------------------------------------------------------ writing

    def old(self, dirty: int, alive: int, streams: Ints) -> Ints:
        """Return further streams to write, so that the folder stays small: those of the oldest segments."""
        total = dirty + sum(count for _, count, _ in self.segments)
        more = [np.zeros(0, dtype=np.int64)]
        for generation, count, _ in self.segments:
            if total <= LIMIT * alive:
                break
            mine = streams[self.home[streams] == generation]
            more.append(mine)
            total += mine.size - count
        return np.concatenate(more)

    def commit(
        self, write: Callable[[BinaryIO], int], streams: Ints, alive: Ints, gone: Ints, facts: dict[str, Any]
    ) -> int:
        """Write a segment with these streams and make it count; returns its bytes. If it fails, nothing has changed."""
        generation = self.generation + 1
        path, journal = self.segment(generation), self.journal_path(generation)
        home = self.home.copy()
        home[gone] = 0
        home[streams] = generation
        left = np.unique(home[alive])
        kept = [one for one in self.segments if one[0] in left]
        try:
            with open(path, "wb", buffering=1 << 20) as file:
                size = write(file)
                file.flush()
                os.fsync(file.fileno())
            following = Journal(journal, 0)
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            raise
        kept.append([generation, int(streams.size), size])
        try:
            following.sync()
            draft = self._draft({"format": FORMAT, "generation": generation, "segments": kept, "facts": facts})
            os.replace(draft, self.folder / MANIFEST)
        except BaseException:
            following.close()
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
                journal.unlink(missing_ok=True)
            raise
        before, self.journal = self.journal, following
        if before is not None:
            before.close()
        self.generation, self.segments, self.home = generation, kept, home
        try:
            sync(self.folder)
        except BaseException:  # it is unknown which manifest a crash would leave: stop writing and deleting
            self.close()
            raise
        self._tidy()
        return size

    def _draft(self, manifest: dict[str, Any]) -> Path:
        """Write a manifest beside the present one."""
        body = json.dumps(manifest).encode()
        draft = self.folder / f"{MANIFEST}.draft"
        with open(draft, "wb") as file:
            file.write(f"{zlib.crc32(body):08x}\n".encode() + body)
            file.flush()
            os.fsync(file.fileno())
        return draft

    def _tidy(self) -> None:
        """Delete files that no manifest names any more."""
        named = {self.segment(one[0]).name for one in self.segments} | {self.journal_path(self.generation).name}
        for path in self.folder.iterdir():
            if path.suffix in (".segment", ".journal") and path.name not in named:
                with contextlib.suppress(OSError):
                    path.unlink()

    # ------------------------------------------------------------------ reading

    def load(self, manifest: dict[str, Any]) -> list[tuple[int, Segment | StateError]]:
        """Return the segments, newest first; an error in place of one that cannot be read."""
        self.generation, self.segments = manifest["generation"], manifest["segments"]
        return [(one[0], open_segment(self.segment(one[0]))) for one in reversed(self.segments)]

    def close(self) -> None:
        """Give the lock back."""
        if self.journal is not None:
            self.journal.close()
            self.journal = None
        self._unlock()


def open_segment(path: Path) -> Segment | StateError:
    """Return a segment, mapped into memory; or the reason why it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return read_segment(path.name, memoryview(data))
    except FileNotFoundError:
        return StateError(f"{path.name} is missing: it cannot be said which streams it held.")
    except (OSError, ValueError, KeyError) as error:
        return error if isinstance(error, StateError) else StateError(f"{path.name} cannot be read: {error}")


def _locked(folder: Path) -> int:
    """Return an open file that holds the lock of a folder."""
    import fcntl  # of POSIX only

    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.read(file, 100).decode(errors="replace").strip()
        os.close(file)
        raise StateError(
            f"{folder} is open in another process or fleet ({owner or 'unknown'}). Close that one first."
        ) from None
    with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
        os.ftruncate(file, 0)
        os.write(file, f"process {os.getpid()}\n".encode())
    return file
