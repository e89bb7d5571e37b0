"""One learner per key, for as many keys as fit in memory."""

from __future__ import annotations

import contextlib
import io
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from thalweg._core.archive import read_path
from thalweg._core.html import fact_table
from thalweg._core.state import Floats, Ints
from thalweg._extras import need
from thalweg._interrupts import interrupts
from thalweg._types import Array
from thalweg._validate import check_choice, check_count, check_flag, check_items, check_text, told
from thalweg.errors import InputError, StateError
from thalweg.files import load
from thalweg.fleet.durable import keys_as_arrays, keys_of_arrays, load_segments, write_streams
from thalweg.fleet.families import Family, family_of
from thalweg.fleet.journal import Journal, entries
from thalweg.fleet.keys import Keys, grown, read_keys
from thalweg.fleet.reading import (
    Bad,
    BatchRows,
    FleetError,
    LateRowsError,
    check_numbers,
    is_frame,
    read_frame,
    read_moment,
    read_times,
    values_of,
)
from thalweg.fleet.segments import read_segment
from thalweg.fleet.store import MANIFEST, TEMPLATE, FleetStore, read_manifest, sync
from thalweg.fleet.streams import Streams

__all__ = ["Fleet", "FleetError"]

log = logging.getLogger("thalweg.fleet")

LONG = 1 << 26  # bytes; a journal below this size may be longer than the streams


