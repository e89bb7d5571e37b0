"""Fleets on disk: calls go into the journal before they are played, and checkpoints write the streams."""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from thalweg._core.interrupts import interrupts
from thalweg._core.types import Ints
from thalweg.errors import InputError, StateError
from thalweg.fleet.durable import keys_as_arrays, keys_of_arrays, load_segments, write_streams
from thalweg.fleet.journal import Journal, entries
from thalweg.fleet.keys import Keys, grown
from thalweg.fleet.playing import Arrays, Player, Record
from thalweg.fleet.reading import Bad, BatchRows, FleetError
from thalweg.fleet.store import MANIFEST, TEMPLATE, FleetStore, sync

log = logging.getLogger("thalweg.fleet")

LONG = 1 << 26  # bytes; a journal below this size may be longer than the streams


class FleetFolder(Record):
    """The folder of a fleet, locked.

    Attributes
    ----------
    template : learner or estimator
        The fleet's own.
    player : Player
        The streams that it stores.
    options : dict
        Arguments of the fleet's constructor.
    lost : list
        Keys of streams that were damaged on disk.
    """

    def __init__(self, path: Path, template: Any, player: Player, options: Mapping[str, Any]) -> None:
        self.template, self.options = template, dict(options)
        self._player = weakref.ref(player)  # it has this folder: a dropped fleet gives its memory back at once
        self.lost: list[Any] = []
        self._gone: list[Ints] = []  # numbers of streams dropped since the last checkpoint
        self.store = FleetStore(path)

    @property
    def player(self) -> Player:
        """The streams, which live as long as their fleet."""
        player = self._player()
        assert player is not None
        return player

    @classmethod
    def create(cls, path: Path, template: Any, player: Player, options: Mapping[str, Any]) -> Self:
        """Make the folder of a new fleet."""
        if (path / MANIFEST).exists():
            raise InputError(f"{path} has a fleet already. Continue it: Fleet.open({str(path)!r}).")
        path.mkdir(parents=True, exist_ok=True)
        made = cls(path, template, player, options)
        try:
            template.save(path / TEMPLATE)
            sync(path / TEMPLATE)
            made.checkpoint()
        except BaseException:
            made.close()
            raise
        player.record = made
        return made

    @classmethod
    def open(cls, path: Path, manifest: dict[str, Any], template: Any, player: Player, drop: bool) -> Self:
        """Continue a fleet: the last checkpoint, and the calls after it. `drop`: without damaged streams."""
        made = cls(path, template, player, manifest["facts"]["options"])
        try:
            made._load(manifest, drop)
        except BaseException:
            made.close()
            raise
        player.record = made
        return made

    # ------------------------------------------------------------------ opening

    def _load(self, manifest: dict[str, Any], drop: bool) -> None:
        store, memory, facts, segments = self.store, self.player.streams, manifest["facts"], []
        for _, segment in store.load(manifest):
            if isinstance(segment, StateError):
                raise segment
            segments.append(segment)
        lost = load_segments(memory, segments, facts["top"])
        if lost and not drop:
            names = ", ".join(repr(key) for key, _ in lost[:5])
            raise FleetError(
                f"Fleet.open: {len(lost)} streams are damaged on disk: {names}{', ...' * (len(lost) > 5)}. Restore the "
                "folder from a backup, or go on without them: on_damage='drop'.",
                [Bad(-1, key, "damaged on disk") for key, _ in lost],
            )
        self.lost = [key for key, _ in lost]
        memory.batches, memory.rows, self.player.clock = facts["batches"], facts["rows"], facts["clock"]
        store.home = np.zeros(facts["top"], dtype=np.int64)
        for (generation, _, _), segment in zip(store.segments, reversed(segments), strict=True):
            store.home[segment.names.streams] = generation
        memory.dirty[:] = False
        if lost:
            self._gone.append(np.array([stream for _, stream in lost]))
            log.warning("%s: %d streams are damaged on disk and left out", store.folder, len(lost))
        path = store.journal_path(store.generation)
        end = self._replay(path, drop)
        replayed = memory.batches - facts["batches"]
        log.info(
            "%s: opened, %d keys, %d calls of the journal played again", store.folder, memory.table.count, replayed
        )
        store.journal = Journal(path, end)
        if lost:
            self.checkpoint()

    def _replay(self, path: Path, drop: bool) -> int:
        """Replay the calls of a journal; return the position of its end."""
        end = 0
        try:
            for facts, arrays, place in entries(path):
                self._again(facts, arrays)
                end = place
        except StateError:
            if not drop:
                raise
        return end

    def _again(self, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        player, keys = self.player, keys_of_arrays(arrays)
        for name in ("keys", "lengths", "text"):
            arrays.pop(name, None)
        if self.lost:
            lost = set(self.lost)
            kept = np.array([row for row in range(keys.size) if keys.key(row) not in lost], dtype=np.int64)
            n, keys = keys.size, keys.rows(kept)
            if facts["call"] not in ("set", "drop"):
                arrays = {name: one[kept] if len(one) == n else one for name, one in arrays.items()}
            elif not kept.size:
                return
        if facts["call"] == "set":
            player.put(keys, tuple((name, size) for name, size in facts["sizes"]), arrays["words"])
        elif facts["call"] == "drop":
            streams = player.streams.table.find(keys)
            self.dropped(streams)
            player.drop(streams)
        else:
            times = arrays.pop("times", None)
            with contextlib.suppress(FleetError):  # rows refused now were refused the first time, too
                n = keys.size
                rows = BatchRows(keys, {}, times, np.zeros(n), np.zeros((n, 0)), clock=facts["clock"])
                player.play("Fleet.open", facts["call"], rows, arrays)

    # ------------------------------------------------------------------ the journal

    def begin(self) -> None:
        """Write a checkpoint if the journal is longer than all streams, so that a restart need not replay it."""
        journal = self.store.journal
        if journal is None or journal.size <= max(LONG, self.player.streams.nbytes):
            return
        with contextlib.suppress(OSError):  # the journal is intact and continues
            self.checkpoint()

    def note(self, facts: Mapping[str, Any], keys: Keys, arrays: Arrays) -> None:
        """Append a call to the journal."""
        if self.store.journal is None:
            raise InputError("This fleet was closed. Continue it: Fleet.open(folder).")
        self.store.journal.append(facts, {**keys_as_arrays(keys), **arrays})

    def dropped(self, streams: Ints) -> None:
        """See `Record`."""
        self._gone.append(streams)

    @contextlib.contextmanager
    def in_step(self) -> Iterator[None]:
        """Close the folder if the body fails, as the journal then has rows that were not played."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------------ checkpoints

    def checkpoint(self) -> int:
        """Write all streams that changed since the last checkpoint; return the number of bytes written."""
        store, memory = self.store, self.player.streams
        store.home = grown(store.home, memory.table.top)
        alive = memory.alive
        dirty = alive[memory.dirty[alive]]
        streams = np.concatenate([dirty, store.old(dirty.size, alive.size, alive[~memory.dirty[alive]])])
        gone = np.concatenate([np.zeros(0, dtype=np.int64), *self._gone])
        gone = np.setdiff1d(gone, alive)  # numbers in use again are written
        facts = {
            "options": self.options,
            "batches": memory.batches,
            "clock": self.player.clock,
            "top": memory.table.top,
            "alive": int(alive.size),
            "rows": memory.rows,
            "template": repr(self.template),
        }

        def write(file: BinaryIO) -> int:
            return write_streams(memory, file, streams, gone, {})

        with interrupts() as stop:
            written = store.commit(write, streams, alive, gone, facts)
            memory.dirty[:] = False
            self._gone = []
        log.info("%s: checkpoint, %d streams, %d bytes", store.folder, streams.size, written)
        if stop.asked:
            raise KeyboardInterrupt
        return written

    def close(self) -> None:
        """Release the folder."""
        self.store.close()
