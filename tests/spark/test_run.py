"""Fleets on Spark are local fleets, bit for bit: frames at rest, micro-batches, restarts, their state."""

import dataclasses
import datetime
import os
import sys

import numpy as np
import polars as pl
import pytest

import thalweg as tw
import thalweg.spark
from tests.fleet.singles import assert_same
from tests.spark.engine import assert_same_rows, local, needs_spark, rows, start
from thalweg.errors import InputError, MissingExtraError, StateError
from thalweg.estimators import Aggregator, ConformalTracker, Forecaster
from thalweg.fleet import shard_of
from thalweg.spark.processor import processor_of
from thalweg.spark.shards import KEPT, KEY, NULLS, TARGET, TIME, WAIT, KeptShards, Shard, ShardJob

pytestmark = needs_spark
SCHEMA = "unique_id string, ds long, y double"


@pytest.fixture(scope="module")
def spark():
    session = start()
    yield session
    session.stop()


def on_spark(spark, frame, template, **options):
    """The rows that Spark makes of a polars frame, as a polars frame."""
    said = thalweg.spark.run(spark.createDataFrame(frame.to_arrow()), template, **options)
    return pl.from_arrow(said.toArrow())


# -------------------------------------------------------------------------------------------------------------- shards


def test_the_shard_of_a_key_is_the_one_that_spark_finds(spark):
    rng = np.random.default_rng(0)
    letters = np.array(list("aé漢🐎 z"))
    texts = ["", *("".join(rng.choice(letters, n)) for n in rng.integers(1, 80, 300))]
    numbers = [0, -1, 2**63 - 1, -(2**63), *rng.integers(-(2**63), 2**63 - 1, 300).tolist()]
    for keys, kind in ((texts, "string"), (numbers, "bigint")):
        frame = spark.createDataFrame([(key,) for key in keys], f"k {kind}")
        want = [row[0] for row in frame.selectExpr("pmod(xxhash64(k), 1000003)").collect()]
        assert shard_of(keys, 1000003).tolist() == want


# ------------------------------------------------------------------------------------------------------------- at rest

