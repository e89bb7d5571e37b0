"""Runs that are killed, interrupted or lose a worker go on where they were; clusters that are not there say so."""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from tests.lab import toy_jobs
from tests.lab.toy_jobs import PATIENCE, alive, files, loggers, refused, run, squares, wait_until
from thalweg.errors import MissingExtraError
from thalweg.lab import _engines, _store
from thalweg.lab.jobs import Job, LabError

# -------------------------------------------------------------------------------------------------- ended from outside


def start(folder, engine):
    """The batch, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.lab.toy_jobs", str(folder), engine],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def whole(folder):
    """The finished files, each of which can be read, and where the file system has put them."""
    paths = [path for path in (folder / "runs").glob("*") if path.suffix == ".json"]
    assert all(json.loads(path.read_text())["result"] for path in paths)
    return {path.name: path.stat().st_ino for path in paths}


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_any_moment_it_goes_on_where_it_was(kills, tmp_path):
    folder, log = tmp_path / "out", tmp_path / "out.log"

    def kill_when(process, begun, results):
        wait_until(lambda: len(toy_jobs.started(log)) > begun and len(whole(folder)) >= results, process)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        process.communicate(timeout=PATIENCE)
        workers = {pid for _, pid in toy_jobs.started(log)[begun:]}
        wait_until(lambda: not any(map(alive, workers)))  # no orphan goes on

    for results in (12 * k // (kills - 1) for k in range(kills)):
        before = whole(folder)
        kill_when(start(folder, "local"), len(toy_jobs.started(log)), results)
        after = whole(folder)
        assert before.items() <= after.items()  # nothing was run again, nothing lost
    assert len(after) == 12
    (tmp_path / "out.gate").touch()
    results = run(toy_jobs.batch(folder), folder, engine="local", workers=2)
    assert results == {f"toy/{x}": toy_jobs.square(x) for x in range(24)}
    assert after.items() <= whole(folder).items()
    assert len(files(folder)) == 24  # and no drafts
    # Each kill cost what two workers had under way, and at most as much that had ended but not arrived.
    assert len(toy_jobs.started(log)) <= 24 + kills * (2 + 2)


@pytest.mark.parametrize("others", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_processes_that_share_a_folder_do_not_disturb_each_other(others, tmp_path):
    folder = tmp_path / "out"
    (tmp_path / "out.gate").touch()
    running = [start(folder, "serial") for _ in range(1 + others)]
    for process in running:
        assert process.communicate(timeout=PATIENCE) == (None, "")
        assert process.returncode == 0
    assert len(whole(folder)) == len(files(folder)) == 24  # and no drafts
    before = len(toy_jobs.started(tmp_path / "out.log"))
    assert run(toy_jobs.batch(folder), folder) == {f"toy/{x}": toy_jobs.square(x) for x in range(24)}
    assert len(toy_jobs.started(tmp_path / "out.log")) == before  # all is kept


@pytest.mark.parametrize("engine", ["serial", "local", "dask"])
def test_ctrl_c_keeps_what_is_finished(engine, tmp_path):
    folder, log = tmp_path / "out", tmp_path / "out.log"
    process = start(folder, engine)
    wait_until(lambda: len(whole(folder)) >= 3, process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    kept = len(whole(folder))
    assert said == (
        f"{kept} of 24 runs are finished and kept in {folder}; run the same command again to go on.\ninterrupted\n"
    )
    assert process.returncode == 130
    assert 3 <= kept <= 12
    assert len(files(folder)) == kept
    assert not any(map(alive, {pid for _, pid in toy_jobs.started(log)}))
    begun = len(toy_jobs.started(log))
    (tmp_path / "out.gate").touch()
    assert run(toy_jobs.batch(folder), folder) == {f"toy/{x}": toy_jobs.square(x) for x in range(24)}
    assert len(toy_jobs.started(log)) - begun == 24 - kept


def test_ctrl_c_while_processes_start(tmp_path):
    process = start(tmp_path / "out", "local")
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: children.read_text(), process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert said.splitlines()[-1] == "interrupted"
    assert len(said.splitlines()) == 2


@pytest.fixture
def _ctrl_c():
    """Ctrl-C as in a terminal, even if the tests run in the background."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_waits_until_the_workers_are_there():
    reached = []

    def begin():
        with _engines._ctrl_c_held():
            signal.raise_signal(signal.SIGINT)
            reached.append(True)

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert reached


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_in_another_thread_waits_until_a_result_is_kept_and_counted(monkeypatch, tmp_path, capsys):
    """The system gives the signal to any thread that does not block it; Dask's loop is one."""
    done = threading.Event()
    threading.Thread(target=done.wait).start()
    usual = _store.Store.save

    def save(store, task, result):
        kept = usual(store, task, result)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)  # here it would be raised: the file is there, the result not yet counted
        return kept

    monkeypatch.setattr(_store.Store, "save", save)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(squares(3), tmp_path)
    finally:
        done.set()
    assert len(files(tmp_path)) == 1
    assert "1 of 3 runs are finished" in capsys.readouterr().err


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_never_makes_half_a_result(tmp_path):
    """`thalweg.play` answers Ctrl-C with the rounds so far: that is no finished job."""
    log = tmp_path / "log"

    def press():
        wait_until(lambda: toy_jobs.started(log))
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    job = Job("played", "tests.lab.toy_jobs:played", {"log": str(log), "seconds": PATIENCE})
    with pytest.raises(KeyboardInterrupt):
        run([job], tmp_path)
    thread.join()
    assert files(tmp_path) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ---------------------------------------------------------------------------------------------------------------- Dask


