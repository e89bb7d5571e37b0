"""Kill -9 at any point of a micro-batch, of all processes or of a worker: no row is lost, none is there twice.

The rows that come out are those of a local fleet, bit for bit.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import thalweg.spark
from tests.spark.engine import assert_same_rows, local, needs_spark, rows, start
from thalweg.estimators import Forecaster

pytestmark = [*needs_spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
BATCHES, KEYS, TIMES = 12, 3000, 4


def template():
    return Forecaster(lags=8, season=None)


def child(folder):
    """Play all files, one a micro-batch; go on where the checkpoint ends. A task may fail three times."""
    spark = start(cores="2,4")
    spark.sparkContext.setLogLevel("WARN")
    source = spark.readStream.schema("unique_id string, ds long, y double").option("maxFilesPerTrigger", 1)
    said = thalweg.spark.run(source.parquet(f"{folder}/in"), template(), shards=8)
    writer = said.writeStream.option("checkpointLocation", f"{folder}/state").trigger(availableNow=True)
    writer.start(f"{folder}/out", format="parquet").awaitTermination()


def begin(folder):
    """Start a process in a session of its own."""
    command = [sys.executable, "-c", f"from tests.spark.test_kills import child; child({str(folder)!r})"]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def of_session(session):
    """Processes of a session, with their parents."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = (Path("/proc") / name / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                found[int(name)] = int(fields[1])
    return found


def kill_all(session):
    while found := of_session(session):
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if set(found) == {session}:
            return
        time.sleep(0.05)


def command(process):
    """The command of a process."""
    try:
        return (Path("/proc") / str(process) / "cmdline").read_bytes()
    except OSError:
        return b""


def workers(session):
    """Python's workers: children of the daemon that is a child of the JVM."""
    parents = of_session(session)
    daemons = {one for one in parents if b"pyspark.daemon" in command(one)}
    return [one for one in daemons if parents[one] in daemons]


def committed(folder):
    """The micro-batches that are done."""
    return {int(one.name) for one in (folder / "state" / "commits").glob("[0-9]*")}


def wait(process, seen, seconds=300):
    """Wait until something is seen; False if the process ended before."""
    limit = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < limit, "nothing happened"
        if process.poll() is not None:
            return False
        time.sleep(0.001)
    return True


def prepare(folder):
    """Write the files of all micro-batches; returns their rows."""
    (folder / "in").mkdir()
    frames = [rows(batch, keys=KEYS, times=TIMES, first=TIMES * batch) for batch in range(BATCHES)]
    for batch, frame in enumerate(frames):
        path = folder / "in" / f"{batch}.parquet"
        frame.write_parquet(path)
        os.utime(path, (1e9 + batch, 1e9 + batch))
    return pl.concat(frames)


def results(folder):
    """The rows of all files that Spark's log of the sink names."""
    import json

    kept = {}
    for entry in sorted((folder / "out" / "_spark_metadata").glob("[0-9]*"), key=lambda one: int(one.stem)):
        for line in entry.read_text().splitlines()[1:]:
            said = json.loads(line)
            kept[Path(said["path"].removeprefix("file:")).name] = said["action"]
    return pl.concat([pl.read_parquet(folder / "out" / name) for name, action in kept.items() if action == "add"])


def check(folder, frame, process):
    """The process ends well, and what it has written is what a local fleet says."""
    assert process.wait(600) == 0, (folder / "log").read_text()[-2000:]
    assert committed(folder) == set(range(BATCHES))
    found = results(folder)
    assert len(found) == len(frame) == BATCHES * KEYS * TIMES
    _, want = local(template(), frame)
    found = found.with_columns(pl.col("thalweg").fill_null(np.nan))
    assert_same_rows(found, want)


POINTS = {  # conditions by the folder and the number of a micro-batch, and seconds after them
    "a micro-batch is planned": (lambda folder, batch: (folder / "state" / "offsets" / str(batch)).exists(), 0.0),
    "its state is written in a partition": (
        lambda folder, batch: any((folder / "state" / "state").rglob(f"{batch + 1}*.changelog")),
        0.0,
    ),
    "its results are listed": (lambda folder, batch: (folder / "out" / "_spark_metadata" / str(batch)).exists(), 0.0),
    "its workers play": (lambda folder, batch: (folder / "state" / "offsets" / str(batch)).exists(), 0.7),
}


def kill_at(folder, seen, more):
    """Kill all processes at a point of a micro-batch that was not begun before; False if it was committed by then."""
    batch = max(committed(folder), default=-1) + 2
    process = begin(folder)
    try:
        assert wait(process, lambda: batch - 1 in committed(folder)), (folder / "log").read_text()[-2000:]
        machine = next(one for one in of_session(process.pid) if b"java" in command(one).partition(b"\0")[0])
        assert wait(process, lambda: seen(folder, batch)), (folder / "log").read_text()[-2000:]
        time.sleep(more)
        os.kill(machine, signal.SIGKILL)
    finally:
        kill_all(process.pid)
        process.wait()
    return batch not in committed(folder)


def test_all_processes_killed_at_four_points(tmp_path):
    frame = prepare(tmp_path)
    for what, (seen, more) in POINTS.items():
        assert any(kill_at(tmp_path, seen, more) for _ in range(3)), f"too late, when {what}"
    check(tmp_path, frame, begin(tmp_path))


def test_a_worker_is_killed(tmp_path):
    frame, kills = prepare(tmp_path), 0
    process = begin(tmp_path)
    try:
        for batch in range(1, BATCHES - 1):
            if not wait(process, lambda batch=batch: (tmp_path / "state" / "offsets" / str(batch)).exists()):
                break
            time.sleep(0.3)
            found = workers(process.pid)
            if found and batch not in committed(tmp_path):
                os.kill(found[-1], signal.SIGKILL)
                kills += 1
        check(tmp_path, frame, process)
    finally:
        kill_all(process.pid)
        process.wait()
    assert kills
    assert "Lost task" in (tmp_path / "log").read_text()
