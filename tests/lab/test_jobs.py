"""Runs are kept as they finish, whoever runs them and whatever ends them."""

import contextlib
import errno
import hashlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import joblib
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg
from tests.lab import toy_jobs
from tests.lab.toy_jobs import alive, files, loggers, refused, run, squares, wait_until
from thalweg.errors import InputError
from thalweg.lab import _engines
from thalweg.lab._store import Store, file_name
from thalweg.lab.jobs import Job, LabError, seed_of

# ------------------------------------------------------------------------------------------------- results and engines


@pytest.mark.parametrize("engine", ["serial", "local", "dask"])
def test_results_come_in_order_and_are_used_again(engine, tmp_path):
    jobs = loggers(5, tmp_path)[::-1]
    results = run(jobs, tmp_path / "out", engine=engine, workers=2)
    assert list(results) == [job.name for job in jobs]
    assert results == {f"toy/{x}": toy_jobs.square(x) for x in range(5)}
    assert len(toy_jobs.started(tmp_path / "log")) == 5
    nowhere = {"scheduler": "tcp://127.0.0.1:1"} if engine == "dask" else {}
    assert run(jobs, tmp_path / "out", engine=engine, **nowhere) == results  # with nothing to do, nobody is asked
    assert len(toy_jobs.started(tmp_path / "log")) == 5
    assert not list((tmp_path / "out").rglob("*.tmp"))


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_workers_are_other_processes_with_one_thread(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    jobs = [Job(f"where/{i}", "tests.lab.toy_jobs:surroundings") for i in range(2)]
    for found in run(jobs, tmp_path, engine=engine, workers=1).values():
        assert found["pid"] != os.getpid()
        assert not alive(found["pid"])  # ended with the call
        assert found["env"] == ["1", "1", "1", "1"]


def test_serial_stays_in_this_process(tmp_path):
    found = run([Job("where", "tests.lab.toy_jobs:surroundings")], tmp_path)
    assert found["where"]["pid"] == os.getpid()


def test_workers_default_to_the_cpus_allowed():
    allowed = os.sched_getaffinity(0)
    assert _engines._cpus() == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert _engines._cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_where_joblib_can_start_no_process_it_stays_in_this_one(tmp_path, monkeypatch):
    monkeypatch.setattr(joblib._parallel_backends, "mp", None)
    usual = signal.getsignal(signal.SIGINT)
    found = run(
        [Job(f"where/{i}", "tests.lab.toy_jobs:surroundings") for i in range(2)], tmp_path, engine="local", workers=2
    )
    assert {one["pid"] for one in found.values()} == {os.getpid()}
    assert signal.getsignal(signal.SIGINT) is usual


# -------------------------------------------------------------------------------------------------------- what is kept


def test_a_file_says_what_it_holds(tmp_path):
    run(squares(2), tmp_path)
    path = Store(tmp_path).path("toy/1")
    assert sorted([path.name, Store(tmp_path).path("toy/0").name]) == files(tmp_path)
    kept = json.loads(path.read_text())
    assert list(kept) == sorted(kept)
    digest = kept.pop("sha256")
    assert digest == hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()
    assert kept == {
        "name": "toy/1",
        "function": "tests.lab.toy_jobs:square",
        "arguments": {"x": 1},
        "version": thalweg.__version__,
        "result": toy_jobs.square(1),
    }
    assert list(kept["result"]) == sorted(kept["result"])


@pytest.mark.parametrize("x", [1.0, True, "1", 2])
def test_other_arguments_are_another_run(x, tmp_path):
    run([Job("a", "builtins:dict", {"x": 1})], tmp_path)
    results = run([Job("a", "builtins:dict", {"x": x})], tmp_path)
    assert repr(results) == repr({"a": {"x": x}})  # 1 == 1.0 == True


def test_another_function_or_version_is_another_run(tmp_path, monkeypatch):
    run([Job("a", "tests.lab.toy_jobs:square", {"x": 3})], tmp_path)
    run(loggers(1, tmp_path), tmp_path)
    with pytest.raises(LabError, match="Run a failed"):
        run([Job("a", "tests.lab.toy_jobs:fail", {"x": 3})], tmp_path)
    monkeypatch.setattr("thalweg.lab._store.__version__", "next")
    run(loggers(1, tmp_path), tmp_path)
    assert len(toy_jobs.started(tmp_path / "log")) == 2


def test_a_tuple_arrives_as_a_list_and_is_the_same_run(tmp_path):
    first = run([Job("t", "builtins:dict", {"x": (1, 2)})], tmp_path)
    assert first == {"t": {"x": [1, 2]}}
    assert run([Job("t", "builtins:dict", {"x": [1, 2]})], tmp_path) == first


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "\x00" * len(text),
        lambda text: "[]",
        lambda text: "{}",
        lambda text: text.replace('"result": {', '"results": {'),
        lambda text: json.dumps(json.loads(text) | {"result": [1]}),
        lambda text: json.dumps(json.loads(text) | {"result": {"square": float("nan")}}),
        lambda text: text.replace('"square": 1', '"square": 2'),
        lambda text: text.replace('"square": 1', '"square": "1"'),
        lambda text: text.replace('"square": 1', '"cube": 1'),
        lambda text: json.dumps(json.loads(text) | {"sha256": None}),
        lambda text: "[" * 100_000,
        lambda text: text.encode("utf-16"),
    ],
)
def test_a_damaged_file_is_named_and_run_again(damage, tmp_path, capsys):
    jobs = loggers(3, tmp_path)
    results = run(jobs, tmp_path)
    path = Store(tmp_path).path("toy/1")
    damaged = damage(path.read_text())
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    assert run(jobs, tmp_path) == results
    assert [x for x, _ in toy_jobs.started(tmp_path / "log")] == [0, 1, 2, 1]
    told = capsys.readouterr().err
    assert told.startswith(f"Run toy/1 is computed again: {path} cannot be used (")
    assert told.count("\n") == 1
    assert run(jobs, tmp_path) == results  # and kept
    assert capsys.readouterr().err == ""


