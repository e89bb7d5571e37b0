"""Fleets on Spark: processor time a row of warm micro-batches, by shard and with one value a key; and at rest.

    python benchmarks/spark.py                         400,000 rows a micro-batch, 20,000 keys
    python benchmarks/spark.py --keys 100000 --rows 1 --batches 16  a row a key
    python benchmarks/spark.py --quick

Processor time of the whole tree of processes: this one, the JVM, Python's workers. "Warm" is without the first
micro-batches, which compile, in the JVM and in the workers: the least mean of a cycle, from one rewriting of streams
to the next.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import thalweg as tw
import thalweg.spark
from thalweg.estimators import Forecaster
from thalweg.spark.shards import WAIT

COLD = 3  # micro-batches at the beginning that do not count
ALONE = 2**31 - 1  # shards, for one value a key


def spent():
    """Processor seconds of this process and of all below it; and those of the JVM among them."""
    parents, seconds, java = {}, {}, set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    called, _, rest = file.read().rpartition(")")
            except OSError:
                continue
            fields = rest.split()
            if called.endswith("(java"):
                java.add(int(name))
            parents[int(name)] = int(fields[1])
            seconds[int(name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    mine = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return np.array([sum(seconds[one] for one in mine), sum(seconds[one] for one in mine & java)])


def template():
    """The learner of every key."""
    return Forecaster(lags=8, season=None)


def table(rng, keys, rows, batch):
    """Rows of a micro-batch, in no order."""
    key, t = np.tile(np.arange(keys), rows), np.repeat(np.arange(rows), keys) + batch * rows
    order = rng.permutation(keys * rows)
    y = 10 + key % 97 + np.sin(t / 5) + 0.2 * rng.standard_normal(key.size)
    names = np.array([f"house-{k:07d}" for k in range(keys)])
    return pa.table({"unique_id": names[key[order]], "ds": t[order], "y": y[order]})


def streams(spark, folder, keys, rows, batches, shards, memory):
    """Processor seconds of each micro-batch."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/in")
    rng, found, query, schema = np.random.default_rng(0), [], None, "unique_id string, ds long, y double"
    for batch in range(batches):
        rows_now = table(rng, keys, rows, batch)
        pq.write_table(rows_now, f"{folder}/in/.{batch}")
        os.rename(f"{folder}/in/.{batch}", f"{folder}/in/{batch}.parquet")
        if query is None:
            source = spark.readStream.schema(schema).parquet(f"{folder}/in")
            said = thalweg.spark.run(source, template(), shards=shards, worker_memory=memory)
            writer = said.writeStream.format("parquet").option("path", f"{folder}/out")
            writer = writer.option("checkpointLocation", f"{folder}/state").trigger(processingTime="100 milliseconds")
            before, clock = spent(), time.perf_counter()
            query = writer.start()
        query.processAllAvailable()
        now = spent()
        found.append((now - before)[0])
        took, each = time.perf_counter() - clock, 1e6 * (now - before) / rows_now.num_rows
        print(f"    micro-batch {batch}: {each[0]:8.1f} us a row, {each[1]:.1f} in the JVM; {took:.1f} s", flush=True)
        before, clock = now, time.perf_counter()
    query.stop()
    return found


def warm(found, rows):
    """Seconds of a warm micro-batch with so many rows a key."""
    cycle = min(WAIT // rows + 1, len(found) - COLD)
    return min(np.mean(found[k : k + cycle]) for k in range(COLD, len(found) - cycle + 1))


def at_rest(spark, folder, shards, repeats=3):
    """Processor seconds of a batch job over all rows."""
    found = []
    for _ in range(repeats):
        before = spent()
        said = thalweg.spark.run(spark.read.parquet(f"{folder}/in"), template(), shards=shards)
        said.write.mode("overwrite").parquet(f"{folder}/out-batch")
        found.append((spent() - before)[0])
    return min(found)


def local(folder):
    """Processor seconds of a local fleet over the same rows, and its predictions."""
    import polars as pl

    frame = pl.read_parquet(f"{folder}/in/*.parquet")
    start = time.process_time()
    said = tw.Fleet(template(), threads=1).run(frame)
    return time.process_time() - start, said, len(frame)


def same(folder, where, said):
    """Whether rows on disk are those of the local fleet, bit for bit."""
    import polars as pl

    found = pl.read_parquet(f"{folder}/{where}/*.parquet").sort("unique_id", "ds")
    want = said.sort("unique_id", "ds")
    return all(found[name].to_numpy().tobytes() == want[name].to_numpy().tobytes() for name in ("ds", "y", "thalweg"))


def main():
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=20, help="rows a key of a micro-batch")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--alone", type=int, default=1000, help="keys of the run with one value a key; 0: none")
    parser.add_argument("--worker-memory", type=int, default=256_000_000, help="bytes of streams that workers keep")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.quick:
        given.keys, given.alone, given.batches = 2000, 100, 4
    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "4g", **thalweg.spark.SETTINGS}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    folder = tempfile.mkdtemp(dir=os.environ.get("BENCH_DIR"))
    try:
        n = given.keys * given.rows
        print(f"{n:,} rows a micro-batch, {given.keys:,} keys, {given.shards} shards:")
        found = streams(spark, folder, given.keys, given.rows, given.batches, given.shards, given.worker_memory)
        print(f"  warm: {1e6 * warm(found, given.rows) / n:.1f} us a row")
        seconds, said, total = local(folder)
        print(f"  bit-identical with a local fleet: {same(folder, 'out', said)}")
        rest = at_rest(spark, folder, given.shards)
        print(f"at rest: {1e6 * rest / total:.1f} us a row; bit-identical: {same(folder, 'out-batch', said)}")
        print(f"local fleet: {1e6 * seconds / total:.1f} us a row")
        if given.alone:
            print(f"one value a key, {given.alone:,} keys:")
            found = streams(spark, folder, given.alone, given.rows, given.batches, ALONE, given.worker_memory)
            print(f"  warm: {1e6 * warm(found, given.rows) / given.alone / given.rows:.1f} us a row")
    finally:
        shutil.rmtree(folder)
        spark.stop()


if __name__ == "__main__":
    main()
