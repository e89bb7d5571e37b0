"""Fleets on Spark: the streams of a shard of keys are one value in the engine's state, the latest rows another.

`thalweg.spark.job` plans a job, `thalweg.spark.shards` plays the rows of a shard in a worker, and
`thalweg.spark.processor` keeps its state between micro-batches. Needs the extra `spark`, and Java 17.
"""

from thalweg.spark.job import SETTINGS, read_shard, run

__all__ = ["SETTINGS", "read_shard", "run"]
