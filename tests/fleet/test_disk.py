"""Fleets in folders: checkpoints, journals, damage, full disks, two writers."""

import gc
import os
import resource
import shutil
import signal
import subprocess
import sys
import weakref

import numpy as np
import pytest

import thalweg as tw
from tests.fleet.singles import ESTIMATORS, assert_same, assert_same_fleets, batch, fleet_of
from thalweg.domains import Ball
from thalweg.errors import InputError, StateError
from thalweg.fleet import FleetError
from thalweg.fleet.segments import read_segment
from thalweg.fleet.store import FleetStore

PLAIN = ESTIMATORS["Forecaster"]


def played(folder, make=PLAIN, batches=4, checkpoints=(1,)):
    """A fleet in a folder, and its twin in memory."""
    fleet, twin = fleet_of(make, folder=folder), fleet_of(make)
    go_on(fleet, twin, range(batches), checkpoints)
    return fleet, twin


def go_on(fleet, twin, seeds, checkpoints=()):
    for seed in seeds:
        keys, y, X = batch(seed, fleet.template)
        columns = X if X.shape[1] else None
        assert fleet.run(keys, y, columns).tobytes() == twin.run(keys, y, columns).tobytes()
        if seed in checkpoints:
            fleet.checkpoint()


def reopened(fleet):
    """The fleet that its folder holds after it was closed."""
    fleet.close()
    return tw.Fleet.open(fleet._folder.store.folder)