class Fleet:
    """A learner for every key in one object: bit for bit equal to a dict of learners, at a fraction of the cost.

    Parameters
    ----------
    template : learner or estimator
        A fresh one, such as `Forecaster(lags=8)` or `Tracker(Ball(4))`. Every new key gets one like it.
    id_col, time_col, target_col : str
        The columns of frames with keys, times and targets. `time_col=None`: rows of a key are taken in the given order.
    columns : sequence of str
        Features of a `TrackingRegressor`, experts of an `Aggregator`. A `Forecaster` has its own; a `ConformalTracker`
        has the column y_hat, with forecasts.
    threads : int
        Number of threads that play streams.
    folder : path, optional
        A new folder for the fleet. Rows are written to disk before their predictions are returned, and `checkpoint`
        writes the streams. `Fleet.open` continues after a crash or a restart.

    Attributes
    ----------
    bad : list of (row, key, why)
        Rows left out by the last call with on_bad="skip".
    batches : int
        Number of calls that were learned.

    Examples
    --------
    >>> import numpy as np, thalweg as tw
    >>> from thalweg.estimators import Forecaster
    >>> fleet = tw.Fleet(Forecaster(season=None), time_col=None)
    >>> rng = np.random.default_rng(0)
    >>> for day in range(20):
    ...     said = fleet.run(["tea", "coffee"], [10 + rng.normal(), 50 + rng.normal()])
    >>> (said // 8).tolist(), len(fleet), fleet["tea"].rounds
    ([1.0, 6.0], 2, 20)
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
        named = check_items("Fleet", "columns", columns, "a list of names")
        names = [check_text("Fleet", "columns", name) for name in named]
        self._family: Family = family_of(template, names)
        self._takes_columns = bool(names)
        self.template = template
        self.bad: list[Bad] = []
        self._clock = ""  # the kind of its times; empty before the first
        self._streams = Streams(self._family, self.threads)
        self.lost: list[Any] = []  # keys of streams that were damaged on disk
        self._gone: list[Ints] = []  # numbers of streams dropped since the last checkpoint
        self._store: FleetStore | None = None
        if folder is not None:
            self._found(Path(read_path("Fleet", folder)))

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
        """Predict every row, then learn it, like `predict` and `update` in turn for all keys.

        Parameters
        ----------
        rows : data frame, or list of keys
            A long frame with the columns `id_col`, `time_col`, `target_col` and those of the template. Or keys, with
            the targets y (n,), columns X (n, C) and times (n,) beside them.
        on_bad : {"raise", "skip"}
            Whether invalid rows raise an error, with nothing played, or are left out and listed in `bad`. Their results
            are then nan.
        progress : bool
            Whether to show a progress bar.

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
        """Predict the next value of each of these keys; nan for unknown keys, which are not added.

        `keys` may be a frame with `id_col` and the columns of the template; then the result is one of the same kind.
        """
        owner = "Fleet.predict"
        self._family.refuse(owner, "predict")
        read = self._read(owner, keys, None, X, None, targets=False)
        self._family.check(read, self.target_col, False)
        said = self._commit(owner, "predict", read, {"columns": read.columns}, on_bad)
        return read.like([self.id_col], self._family.names("predict"), said)

    def forecast(self, keys: Any, X: Any = None) -> Array:
        """Forecast the next values of these keys, up to the template's horizon.

        If there are columns, X (n, horizon, C) has those of the next rounds. Returns an array (n, horizon), or with
        levels (n, horizon, 1 + 2 levels): the mean, then the lower and upper bound of each level. Unknown keys get nan.
        """
        owner = "Fleet.forecast"
        self._family.refuse(owner, "forecast")
        names, bad = read_keys(owner, "keys", keys)
        n, H, C = names.size, self.template.horizon, len(self._family.columns)
        columns = np.zeros((n, 0))
        if C:
            columns = values_of(owner, "X", X, (n, H, C)).reshape(n * H, C)
            names = names.rows(np.repeat(np.arange(n), H))
            bad = {row * H + h: why for row, why in bad.items() for h in range(H)}
        elif X is not None:
            raise InputError(f"{owner} takes X only where the template has columns.")
        read = BatchRows(names, bad, None, np.zeros(0), columns)
        self._family.check(read, self.target_col, False)
        said = self._commit(owner, "forecast", read, {"columns": read.columns}, "raise")
        width = 1 + 2 * len(self.template.levels)
        whole = said.reshape(names.size, width, H)[:: H if C else 1].transpose(0, 2, 1)
        return np.ascontiguousarray(whole[:, :, 0] if whole.shape[2] == 1 else whole)

    def decide(self, keys: Any) -> Array:
        """Return the decisions of these keys (n, *shape of the domain); the first decision for unknown keys."""
        owner = "Fleet.decide"
        self._family.refuse(owner, "decide")
        names, bad = read_keys(owner, "keys", keys)
        said = self._commit(
            owner, "decide", BatchRows(names, bad, None, np.zeros(0), np.zeros((names.size, 0))), {}, "raise"
        )
        said[self._strangers] = self.template.decision.ravel()
        return said.reshape(names.size, *self.template.domain.shape)

    def update(
        self, keys: Any, y: Any, losses: Any = None, *, time: Any = None, on_bad: str = "raise", progress: bool = False
    ) -> None:
        """Learn one row for each of these keys: targets y (n,), or gradients (n, *shape) and losses (n,) of learners.

        If a learner refuses a round, its stream stops before that row, the other streams finish, and the error lists
        the rows.
        """
        owner = "Fleet.update"
        self._family.refuse(owner, "update")
        names, bad = read_keys(owner, "keys", keys)
        n = names.size
        times, clock = (None, "") if time is None else read_times(owner, time, n)
        if "decide" in self._family.calls:
            data = self._read_feedback(owner, n, y, losses, bad)
        else:
            if losses is not None:
                raise InputError(f"{owner} takes losses for learners only. Give keys and y.")
            data = {"values": values_of(owner, "y", y, (n,))}
            check_numbers(bad, "y", data["values"], missing="forecast" in self._family.calls)
        rows = BatchRows(names, bad, times, np.zeros(0), np.zeros((n, 0)), clock=clock)
        self._commit(owner, "update", rows, data, on_bad, progress)

    def _read(self, owner: str, rows: Any, y: Any, X: Any, time: Any, *, targets: bool) -> BatchRows:
        """Return a batch from a frame or from arrays."""
        columns = self._family.columns
        if is_frame(rows):
            if y is not None or X is not None or time is not None:
                raise InputError(f"{owner} takes a frame alone: targets, columns and times are in it.")
            time_col, target = (self.time_col, self.target_col) if targets else (None, None)
            return read_frame(owner, rows, self.id_col, time_col, target, columns)
        keys, bad = read_keys(owner, "keys", rows)
        n = keys.size
        if targets and y is None:
            raise InputError(f"{owner} needs a data frame, or keys and y. Got {told(rows)}.")
        if columns and X is None:
            raise InputError(f"{owner} needs X, with the columns {', '.join(columns)}.")
        if X is not None and not columns:
            raise InputError(f"{owner} takes X only where the template has columns.")
        times, clock = (None, "") if time is None else read_times(owner, time, n)
        return BatchRows(
            keys,
            bad,
            times,
            values_of(owner, "y", y, (n,)) if targets else np.zeros(n),
            values_of(owner, "X", X, (n, len(columns))) if columns else np.zeros((n, 0)),
            clock=clock,
        )

    def _read_feedback(
        self, owner: str, n: int, gradients: Any, losses: Any, bad: dict[int, str]
    ) -> dict[str, NDArray[Any]]:
        """Return gradients and losses; note in `bad` the rows that every learner would refuse."""
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
                bad.setdefault(row, _why(feedback.read_paid, float(paid[row])))
        squares = np.einsum("ij,ij->i", g, g)
        for row in np.flatnonzero(~(squares <= feedback.square * (1 - 1e-12))).tolist():
            if not np.isfinite(g[row]).all() or not template.flattens:
                why = _why(feedback.shorten, g[row].copy())
                if why:
                    bad.setdefault(row, why)
        return {"gradients": g, "losses": paid}

    # ------------------------------------------------------------------ a batch

    def _commit(
        self,
        owner: str,
        call: str,
        rows: BatchRows,
        data: Mapping[str, NDArray[Any]],
        on_bad: str,
        progress: bool = False,
    ) -> Floats:
        """Validate all rows of a batch, then play them."""
        check_choice(owner, "on_bad", on_bad, ("raise", "skip"))
        self._shorten()
        try:
            return self._attempt(owner, call, rows, data, on_bad, progress)
        except LateRowsError as error:
            if on_bad == "raise":
                raise
            rows.bad.update({bad.row: bad.why for bad in error.rows})
        return self._attempt(owner, call, rows, data, on_bad, progress)

    def _attempt(
        self,
        owner: str,
        call: str,
        rows: BatchRows,
        data: Mapping[str, NDArray[Any]],
        on_bad: str,
        progress: bool,
    ) -> Floats:
        if check_flag(owner, "progress", progress):
            need("tqdm.auto", "lab", f"{owner}(progress=True)")
        self._streams.table.check(owner, rows.keys)
        self._check_clock(owner, rows.clock)
        learns, n = call in ("run", "update"), rows.keys.size
        self._refuse(owner, rows, on_bad)
        keys, times, good = rows.keys, rows.times, None
        if rows.bad:
            good = np.setdiff1d(np.arange(n), list(rows.bad))
            keys, data = keys.rows(good), {name: array[good] for name, array in data.items()}
            times = None if times is None else times[good]
        times = None if times is None else np.ascontiguousarray(times)
        memory = self._streams
        streams = memory.table.find(keys)
        mark = memory.table.mark()
        new = memory.table.add(keys, streams) if learns else np.zeros(0, dtype=np.int64)
        with interrupts() as stop:
            try:
                memory.enroll()
                following, heads, late = memory.chains(streams, times)
                if late:
                    why = "its time is not after that of the row before it of the same key"
                    found = [Bad(r if good is None else int(good[r]), keys.key(r), why) for r in late]
                    raise LateRowsError.of(owner, found, "Nothing was played.")
                memory.birth(new)
                kernel, batch = self._family.batch(call, following, data)
                if call != "decide":  # nothing to record: other calls make the same change
                    facts, beside = {"call": call, "clock": rows.clock}, {} if times is None else {"times": times}
                    self._note(facts, keys, beside, data)
            except BaseException:
                memory.unborn(new, mark)
                raise
            with self._in_step():
                refused = memory.play(kernel, batch, heads, streams, owner, progress)
                if learns:
                    memory.batches += 1
                    memory.rows += streams.size
                    memory.seen[streams] = memory.batches
                    if times is not None:
                        np.maximum.at(memory.latest, streams, times)
                        self._clock = rows.clock
        said = self._family.said(call, batch)
        self._family.after(batch)
        if stop.asked:
            raise KeyboardInterrupt
        if refused:
            found = [Bad(r if good is None else int(good[r]), keys.key(r), why) for r, why in refused]
            raise FleetError.of(owner, found, "These streams stopped before these rows; all others were played.")
        self._strangers = np.flatnonzero(streams < 0)
        if good is None:
            return said
        whole = np.full((n, said.shape[1]), np.nan)
        whole[good] = said
        return whole

    def _refuse(self, owner: str, rows: BatchRows, on_bad: str) -> None:
        """Refuse a batch with bad rows, or note them."""
        found = [Bad(row, None if "is missing" in why and self.id_col in why else rows.keys.key(row), why)
                 for row, why in sorted(rows.bad.items())]  # fmt: skip
        if found and on_bad == "raise":
            raise FleetError.of(owner, found, "Nothing was played.")
        self.bad = found

    def _check_clock(self, owner: str, clock: str) -> None:
        """Refuse times of a different kind than before."""
        if clock and self._clock and clock != self._clock:
            raise InputError(f"{owner}: the times of this fleet are {self._clock}. Got {clock}.")

    # ------------------------------------------------------------------ one stream

    def _find(self, owner: str, key: Any) -> tuple[Keys, int]:
        names, bad = read_keys(owner, "key", [key])
        if bad:
            raise InputError(f"{owner}: a key must be an integer or a string. Got {told(key)}.")
        return names, int(self._streams.table.find(names)[0]) if names.kind == self._streams.table.kind else -1

    def __getitem__(self, key: Any) -> Any:
        """Return an ordinary learner with the state of this key. Its further rounds do not change the fleet."""
        _, stream = self._find("Fleet[key]", key)
        if stream < 0:
            raise KeyError(key)
        return self._streams.learner(stream)

    def __setitem__(self, key: Any, learner: Any) -> None:
        """Set the learner of a key, known or new. It must have the template's arguments."""
        owner = "Fleet[key] = learner"
        why = self._family.same(learner)
        if why:
            raise InputError(f"{owner}: {told(learner)} does not belong in this fleet: {why}.")
        names, _ = self._find(owner, key)
        self._streams.table.check(owner, names)
        sizes, words = self._family.sizes(learner), self._family.words(learner)
        with interrupts():
            self._note({"call": "set", "sizes": sizes}, names, {"words": words}, {})
            with self._in_step():
                self._streams.put(names, sizes, words)

    def __delitem__(self, key: Any) -> None:
        """Forget a key. Its memory is reused."""
        _, stream = self._find("del Fleet[key]", key)
        if stream < 0:
            raise KeyError(key)
        self._drop(np.array([stream]))

    def _drop(self, streams: Ints) -> None:
        if not streams.size:
            return
        with interrupts():
            self._note({"call": "drop"}, self._streams.table.some(streams), {}, {})
            with self._in_step():
                self._gone.append(streams)
                self._streams.drop(streams)

    def forget(self, *, idle_since: Any) -> int:
        """Forget all keys whose last row is before a time, and return their number. Their memory is reused.

        `idle_since` is a time like those in `time_col`; for keys without times, a value of `batches`.
        """
        owner = "Fleet.forget"
        if self._clock:
            since, clock = read_moment(owner, idle_since)
            self._check_clock(owner, clock)
            by = self._streams.latest
        else:
            since, by = check_count(owner, "idle_since", idle_since, least=0), self._streams.seen
        alive = self._streams.alive
        idle = alive[by[alive] < since]
        self._drop(idle)
        return int(idle.size)

    def __contains__(self, key: Any) -> bool:
        return self._find("key in Fleet", key)[1] >= 0

    def __len__(self) -> int:
        return self._streams.table.count

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def keys(self) -> list[Any]:
        """Return all keys."""
        return self._streams.table.keys(self._streams.alive)

    def rounds(self, keys: Any = None) -> Ints:
        """Return the number of rounds played by these keys (by default, all keys); 0 for unknown keys."""
        if keys is None:
            streams = self._streams.alive
        else:
            names, _ = read_keys("Fleet.rounds", "keys", keys)
            self._streams.table.check("Fleet.rounds", names)
            streams = self._streams.table.find(names)
        return self._streams.rounds(streams)

    # ------------------------------------------------------------------ on disk

    def _found(self, folder: Path) -> None:
        """Make the folder of a new fleet."""
        if (folder / MANIFEST).exists():
            raise InputError(f"{folder} has a fleet already. Continue it: Fleet.open({str(folder)!r}).")
        folder.mkdir(parents=True, exist_ok=True)
        store = FleetStore(folder)
        try:
            self.template.save(folder / TEMPLATE)
            sync(folder / TEMPLATE)
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

        on_damage="drop" continues without damaged streams and lists their keys in `lost`. Otherwise they raise an error
        that lists them.
        """
        path = Path(read_path("Fleet.open", folder))
        check_choice("Fleet.open", "on_damage", on_damage, ("raise", "drop"))
        manifest = read_manifest(path)
        template = load(path / TEMPLATE)
        fleet = cls(template, threads=threads, **manifest["facts"]["options"])
        store = FleetStore(path)
        try:
            fleet._load(store, manifest, on_damage == "drop")
        except BaseException:
            store.close()
            raise
        return fleet

    def _load(self, store: FleetStore, manifest: dict[str, Any], drop: bool) -> None:
        facts, segments = manifest["facts"], []
        for _, segment in store.load(manifest):
            if isinstance(segment, StateError):
                raise segment
            segments.append(segment)
        lost = load_segments(self._streams, segments, facts["top"])
        path = store.journal_path(store.generation)
        if lost and not drop:
            names = ", ".join(repr(key) for key, _ in lost[:5])
            raise FleetError(
                f"Fleet.open: {len(lost)} streams are damaged on disk: {names}{', ...' * (len(lost) > 5)}. Restore the "
                "folder from a backup, or go on without them: on_damage='drop'.",
                [Bad(-1, key, "damaged on disk") for key, _ in lost],
            )
        self.lost = [key for key, _ in lost]
        self._streams.batches, self._streams.rows, self._clock = facts["batches"], facts["rows"], facts["clock"]
        store.home = np.zeros(facts["top"], dtype=np.int64)
        for (generation, _, _), segment in zip(store.segments, reversed(segments), strict=True):
            store.home[segment.names.streams] = generation
        self._streams.dirty[:] = False
        if lost:
            self._gone.append(np.array([stream for _, stream in lost]))
            log.warning("%s: %d streams are damaged on disk and left out", store.folder, len(lost))
        end = self._replay(path, drop)
        replayed = self._streams.batches - facts["batches"]
        log.info("%s: opened, %d keys, %d calls of the journal played again", store.folder, len(self), replayed)
        store.journal = Journal(path, end)
        self._store = store
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
        keys = keys_of_arrays(arrays)
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
            self._streams.put(keys, tuple((name, size) for name, size in facts["sizes"]), arrays["words"])
        elif facts["call"] == "drop":
            self._drop(self._streams.table.find(keys))
        else:
            times = arrays.pop("times", None)
            with contextlib.suppress(FleetError):  # rows refused now were refused the first time, too
                n = keys.size
                rows = BatchRows(keys, {}, times, np.zeros(n), np.zeros((n, 0)), clock=facts["clock"])
                self._commit("Fleet.open", facts["call"], rows, arrays, "raise")

    def _note(
        self,
        facts: Mapping[str, Any],
        keys: Keys,
        arrays: Mapping[str, NDArray[Any]],
        data: Mapping[str, NDArray[Any]],
    ) -> None:
        """Append a call to the journal, if there is one."""
        if self._store is None:
            return
        journal = self._store.journal
        if journal is None:
            raise InputError("This fleet was closed. Continue it: Fleet.open(folder).")
        journal.append(facts, {**keys_as_arrays(keys), **arrays, **data})

    @contextlib.contextmanager
    def _in_step(self) -> Iterator[None]:
        """Close the folder if the body fails, as the journal then has rows that were not played."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _shorten(self) -> None:
        """Write a checkpoint if the journal is longer than all streams, so that a restart need not replay it."""
        store = self._store
        if store is None or store.journal is None or store.journal.size <= max(LONG, self.nbytes):
            return
        with contextlib.suppress(OSError):  # the journal is intact and continues
            self.checkpoint()

    def checkpoint(self) -> int:
        """Write all streams that changed since the last checkpoint; return the number of bytes written.

        A checkpoint is written automatically when the rows since the last one take more bytes than all streams, and
        more than 64 MB. Checkpoints are atomic: a crash or a full disk leaves the previous one and the rows after it.
        """
        store = self._store
        if store is None:
            raise InputError("Fleet.checkpoint needs a fleet with folder=... For bytes in memory: to_bytes().")
        memory = self._streams
        store.home = grown(store.home, memory.table.top)
        alive = memory.alive
        dirty = alive[memory.dirty[alive]]
        streams = np.concatenate([dirty, store.old(dirty.size, alive.size, alive[~memory.dirty[alive]])])
        gone = np.concatenate([np.zeros(0, dtype=np.int64), *self._gone])
        gone = np.setdiff1d(gone, alive)  # numbers in use again are written
        facts = {
            "options": self._options,
            "batches": memory.batches,
            "clock": self._clock,
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
        """Release the folder, so that another process may open it. Nothing is lost, even without a checkpoint."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def to_bytes(self) -> bytes:
        """Return all streams as bytes, for `from_bytes` with the same template."""
        file = io.BytesIO()
        alive = self._streams.alive
        settings = self._family.template._settings()
        facts = {
            "batches": self._streams.batches,
            "clock": self._clock,
            "top": self._streams.table.top,
            "settings": settings,
        }
        write_streams(self._streams, file, alive, np.zeros(0, dtype=np.int64), facts)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, template: Any, data: bytes, **options: Any) -> Self:
        """Return a fleet with the streams from `to_bytes`; `template` and options as for the constructor."""
        fleet = cls(template, **options)
        segment = read_segment("Fleet.from_bytes", data)
        if segment.facts["settings"] != fleet._family.template._settings():
            raise StateError("Fleet.from_bytes: these streams have other arguments than the template.")
        lost = load_segments(fleet._streams, [segment], segment.facts["top"])
        if lost or segment.damage:
            raise StateError(f"Fleet.from_bytes: the bytes are damaged, {len(lost)} streams are lost.")
        fleet._streams.batches, fleet._clock = segment.facts["batches"], segment.facts["clock"]
        return fleet

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a fleet in memory, without a folder."""
        return _unpickled, (type(self), self.template, self.to_bytes(), {**self._options, "threads": self.threads})

    # ------------------------------------------------------------------ inspection

    @property
    def batches(self) -> int:
        """Number of calls that were learned."""
        return self._streams.batches

    @property
    def nbytes(self) -> int:
        """Bytes of all streams, their keys, and the arrays with an entry per stream."""
        return self._streams.nbytes

    def __repr__(self) -> str:
        return f"Fleet of {len(self)} {type(self.template).__name__}, {self.nbytes / 1e6:.1f} MB"

    def _repr_html_(self) -> str:
        facts = [("template", repr(self.template)), ("keys", len(self)), ("batches", self.batches)]
        return fact_table("Fleet", [*facts, ("size", f"{self.nbytes / 1e6:.1f} MB")])


def _unpickled(cls: type[Fleet], template: Any, data: bytes, options: dict[str, Any]) -> Fleet:
    return cls.from_bytes(template, data, **options)


def _why(check: Callable[[Any], Any], value: Any) -> str:
    """Return the reason why a check fails, or ""."""
    try:
        check(value)
    except InputError as error:
        return str(error).partition(": ")[2] or str(error)
    return ""