def test_a_pipe_in_place_of_a_file_is_replaced(tmp_path, capsys):
    results = run(squares(2), tmp_path)
    path = Store(tmp_path).path("toy/0")
    path.unlink()
    os.mkfifo(path)  # reading it would never end
    assert run(squares(2), tmp_path) == results
    assert "no regular file" in capsys.readouterr().err
    assert path.is_file()


def test_a_folder_in_place_of_a_file_is_told_before_anything_runs(tmp_path):
    jobs = loggers(2, tmp_path)
    Store(tmp_path).path("toy/1").mkdir()
    with refused(LabError, r"Cannot write.* is a folder. Move it away"):
        run(jobs, tmp_path)
    assert toy_jobs.started(tmp_path / "log") == []


def test_without_a_stderr_nothing_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    run(squares(2), tmp_path, progress=True)
    Store(tmp_path).path("toy/0").write_text("{")
    assert run(squares(2), tmp_path, progress=True) == {f"toy/{x}": toy_jobs.square(x) for x in range(2)}


def test_other_runs_in_the_folder_are_left_alone(tmp_path):
    run(squares(2, "other"), tmp_path)
    (tmp_path / "runs" / "notes.txt").write_text("mine")
    before = {name: (tmp_path / "runs" / name).read_bytes() for name in files(tmp_path)}
    assert list(run(squares(2), tmp_path)) == ["toy/0", "toy/1"]
    assert {name: (tmp_path / "runs" / name).read_bytes() for name in before} == before
    assert len(files(tmp_path)) == 5


@given(st.text(min_size=1), st.text(min_size=1))
def test_file_names_are_safe_and_differ(one, other):
    names = {text.encode("utf-8", "ignore").decode() for text in (one, other, one.upper(), one + "/", "x" * 300 + one)}
    found = [file_name(name) for name in names]
    for name in found:
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
        assert name[0] != "-"
        assert len(name) <= 100
    assert len(set(found)) == len(names)


def test_seeds_depend_on_the_name_alone():
    names = [f"dynamic/Sword/seed-{i}" for i in range(1000)]
    seeds = [seed_of(name) for name in names]
    assert len(set(seeds)) == 1000
    assert 2**62 < max(seeds) < 2**63
    assert min(seeds) >= 0
    assert [seed_of(name) for name in reversed(names)] == seeds[::-1]
    assert seed_of("") == 0xE3B0C44298FC1C14 >> 1  # SHA-256 of nothing