def test_a_dask_worker_that_dies_over_a_job_is_replaced(tmp_path):
    deadly = Job("deadly", "tests.lab.toy_jobs:die", {"marker": str(tmp_path / "marker")})
    results = run([*squares(3), deadly, *squares(3, "more")], tmp_path / "out", engine="dask", workers=2)
    assert results["deadly"] == {"survived": True}
    assert [results[f"more/{x}"] for x in range(3)] == [toy_jobs.square(x) for x in range(3)]


def test_a_killed_worker_of_a_cluster_loses_nothing(tmp_path):
    """Two workers of a running scheduler; one is killed while it works on a job that cannot end before that."""
    distributed = pytest.importorskip("distributed")
    log, gate = tmp_path / "log", tmp_path / "gate"
    jobs = loggers(6, tmp_path, wait_for=str(gate))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:

        def kill():
            wait_until(lambda: len(toy_jobs.started(log)) >= 2)
            os.kill(toy_jobs.started(log)[0][1], signal.SIGKILL)
            gate.touch()

        killer = threading.Thread(target=kill)
        killer.start()
        results = run(jobs, tmp_path / "out", engine="dask", scheduler=cluster.scheduler_address)
        killer.join()
    assert results == {f"toy/{x}": toy_jobs.square(x) for x in range(6)}
    starts = toy_jobs.started(log)
    first, killed = starts[0]
    assert len([x for x, pid in starts if x == first and pid != killed]) == 1  # done again, elsewhere
    assert len(files(tmp_path / "out")) == 6


def test_a_killed_scheduler_is_told_and_the_run_resumed(tmp_path):
    pytest.importorskip("distributed")
    folder, file = tmp_path / "out", tmp_path / "scheduler.json"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    more = ["--scheduler-file", str(file), "--no-dashboard"]
    commands = {"scheduler": ["--port", "0"], "worker": ["--nthreads", "1", "--no-nanny"]}
    scheduler, worker = (
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{name}", *options, *more], env=env,
                         stderr=subprocess.DEVNULL)
        for name, options in commands.items()
    )  # fmt: skip
    try:
        wait_until(lambda: file.exists() and file.read_text().strip().endswith("}"), scheduler)

        def kill():
            wait_until(lambda: len(whole(folder)) >= 3)
            scheduler.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        with refused(LabError, r"Lost the Dask scheduler.* run the same command again"):
            run(toy_jobs.batch(folder), folder, engine="dask", scheduler=json.loads(file.read_text())["address"])
        killer.join()
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    kept = whole(folder)
    assert 3 <= len(kept) <= 12
    (tmp_path / "out.gate").touch()
    assert run(toy_jobs.batch(folder), folder) == {f"toy/{x}": toy_jobs.square(x) for x in range(24)}
    assert kept.items() <= whole(folder).items()


@pytest.mark.parametrize(("engine", "module", "extra"), [("dask", "distributed", "dask"), ("local", "joblib", "lab")])
def test_a_missing_package_is_named(engine, module, extra, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"'{engine}' needs {module}\. .*pip install 'thalweg\[{extra}\]'"):
        run(squares(1), tmp_path, engine=engine)


@pytest.mark.parametrize("kind", ["closed", "silent", "garbage", "foo", "http://somewhere"])
def test_no_scheduler_there(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(_engines, "CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = kind
        if kind in ("closed", "silent", "garbage"):
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        if kind == "closed":
            server.close()

        def answer():
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)
            connection.close()

        thread = threading.Thread(target=answer)
        if kind == "garbage":
            thread.start()
        with refused(LabError, f"Cannot reach a Dask scheduler at '{address}'.*dask worker ADDRESS"):
            run(squares(1), tmp_path, engine="dask", scheduler=address)
        if kind == "garbage":
            thread.join()
