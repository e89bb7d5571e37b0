"""Fleets as Spark jobs, for streams and static frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from thalweg._core.extras import need
from thalweg._core.validate import check_choice, check_count, check_text, short_repr
from thalweg.errors import InputError
from thalweg.fleet.fleet import Fleet
from thalweg.fleet.reading import STEP
from thalweg.spark.processor import processor_of
from thalweg.spark.shards import KEY, NO_KEY, NO_TIME, NULLS, OWNER, SHARD, TARGET, TIME, Shard, ShardJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
SETTINGS = {
    PROVIDER: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxRecordsPerBatch": "200000",
}
WHOLE = ("tinyint", "smallint", "int", "bigint")


def run(
    rows: DataFrame,
    template: Any,
    *,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
    columns: Sequence[str] = (),
    shards: int = 64,
    on_bad: str = "raise",
    worker_memory: int = 256_000_000,
) -> DataFrame:
    """Predict every row of a Spark frame, then learn it, with a learner like `template` for every key.

    Parameters
    ----------
    rows : pyspark.sql.DataFrame
        A static frame, where every key starts afresh; or a stream, whose state Spark keeps between micro-batches.
        Streams need the settings in `SETTINGS`.
    template, id_col, target_col, columns
        As for `Fleet`. Keys are strings or integers.
    time_col : str
        Timestamps, dates or integers. The times of a key are distinct, and increase from micro-batch to micro-batch.
    shards : int
        Number of groups that keys are divided into; each group is one value in Spark's state store. It cannot be
        changed once a stream has a checkpoint.
    on_bad : {"raise", "skip"}
        Whether an invalid row fails the job, or gets nan as its predictions.
    worker_memory : int
        Bytes of streams that each Python worker keeps between micro-batches, so that Spark need not send them again.
        The truth is in Spark's state: a worker whose streams are not those of the state reads them. 0 keeps none.

    Returns
    -------
    pyspark.sql.DataFrame
        Keys, times, targets as double, and predictions made before the target was seen, in no particular order. If the
        template has a horizon, there is a row for each of its steps, as from `Fleet.run`.
    """
    frames = need("pyspark.sql", "spark", OWNER)
    for module in ("pandas", "pyarrow"):
        need(module, "spark", OWNER)
    if not isinstance(rows, frames.DataFrame):
        raise InputError(f"{OWNER} needs a Spark frame. Got {short_repr(rows)}.")
    check_choice(OWNER, "on_bad", on_bad, ("raise", "skip"))
    count = check_count(OWNER, "shards", shards, most=2**31 - 1)
    kept = check_count(OWNER, "worker_memory", worker_memory, least=0)
    when = check_text(OWNER, "time_col", time_col)
    names_of = {"id_col": id_col, "time_col": when, "target_col": target_col}
    options: dict[str, Any] = {**names_of, "columns": tuple(columns), "threads": 1}
    family = Fleet(template, **options)._player.family
    family.refuse(OWNER, "run")
    names = (target_col, *family.names("run"))
    kinds = _kinds(rows, [id_col, when, target_col, *family.columns])
    given = {name: f"column{j}" for j, name in enumerate(family.columns)}
    made = tuple(f"result{j}" for j in range(len(names) - 1))
    job = ShardJob(template, options, tuple(given.values()), made, count, on_bad, kept)
    F = frames.functions
    there, back, held = _time(F, when, kinds[when])
    whole = kinds[id_col] in WHOLE
    key = F.col(_quoted(id_col)).cast("bigint" if whole else "string")
    nulls = F.when(key.isNull(), NO_KEY).otherwise(0) + F.when(there.isNull(), NO_TIME).otherwise(0)
    table = rows.select(
        F.pmod(F.xxhash64(key), F.lit(count)).cast("int").alias(SHARD),
        F.coalesce(key, F.lit(0 if whole else "")).alias(KEY),  # pandas turns integers with nulls into floats
        F.coalesce(there, F.lit(0) if held == "bigint" else F.expr("timestamp_ntz'1970-01-01'")).alias(TIME),
        nulls.cast("tinyint").alias(NULLS),
        *(F.col(_quoted(name)).cast("double").alias(to) for name, to in ({target_col: TARGET} | given).items()),
    )
    step = [STEP] if family.steps("run") > 1 else []
    numbers = [*(f"{name} int" for name in step), *(f"{name} double" for name in (TARGET, *made))]
    schema = ", ".join([f"{KEY} {'bigint' if whole else 'string'}", f"{TIME} {held}", *numbers])
    by = table.groupBy(SHARD)
    if rows.isStreaming:
        if rows.sparkSession.conf.get(PROVIDER, "") != SETTINGS[PROVIDER]:
            raise InputError(
                f"{OWNER}: streams need the RocksDB state store. Set all of thalweg.spark.SETTINGS by spark.conf.set."
            )
        need("google.protobuf", "spark", OWNER, package="protobuf")
        said = by.transformWithStateInPandas(processor_of(job), schema, "append", "none")
    else:
        said = by.applyInPandas(lambda frame: Shard(job).play(frame), schema)
    return said.select(
        F.col(KEY).cast(kinds[id_col]).alias(id_col),
        back(F.col(TIME)).alias(when),
        *step,
        *(F.col(name).alias(to) for name, to in zip((TARGET, *made), names, strict=True)),
    )


def read_shard(template: Any, value: Any, rows: Any = None, **options: Any) -> Fleet:
    """Return the fleet of a shard from Spark's state.

    `value` is the shard's value of the state variable "streams", `rows` that of "rows" if it has one; template and
    options are those of `run`, without `shards` and `on_bad`.
    """
    job = ShardJob(template, {"time_col": "ds", **options}, (), (), value["shards"], "skip")
    kept = None if rows is None else (rows["version"], rows["data"])
    return Shard(job, tuple(value[name] for name in ("format", "shards", "version", "data")), kept).fleet


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _kinds(rows: DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Return the types of columns; refuse missing columns and wrong types."""
    kinds = dict(rows.dtypes)
    for name in names:
        if name not in kinds:
            raise InputError(f"{OWNER}: the frame has no column {name!r}. It has {', '.join(rows.columns[:8])}.")
    if kinds[names[0]] not in (*WHOLE, "string"):
        raise InputError(
            f"{OWNER}: column {names[0]!r} must hold integers or strings. Its type is {kinds[names[0]]}. Convert it."
        )
    for name in names[2:]:
        if kinds[name] not in (*WHOLE, "float", "double", "boolean") and not kinds[name].startswith("decimal"):
            raise InputError(f"{OWNER}: column {name!r} must hold numbers. Its type is {kinds[name]}. Convert it.")
    return {name: kinds[name] for name in names}


def _time(F: Any, name: str, kind: str) -> tuple[Any, Callable[[Any], Any], str]:
    """Return the times converted for workers, a function that converts them back, and the type in between.

    Workers would read a timestamp as local time, which is ambiguous when clocks are set back.
    """
    column = F.col(_quoted(name))
    if kind == "timestamp":
        return F.unix_micros(column), F.timestamp_micros, "bigint"
    if kind == "date":
        return F.unix_date(column).cast("bigint"), lambda days: F.date_from_unix_date(days.cast("int")), "bigint"
    if kind in WHOLE:
        return column.cast("bigint"), lambda number: number.cast(kind), "bigint"
    if kind == "timestamp_ntz":
        return column, lambda moment: moment, kind
    raise InputError(f"{OWNER}: column {name!r} must hold timestamps, dates or integers. Its type is {kind}.")
