"""Rows of a shard, played by a fleet in a worker: pandas frames in, pandas frames out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.errors import InputError, StateError
from thalweg.fleet import Fleet, FleetError
from thalweg.fleet.reading import STEP

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["KEY", "NO_KEY", "NO_TIME", "NULLS", "OWNER", "SHARD", "STEP", "TARGET", "TIME", "ShardJob"]

FORMAT = 1  # of the values in the engine's state
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
        How many shards there are.
    on_bad : str
        As that of `Fleet.run`.
    """

    template: Any
    options: dict[str, Any]
    columns: tuple[str, ...]
    results: tuple[str, ...]
    shards: int
    on_bad: str

    def fleet(self, value: tuple[int, int, bytes] | None = None) -> Fleet:
        """Return the fleet of a shard: a new one, or that of a value of the engine's state."""
        if value is None:
            return Fleet(self.template, **self.options)
        form, shards, data = value
        if form != FORMAT:
            raise StateError(f"{OWNER}: the state has format {form}; this version of thalweg reads format {FORMAT}.")
        if shards != self.shards:
            raise StateError(
                f"{OWNER}: the state is that of {shards} shards. Got shards={self.shards}; they cannot be changed."
            )
        return Fleet.from_bytes(self.template, bytes(data), **self.options)

    def value(self, fleet: Fleet) -> tuple[int, int, bytes]:
        """Return the fleet of a shard as a value of the engine's state."""
        return FORMAT, self.shards, fleet.to_bytes()

    def play(self, fleet: Fleet, rows: DataFrame) -> DataFrame:
        """Predict all rows and learn them; returns keys, times, steps if there are several, targets and predictions."""
        nulls = rows[NULLS].to_numpy()
        good = np.flatnonzero(nulls == 0)
        if good.size < nulls.size and self.on_bad == "raise":
            missing = self.options["id_col" if (nulls & NO_KEY).any() else "time_col"]
            raise InputError(f"{OWNER}: column {missing!r} is missing in a row. The batch was not played.")
        n, steps, names = nulls.size, fleet._family.steps("run"), (TARGET, *self.results)
        said = np.full((n, steps, len(names)), np.nan)
        said[:, 0, 0] = rows[TARGET].to_numpy(dtype=np.float64)
        said[good] = self._run(fleet, rows if good.size == n else rows.iloc[good], steps)
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

    def _run(self, fleet: Fleet, rows: DataFrame, steps: int) -> Any:
        """Return targets and predictions (n, steps, columns)."""
        times = rows[TIME].to_numpy()
        if times.dtype.kind == "M":
            times = times.astype("datetime64[us]").astype(np.int64)
        columns = rows[list(self.columns)].to_numpy(dtype=np.float64) if self.columns else None
        target = rows[TARGET].to_numpy(dtype=np.float64)
        try:
            read = fleet._read(OWNER, rows[KEY].to_numpy(), target, columns, times, targets=True)
            played = fleet._run(read, self.on_bad)
            said = played.said.reshape(target.size, steps, -1)
            return np.concatenate([played.ahead(target, steps)[:, :, None], said], axis=2)
        except FleetError as error:
            row, key, why = error.rows[0]
            when = f"{self.options['time_col']} = {rows[TIME].iloc[row]}"
            more = f"; {len(error.rows)} rows in all" * (len(error.rows) > 1)
            raise InputError(f"{OWNER}: key {key!r} at {when}: {why}{more}. The batch was not played.") from None
