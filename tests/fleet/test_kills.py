"""Kill -9 at any moment: nothing that was answered is lost, and all bits are those of a run that was never killed."""

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import thalweg as tw
from tests.fleet.singles import ESTIMATORS, assert_same_fleets, batch, fleet_of

MAKE = ESTIMATORS["Forecaster"]
ROOT = Path(__file__).parents[2]


def child(folder):
    """Play batches for ever, from the one after the last that is on disk; a checkpoint after every third."""
    fleet = tw.Fleet.open(folder)
    print("open", flush=True)
    while True:
        seed = fleet.batches
        keys, y, _ = batch(seed, fleet.template, 400, 60)
        fleet.run(keys, y)
        print("answered", seed + 1, flush=True)
        if seed % 3 == 2:
            print("checkpoint", flush=True)
            fleet.checkpoint()


def kill_once(folder, rng, wait):
    """Start a process, kill it at a random moment, and return how many batches it answered, 0 if none."""
    command = [sys.executable, "-c", f"from tests.fleet.test_kills import child; child({str(folder)!r})"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.extend(process.stdout), daemon=True)
    reader.start()
    while not any(line.startswith("answered ") for line in said):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    if rng.random() < 0.5:  # in a checkpoint
        count = sum(line.startswith("checkpoint") for line in said)
        limit = time.monotonic() + wait
        while sum(line.startswith("checkpoint") for line in said) == count and time.monotonic() < limit:
            time.sleep(0.0002)
        time.sleep(0.01 * rng.random())
    else:
        time.sleep(wait * rng.random())
    process.kill()
    process.wait()
    reader.join()
    process.stdout.close()
    process.stderr.close()
    whole = [line for line in said if line.startswith("answered ") and line.endswith("\n")]
    return max(int(line.split()[1]) for line in whole)


def kill_many(folder, kills, seed=0, wait=0.3):
    rng, truth = random.Random(seed), fleet_of(MAKE)
    fleet_of(MAKE, folder=folder).close()
    for _ in range(kills):
        answered = kill_once(folder, rng, wait)
        with tw.Fleet.open(folder) as fleet:
            assert answered <= fleet.batches <= answered + 1  # one may be on disk that was not answered yet
            while truth.batches < fleet.batches:
                keys, y, _ = batch(truth.batches, fleet.template, 400, 60)
                truth.run(keys, y)
            assert_same_fleets(fleet, truth)


def test_kills(tmp_path):
    kill_many(tmp_path / "f", 4)


@pytest.mark.slow
def test_many_kills(tmp_path):
    kill_many(tmp_path / "f", 200, seed=1, wait=0.6)