# ------------------------------------------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("jobs", "says"),
    [
        (squares(2) + squares(1), "two jobs are called 'toy/0'"),
        (["square"], "needs Job objects"),
        ([Job("", "tests.lab.toy_jobs:square")], "name must be readable"),
        ([Job("a\nb", "tests.lab.toy_jobs:square")], "name must be readable"),
        ([Job("a", toy_jobs.square)], "'module:function'"),
        ([Job("a", "tests.lab.toy_jobs")], "'module:function'"),
        ([Job("a", "tests.lab.toy_jobs:cube")], "cube"),
        ([Job("a", "no_such_module:f")], "no_such_module"),
        ([Job("a", ".tests.lab.toy_jobs:square")], "'module:function'"),
        ([Job("a", "os:sep")], "not a function"),
        ([Job("a", "tests.lab.toy_jobs:square", {"x": float("nan")})], "x is nan"),
        ([Job("a", "tests.lab.toy_jobs:square", {"x": {1, 2}})], "x is of type set"),
        ([Job("a", "tests.lab.toy_jobs:square", [1])], "expected a dict"),
    ],
)
def test_jobs_that_make_no_sense(jobs, says, tmp_path):
    with refused(InputError, says):
        run(jobs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "cloud"},
        {"engine": "local", "workers": 0},
        {"engine": "local", "scheduler": "tcp://127.0.0.1:8786"},
        {"engine": "dask", "scheduler": "tcp://127.0.0.1:8786", "workers": 2},
    ],
)
def test_options_that_make_no_sense(options, tmp_path):
    with refused(InputError, r"run_jobs"):
        run(squares(1), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("engine", ["serial", "local"])
def test_a_failed_job_is_named_and_the_others_are_kept(engine, tmp_path):
    bad = [
        Job("bad/1", "tests.lab.toy_jobs:fail", {"x": 1}),
        Job("bad/2", "tests.lab.toy_jobs:fail", {"y": 2}),
        Job("bad/3", "tests.lab.toy_jobs:leave"),
    ]
    jobs = [*squares(2), *bad, *squares(2, "more")]
    with refused(LabError) as error:
        run(jobs, tmp_path, engine=engine, workers=2)
    assert str(error.value) == (
        "Run bad/1 failed: ArithmeticError: 1 is no good. So did 2 more. "
        f"4 of 7 runs are finished and kept in {tmp_path}."
    )
    assert 'raise ArithmeticError(f"{x} is' in error.value.__notes__[0]
    assert len(files(tmp_path)) == 4
    with pytest.raises(LabError, match="Run bad/3 failed: SystemExit: enough"):
        run(bad[2:], tmp_path)


@pytest.mark.parametrize("engine", ["serial", "local"])
def test_whatever_a_job_raises_the_others_are_run(engine, tmp_path):
    ways = {
        "nasty": "Nasty",
        "steers": r"ValueError: \\x1b\[2Jx{1,300}",
        "deep": "RecursionError",
        "cycle": "recursion",
    }
    bad = [Job(f"bad/{how}", "tests.lab.toy_jobs:misbehave", {"how": how}) for how in ways]
    with pytest.raises(LabError, match=r"Run bad/nasty failed: Nasty\. So did 3 more\. 2 of 6 runs are finished"):
        run([*bad, *squares(2)], tmp_path, engine=engine, workers=2)
    for job, says in zip(bad, ways.values(), strict=True):
        with refused(LabError, rf"Run {job.name} failed: .*{says}") as error:
            run([job], tmp_path)
        assert str(error.value).isprintable()
    assert len(files(tmp_path)) == 2


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("nan", r"curve\[1\]\.loss is nan"),
        ("infinite", "loss is -inf"),
        ("array", "losses is of type ndarray"),
        ("scalar", "n is of type int64"),
        ("key", "by_seed has the key 3"),
        ("list", "expected a dict, got list"),
        ("none", "expected a dict, got NoneType"),
    ],
)
def test_a_result_json_cannot_hold(kind, says, tmp_path):
    with refused(LabError, rf"Run give/{kind} failed: .*{says}"):
        run([Job(f"give/{kind}", "tests.lab.toy_jobs:give", {"kind": kind})], tmp_path)
    assert files(tmp_path) == []


def test_a_worker_that_dies_is_told(tmp_path):
    jobs = [*squares(3), Job("deadly", "tests.lab.toy_jobs:die")]
    with refused(LabError, r"A worker process died.* Under way: .*deadly.*fewer workers") as error:
        run(jobs, tmp_path, engine="local", workers=2)
    assert f"{len(files(tmp_path))} of 4 runs are finished" in str(error.value)
    assert run(squares(3), tmp_path, engine="local", workers=2) == run(squares(3), tmp_path / "undisturbed")


@pytest.mark.parametrize("where", ["folder", "parent", "runs"])
def test_a_file_in_the_way(where, tmp_path):
    folder = tmp_path / "out" / "in"
    file = {"folder": folder, "parent": folder.parent, "runs": folder / "runs"}[where]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    with refused(LabError, r"Cannot write to .*A file is in the way: choose another folder"):
        run(squares(1), folder)


