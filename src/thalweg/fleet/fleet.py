"""One learner per key, for as many keys as fit in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from thalweg._core.archive import read_path
from thalweg._core.html import fact_table
from thalweg._core.types import Floats, Ints
from thalweg._core.validate import check_choice, check_count, check_items, check_text, short_repr
from thalweg.errors import InputError
from thalweg.files import load
from thalweg.fleet.durable import from_bytes, to_bytes
from thalweg.fleet.families.base import Family
from thalweg.fleet.families.choose import family_of
from thalweg.fleet.feedback import read_feedback
from thalweg.fleet.folder import FleetFolder
from thalweg.fleet.keys import Keys, read_keys
from thalweg.fleet.playing import Player
from thalweg.fleet.reading import (
    STEP,
    Bad,
    BatchRows,
    FleetError,
    check_numbers,
    is_frame,
    read_frame,
    read_moment,
    read_times,
    values_of,
)
from thalweg.fleet.store import TEMPLATE, read_manifest

__all__ = ["Fleet", "FleetError"]


class Fleet:
    """A learner for every key in one object: bit for bit equal to a dict of learners, at a fraction of the cost.

    Parameters
    ----------
    template : learner or estimator
        A fresh one, such as `Forecaster(lags=8)` or `Tracker(Ball(4))`. Every new key gets one like it.
    id_col, time_col, target_col : str
        The columns of frames with keys, times and targets. `time_col=None`: rows of a key are taken in the given order.
    columns : sequence of str
        Features of a `TrackingRegressor` or `TrackingClassifier`, experts of an `Aggregator`. A `Forecaster` has its
        own; a `ConformalTracker` has the column y_hat, with forecasts.
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
        kept = {"id_col": self.id_col, "time_col": self.time_col, "target_col": self.target_col}
        for argument, name in kept.items():
            if name == STEP and self._family.steps("run") > 1:
                raise InputError(
                    f"Fleet: {argument} is {STEP!r}, which results with a horizon need. Rename the column."
                )
        self.template = template
        self._player = Player(self._family, self.threads, self.id_col, self.target_col)
        self._streams = self._player.streams
        self._folder: FleetFolder | None = None
        if folder is not None:
            path = Path(read_path("Fleet", folder))
            self._folder = FleetFolder.create(path, template, self._player, self._options)

    # ------------------------------------------------------------------ rounds

    def run(
        self,
        rows: object,
        y: object = None,
        X: object = None,
        *,
        time: object = None,
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
            Keys, times, targets and predictions, made before the target was seen; in the order of the rows. Arrays are
            (n,), or (n, columns) where there are several numbers.

            If the template has a horizon H > 1, a frame has H rows for each row, numbered by the column `step` from 1.
            All are forecasts made before this row, of the value `step - 1` rows of its key later; the target is
            that value, nan if it is not in the batch. Arrays have a second axis of length H, as in `forecast`.
        """
        self._family.refuse("Fleet.run", "run")
        read = self._read("Fleet.run", rows, y, X, time, targets=True)
        played = self._player.run(read, on_bad, progress)
        steps, names = self._family.steps("run"), self._family.names("run")
        kept = [self.id_col, *([self.time_col] if self.time_col else [])]
        if steps == 1:
            return read.like([*kept, self.target_col], names, played.said)
        if read.frame is None:
            return read.like_steps(kept, names, played.said, steps)
        said = played.said.reshape(-1, steps, len(names))
        values = np.concatenate([played.ahead(read.target, steps)[:, :, None], said], axis=2)
        return read.like_steps(kept, (self.target_col, *names), values, steps)

    def predict(self, keys: object, X: object = None, *, on_bad: str = "raise") -> Any:
        """Predict the next value of each of these keys; nan for unknown keys, which are not added.

        `keys` may be a frame with `id_col` and the columns of the template; then the result is one of the same kind.
        """
        owner = "Fleet.predict"
        self._family.refuse(owner, "predict")
        read = self._read(owner, keys, None, X, None, targets=False)
        self._family.check(read, self.target_col, False)
        played = self._player.play(owner, "predict", read, {"columns": read.columns}, on_bad)
        return read.like([self.id_col], self._family.names("predict"), played.said)

    def forecast(self, keys: object, X: object = None) -> Any:
        """Forecast the next values of these keys, up to the template's horizon.

        If there are columns, X (n, horizon, C) has those of the next rounds. Returns an array (n, horizon), or with
        levels (n, horizon, 1 + 2 levels): the mean, then the lower and upper bound of each level. Unknown keys get nan.

        `keys` may be a frame with `id_col`. The result is then one of the same kind, with `horizon` rows for each key
        and the column `step`. If the template has columns, the frame has them and `time_col`, in one row for each key
        and step.
        """
        owner, family, steps = "Fleet.forecast", self._family, self._family.steps("forecast")
        family.refuse(owner, "forecast")
        if not is_frame(keys):
            said = self._forecast(owner, self._future(owner, keys, X, steps))
            whole = said.reshape(-1, steps, len(family.names("forecast")))
            return whole[:, :, 0].copy() if whole.shape[2] == 1 else whole
        if X is not None:
            raise InputError(f"{owner} takes a frame alone: columns are in it.")
        if not family.columns:
            read = read_frame(owner, keys, self.id_col, None, None, ())
            return read.like_steps([self.id_col], family.names("forecast"), self._forecast(owner, read), steps)
        read = read_frame(owner, keys, self.id_col, self.time_col, None, family.columns)
        order = read.by_key(owner, steps)
        said = np.empty((order.size, len(family.names("forecast"))))
        said[order] = self._forecast(owner, read, order).reshape(said.shape)
        number = np.empty(order.size, dtype=np.int64)
        number[order] = np.arange(order.size) % steps + 1
        kept = [self.id_col, *([self.time_col] if self.time_col else [])]
        return read.like(kept, family.names("forecast"), said, number)

    def _future(self, owner: str, keys: object, X: object, steps: int) -> BatchRows:
        """Return the rows of a forecast from arrays: one a key, or one for each key and step if there are columns."""
        names, bad = read_keys(owner, "keys", keys)
        n, C = names.size, len(self._family.columns)
        if not C:
            if X is not None:
                raise InputError(f"{owner} takes X only where the template has columns.")
            return BatchRows(names, bad, None, np.zeros(0), np.zeros((n, 0)))
        columns = values_of(owner, "X", X, (n, steps, C)).reshape(n * steps, C)
        BatchRows(names, bad, None, np.zeros(0), columns).by_key(owner, 1)
        names = names.rows(np.repeat(np.arange(n), steps))
        bad = {row * steps + h: why for row, why in bad.items() for h in range(steps)}
        return BatchRows(names, bad, None, np.zeros(0), columns)

    def _forecast(self, owner: str, read: BatchRows, order: Ints | None = None) -> Floats:
        """Return forecasts, one row a key; `order` lists the rows of a key one after the other."""
        family, steps = self._family, self._family.steps("forecast")
        family.check(read, self.target_col, False)
        said = self._player.play(owner, "forecast", read, {"columns": read.columns}).said
        if not family.columns:
            return said
        return said[::steps] if order is None else said[order[::steps]]

    def decide(self, keys: object) -> Floats:
        """Return the decisions of these keys (n, *shape of the domain); the first decision for unknown keys."""
        owner = "Fleet.decide"
        self._family.refuse(owner, "decide")
        names, bad = read_keys(owner, "keys", keys)
        rows = BatchRows(names, bad, None, np.zeros(0), np.zeros((names.size, 0)))
        played = self._player.play(owner, "decide", rows, {})
        played.said[played.unknown] = self.template.decision.ravel()
        return played.said.reshape(names.size, *self.template.domain.shape)

    def update(
        self,
        keys: object,
        y: object,
        losses: object = None,
        *,
        time: object = None,
        on_bad: str = "raise",
        progress: bool = False,
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
            data = read_feedback(owner, self.template, n, y, losses, bad)
        else:
            if losses is not None:
                raise InputError(f"{owner} takes losses for learners only. Give keys and y.")
            data = {"values": values_of(owner, "y", y, (n,))}
            check_numbers(bad, "y", data["values"], missing="forecast" in self._family.calls)
        rows = BatchRows(names, bad, times, np.zeros(0), np.zeros((n, 0)), clock=clock)
        self._player.play(owner, "update", rows, data, on_bad, progress)

    def _read(self, owner: str, rows: object, y: object, X: object, time: object, *, targets: bool) -> BatchRows:
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
            raise InputError(f"{owner} needs a data frame, or keys and y. Got {short_repr(rows)}.")
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

    # ------------------------------------------------------------------ one stream

    def _find(self, owner: str, key: object) -> tuple[Keys, int]:
        names, bad = read_keys(owner, "key", [key])
        if bad:
            raise InputError(f"{owner}: a key must be an integer or a string. Got {short_repr(key)}.")
        return names, int(self._streams.table.find(names)[0]) if names.kind == self._streams.table.kind else -1

    def __getitem__(self, key: object) -> Any:
        """Return an ordinary learner with the state of this key. Its further rounds do not change the fleet."""
        _, stream = self._find("Fleet[key]", key)
        if stream < 0:
            raise KeyError(key)
        return self._streams.learner(stream)

    def __setitem__(self, key: object, learner: Any) -> None:
        """Set the learner of a key, known or new. It must have the template's arguments."""
        owner = "Fleet[key] = learner"
        why = self._family.same(learner)
        if why:
            raise InputError(f"{owner}: {short_repr(learner)} does not belong in this fleet: {why}.")
        names, _ = self._find(owner, key)
        self._streams.table.check(owner, names)
        sizes, words = self._family.sizes(learner), self._family.words(learner)
        self._player.put(names, sizes, words)

    def __delitem__(self, key: object) -> None:
        """Forget a key. Its memory is reused."""
        _, stream = self._find("del Fleet[key]", key)
        if stream < 0:
            raise KeyError(key)
        self._player.drop(np.array([stream]))

    def forget(self, *, idle_since: object) -> int:
        """Forget all keys whose last row is before a time, and return their number. Their memory is reused.

        `idle_since` is a time like those in `time_col`; for keys without times, a value of `batches`.
        """
        owner = "Fleet.forget"
        if self._player.clock:
            since, clock = read_moment(owner, idle_since)
            self._player.check_clock(owner, clock)
            by = self._streams.latest
        else:
            since, by = check_count(owner, "idle_since", idle_since, least=0), self._streams.seen
        alive = self._streams.alive
        idle = alive[by[alive] < since]
        self._player.drop(idle)
        return int(idle.size)

    def __contains__(self, key: object) -> bool:
        return self._find("key in Fleet", key)[1] >= 0

    def __len__(self) -> int:
        return self._streams.table.count

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def keys(self) -> list[Any]:
        """Return all keys."""
        return self._streams.table.keys(self._streams.alive)

    def rounds(self, keys: object = None) -> Ints:
        """Return the number of rounds played by these keys (by default, all keys); 0 for unknown keys."""
        if keys is None:
            streams = self._streams.alive
        else:
            names, _ = read_keys("Fleet.rounds", "keys", keys)
            self._streams.table.check("Fleet.rounds", names)
            streams = self._streams.table.find(names)
        return self._streams.rounds(streams)

    # ------------------------------------------------------------------ on disk

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
        fleet = cls(load(path / TEMPLATE), threads=threads, **manifest["facts"]["options"])
        fleet._folder = FleetFolder.open(path, manifest, fleet.template, fleet._player, on_damage == "drop")
        return fleet

    @property
    def lost(self) -> list[Any]:
        """Keys of streams that were damaged on disk."""
        return [] if self._folder is None else self._folder.lost

    def checkpoint(self) -> int:
        """Write all streams that changed since the last checkpoint; return the number of bytes written.

        A checkpoint is written automatically when the rows since the last one take more bytes than all streams, and
        more than 64 MB. Checkpoints are atomic: a crash or a full disk leaves the previous one and the rows after it.
        """
        if self._folder is None:
            raise InputError("Fleet.checkpoint needs a fleet with folder=... For bytes in memory: to_bytes().")
        return self._folder.checkpoint()

    def close(self) -> None:
        """Release the folder, so that another process may open it. Nothing is lost, even without a checkpoint."""
        if self._folder is not None:
            self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def to_bytes(self) -> bytes:
        """Return all streams as bytes, for `from_bytes` with the same template."""
        return to_bytes(self._player)

    @classmethod
    def from_bytes(cls, template: Any, data: bytes, **options: Any) -> Self:
        """Return a fleet with the streams from `to_bytes`; `template` and options as for the constructor."""
        fleet = cls(template, **options)
        from_bytes("Fleet.from_bytes", fleet._player, data)
        return fleet

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a fleet in memory, without a folder."""
        return _unpickled, (type(self), self.template, self.to_bytes(), {**self._options, "threads": self.threads})

    # ------------------------------------------------------------------ inspection

    @property
    def bad(self) -> list[Bad]:
        """Rows left out by the last call with on_bad="skip"."""
        return self._player.bad

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
