"""Batches: validated as a whole, recorded, then played."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg._core.extras import need
from thalweg._core.interrupts import interrupts
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_flag
from thalweg.errors import InputError
from thalweg.fleet.families.base import Family, Sizes
from thalweg.fleet.keys import Keys
from thalweg.fleet.reading import Bad, BatchRows, FleetError, LateRowsError
from thalweg.fleet.streams import Streams

Arrays = Mapping[str, NDArray[Any]]
RESERVE = 32  # words for each new stream, so that births can be undone where no memory is left


class Record:
    """A record of calls, written before they are played. This one keeps nothing: the fleet has no folder."""

    def begin(self) -> None:
        """Prepare for a call."""

    def note(self, facts: Mapping[str, Any], keys: Keys, arrays: Arrays) -> None:
        """Write a call. If it raises, the call is not played."""

    def dropped(self, streams: Ints) -> None:
        """Note the numbers of streams that are about to be dropped."""

    @contextlib.contextmanager
    def in_step(self) -> Iterator[None]:
        """Surround the change that was noted."""
        yield


class Played(NamedTuple):
    """Results of a batch, by the rows that the caller gave."""

    said: Floats  # (n, columns); nan where a row was not played
    following: Ints  # (n,) the next row of the same key, or -1; empty if no key has two rows
    unknown: Ints  # rows whose keys were unknown

    def ahead(self, values: Floats, steps: int) -> Floats:
        """Return the values (n, steps) of each row and of the next rows of its key; nan after the last."""
        found, at = np.full((values.size, steps), np.nan), np.arange(values.size)
        for h in range(steps):
            there = np.flatnonzero(at >= 0)
            found[there, h] = values[at[there]]
            at[there] = self.following[at[there]] if self.following.size else -1
        return found


class Player:
    """The streams of a fleet, and the calls that change them.

    Attributes
    ----------
    family, streams, id_col, target_col
        The learners, their memory, and the names of the columns of keys and targets in messages.
    record : Record
        Calls are written here before they are played.
    clock : str
        The kind of times; empty before the first.
    bad : list of Bad
        Rows left out by the last batch.
    """

    def __init__(self, family: Family, threads: int, id_col: str, target_col: str) -> None:
        self.family, self.id_col, self.target_col = family, id_col, target_col
        self.streams = Streams(family, threads)
        self.record = Record()
        self.clock = ""
        self.bad: list[Bad] = []

    def run(self, rows: BatchRows, on_bad: str = "raise", progress: bool = False) -> Played:
        """Predict every row, then learn it."""
        self.family.check(rows, self.target_col, True)
        data = {"values": rows.target, "columns": rows.columns}
        return self.play("Fleet.run", "run", rows, data, on_bad, progress)

    def play(
        self, owner: str, call: str, rows: BatchRows, data: Arrays, on_bad: str = "raise", progress: bool = False
    ) -> Played:
        """Validate all rows of a batch, then play them."""
        check_choice(owner, "on_bad", on_bad, ("raise", "skip"))
        if check_flag(owner, "progress", progress):
            need("tqdm.auto", "lab", f"{owner}(progress=True)")
        self.record.begin()
        try:
            return self._attempt(owner, call, rows, data, on_bad, progress)
        except LateRowsError as error:
            if on_bad == "raise":
                raise
            rows.bad.update({bad.row: bad.why for bad in error.rows})
        return self._attempt(owner, call, rows, data, on_bad, progress)

    def _attempt(self, owner: str, call: str, rows: BatchRows, data: Arrays, on_bad: str, progress: bool) -> Played:
        memory, n = self.streams, rows.keys.size
        memory.table.check(owner, rows.keys)
        self.check_clock(owner, rows.clock)
        learns = call in ("run", "update")
        self._refuse(owner, rows, on_bad)
        keys, times, good = rows.keys, rows.times, None
        if rows.bad:
            good = np.setdiff1d(np.arange(n), list(rows.bad))
            keys, data = keys.rows(good), {name: array[good] for name, array in data.items()}
            times = None if times is None else times[good]
        times = None if times is None else np.ascontiguousarray(times)
        streams = memory.table.find(keys)
        mark = memory.table.mark()
        unknown = np.flatnonzero(streams < 0)
        reserve = np.empty(RESERVE * unknown.size if learns else 0)  # never written: it takes no memory
        new = memory.table.add(keys, streams) if learns and unknown.size else np.zeros(0, dtype=np.int64)
        with interrupts() as stop:
            try:
                memory.enroll()
                chains, late = memory.chains(streams, times)
                if late:
                    why = "its time is not after that of the row before it of the same key"
                    found = [Bad(r if good is None else int(good[r]), keys.key(r), why) for r in late]
                    raise LateRowsError.of(owner, found, "Nothing was played.")
                memory.birth(new)
                kernel, batch = self.family.batch(call, chains, data)
                if call != "decide":  # nothing to record: other calls make the same change
                    beside = {} if times is None else {"times": times}
                    self.record.note({"call": call, "clock": rows.clock}, keys, {**beside, **data})
            except BaseException:
                del reserve
                memory.unborn(new, mark)
                raise
            with self.record.in_step():
                refused = memory.play(kernel, batch, chains, owner, progress)
                if learns:
                    memory.learned(chains, streams, times)
                    self.clock = self.clock if times is None else rows.clock
        said = self.family.said(call, batch)
        self.family.after(batch)
        if stop.asked:
            raise KeyboardInterrupt
        if refused:
            found = [Bad(r if good is None else int(good[r]), keys.key(r), why) for r, why in refused]
            raise FleetError.of(owner, found, "These streams stopped before these rows; all others were played.")
        if good is None:
            return Played(said, chains.following, unknown)
        whole = np.full((n, said.shape[1]), np.nan)
        whole[good] = said
        following = chains.following
        if following.size:
            following = np.full(n, -1)
            following[good] = np.where(chains.following < 0, -1, good[chains.following])
        return Played(whole, following, good[unknown])

    def _refuse(self, owner: str, rows: BatchRows, on_bad: str) -> None:
        """Refuse a batch with bad rows, or note them."""
        found = [Bad(row, None if "is missing" in why and self.id_col in why else rows.keys.key(row), why)
                 for row, why in sorted(rows.bad.items())]  # fmt: skip
        if found and on_bad == "raise":
            raise FleetError.of(owner, found, "Nothing was played.")
        self.bad = found

    def check_clock(self, owner: str, clock: str) -> None:
        """Refuse times of a different kind than before."""
        if clock and self.clock and clock != self.clock:
            raise InputError(f"{owner}: the times of this fleet are {self.clock}. Got {clock}.")

    def put(self, keys: Keys, sizes: Sizes, words: Ints) -> None:
        """Put a stream in the place of a key."""
        self.record.begin()
        with interrupts():
            self.record.note({"call": "set", "sizes": sizes}, keys, {"words": words})
            with self.record.in_step():
                self.streams.put(keys, sizes, words)

    def drop(self, streams: Ints) -> None:
        """Forget streams."""
        if not streams.size:
            return
        self.record.begin()
        with interrupts():
            self.record.note({"call": "drop"}, self.streams.table.some(streams), {})
            with self.record.in_step():
                self.record.dropped(streams)
                self.streams.drop(streams)
