"""The state of a shard between micro-batches: two binary values in the engine's state, which is the only truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from thalweg.spark import shards
from thalweg.spark.shards import Shard, ShardJob

if TYPE_CHECKING:
    from pandas import DataFrame


def processor_of(job: ShardJob) -> Any:
    """Return the processor of a job, for `transformWithStateInPandas`."""
    from pyspark.sql.streaming import StatefulProcessor

    class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
        """Plays the rows of shards, micro-batch by micro-batch."""

        def init(self, handle: Any) -> None:
            """Name the values in the engine's state."""
            self._streams = handle.getValueState("streams", "format int, shards int, version binary, data binary")
            self._rows = handle.getValueState("rows", "version binary, data binary")

        def handleInputRows(self, key: Any, rows: Iterator[DataFrame], timerValues: Any) -> Iterator[DataFrame]:
            """Play the rows of a shard in this micro-batch."""
            import pandas

            frames, waiting = list(rows), self._rows.get()
            shard = shards.KEPT.take(job, waiting) or Shard(job, self._streams.get(), waiting)
            said = shard.play(frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True))
            if shard.due:
                self._streams.update(shard.value())
            self._rows.update(shard.rows())
            shards.KEPT.keep(shard)
            yield said

        def close(self) -> None:
            """Nothing is open."""

    return ShardProcessor()
