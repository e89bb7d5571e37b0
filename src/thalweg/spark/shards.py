"""Rows of a shard, played by a fleet in a worker: pandas frames in, pandas frames out."""

from __future__ import annotations

from dataclasses import dataclass
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

__all__ = ["KEY", "NO_KEY", "NO_TIME", "NULLS", "OWNER", "SHARD", "STEP", "TARGET", "TIME", "Shard", "ShardJob"]

FORMAT = 2  # of the values in the engine's state
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
    """

    template: Any
    options: dict[str, Any]
    columns: tuple[str, ...]
    results: tuple[str, ...]
    shards: int
    on_bad: str


class Shard:
    """The fleet of a shard, and the rows it has learned since its streams were written.

    Rewriting the streams takes Spark 30 to 45 times as long as playing a row of each. So rows are kept beside the
    streams and played again in the next micro-batch, until there are WAIT of them for each stream.

    Parameters
    ----------
    job : ShardJob
        The job.
    value, rows : tuples, optional
        The values in the engine's state: (format, shards, streams) and (rows,). Without them the shard is new.
    """

    def __init__(self, job: ShardJob, value: tuple[int, int, bytes] | None = None, rows: Any = None) -> None:
        self.job, self._new = job, value is None
        self._waiting, self._count = b"", 0  # rows as journal entries, and their number
        if value is None:
            self.fleet = Fleet(job.template, **job.options)
            return
        form, shards, data = value
        if form != FORMAT:
            raise StateError(f"{OWNER}: the state has format {form}; this version of thalweg reads format {FORMAT}.")
        if shards != job.shards:
            raise StateError(
                f"{OWNER}: the state is that of {shards} shards. Got shards={job.shards}; they cannot be changed."
            )
        self.fleet = Fleet.from_bytes(job.template, bytes(data), **job.options)
        if rows is not None:
            self._replay(bytes(rows[0]))

    @property
    def _player(self) -> Player:
        return self.fleet._player

    def _replay(self, data: bytes) -> None:
        """Play rows again."""
        end = 0
        for _, arrays, place in read_entries("Rows in the state", data):
            keys, times, n = keys_of_arrays(arrays), arrays["times"], arrays["times"].size
            read = BatchRows(keys, {}, times, arrays["values"], arrays["columns"], clock=INTEGERS)
            self._player.run(read, "skip")  # rows that were left out then are left out again
            end, self._count = place, self._count + n
        if end != len(data):
            raise StateError(f"{OWNER}: rows in the state are damaged at byte {end} of {len(data)}.")
        self._waiting = data

    @property
    def due(self) -> bool:
        """Whether to write the streams, not the rows."""
        return self._new or self._count > WAIT * len(self.fleet)

    def value(self) -> tuple[int, int, bytes]:
        """Return the streams as a value of the engine's state."""
        return FORMAT, self.job.shards, self.fleet.to_bytes()

    def rows(self) -> tuple[bytes]:
        """Return the rows since the streams were written as a value of the engine's state."""
        return (self._waiting,)

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
