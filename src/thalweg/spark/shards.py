"""Rows of a shard, played by a fleet in a worker: pandas frames in, pandas frames out."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.errors import InputError, StateError
from thalweg.fleet.durable import keys_as_arrays, keys_of_arrays
from thalweg.fleet.fleet import Fleet, FleetError
from thalweg.fleet.journal import entry, read_entries
from thalweg.fleet.keys import read_keys
from thalweg.fleet.playing import Player
from thalweg.fleet.reading import INTEGERS, STEP, BatchRows

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 3  # of the values in the engine's state
NAME = 16  # bytes at the beginning of a version that all versions of a shard share
WAIT = 8  # rows a stream that are kept beside the streams
SHARD, KEY, TIME, TARGET, NULLS = "shard", "key", "time", "target", "nulls"  # columns between Spark and its workers
NO_KEY, NO_TIME = 1, 2  # bits of NULLS
OWNER = "thalweg.spark.run"


@dataclass(frozen=True)
class ShardJob:
    """The part of a job that workers need.

    Attributes
    ----------
    template : learner or estimator
        The learner that every key begins with.
    options : dict
        Arguments of the constructor of fleets.
    columns, results : tuple of str
        Columns of the template and of predictions, by the names they have between Spark and its workers.
    shards : int
        Number of shards.
    on_bad : str
        As that of `Fleet.run`.
    worker_memory : int
        Bytes of streams that a worker may keep between micro-batches.
    call : bytes
        The name of the call of `run`: streams that a worker keeps are for its micro-batches only.
    """

    template: Any
    options: dict[str, Any]
    columns: tuple[str, ...]
    results: tuple[str, ...]
    shards: int
    on_bad: str
    worker_memory: int = 0
    call: bytes = field(default_factory=lambda: uuid.uuid4().bytes)


class Shard:
    """The fleet of a shard, and the rows it has learned since its streams were written.

    Rewriting the streams takes Spark 30 to 45 times as long as playing a row of each. So rows are kept beside the
    streams and played again in the next micro-batch, until there are WAIT of them for each stream.

    Parameters
    ----------
    job : ShardJob
        The job.
    value, rows : tuples, optional
        The values in the engine's state: (format, shards, version, streams) and (version, rows). Without them the shard
        is new.
    """

    def __init__(
        self,
        job: ShardJob,
        value: tuple[int, int, bytes, bytes] | None = None,
        rows: tuple[bytes, bytes] | None = None,
    ) -> None:
        self.job, self._new = job, value is None
        self._waiting, self._count = b"", 0  # rows as journal entries, and their number
        if value is None:
            self.fleet = Fleet(job.template, **job.options)
            return
        form, shards, self.version, data = value
        if form != FORMAT:
            raise StateError(f"{OWNER}: the state has format {form}; this version of thalweg reads format {FORMAT}.")
        if shards != job.shards:
            raise StateError(
                f"{OWNER}: the state is that of {shards} shards. Got shards={job.shards}; they cannot be changed."
            )
        self.fleet = Fleet.from_bytes(job.template, bytes(data), **job.options)
        if rows is not None:
            self.catch_up(bytes(rows[1]))

    @property
    def _player(self) -> Player:
        return self.fleet._player

    def catch_up(self, data: bytes) -> bool:
        """Play those of the rows in the state that were not played yet; False if others were played."""
        if not data.startswith(self._waiting):
            return False
        begin = end = len(self._waiting)
        for _, arrays, place in read_entries("Rows in the state", data[begin:]):
            keys, times, n = keys_of_arrays(arrays), arrays["times"], arrays["times"].size
            read = BatchRows(keys, {}, times, arrays["values"], arrays["columns"], clock=INTEGERS)
            self._player.run(read, "skip")  # rows that were left out then are left out again
            end, self._count = begin + place, self._count + n
        if end != len(data):
            raise StateError(f"{OWNER}: rows in the state are damaged at byte {end} of {len(data)}.")
        self._waiting = data
        return True

    @property
    def due(self) -> bool:
        """Whether to write the streams, not the rows."""
        return self._new or self._count > WAIT * len(self.fleet)

    def value(self) -> tuple[int, int, bytes, bytes]:
        """Return the streams, in a version of their own, as a value of the engine's state."""
        name = uuid.uuid4().bytes if self._new else self.version[:NAME]
        self._new, self._waiting, self._count, self.version = False, b"", 0, name + uuid.uuid4().bytes
        return FORMAT, self.job.shards, self.version, self.fleet.to_bytes()

    def rows(self) -> tuple[bytes, bytes]:
        """Return the rows since the streams were written as a value of the engine's state."""
        return self.version, self._waiting

    def play(self, rows: DataFrame) -> DataFrame:
        """Predict all rows and learn them; returns keys, times, steps if there are several, targets and predictions."""
        nulls = rows[NULLS].to_numpy()
        good = np.flatnonzero(nulls == 0)
        if good.size < nulls.size and self.job.on_bad == "raise":
            missing = self.job.options["id_col" if (nulls & NO_KEY).any() else "time_col"]
            raise InputError(f"{OWNER}: column {missing!r} is missing in a row. The batch was not played.")
        n, steps, names = nulls.size, self._player.family.steps("run"), (TARGET, *self.job.results)
        said = np.full((n, steps, len(names)), np.nan)
        said[:, 0, 0] = rows[TARGET].to_numpy(dtype=np.float64)
        said[good] = self._run(rows if good.size == n else rows.iloc[good], steps)
        found = {name: rows[name] for name in (KEY, TIME)}
        for bit, name in ((NO_KEY, KEY), (NO_TIME, TIME)):
            if (nulls & bit).any():
                values = rows[name].convert_dtypes() if rows[name].dtype.kind == "i" else rows[name]
                found[name] = values.mask((nulls & bit) != 0)
        if steps > 1:
            again = np.repeat(np.arange(n), steps)
            found = {name: column.iloc[again].reset_index(drop=True) for name, column in found.items()}
            found[STEP] = np.tile(np.arange(1, steps + 1, dtype=np.int32), n)
        said = said.reshape(n * steps, len(names))
        return type(rows)(found | {name: said[:, j] for j, name in enumerate(names)})

    def _run(self, rows: DataFrame, steps: int) -> Any:
        """Return targets and predictions (n, steps, columns)."""
        times = rows[TIME].to_numpy()
        if times.dtype.kind == "M":
            times = times.astype("datetime64[us]").astype(np.int64)
        job, n = self.job, len(rows)
        columns = np.zeros((n, 0))
        if job.columns:
            columns = rows[list(job.columns)].to_numpy(dtype=np.float64, copy=True)
        target = rows[TARGET].to_numpy(dtype=np.float64)
        try:
            keys, bad = read_keys(OWNER, "keys", rows[KEY].to_numpy())
            given = {"times": times, "values": target, "columns": columns.copy()}
            read = BatchRows(keys, bad, times, target.copy(), columns, clock=INTEGERS)
            played = self._player.run(read, job.on_bad)
            self._count += target.size
            if not self.due:
                self._waiting += entry({}, {**keys_as_arrays(keys), **given})
            said = played.said.reshape(target.size, steps, -1)
            return np.concatenate([played.ahead(target, steps)[:, :, None], said], axis=2)
        except FleetError as error:
            row, key, why = error.rows[0]
            when = f"{job.options['time_col']} = {rows[TIME].iloc[row]}"
            more = f"; {len(error.rows)} rows in all" * (len(error.rows) > 1)
            raise InputError(f"{OWNER}: key {key!r} at {when}: {why}{more}. The batch was not played.") from None