def flipped(data, at=None, by=1):
    """These bytes with some bits of one turned, by default of the one in the middle."""
    damaged = bytearray(data)
    damaged[len(data) // 2 if at is None else at] ^= by
    return bytes(damaged)


def segments(folder):
    return sorted(folder.glob("*.segment"))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_checkpoint_journal_and_restart(name, tmp_path):
    fleet, twin = played(tmp_path / "f", ESTIMATORS[name])
    again = reopened(fleet)
    assert_same_fleets(again, twin)
    assert again.batches == twin.batches
    go_on(again, twin, range(4, 7), (5,))
    assert_same_fleets(reopened(again), twin)


def test_a_journal_that_is_longer_than_the_streams_becomes_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("thalweg.fleet.folder.LONG", 1)
    fleet, twin = played(tmp_path / "f", batches=3, checkpoints=())
    generation, most = fleet._folder.store.generation, 0
    go_on(fleet, twin, range(3, 60))
    assert fleet._folder.store.generation > generation
    for seed in range(60, 90):
        go_on(fleet, twin, [seed])
        most = max(most, fleet._folder.store.journal.size / fleet.nbytes)
    assert 0.5 < most < 1.5  # a batch may go beyond
    assert_same_fleets(reopened(fleet), twin)


def test_learners_that_are_put_in_and_taken_out_do_not_make_the_journal_long(tmp_path, monkeypatch):
    fleet, twin = played(tmp_path / "f", batches=1, checkpoints=())
    monkeypatch.setattr("thalweg.fleet.folder.LONG", 1)
    generation, store = fleet._folder.store.generation, fleet._folder.store
    for _ in range(3):
        for key in twin:
            fleet[key] = twin[key]
    assert store.generation > generation
    assert store.journal.size < 1.5 * fleet.nbytes
    monkeypatch.setattr(type(fleet._streams), "nbytes", 0)
    generation = store.generation
    for some in (fleet, twin):
        del some["shop 3"]
    assert store.generation == generation + 1
    fleet.close()
    monkeypatch.undo()
    assert_same_fleets(tw.Fleet.open(tmp_path / "f"), twin)


def test_a_checkpoint_that_nobody_asked_for_may_fail(tmp_path, monkeypatch):
    fleet, twin = played(tmp_path / "f", batches=3, checkpoints=())
    monkeypatch.setattr("thalweg.fleet.folder.LONG", 1)
    monkeypatch.setattr(type(fleet._streams), "nbytes", 0)
    monkeypatch.setattr(fleet._folder.store, "commit", lambda *given: (_ for _ in ()).throw(OSError("no room")))
    go_on(fleet, twin, range(3, 6))
    assert_same_fleets(reopened(fleet), twin)


def test_learners_restart(tmp_path):
    rng, fleet = np.random.default_rng(0), tw.Fleet(tw.Tracker(Ball(3)), folder=tmp_path / "f")
    twin = tw.Fleet(tw.Tracker(Ball(3)))
    for i in range(6):
        keys, g, paid = rng.integers(0, 9, 100), rng.standard_normal((100, 3)), rng.random(100)
        fleet.update(keys, g, paid)
        twin.update(keys, g, paid)
        assert (fleet.decide(range(9)) == twin.decide(range(9))).all()
        if i == 2:
            fleet.checkpoint()
    assert_same_fleets(reopened(fleet), twin)


def test_everything_is_in_the_journal(tmp_path):
    make = ESTIMATORS["Forecaster, columns"]
    fleet, twin = played(tmp_path / "f", make)
    for one in (fleet, twin):
        one.predict(["shop 1", "nobody"], [[1.0, 2.0]] * 2)
        one.update(["shop 1"], [3.0])
        one.forecast(["shop 2"], np.ones((1, 2, 2)))
        taken = one["shop 3"]
        taken.run([1.0, 2.0], np.ones((2, 2)))
        one["shop 3"] = one["new"] = taken
        del one["shop 4"]
        assert one.forget(idle_since=2) == 0
        one.predict(["shop 2"], [[1.0, 2.0]])
    again = reopened(fleet)
    assert_same_fleets(again, twin)
    for one in (again, twin):
        one.update(["shop 2"], [1.0])  # the prediction before the restart counts
    assert_same_fleets(again, twin)
    again.checkpoint()
    assert_same_fleets(reopened(again), twin)


def test_keys_that_go_and_come_again(tmp_path):
    fleet, twin = played(tmp_path / "f", checkpoints=(0, 1, 2, 3))
    for seed in range(4, 12):
        for key in fleet.keys()[:: 1 + seed % 3]:
            del fleet[key], twin[key]
        keys, y, _ = batch(seed, PLAIN(), 50, 40)
        fleet.run(keys, y)
        twin.run(keys, y)
        if seed % 2:
            fleet.checkpoint()
        if seed % 3 == 0:
            fleet = reopened(fleet)
        assert_same_fleets(fleet, twin)


def test_checkpoints_write_what_changed_and_the_folder_stays_small(tmp_path):
    fleet = tw.Fleet(tw.OGD(Ball(100), horizon=1000, gradient_bound=1.0), folder=tmp_path / "f")
    keys, g = np.arange(400), np.zeros((400, 100))
    fleet.update(keys, g)
    whole = fleet.checkpoint()
    words = fleet._streams.classes[0][1].width * 8
    assert whole <= 1.05 * 400 * (words + 24) + 1000  # a stream: its words, key, last time and batch
    fleet.update(keys[:4], g[:4])
    assert fleet.checkpoint() <= 1.05 * 4 * (words + 24) + 1000
    total = 0
    for i in range(40):
        some = np.random.default_rng(i).choice(400, 100, replace=False)
        fleet.update(some, g[:100])
        total += fleet.checkpoint()
        assert sum(file.stat().st_size for file in segments(tmp_path / "f")) <= 2.1 * whole
    assert total <= 2.1 * 40 * whole / 4
    rounds = fleet.rounds(keys)
    assert (reopened(fleet).rounds(keys) == rounds).all()


def test_two_writers(tmp_path):
    fleet, twin = played(tmp_path / "f")
    with pytest.raises(StateError, match="is open in another process"):
        tw.Fleet.open(tmp_path / "f")
    with pytest.raises(InputError, match=r"has a fleet already. Continue it: Fleet.open"):
        fleet_of(PLAIN, folder=tmp_path / "f")
    program = f"import thalweg; thalweg.Fleet.open({str(tmp_path / 'f')!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"process {os.getpid()}" in done.stderr
    assert done.returncode
    fleet.close()
    with pytest.raises(InputError, match="was closed"):
        fleet.run(["a"], [1.0])
    with tw.Fleet.open(tmp_path / "f") as again:
        assert_same_fleets(again, twin)
    with pytest.raises(InputError, match="has no fleet"):
        tw.Fleet.open(tmp_path)
    with pytest.raises(InputError, match=r"folder=\.\.\."):
        twin.checkpoint()


# -------------------------------------------------------------------------------------------------------------- damage


def test_damage_costs_the_streams_it_hits_and_names_them(tmp_path):
    fleet, twin = played(tmp_path / "f", checkpoints=(1,))
    fleet.close()
    (file,) = segments(tmp_path / "f")
    sound, rng, kinds = file.read_bytes(), np.random.default_rng(0), set()
    for _ in range(60):
        at = int(rng.integers(0, len(sound)))
        file.write_bytes(flipped(sound, at, int(rng.integers(1, 256))))
        folder = tmp_path / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "f", folder)
        try:
            again = tw.Fleet.open(folder)
        except FleetError as error:
            (lost,), told = [key for _, key, _ in error.rows], str(error)
            again = tw.Fleet.open(folder, on_damage="drop")
            kinds.add(repr(lost) in told)
            assert again.lost == [lost]
            assert lost not in again  # rows of the journal give birth to nobody
            kinds.add("stream")
        else:
            kinds.add("copy")  # of header or keys: the other one served
        for key in again.keys():  # noqa: SIM118
            assert_same(again[key], twin[key])
        assert len(again) + len(again.lost) == len(twin)
        again.close()
        assert tw.Fleet.open(folder).lost == []
    assert "stream" in kinds
    assert False not in kinds