@contextlib.contextmanager
def ordinary_user():
    """Root may write everywhere."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("where", ["folder", "runs"])
def test_an_unwritable_folder(where, tmp_path):
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    folder = tmp_path / "out"
    (folder / "runs").mkdir(parents=True)
    target = folder if where == "folder" else folder / "runs"
    if where == "folder":
        (folder / "runs").rmdir()
    target.chmod(0o555)
    with ordinary_user(), refused(LabError, r"Permission denied.* Choose another folder"):
        run(squares(1), folder)


@pytest.mark.parametrize(("number", "engine"), [(errno.ENOSPC, "serial"), (errno.EDQUOT, "local")])
def test_a_full_disk_leaves_no_half_file(number, engine, tmp_path, monkeypatch):
    class Full(io.BytesIO):
        def __init__(self, path):
            super().__init__()
            self.path = path

        def write(self, content):
            pathlib.Path(self.path).write_bytes(content[: len(content) // 2])
            raise OSError(number, os.strerror(number), self.path)

    def full(path, mode="r", **options):
        if mode == "xb" and "toy-2" in str(path):
            return Full(path)
        return open(path, mode, **options)

    monkeypatch.setattr("thalweg._core.archive.open", full, raising=False)
    with refused(LabError, "Free some space and run the same command again") as error:
        run(loggers(4, tmp_path), tmp_path / "out", engine=engine, workers=None if engine == "serial" else 1)
    kept = files(tmp_path / "out")
    assert str(error.value).endswith(f"{len(kept)} of 4 runs are finished and kept in {tmp_path / 'out'}.")
    assert [name[:5] for name in kept] == ["toy-0", "toy-1"]
    assert all(name.endswith(".json") for name in kept)
    monkeypatch.undo()
    run(loggers(4, tmp_path), tmp_path / "out")
    assert sorted(x for x, _ in toy_jobs.started(tmp_path / "log"))[:4] == [0, 1, 2, 2]


def test_only_drafts_of_a_killed_run_are_removed(tmp_path):
    run(squares(1), tmp_path)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    orphan = f"toy-9-0123456789ab.json.{ended.pid}-00000000.tmp"
    others = [orphan.replace(str(ended.pid), str(os.getpid())), "notes.tmp", f"my-{orphan}.tmp", f"Toy{orphan}"]
    for name in (orphan, *others):
        (tmp_path / "runs" / name).write_text("{")
    (tmp_path / "runs" / "folder.tmp").mkdir()
    run(squares(2), tmp_path)
    left = [name for name in files(tmp_path) if name.endswith(".tmp")]
    assert left == sorted([*others, "folder.tmp"])


def test_a_run_on_another_machine_may_take_a_draft_away(tmp_path, monkeypatch):
    replace, taken = os.replace, []
    monkeypatch.setattr("thalweg.lab._store._alive", lambda process: False)  # not there

    def steal(draft, path):
        if not taken:
            taken.append(draft)
            Store(tmp_path)  # another run begins
            assert not draft.exists()
        replace(draft, path)

    monkeypatch.setattr(os, "replace", steal)
    assert run(squares(2), tmp_path) == {f"toy/{x}": toy_jobs.square(x) for x in range(2)}
    assert taken
    assert len(files(tmp_path)) == 2


# ------------------------------------------------------------------------------------------------------------ progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    run(squares(3), tmp_path, progress=True)
    shown = sys.stderr.getvalue()
    assert "3/3" in shown
    assert "toy/2" in shown
    monkeypatch.setattr(sys, "stderr", Terminal())
    run(squares(5), tmp_path, progress=True)
    assert "| 3/5" in sys.stderr.getvalue()  # begins with what is kept


def test_the_clock_moves_on_while_a_run_takes_long(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    gate = tmp_path / "gate"

    def open_gate():
        wait_until(lambda: sys.stderr.getvalue().count("0/1") >= 3)
        gate.touch()

    opener = threading.Thread(target=open_gate)
    opener.start()
    run(loggers(1, tmp_path, wait_for=str(gate)), tmp_path, progress=True)
    opener.join()
    assert sys.stderr.getvalue().count("1/1") >= 1


def test_elsewhere_a_line_for_every_tenth(tmp_path, capsys):
    run([*squares(19), Job("bad", "tests.lab.toy_jobs:fail", {"x": 1})][:19], tmp_path, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "19 of 19 runs, latest: toy/18"
    assert len(lines) == 10
    with pytest.raises(LabError):
        run([*squares(19), Job("bad", "tests.lab.toy_jobs:fail", {"x": 1})], tmp_path, progress=True)
    assert capsys.readouterr().err == "20 of 20 runs, latest: bad failed\n"
    run(squares(19), tmp_path / "quiet", progress=False)
    run(squares(19), tmp_path, progress=True)
    assert capsys.readouterr() == ("", "")
