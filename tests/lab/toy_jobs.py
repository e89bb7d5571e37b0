"""Small deterministic jobs, which workers import by name, and what the tests of `thalweg.lab.jobs` share."""

import contextlib
import os
import pathlib
import signal
import sys
import time

import numpy as np
import pytest

from thalweg._core.interrupts import interrupts
from thalweg.lab.jobs import Job, run_jobs, seed_of


def square(x):
    return {"square": x * x, "draws": np.random.default_rng(seed_of(f"square/{x}")).normal(size=3).tolist()}


def logged(x, log, pause=0.0, wait_for=None):
    """Note the start in a file, take a while, square."""
    with open(log, "a") as file:
        file.write(f"{x} {os.getpid()}\n")
    time.sleep(pause)
    while wait_for and not pathlib.Path(wait_for).exists():
        time.sleep(0.02)
    return square(x)


def started(log):
    """(x, process) of every start."""
    return [tuple(map(int, line.split())) for line in log.read_text().splitlines()] if log.exists() else []


def fail(x):
    raise ArithmeticError(f"{x} is\nno good")


class Nasty(BaseException):
    """Cannot be shown, sent to another process, or caught by `except Exception`."""

    def __str__(self):
        raise ArithmeticError

    def __reduce__(self):
        raise ArithmeticError


def misbehave(how):
    if how == "nasty":
        raise Nasty
    if how == "steers":
        raise ValueError("\x1b[2J" + "x" * 10_000)
    if how == "deep":
        return misbehave(how)
    result = {}
    result["self"] = result  # "cycle"
    return result


def leave():
    sys.exit("enough")


def give(kind):
    values = {
        "nan": {"curve": [0.0, {"loss": float("nan")}]},
        "infinite": {"loss": float("-inf")},
        "array": {"losses": np.ones(3)},
        "scalar": {"n": np.int64(3)},
        "key": {"by_seed": {3: 1.0}},
        "list": [1.0],
        "none": None,
    }
    return values[kind]


def die(marker=None):
    """Take the whole process down; with a marker, only the first time."""
    if marker is None or not pathlib.Path(marker).exists():
        if marker is not None:
            pathlib.Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"survived": True}


def surroundings():
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {"pid": os.getpid(), "env": [os.environ.get(n) for n in names]}


def played(log, seconds):
    """Ends early on Ctrl-C and returns, as `thalweg.play` does."""
    with open(log, "a") as file:
        file.write(f"0 {os.getpid()}\n")
    with interrupts() as stop:
        end = time.monotonic() + seconds
        while not stop.asked and time.monotonic() < end:
            time.sleep(0.01)
    return {"interrupted": stop.asked}


# -------------------------------------------------------------------------------------------------------- for the tests

PATIENCE = 180  # seconds after which something that should happen is taken not to


def squares(count, prefix="toy"):
    return [Job(f"{prefix}/{x}", "tests.lab.toy_jobs:square", {"x": x}) for x in range(count)]


def loggers(count, tmp_path, **more):
    arguments = {"log": str(tmp_path / "log"), **more}
    return [Job(f"toy/{x}", "tests.lab.toy_jobs:logged", {"x": x, **arguments}) for x in range(count)]


def run(jobs, folder, **options):
    return run_jobs(jobs, folder, **{"engine": "serial", "progress": False, **options})


def files(folder):
    return sorted(p.name for p in (pathlib.Path(folder) / "runs").glob("*"))


def wait_until(condition, process=None):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process is None or process.poll() is None, f"the program ended: {process.communicate()[1]}"
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.01)


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def refused(kind, message=None):
    """An error whose text is one line."""
    with pytest.raises(kind, match=message) as error:
        yield error
    assert "\n" not in str(error.value)


def batch(folder):
    """24 jobs. The last 12 wait for a file beside the folder, so that a test can interrupt them."""
    log, gate = (str(pathlib.Path(folder).with_suffix(suffix)) for suffix in (".log", ".gate"))
    arguments = [{"x": x, "log": log, "pause": 0.1, "wait_for": None if x < 12 else gate} for x in range(24)]
    return [Job(f"toy/{each['x']}", "tests.lab.toy_jobs:logged", each) for each in arguments]


def main(folder, engine):
    """A program that runs the batch, to be killed by the tests."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even if the tests run in the background
    try:
        run_jobs(batch(folder), folder, engine=engine, workers=None if engine == "serial" else 2, progress=False)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main(*sys.argv[1:])