class KeptShards:
    """Shards that a worker keeps between micro-batches, so that it need not receive their streams again.

    A version of streams has a name that is never used again, and rows are only appended to it. So a shard with the
    version in the engine's state, whose rows are the first of those in the state, is what the state says once it has
    played the others. Any other shard is read from the state.
    """

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[Shard, int]] = {}  # with their bytes
        self._size = 0  # of all

    def take(self, job: ShardJob, rows: tuple[bytes, bytes] | None) -> Shard | None:
        """Return the shard of a job whose rows these are in the state, if it is here; it is kept no longer."""
        if rows is None:
            return None
        version, data = map(bytes, rows)
        shard = self._drop(version[:NAME])
        if shard is None or shard.job.call != job.call or shard.version != version or not shard.catch_up(data):
            return None
        return shard

    def keep(self, shard: Shard) -> None:
        """Keep a shard in the place of its older versions.

        Where all take more memory than their job allows, some are dropped by chance: every micro-batch reads the shards
        in the same order, so that the oldest would be the next ones.
        """
        name, size = shard.version[:NAME], shard.fleet.nbytes
        self._drop(name)
        self._kept[name] = shard, size
        self._size += size
        while self._size > shard.job.worker_memory:
            self._drop(random.choice(list(self._kept)))

    def _drop(self, name: bytes) -> Shard | None:
        shard, size = self._kept.pop(name, (None, 0))
        self._size -= size
        return shard


KEPT = KeptShards()  # of this process, in a module: Spark gives every task a copy of what is in its processor