TEMPLATES = {
    "Forecaster": (lambda: Forecaster(lags=2, levels=(0.8,)), {}),
    "Forecaster, columns": (lambda: Forecaster(["a.b", "c`d"], season=None), {}),
    "Forecaster, horizon": (lambda: Forecaster(season=None, horizon=3, levels=(0.8, 0.95)), {}),
    "ConformalTracker": (lambda: ConformalTracker(0.9, windows=(5, 20)), {}),
    "Aggregator": (lambda: Aggregator(), {"columns": ["a.b", "c`d"]}),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_frame_at_rest(spark, name):
    make, options = TEMPLATES[name]
    frame = rows(1, columns=("y_hat", "a.b", "c`d"))
    _, want = local(make(), frame, **options)
    assert_same_rows(on_spark(spark, frame, make(), shards=5, **options), want)


MOMENT = datetime.datetime(2025, 10, 26, 0, 30)  # an hour later clocks are set back in Berlin
TIMES = {
    "timestamps": [MOMENT.replace(tzinfo=datetime.UTC) + datetime.timedelta(minutes=20 * t) for t in range(12)],
    "times without a zone": [MOMENT + datetime.timedelta(minutes=20 * t) for t in range(12)],
    "dates": [MOMENT.date() + datetime.timedelta(days=t) for t in range(12)],
    "integers": [10**18 + t for t in range(12)],
}
KINDS = dict(zip(TIMES, ("timestamp", "timestamp_ntz", "date", "bigint"), strict=True))


@pytest.mark.parametrize("name", TIMES)
def test_kinds_of_times_and_keys_that_are_integers(spark, name, tmp_path):
    frame = rows(2, keys=5)
    number = frame["unique_id"].str.slice(6).cast(pl.Int64)
    frame = frame.with_columns(ds=pl.Series([TIMES[name][t] for t in frame["ds"]]), unique_id=number - 2**62)
    _, want = local(Forecaster(season=None), frame)
    frame.write_parquet(tmp_path / "in.parquet")
    table = spark.read.parquet(str(tmp_path / "in.parquet"))
    assert dict(table.dtypes)["ds"] == KINDS[name]
    found = pl.from_arrow(thalweg.spark.run(table, Forecaster(season=None), shards=3).toArrow())
    assert found.schema["unique_id"] == pl.Int64
    assert_same_rows(found, want.with_columns(ds=want["ds"].cast(found.schema["ds"])))


# ------------------------------------------------------------------------------------------------------------- streams


def template():
    return Forecaster(lags=2, levels=(0.8,))


class Stream:
    """A stream over parquet files, and its results."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.files, self.fed = spark, folder, 0, []
        (folder / "in").mkdir()

    def feed(self, frame):
        """Write a file, the rows of a micro-batch."""
        path = self.folder / "in" / f"{self.files}.parquet"
        frame.write_parquet(path)
        os.utime(path, (1e9 + self.files, 1e9 + self.files))  # Spark takes files by their age
        self.files += 1
        self.fed.append(frame)

    def play(self, made=None, **options):
        """Play all files that are new, one a micro-batch, in a new query with the same checkpoint."""
        source = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(f"{self.folder}/in")
        said = thalweg.spark.run(source, made or template(), **{"shards": 5, **options})
        writer = said.writeStream.option("checkpointLocation", f"{self.folder}/state").trigger(availableNow=True)
        query = writer.start(f"{self.folder}/out", format="parquet")
        query.awaitTermination()
        return query

    def found(self):
        """All results, as readers of Spark's folders see them."""
        return pl.from_arrow(self.spark.read.parquet(f"{self.folder}/out").toArrow())

    def state(self, name):
        """Values in the engine's state, by shard."""
        table = self.spark.read.format("statestore").option("stateVarName", name).load(f"{self.folder}/state")
        return {row["key"][0]: row["value"] for row in table.collect()}

    def assert_state(self, fleet):
        """The state is that of a local fleet, bit for bit."""
        found, waiting = [], self.state("rows")
        for shard, value in self.state("streams").items():
            mine = thalweg.spark.read_shard(template(), value, waiting.get(shard))
            assert (value["format"], value["shards"]) == (3, 5)
            assert set(shard_of(mine.keys(), 5).tolist()) == {shard}
            for key in mine:
                assert_same(mine[key], fleet[key])
            found += mine.keys()
        assert sorted(found) == sorted(fleet.keys())


def test_rows_wait_beside_the_streams_until_there_are_many(spark, tmp_path):
    """Every batch is a query of its own, which goes on where the last one ended."""
    stream, sizes = Stream(spark, tmp_path), []
    for batch, times in enumerate((3, 2, 2, 4, 1, 1)):
        stream.feed(rows(batch, keys=40 if batch == 5 else 30, times=times, first=10 * batch))
        stream.play()
        kept = stream.state("rows")
        sizes.append({len(value["data"]) > 0 for value in kept.values()} or {False})
        fleet, want = local(template(), pl.concat(stream.fed))
        stream.assert_state(fleet)
    assert sizes == [{False}, {True}, {True}, {True}, {False}, {True}]  # 2, 4 and 8 rows a stream wait, not 9
    assert_same_rows(stream.found(), want)


def test_micro_batches_with_a_horizon(spark, tmp_path):
    stream, made = Stream(spark, tmp_path), Forecaster(season=None, horizon=2, levels=(0.8,))
    for batch in range(2):
        stream.feed(rows(batch, keys=30 + 10 * batch, times=4, first=4 * batch))
    query = stream.play(made)
    assert [one["numInputRows"] for one in query.recentProgress if one["numInputRows"]] == [120, 160]
    fleet = tw.Fleet(made)
    assert_same_rows(stream.found(), pl.concat([fleet.run(frame) for frame in stream.fed]))


def job_of(made, on_bad="raise", memory=0):
    return ShardJob(made, {"time_col": "ds", "threads": 1}, (), ("result0",), 5, on_bad, memory)


def test_state_of_another_job_is_refused():
    job = job_of(template())
    shard = Shard(job)
    shard.fleet.run(["a", "b"], [1.0, 2.0])
    value = shard.value()
    assert Shard(job, value).fleet.keys() == ["a", "b"]
    with pytest.raises(StateError, match=r"that of 5 shards\. Got shards=6"):
        Shard(dataclasses.replace(job, shards=6), value)
    with pytest.raises(StateError, match="other arguments than the template"):
        Shard(dataclasses.replace(job, template=Forecaster(lags=3)), value)
    with pytest.raises(StateError, match=r"the state has format 4; .* reads format 3"):
        Shard(job, (4, *value[1:]))
    with pytest.raises(StateError, match="damaged"):
        Shard(job, (*value[:3], value[3][:2000]))
    for kept in (b"x" * 5, b"x" * 50):
        with pytest.raises(StateError, match="damaged at byte 0"):
            Shard(job, value, (shard.version, kept))


def a_batch(batch):
    """Rows of a micro-batch, as workers get them."""
    import pandas

    y = np.random.default_rng(batch).standard_normal(3)
    return pandas.DataFrame({KEY: ["a", "b", "c"], TIME: 3 * [batch], NULLS: np.zeros(3, np.int8), TARGET: y})


def micro_batch(job, state, batch, kept):
    """Play a micro-batch like a worker with these shards; returns the state after it and the answers."""
    streams, waiting = state
    shard = kept.take(job, waiting) or Shard(job, streams, waiting)
    said = shard.play(a_batch(batch))
    streams = shard.value() if shard.due else streams
    kept.keep(shard)
    return (streams, shard.rows()), said["result0"].to_numpy()


@pytest.mark.parametrize("memory", [0, 1_000_000])
def test_workers_that_keep_streams_say_what_the_state_says(memory):
    """Two workers take turns, attempts fail and are repeated, and the state goes back: always the same answers."""
    job = job_of(Forecaster(lags=2, season=None), memory=memory)
    none = dataclasses.replace(job, worker_memory=0)
    workers, rng = [KeptShards(), KeptShards()], np.random.default_rng(1)
    state = want = (None, None)
    received = 0
    for batch in range(3 * WAIT):
        want, answers = micro_batch(none, want, batch, KeptShards())
        if rng.random() < 0.4:  # an attempt whose state is lost
            micro_batch(job, state, batch, workers[rng.integers(2)])
        worker = workers[rng.integers(2)]
        versions = [shard.version for shard, _ in worker._kept.values()]
        received += state[1] is None or state[1][0] not in versions
        state, said = micro_batch(job, state, batch, worker)
        assert said.tobytes() == answers.tobytes()
        assert Shard(job, *state).fleet.to_bytes() == Shard(job, *want).fleet.to_bytes()
        assert sum(len(worker._kept) for worker in workers) <= (2 if memory else 0)
    assert received < batch / 2 if memory else received == batch + 1


def test_workers_keep_streams_for_one_job():
    """A query that is started again, with another answer to bad rows, may get the workers of the one before."""
    jobs = [job_of(Forecaster(season=None), on_bad, 1_000_000) for on_bad in ("raise", "skip")]
    worker = KeptShards()
    state, _ = micro_batch(jobs[0], (None, None), 0, worker)
    state, _ = micro_batch(jobs[0], state, 1, worker)
    _, said = micro_batch(jobs[1], state, 1, worker)  # rows that are late
    assert np.isnan(said).all()


def test_a_processor_that_is_sent_to_a_worker_finds_the_streams_that_the_worker_keeps():
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    sent = cloudpickle.loads(cloudpickle.dumps(processor_of(job_of(template()))))
    assert sent.handleInputRows.__globals__["shards"].KEPT is KEPT


def test_bad_rows(spark, tmp_path):
    from pyspark.errors import StreamingQueryException

    stream = Stream(spark, tmp_path)
    stream.feed(rows(0, times=4, first=100))
    late = pl.DataFrame({"unique_id": ["house 7", "house 8"], "ds": [50, 200], "y": [1.0, 2.0]})
    bad = pl.DataFrame({"unique_id": ["house 9", None, "house 9"], "ds": [None, 300, 300], "y": [1.0, 2.0, 1e200]})
    more = rows(1, times=4, first=400)
    stream.feed(pl.concat([late, bad, more]))
    with pytest.raises(StreamingQueryException, match=r"is missing in a row|'house 7' at ds = 50"):
        stream.play()
    assert len(stream.found()) == 120  # the first micro-batch
    stream.play(on_bad="skip")
    found = stream.found()
    _, want = local(template(), pl.concat([stream.fed[0], late[1:], more]))
    places = pl.concat([late[:1], bad]).select("unique_id", "ds").rows()
    left = pl.Series([row in places for row in found.select("unique_id", "ds").rows()])
    assert left.sum() == 4
    assert found.filter(left)["thalweg"].is_null().all()
    assert_same_rows(found.filter(~left), want)


def test_a_late_row_is_named(spark):
    twice = pl.concat([rows(0, keys=3), rows(1, keys=1, times=1, first=5)])
    with pytest.raises(Exception, match=r"key 'house 0' at ds = 5: its time is not after .* The batch was not played"):
        on_spark(spark, twice, template(), shards=1)


def test_missing_keys_of_integers_come_back(spark):
    big = 2**62 + 1  # a float would not hold it
    frame = pl.DataFrame({"unique_id": [big, big, None, big], "ds": [1, big, 3, None], "y": [1.0, 2.0, 3.0, 4.0]})
    found = on_spark(spark, frame, template(), shards=1, on_bad="skip").sort("y")
    assert found.select("unique_id", "ds", "y").equals(frame)
    assert found["thalweg"].is_null().to_list() == [True, False, True, True]  # nothing is known of the first value


# ----------------------------------------------------------------------------------------------------------- arguments


def test_arguments_are_checked(spark):
    fine = spark.createDataFrame(rows(0).to_arrow())
    for frame, made, options, why in (
        (rows(0), template(), {}, "needs a Spark frame"),
        (fine, tw.OGD(tw.domains.Ball(2), 10, 1.0), {}, "have no run"),
        (fine, template(), {"time_col": None}, "time_col"),
        (fine, template(), {"shards": 0}, "shards"),
        (fine, template(), {"on_bad": "drop"}, "on_bad"),
        (fine, template(), {"target_col": "sales"}, "no column 'sales'. It has unique_id, ds, y"),
        (fine, template(), {"target_col": "unique_id"}, "must hold numbers. Its type is string"),
        (fine, template(), {"id_col": "y"}, "must hold integers or strings. Its type is double"),
        (fine, template(), {"time_col": "y"}, "must hold timestamps, dates or integers. Its type is double"),
    ):
        with pytest.raises(InputError, match=why):
            thalweg.spark.run(frame, made, **options)


def test_streams_need_the_state_store_that_keeps_them(spark, tmp_path):
    name = "spark.sql.streaming.stateStore.providerClass"
    source = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    found = spark.conf.get(name)
    spark.conf.unset(name)
    try:
        with pytest.raises(InputError, match="need the RocksDB state store"):
            thalweg.spark.run(source, template())
    finally:
        spark.conf.set(name, found)


@pytest.mark.parametrize(("module", "package"), [("pyspark.sql", "pyspark"), ("pyarrow", "pyarrow")])
def test_a_missing_library_is_named(monkeypatch, module, package):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"thalweg.spark.run needs {package}.*thalweg\[spark\]"):
        thalweg.spark.run(None, template())
