"""A local Spark for tests; and rows, with the predictions that a local fleet makes of them."""

import os
import shutil
import signal
import sys
from importlib import util

import numpy as np
import polars as pl
import pytest

import thalweg as tw
import thalweg.spark


def there(module):
    """Whether a module is installed."""
    try:
        return util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


MISSING = [name for name in ("pyspark", "pandas", "pyarrow", "google.protobuf") if not there(name)]
WHY = f"needs {', '.join(MISSING)} (extra spark)" if MISSING else "needs Java 17" * (shutil.which("java") is None)

needs_spark = [
    pytest.mark.skipif(bool(WHY), reason=WHY),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of pyspark itself
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets to the JVM
]


def start(cores="2", **settings):
    """A session with two partitions."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"], os.environ["SPARK_LOCAL_IP"] = sys.executable, "127.0.0.1"
    found = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # for a short life
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "Europe/Berlin",  # clocks are set back in some of the tests
        "spark.ui.showConsoleProgress": "false",
        **thalweg.spark.SETTINGS,
        **settings,
    }
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in found.items():
        builder = builder.config(name, value)
    usual = signal.getsignal(signal.SIGINT)
    spark = builder.getOrCreate()
    signal.signal(signal.SIGINT, usual)  # Spark's handler would meet the Ctrl-C of later tests in this process
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def rows(seed, keys=30, times=12, first=0, columns=()):
    """A row for every key and time, shuffled: strings, integers, numbers."""
    rng = np.random.default_rng(seed)
    key, t = np.tile(np.arange(keys), times), np.repeat(np.arange(times), keys) + first
    y = 10 + key + np.sin(t / 3) + 0.3 * rng.standard_normal(key.size)
    frame = pl.DataFrame({"unique_id": [f"house {k}" for k in key], "ds": t, "y": y})
    for name in columns:
        frame = frame.with_columns(pl.Series(name, y + rng.standard_normal(key.size)))
    return frame.sample(fraction=1.0, shuffle=True, seed=seed)


def local(template, frame, **options):
    """The fleet that has played a frame, and its predictions."""
    fleet = tw.Fleet(template, **options)
    return fleet, fleet.run(frame)


def bits(frame, names):
    """The rows of a polars frame by key, time and step: other columns as bits."""
    found = {}
    for row in frame.iter_rows(named=True):
        place = row["unique_id"], row["ds"], row.get("step")
        assert place not in found, f"{place} is there twice"
        found[place] = np.array([row[name] for name in names], dtype=np.float64).tobytes()
    return found


def assert_same_rows(found, want):
    """Two polars frames have the same rows, bit for bit, in any order."""
    assert found.columns == want.columns
    names = [name for name in want.columns if name not in ("unique_id", "ds", "step")]
    assert bits(found, names) == bits(want, names)
