"""One learner a key, for as many keys as memory holds."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thalweg._core.state import Floats, Ints
from thalweg._interrupts import interrupts
from thalweg._kernels.jit import PLAIN
from thalweg._progress import progress_bar
from thalweg._types import Array
from thalweg._validate import check_choice, check_count, check_text, told
from thalweg.errors import InputError, StateError
from thalweg.files import load
from thalweg.fleet.durable import keys_as_arrays, keys_of_arrays, load_segments, write_streams
from thalweg.fleet.families import Family, Room, family_of
from thalweg.fleet.families.base import Sizes, pointer_to
from thalweg.fleet.kernels import DONE, FULL, REASONS, chain
from thalweg.fleet.journal import Journal, entries
from thalweg.fleet.keys import KeyTable, Keys, grown, read_keys
from thalweg.fleet.reading import Bad, FleetError, Rows, check_numbers, is_frame, read_frame, read_times, values_of
from thalweg.fleet.segments import read_segment
from thalweg.fleet.shelves import Shelf, shift
from thalweg.fleet.store import MANIFEST, TEMPLATE, Store, read_manifest

__all__ = ["Fleet", "FleetError"]

NEVER = -(2**63)  # a time before all others
FEW = 256  # chains for which a second thread is not worth its start
PORTIONS = 100  # of a batch, between which a progress bar moves


class Fleet:
    """A learner for every key, in one object: bit for bit a dict of learners, at a fraction of its cost.

    Parameters
    ----------
    template : learner or estimator
        A fresh one, such as `Forecaster(lags=8)` or `Tracker(Ball(4))`. Every key gets one like it when it comes first.
    id_col, time_col, target_col : str
        The columns of frames with keys, times and targets. `time_col=None`: rows of a key are in order as they come.
    columns : sequence of str
        Features of a `TrackingRegressor`, experts of an `Aggregator`. A `Forecaster` has its own; a `ConformalTracker`
        has the column y_hat, with forecasts.
    threads : int
        How many streams are played at the same time.
    folder : path, optional
        A new folder for the fleet: rows are on disk before their answers are given, and `checkpoint` writes the streams.
        `Fleet.open` continues after whatever happened.

    Attributes
    ----------
    bad : list of (row, key, why)
        Rows that the last call with on_bad="skip" left out.
    batches : int
        Calls that were played.

    Examples
    --------
    >>> import numpy as np, thalweg as tw
    >>> from thalweg.estimators import Forecaster
    >>> fleet = tw.Fleet(Forecaster(season=None), time_col=None)
    >>> rng = np.random.default_rng(0)
    >>> for day in range(20):
    ...     said = fleet.run(["tea", "coffee"], [10 + rng.normal(), 50 + rng.normal()])
    >>> said.round(0).tolist(), len(fleet), fleet["tea"].rounds
    ([10.0, 50.0], 2, 20)
    """

    def __init__(
        self,
        template: Any,
        *,
        id_col: str = "unique_id",
        time_col: str | None = "ds",
        target_col: str = "y",
        columns: Sequence[str] = (),
        threads: int = 2,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.id_col = check_text("Fleet", "id_col", id_col)
        self.time_col = None if time_col is None else check_text("Fleet", "time_col", time_col)
        self.target_col = check_text("Fleet", "target_col", target_col)
        self.threads = check_count("Fleet", "threads", threads, most=256)
        names = [check_text("Fleet", "columns", name) for name in columns]
        self._family: Family = family_of(template, names)
        self._takes_columns = bool(names)
        self.template = template
        self.bad: list[Bad] = []
        self.batches = 0
        self._table = KeyTable()
        self._rooms: list[tuple[Room, Shelf]] = []
        self._number: dict[Sizes, int] = {}  # of rooms
        self._shifts: dict[tuple[int, int], tuple[Ints, Ints, Ints]] = {}
        self._room = np.zeros(0, dtype=np.int32)  # of each stream; -1: not alive
        self._place = np.zeros(0, dtype=np.int64)
        self._latest = np.zeros(0, dtype=np.int64)  # its last time
        self._seen = np.zeros(0, dtype=np.int64)  # the last batch it was in
        self._dirty = np.zeros(0, dtype=np.bool_)  # whether it changed since the last checkpoint
        self._last = np.zeros(0, dtype=np.int64)  # scratch space of `chain`
        self._pool: ThreadPoolExecutor | None = None
        self._fresh = self._room_of(self._family.first)
        self.lost: list[Any] = []  # keys of streams that were damaged on disk
        self._gone: list[Ints] = []  # numbers that were given back since the last checkpoint
        self._store: Store | None = None
        if folder is not None:
            self._found(Path(folder))

    # ------------------------------------------------------------------ rounds

    def run(
        self,
        rows: Any,
        y: Any = None,
        X: Any = None,
        *,
        time: Any = None,
        on_bad: str = "raise",
        progress: bool = False,
    ) -> Any:
        """Predict every row, then learn it: `predict` and `update` in turn, for all keys.

        Parameters
        ----------
        rows : data frame, or list of keys
            A long frame with the columns `id_col`, `time_col`, `target_col` and those of the template. Or keys, with
            the targets y (n,), columns X (n, C) and times (n,) beside them.
        on_bad : {"raise", "skip"}
            Whether rows that cannot be played are an error, and nothing is played; or are left out and listed in
            `bad`. Their results are nan.
        progress : bool
            Whether to show a bar.

        Returns
        -------
        data frame of the same kind, or array
            Keys, times, targets and predictions, made before the target was seen; in the order of the rows.
        """
        owner = "Fleet.run"
        self._family.refuse(owner, "run")
        read = self._read(owner, rows, y, X, time, targets=True)
        self._family.check(read, self.target_col, True)
        said = self._commit(
            owner, "run", read, {"values": read.target, "columns": read.columns}, on_bad, progress=progress
        )
        kept = [self.id_col, *([self.time_col] if self.time_col else []), self.target_col]
        return read.like(kept, self._family.names("run"), said)

    def predict(self, keys: Any, X: Any = None, *, on_bad: str = "raise") -> Any:
        """Predict the next value of each of these keys; nan for a key that is unknown, which stays so.

        `keys` may be a frame with `id_col` and the columns of the template; then one of the same kind comes back.
        """
        owner = "Fleet.predict"
        self._family.refuse(owner, "predict")
        read = self._read(owner, keys, None, X, None, targets=False)
        self._family.check(read, self.target_col, False)
        said = self._commit(owner, "predict", read, {"columns": read.columns}, on_bad)
        return read.like([self.id_col], self._family.names("predict"), said)

    def forecast(self, keys: Any, X: Any = None) -> Array:
        """Forecast the next values of these keys, up to the template's horizon.

        Where there are columns, X (n, horizon, C) has those of the next rounds. Returns an array (n, horizon), or with
        levels (n, horizon, 1 + 2 levels): the mean, then lower and upper bound of each level. A key that is unknown
        has nan.
        """
        owner = "Fleet.forecast"
        self._family.refuse(owner, "forecast")
        names, bad = read_keys(owner, "keys", keys)
        n, H, C = len(names), self.template.horizon, len(self._family.columns)
        columns = np.zeros((n, 0))
        if C:
            columns = values_of(owner, "X", X, (n, H, C)).reshape(n * H, C)
            names = names.rows(np.repeat(np.arange(n), H))
            bad = {row * H + h: why for row, why in bad.items() for h in range(H)}
        elif X is not None:
            raise InputError(f"{owner} takes X only where the template has columns.")
        read = Rows(names, bad, None, np.zeros(0), columns)
        self._family.check(read, self.target_col, False)
        said = self._commit(owner, "forecast", read, {"columns": read.columns}, "raise")
        whole = said.reshape(len(names), -1, H)[:: H if C else 1].transpose(0, 2, 1)
        return np.ascontiguousarray(whole[:, :, 0] if whole.shape[2] == 1 else whole)

    def decide(self, keys: Any) -> Array:
        """Return the decisions of these keys (n, *shape of the domain). A key that is unknown has the first one."""
        owner = "Fleet.decide"
        self._family.refuse(owner, "decide")
        names, bad = read_keys(owner, "keys", keys)
        said = self._commit(owner, "decide", Rows(names, bad, None, np.zeros(0), np.zeros((len(names), 0))), {}, "raise")
        said[self._strangers] = self.template.decision.ravel()
        return said.reshape(len(names), *self.template.domain.shape)

    def update(
        self, keys: Any, y: Any, losses: Any = None, *, time: Any = None, on_bad: str = "raise", progress: bool = False
    ) -> None:
        """Learn one row for each of these keys: targets y (n,), or gradients (n, *shape) and losses (n,) of learners.

        A round that a learner refuses stops that stream before the row; the others finish, and the error lists the
        rows.
        """
        owner = "Fleet.update"
        self._family.refuse(owner, "update")
        names, bad = read_keys(owner, "keys", keys)
        n = len(names)
        times = None if time is None else read_times(owner, time, n)
        if "decide" in self._family.calls:
            data = self._read_feedback(owner, n, y, losses, bad)
        else:
            if losses is not None:
                raise InputError(f"{owner} takes losses for learners only. Give keys and y.")
            data = {"values": values_of(owner, "y", y, (n,))}
            check_numbers(bad, "y", data["values"], missing="forecast" in self._family.calls)
        self._commit(owner, "update", Rows(names, bad, times, np.zeros(0), np.zeros((n, 0))), data, on_bad, progress)

    def _read(self, owner: str, rows: Any, y: Any, X: Any, time: Any, *, targets: bool) -> Rows:
        """Return a batch, of a frame or of arrays."""
        columns = self._family.columns
        if is_frame(rows):
            if y is not None or X is not None or time is not None:
                raise InputError(f"{owner} takes a frame alone: targets, columns and times are in it.")
            time_col, target = (self.time_col, self.target_col) if targets else (None, None)
            return read_frame(owner, rows, self.id_col, time_col, target, columns)
        keys, bad = read_keys(owner, "keys", rows)
        n = len(keys)
        if targets and y is None:
            raise InputError(f"{owner} needs a data frame, or keys and y. Got {told(rows)}.")
        if columns and X is None:
            raise InputError(f"{owner} needs X, with the columns {', '.join(columns)}.")
        if X is not None and not columns:
            raise InputError(f"{owner} takes X only where the template has columns.")
        return Rows(
            keys,
            bad,
            None if time is None else read_times(owner, time, n),
            values_of(owner, "y", y, (n,)) if targets else np.zeros(n),
            values_of(owner, "X", X, (n, len(columns))) if columns else np.zeros((n, 0)),
        )

    def _read_feedback(
        self, owner: str, n: int, gradients: Any, losses: Any, bad: dict[int, str]
    ) -> dict[str, NDArray[Any]]:
        """Return gradients and losses; rows that every learner refuses are noted."""
        template = self.template
        feedback, shape = template._feedback, template.domain.shape
        g = values_of(owner, "gradients", gradients, (n, *shape)).reshape(n, -1)
        if losses is None:
            if template.needs_loss:
                raise InputError(f"{owner}: {type(template).__name__} needs losses too. Call update(keys, g, losses).")
            paid = np.full(n, template.machine.unknown)
        else:
            paid = values_of(owner, "losses", losses, (n,))
            fine = np.isfinite(paid) & (paid >= feedback.floor) & ~(paid - feedback.floor > feedback.largest_loss)
            for row in np.flatnonzero(~fine).tolist():
                bad.setdefault(row, _why(lambda row=row: feedback.read_paid(float(paid[row]))))
        squares = np.einsum("ij,ij->i", g, g)
        for row in np.flatnonzero(~(squares <= feedback.square * (1 - 1e-12))).tolist():
            if not np.isfinite(g[row]).all() or not template.flattens:
                why = _why(lambda row=row: feedback.shorten(g[row].copy()))
                if why:
                    bad.setdefault(row, why)
        return {"gradients": g, "losses": paid}

    # ------------------------------------------------------------------ a batch

    def _commit(
        self,
        owner: str,
        call: str,
        rows: Rows,
        data: Mapping[str, NDArray[Any]],
        on_bad: str,
        progress: bool = False,
    ) -> Floats:
        """Play a batch whose rows were read: all that can be refused is, then it is played."""
        check_choice(owner, "on_bad", on_bad, ("raise", "skip"))
        self._table.check(owner, rows.keys)
        learns, n = call in ("run", "update"), len(rows.keys)
        self._refuse(owner, rows, on_bad)
        keys, times, good = rows.keys, rows.times, None
        if rows.bad:
            good = np.setdiff1d(np.arange(n), list(rows.bad))
            keys, data = keys.rows(good), {name: array[good] for name, array in data.items()}
            times = None if times is None else times[good]
        times = None if times is None else np.ascontiguousarray(times)
        streams = self._table.find(keys)
        new = self._table.add(keys, streams) if learns else np.zeros(0, dtype=np.int64)
        try:
            self._enroll()
            following, heads = self._chains(owner, keys, streams, times, good)
            self._birth(new)
            if call != "decide":  # which changes nothing that another call would not
                self._note({"call": call}, keys, {} if times is None else {"times": times}, data)
        except BaseException:
            self._unborn(new)
            raise
        said, refused = self._play(call, following, heads, streams, data, owner, progress)
        if learns:
            self.batches += 1
            self._seen[streams] = self.batches
            if times is not None:
                np.maximum.at(self._latest, streams, times)
        if refused:
            found = [Bad(r if good is None else int(good[r]), keys[r], why) for r, why in refused]
            raise FleetError.of(owner, found, "These streams stopped before these rows; all others were played.")
        self._strangers = np.flatnonzero(streams < 0)
        if good is None:
            return said
        whole = np.full((n, said.shape[1]), np.nan)
        whole[good] = said
        return whole

    def _refuse(self, owner: str, rows: Rows, on_bad: str) -> None:
        """Refuse a batch with bad rows, or note them."""
        found = [Bad(row, None if "is missing" in why and self.id_col in why else rows.keys[row], why)
                 for row, why in sorted(rows.bad.items())]  # fmt: skip
        if found and on_bad == "raise":
            raise FleetError.of(owner, found, "Nothing was played.")
        self.bad = found

    def _enroll(self) -> None:
        """Make room in the arrays that have an entry for every stream."""
        top = self._table.top
        if top > self._room.size:
            self._room, self._place = grown(self._room, top, -1), grown(self._place, top)
            self._latest, self._seen = grown(self._latest, top, NEVER), grown(self._seen, top)
            self._dirty, self._last = grown(self._dirty, top), grown(self._last, top, -1)

    def _chains(
        self, owner: str, keys: Keys, streams: Ints, times: Ints | None, good: Ints | None
    ) -> tuple[Ints, Ints]:
        """Return the row after each row, and the first row of every stream."""
        n = streams.size
        order = np.arange(n)
        if times is not None and n > 1 and (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
        following, heads = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        count = int(chain(streams, order, self._last, following, heads))
        heads = heads[:count]
        if times is not None:
            late = np.flatnonzero((following >= 0) & (times[following] <= times))
            rows = [*following[late].tolist(), *heads[times[heads] <= self._latest[streams[heads]]].tolist()]
            if rows:
                why = "its time is not after that of the row before it of the same key"
                found = [Bad(r if good is None else int(good[r]), keys[r], why) for r in sorted(rows)]
                raise FleetError.of(owner, found, "Nothing was played.")
        return following, heads

    def _birth(self, streams: Ints) -> None:
        """Give fresh streams their memory."""
        if not streams.size:
            return
        room, shelf = self._rooms[self._fresh]
        places = shelf.take(streams.size)
        shelf.write(places, room.seats[0].fresh)
        self._room[streams], self._place[streams] = self._fresh, places
        self._latest[streams], self._seen[streams], self._dirty[streams] = NEVER, self.batches, True

    def _unborn(self, streams: Ints) -> None:
        """Undo births."""
        born = streams[self._room[streams] >= 0] if self._room.size > streams.max(initial=-1) else streams[:0]
        self._rooms[self._fresh][1].give(self._place[born])
        self._room[born] = -1
        self._table.remove(streams)

    def _play(
        self,
        call: str,
        following: Ints,
        heads: Ints,
        streams: Ints,
        data: Mapping[str, NDArray[Any]],
        owner: str,
        progress: bool,
    ) -> tuple[Floats, list[tuple[int, str]]]:
        """Play chains; returns results and the rows that were refused, with the reasons."""
        kernel, batch = self._family.batch(call, following, data)
        refused: list[tuple[int, str]] = []
        size = max(FEW, -(-heads.size // PORTIONS)) if progress else max(heads.size, 1)
        with interrupts() as stop, progress_bar(owner, heads.size, progress, "stream") as tick:
            for begin in range(0, heads.size, size):
                some = heads[begin : begin + size]
                refused += self._play_some(kernel, batch, some, streams)
                tick(some.size)
            self._dirty[streams[heads]] = True
        self._family.after(batch)
        if stop.asked:
            raise KeyboardInterrupt
        return self._family.said(call, batch), refused

    def _play_some(self, kernel: Any, batch: Any, heads: Ints, streams: Ints) -> list[tuple[int, str]]:
        refused: list[tuple[int, str]] = []
        stuck: set[tuple[int, int]] = set()
        while heads.size:
            rooms = self._room[streams[heads]]
            ends = np.empty(heads.size, dtype=np.int64)
            for number in np.unique(rooms).tolist():
                mine = np.flatnonzero(rooms == number) if (rooms != number).any() else slice(None)
                ends[mine] = self._play_room(number, kernel, batch, heads[mine], streams)
            left = ends[ends != DONE]
            rows, why = left // REASONS, left % REASONS
            full = why == FULL
            for row, reason in zip(rows[~full].tolist(), why[~full].tolist(), strict=True):
                said = self._mend(batch, row, reason, int(streams[row]), stuck)
                if said:
                    refused.append((row, said))
                    full[rows == row] = False
                else:
                    full[rows == row] = True
                    why[rows == row] = -1
            lacking = rows[full & (why == FULL)]
            for row, said in self._grow(lacking, streams):
                refused.append((row, said))
                full[rows == row] = False
            heads = rows[full]
        return sorted(refused)

    def _play_room(self, number: int, kernel: Any, batch: Any, heads: Ints, streams: Ints) -> Ints:
        """Play chains of streams of one class; returns the results of their steps."""
        room, shelf = self._rooms[number]
        places = self._place[streams[heads]]
        bases = shelf.addresses(places)
        step = pointer_to(kernel, room.seats[0].tree, batch)
        if PLAIN:
            words = shelf.read(places)
            ends = room.seats[0].play(step, batch, words, bases, heads)
            shelf.write(places, words)
            return ends
        count = len(room.seats) if heads.size >= FEW else 1
        cuts = [heads.size * i // count for i in range(count + 1)]

        def part(i: int) -> Ints:
            some = slice(cuts[i], cuts[i + 1])
            return room.seats[i].play(step, batch, None, bases[some], np.ascontiguousarray(heads[some]))

        if count == 1:
            return part(0)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="thalweg-fleet")
        return np.concatenate(list(self._pool.map(part, range(count))))

    def _mend(self, batch: Any, row: int, why: int, stream: int, stuck: set[tuple[int, int]]) -> str:
        """Mend a row that was refused, once; or return the reason why it cannot be played."""
        learner = self._visit(stream)
        if (row, why) in stuck:
            return "it was refused"
        stuck.add((row, why))
        return self._family.mend(batch, row, why, learner)

    # ------------------------------------------------------------------ growth

    def _room_of(self, sizes: Sizes) -> int:
        """Return the number of the class with these sizes, a new one if there is none."""
        number = self._number.get(sizes)
        if number is None:
            room = self._family.room(sizes, self.threads)
            number = self._number[sizes] = len(self._rooms)
            self._rooms.append((room, Shelf(room.seats[0].width)))
        return number

    def _visit(self, stream: int) -> Any:
        """Return an ordinary learner with the state of a stream, to be asked and not to be played."""
        room, shelf = self._rooms[self._room[stream]]
        memory = self._family.memory(room.learner)
        memory.block.memory[:] = shelf.read(self._place[stream : stream + 1])[0, : memory.block.memory.size]
        return room.learner

    def _grow(self, rows: Ints, streams: Ints) -> list[tuple[int, str]]:
        """Move streams that have no capacity for these rows to larger classes; returns those that cannot be."""
        refused: list[tuple[int, str]] = []
        wanted: dict[tuple[int, int], list[tuple[int, Mapping[str, Sequence[int]]]]] = {}
        for row in rows.tolist():
            stream = int(streams[row])
            here = int(self._room[stream])
            growth = self._family.grow(self._visit(stream))
            if growth.sizes == self._rooms[here][0].sizes and not growth.fields:
                refused.append((row, "it has no capacity for another round"))
                continue
            wanted.setdefault((here, self._room_of(growth.sizes)), []).append((stream, growth.fields))
        for (here, there), found in wanted.items():
            some = np.array([stream for stream, _ in found])
            try:
                self._move(here, there, some, [fields for _, fields in found])
            except MemoryError:
                lacking = np.isin(streams[rows], some)
                refused += [(row, "there is no memory for its stream to grow") for row in rows[lacking].tolist()]
        return refused

    def _move(self, here: int, there: int, streams: Ints, fields: list[Mapping[str, Sequence[int]]]) -> None:
        """Move streams from one class to another, and set fields there."""
        (_, shelf), (room, other) = self._rooms[here], self._rooms[there]
        words = shelf.read(self._place[streams])
        if here != there:
            words = self._shifted(here, there, words)
        plan = self._family.memory(room.learner).block.plan
        for name in fields[0]:
            _, shape, first = plan._layout[0][name]
            words[:, first : first + int(np.prod(shape))] = [one[name] for one in fields]
        if here == there:
            shelf.write(self._place[streams], words)
            return
        places = other.take(streams.size)
        other.write(places, words)
        shelf.give(self._place[streams])
        self._room[streams], self._place[streams] = there, places

    def _shifted(self, here: int, there: int, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return words of streams as they are in another class."""
        mine, theirs = (self._family.memory(self._rooms[k][0].learner).block.plan for k in (here, there))
        found = self._shifts.get((here, there))
        if found is None:
            found = self._shifts[here, there] = shift(mine, theirs)
        source, target, begin = found
        moved = np.empty((len(words), self._rooms[there][1].width), dtype=np.int64)
        moved[:, : begin.size] = begin
        moved[:, target] = words[:, source]
        moved[:, begin.size :] = words[:, mine.words :]
        return moved

    # ------------------------------------------------------------------ one stream

    def _find(self, owner: str, key: Any) -> tuple[Keys, int]:
        names, bad = read_keys(owner, "key", [key])
        if bad:
            raise InputError(f"{owner}: a key must be an integer or a string. Got {told(key)}.")
        return names, int(self._table.find(names)[0]) if names.kind == self._table.kind else -1

    def __getitem__(self, key: Any) -> Any:
        """Return an ordinary learner with the state of this key. What it plays from there on is not the fleet's."""
        _, stream = self._find("Fleet[key]", key)
        if stream < 0:
            raise KeyError(key)
        room, shelf = self._rooms[self._room[stream]]
        return self._family.learner(room.sizes, shelf.read(self._place[stream : stream + 1])[0])

    def __setitem__(self, key: Any, learner: Any) -> None:
        """Put a learner with the template's arguments in the place of a key, whether it is known or not."""
        owner = "Fleet[key] = learner"
        why = self._family.same(learner)
        if why:
            raise InputError(f"{owner}: {told(learner)} does not belong in this fleet: {why}.")
        names, _ = self._find(owner, key)
        self._table.check(owner, names)
        sizes, words = self._family.sizes(learner), self._family.words(learner)
        self._note({"call": "set", "sizes": sizes}, names, {"words": words}, {})
        self._put(names, sizes, words)

    def _put(self, keys: Keys, sizes: Sizes, words: Ints) -> None:
        """Put a stream in the place of a key."""
        number = self._room_of(sizes)
        shelf = self._rooms[number][1]
        found = self._table.find(keys)
        new = self._table.add(keys, found)
        self._enroll()
        stream, place = int(found[0]), shelf.take(1)
        shelf.write(place, words[None])
        if new.size:
            self._latest[stream] = NEVER
        else:
            self._rooms[self._room[stream]][1].give(self._place[stream : stream + 1])
        self._room[stream], self._place[stream] = number, place[0]
        self._seen[stream], self._dirty[stream] = self.batches, True

    def __delitem__(self, key: Any) -> None:
        """Forget a key. Its place is used again."""
        _, stream = self._find("del Fleet[key]", key)
        if stream < 0:
            raise KeyError(key)
        self._drop(np.array([stream]))

    def _drop(self, streams: Ints) -> None:
        if not streams.size:
            return
        self._note({"call": "drop"}, self._table.some(streams), {}, {})
        self._gone.append(streams)
        for number in np.unique(self._room[streams]).tolist():
            mine = streams[self._room[streams] == number]
            self._rooms[number][1].give(self._place[mine])
        self._room[streams] = -1
        self._table.remove(streams)

    def forget(self, *, idle_since: Any) -> int:
        """Forget all keys whose last row is before a time, and return how many. Their places are used again.

        `idle_since` is a time as those of `time_col`; for keys that came without times, a number of `batches`.
        """
        since, by = idle_since, self._seen
        if self.time_col is not None:
            since, by = read_times("Fleet.forget", np.array([idle_since]), 1)[0], self._latest
        alive = np.flatnonzero(self._table.alive)
        idle = alive[by[alive] < since]
        self._drop(idle)
        return int(idle.size)

    def __contains__(self, key: Any) -> bool:
        return self._find("key in Fleet", key)[1] >= 0

    def __len__(self) -> int:
        return self._table.count

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def keys(self) -> list[Any]:
        """Return all keys."""
        return self._table.keys(np.flatnonzero(self._table.alive))

    def rounds(self, keys: Any = None) -> Ints:
        """Return how many rounds these keys have played, 0 where one is unknown; all keys when left out."""
        if keys is None:
            streams = np.flatnonzero(self._table.alive)
        else:
            names, _ = read_keys("Fleet.rounds", "keys", keys)
            self._table.check("Fleet.rounds", names)
            streams = self._table.find(names)
        found = np.zeros(streams.size, dtype=np.int64)
        rooms = np.where(streams < 0, -1, self._room[streams]) if self._room.size else np.full(streams.size, -1)
        for number in np.unique(rooms[rooms >= 0]).tolist():
            room, shelf = self._rooms[number]
            mine = np.flatnonzero(rooms == number)
            first = self._family.memory(room.learner).block.plan._layout[0][self._family.rounds_at][2]
            found[mine] = shelf.column(self._place[streams[mine]], first)
        return found

    # ------------------------------------------------------------------ on disk

    def _found(self, folder: Path) -> None:
        """Make the folder of a new fleet."""
        if (folder / MANIFEST).exists():
            raise InputError(f"{folder} has a fleet already. Continue it: Fleet.open({str(folder)!r}).")
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(folder)
        try:
            self.template.save(folder / TEMPLATE)
            self._store = store
            self.checkpoint()
        except BaseException:
            self._store = None
            store.close()
            raise

    @property
    def _options(self) -> dict[str, Any]:
        columns = list(self._family.columns) if self._takes_columns else []
        return {"id_col": self.id_col, "time_col": self.time_col, "target_col": self.target_col, "columns": columns}

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, threads: int = 2, on_damage: str = "raise") -> Self:
        """Continue a fleet from its folder: the last checkpoint, and all rows that came after it.

        on_damage="drop" goes on without streams whose bytes are damaged; `lost` lists their keys. Otherwise they are an
        error that lists them.
        """
        path = Path(folder)
        check_choice("Fleet.open", "on_damage", on_damage, ("raise", "drop"))
        manifest = read_manifest(path)
        template = load(path / TEMPLATE)
        fleet = cls(template, threads=threads, **manifest["facts"]["options"])
        store = Store(path)
        try:
            fleet._load(store, manifest, on_damage == "drop")
        except BaseException:
            store.close()
            raise
        return fleet

    def _load(self, store: Store, manifest: dict[str, Any], drop: bool) -> None:
        facts, segments = manifest["facts"], []
        for _, segment in store.load(manifest):
            if isinstance(segment, StateError):
                raise segment
            segments.append(segment)
        lost = load_segments(self, segments, facts["top"])
        path = store.journal_path(store.generation)
        if lost and not drop:
            names = ", ".join(repr(key) for key, _ in lost[:5])
            raise FleetError(
                f"Fleet.open: {len(lost)} streams are damaged on disk: {names}{', ...' * (len(lost) > 5)}. Restore the "
                "folder from a backup, or go on without them: on_damage='drop'.",
                [Bad(-1, key, "damaged on disk") for key, _ in lost],
            )
        self.lost = [key for key, _ in lost]
        self.batches = facts["batches"]
        store.home = np.zeros(facts["top"], dtype=np.int64)
        for (generation, _, _), segment in zip(store.segments, reversed(segments), strict=True):
            store.home[segment.names.streams] = generation
        self._dirty[:] = False
        if lost:
            self._gone.append(np.array([stream for _, stream in lost]))
        end = self._replay(path, drop)
        store.journal = Journal(path, end)
        self._store = store
        if lost:
            self.checkpoint()

    def _replay(self, path: Path, drop: bool) -> int:
        """Play the calls of a journal again; returns where it ends."""
        end = 0
        try:
            for facts, arrays, end in entries(path):
                self._again(facts, arrays)
        except StateError:
            if not drop:
                raise
        return end

    def _again(self, facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        keys = keys_of_arrays(arrays)
        for name in ("keys", "lengths", "text"):
            arrays.pop(name, None)
        if self.lost:
            lost = set(self.lost)
            kept = np.array([row for row in range(len(keys)) if keys[row] not in lost], dtype=np.int64)
            n, keys = len(keys), keys.rows(kept)
            if facts["call"] not in ("set", "drop"):
                arrays = {name: one[kept] if len(one) == n else one for name, one in arrays.items()}
            elif not kept.size:
                return
        if facts["call"] == "set":
            self._put(keys, tuple((name, size) for name, size in facts["sizes"]), arrays["words"])
        elif facts["call"] == "drop":
            self._drop(self._table.find(keys))
        else:
            times = arrays.pop("times", None)
            with contextlib.suppress(FleetError):  # rows that were refused were refused before
                n = len(keys)
                rows = Rows(keys, {}, times, np.zeros(n), np.zeros((n, 0)))
                self._commit("Fleet.open", facts["call"], rows, arrays, "raise")

    def _note(
        self,
        facts: Mapping[str, Any],
        keys: Keys,
        arrays: Mapping[str, NDArray[Any]],
        data: Mapping[str, NDArray[Any]],
    ) -> None:
        """Write a call to the journal, if there is one."""
        if self._store is None:
            return
        journal = self._store.journal
        if journal is None:
            raise InputError("This fleet was closed. Continue it: Fleet.open(folder).")
        journal.append(facts, {**keys_as_arrays(keys), **arrays, **data})

    def checkpoint(self) -> int:
        """Write all streams that changed since the last checkpoint; returns the bytes written.

        It is there or it is not: a crash, or a full disk, leaves the one before, and the rows that came after it.
        """
        store = self._store
        if store is None:
            raise InputError("Fleet.checkpoint needs a fleet with folder=... For bytes in memory: to_bytes().")
        store.home = grown(store.home, self._table.top)
        alive = np.flatnonzero(self._table.alive)
        dirty = alive[self._dirty[alive]]
        streams = np.concatenate([dirty, store.old(dirty.size, alive.size, alive[~self._dirty[alive]])])
        gone = np.concatenate([np.zeros(0, dtype=np.int64), *self._gone])
        gone = np.setdiff1d(gone, alive)  # numbers that were used again are written
        facts = {"options": self._options, "batches": self.batches, "top": self._table.top, "alive": int(alive.size)}
        written = store.commit(
            lambda file: write_streams(self, file, streams, gone, {}), streams, alive, gone, facts
        )
        self._dirty[:] = False
        self._gone = []
        return written

    def close(self) -> None:
        """Give the folder back: another process may open it. Nothing is lost, with or without a checkpoint."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def to_bytes(self) -> bytes:
        """Return all streams as bytes, for `from_bytes` with the same template."""
        file = io.BytesIO()
        alive = np.flatnonzero(self._table.alive)
        facts = {"batches": self.batches, "top": self._table.top, "settings": self._family.template._settings()}
        write_streams(self, file, alive, np.zeros(0, dtype=np.int64), facts)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, template: Any, data: bytes, **options: Any) -> Self:
        """Return a fleet with the streams that `to_bytes` gave; `template` and options as of the constructor."""
        fleet = cls(template, **options)
        segment = read_segment("Fleet.from_bytes", data)
        if segment.facts["settings"] != fleet._family.template._settings():
            raise StateError("Fleet.from_bytes: these streams have other arguments than the template.")
        lost = load_segments(fleet, [segment], segment.facts["top"])
        if lost or segment.damage:
            raise StateError(f"Fleet.from_bytes: the bytes are damaged, {len(lost)} streams are lost.")
        fleet.batches = segment.facts["batches"]
        return fleet

    # ------------------------------------------------------------------ looking at it

    @property
    def nbytes(self) -> int:
        """Bytes of all streams, their keys, and the arrays with an entry for each."""
        beside = self._room, self._place, self._latest, self._seen, self._dirty, self._last
        return sum(shelf.nbytes for _, shelf in self._rooms) + self._table.nbytes + sum(one.nbytes for one in beside)

    def __repr__(self) -> str:
        return f"Fleet of {len(self)} {type(self.template).__name__}, {self.nbytes / 1e6:.1f} MB"


def _why(check: Callable[[], Any]) -> str:
    """Return the reason why a check fails, or nothing."""
    try:
        check()
    except InputError as error:
        return str(error).partition(": ")[2] or str(error)
    return ""