def test_keys_and_header_are_there_twice(tmp_path):
    fleet, twin = played(tmp_path / "f", checkpoints=(3,))
    fleet.close()
    (file,) = segments(tmp_path / "f")
    sound = file.read_bytes()
    for at in (3, 20, 40, len(sound) - 3, len(sound) - 40):
        segment = read_segment("s", flipped(sound, at))
        assert all(fine.all() for _, _, _, fine in segment.words())
        assert segment.names.keys.size == len(twin)
    assert read_segment("s", flipped(sound, sound.index(b"shop"))).damage == ["keys"]
    file.write_bytes(sound[: len(sound) // 2])
    with pytest.raises(FleetError, match="streams are damaged on disk"):
        tw.Fleet.open(tmp_path / "f")
    file.write_bytes(sound[:-1])
    tw.Fleet.open(tmp_path / "f").close()
    file.write_bytes(b"")
    with pytest.raises(StateError, match="cannot"):
        tw.Fleet.open(tmp_path / "f")
    file.unlink()
    with pytest.raises(StateError, match="is missing"):
        tw.Fleet.open(tmp_path / "f")
    file.write_bytes(sound)
    assert_same_fleets(tw.Fleet.open(tmp_path / "f"), twin)


def test_manifest_and_journal_damage(tmp_path):
    fleet, twin = played(tmp_path / "f", batches=4, checkpoints=(0,))
    fleet.close()
    manifest, (journal,) = tmp_path / "f" / "MANIFEST", (tmp_path / "f").glob("*.journal")
    sound = journal.read_bytes()
    journal.write_bytes(sound[:-5])  # torn off: that batch was never answered
    again, less = tw.Fleet.open(tmp_path / "f"), fleet_of(PLAIN)
    for seed in range(3):
        keys, y, _ = batch(seed, PLAIN())
        less.run(keys, y)
    assert_same_fleets(again, less)
    again.close()
    journal.write_bytes(flipped(sound, 100))
    with pytest.raises(StateError, match="is damaged at byte 0"):
        tw.Fleet.open(tmp_path / "f")
    journal.write_bytes(sound)
    text = manifest.read_bytes()
    manifest.write_bytes(text.replace(b"generation", b"genaration"))
    with pytest.raises(StateError, match="MANIFEST is damaged"):
        tw.Fleet.open(tmp_path / "f")
    manifest.write_bytes(text)
    assert_same_fleets(tw.Fleet.open(tmp_path / "f"), twin)


def test_bytes_of_a_shard(tmp_path):
    make = ESTIMATORS["ConformalTracker"]
    fleet, keys, y, X = fleet_of(make), *batch(0, make())
    fleet.run(keys, y, X)
    data = fleet.to_bytes()
    assert_same_fleets(tw.Fleet.from_bytes(make(), data), fleet)
    with pytest.raises(StateError, match="other arguments"):
        tw.Fleet.from_bytes(ESTIMATORS["ConformalTracker, late"](), data)
    for bad in (flipped(data), data[: len(data) // 2], b"", b"text"):
        with pytest.raises(StateError):
            tw.Fleet.from_bytes(make(), bad)
    assert len(tw.Fleet.from_bytes(make(), fleet_of(make).to_bytes())) == 0


# ------------------------------------------------------------------------------------------------- disks that are full


@pytest.fixture
def full():
    """Limit the size of files, so that writing fails as on a full disk."""
    usual, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, usual[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_loses_nothing(tmp_path, full):
    fleet, twin = played(tmp_path / "f")
    whole = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    keys, y, _ = batch(9, PLAIN(), keys=40)
    names = sorted(path.name for path in (tmp_path / "f").iterdir())
    for limit in (0, 100, 1000, fleet._folder.store.journal.size + 3000):
        full(limit)
        with pytest.raises(OSError, match="File too large"):
            fleet.run(keys, y)
        full(whole)
        assert_same_fleets(fleet, twin)
    for limit in (0, 1000, 50_000):
        full(limit)
        with pytest.raises(OSError, match="File too large"):
            fleet.checkpoint()
        full(whole)
        assert [name for name in names if name not in os.listdir(tmp_path / "f")] == []
    go_on(fleet, twin, range(4, 6))
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "f", copy)
    assert_same_fleets(tw.Fleet.open(copy), twin)
    fleet.checkpoint()
    assert_same_fleets(reopened(fleet), twin)


def test_a_folder_that_cannot_be_synced_is_closed(tmp_path, monkeypatch):
    fleet, twin = played(tmp_path / "f")

    def fails(path):
        raise OSError("no")

    monkeypatch.setattr("thalweg.fleet.store.sync", fails)
    with pytest.raises(OSError, match="no"):
        fleet.checkpoint()
    with pytest.raises(InputError, match="was closed"):
        fleet.run(["a"], [1.0])
    monkeypatch.undo()
    assert_same_fleets(tw.Fleet.open(tmp_path / "f"), twin)


@pytest.mark.skipif(os.geteuid() != 0, reason="drops rights that only root has")
def test_a_folder_that_cannot_be_written(tmp_path):
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    fleet, twin = played(tmp_path / "f")
    fleet.close()
    os.seteuid(65534)
    try:
        with pytest.raises(PermissionError):
            tw.Fleet.open(tmp_path / "f")
        with pytest.raises(PermissionError):
            fleet_of(PLAIN, folder=tmp_path / "other")
    finally:
        os.seteuid(0)
    assert_same_fleets(tw.Fleet.open(tmp_path / "f"), twin)


def test_rows_are_on_disk_before_their_answers(tmp_path, monkeypatch):
    fleet, twin = played(tmp_path / "f")
    shutil.copytree(tmp_path / "f", tmp_path / "before")
    keys, y, _ = batch(9, PLAIN())

    def dies(*arguments):
        raise RuntimeError("power failure")

    monkeypatch.setattr(type(fleet._streams), "play", dies)
    with pytest.raises(RuntimeError, match="power"):
        fleet.run(keys, y)
    monkeypatch.undo()
    with pytest.raises(InputError, match="was closed"):
        fleet.run(keys, y)
    twin.run(keys, y)
    assert_same_fleets(tw.Fleet.open(tmp_path / "f"), twin)
    assert isinstance(fleet._folder.store, FleetStore)


def test_the_command_says_what_is_in_a_folder(tmp_path, call):
    pytest.importorskip("typer", reason="the command line needs typer: pip install 'thalweg[lab]'")
    fleet, twin = played(tmp_path / "f", batches=4, checkpoints=(1, 2))
    code, out, _ = call("fleet", tmp_path / "f", "--keys", 2)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "Fleet of Forecaster(lags=4)"
    assert lines[1].startswith(f"streams   {len(twin)}: 'shop ")
    assert lines[3] == f"journal   1 calls with {len(batch(3, PLAIN())[0])} rows since checkpoint 3"
    assert lines[-1] == "damage    none"
    fleet.close()
    (file,) = segments(tmp_path / "f")
    file.write_bytes(flipped(file.read_bytes()))
    assert ".segment: 1 streams: 'shop " in call("fleet", tmp_path / "f")[1]
    assert call("fleet", tmp_path)[0] == 1


def test_the_log_tells_of_checkpoints_and_of_opening(tmp_path, caplog):
    caplog.set_level("INFO", logger="thalweg")
    fleet = tw.Fleet(tw.estimators.Forecaster(), folder=tmp_path / "state")
    fleet.update(["a", "b"], [1.0, 2.0])
    written = fleet.checkpoint()
    fleet.update(["a"], [3.0])
    fleet.close()
    tw.Fleet.open(tmp_path / "state").close()
    told = [(record.name, record.getMessage()) for record in caplog.records]
    folder = tmp_path / "state"
    assert ("thalweg.fleet", f"{folder}: checkpoint, 2 streams, {written} bytes") in told
    assert told[-1] == ("thalweg.fleet", f"{folder}: opened, 2 keys, 1 calls of the journal played again")


def test_a_fleet_that_is_dropped_gives_its_memory_back_at_once(tmp_path):
    """No cycle of references waits for the garbage collector."""
    make = ESTIMATORS["Forecaster"]
    fleet = fleet_of(make, folder=tmp_path / "f")
    keys, y, _ = batch(0, fleet.template, 40, 6)
    fleet.run(keys, y)
    streams = weakref.ref(fleet._streams)
    gc.disable()
    try:
        fleet.close()
        del fleet
        assert streams() is None
    finally:
        gc.enable()
