"""The state of a shard between micro-batches: one binary value in the engine's state, which is the only truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from thalweg.spark.shards import ShardJob

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["processor_of"]


def processor_of(job: ShardJob) -> Any:
    """Return the processor of a job, for `transformWithStateInPandas`."""
    from pyspark.sql.streaming import StatefulProcessor

    class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
        """Plays the rows of shards, micro-batch by micro-batch."""

        def init(self, handle: Any) -> None:
            """Name the value in the engine's state."""
            self._streams = handle.getValueState("streams", "format int, shards int, data binary")

        def handleInputRows(self, key: Any, rows: Iterator[DataFrame], timerValues: Any) -> Iterator[DataFrame]:
            """Play the rows of a shard in this micro-batch."""
            import pandas

            frames = list(rows)
            fleet = job.fleet(self._streams.get())
            said = job.play(fleet, frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True))
            self._streams.update(job.value(fleet))
            yield said

        def close(self) -> None:
            """Nothing is open."""

    return ShardProcessor()
