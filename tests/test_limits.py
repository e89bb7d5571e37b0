"""The process that tests run in: a limit of memory, and Ctrl-C."""

import resource
import signal
import subprocess
import sys

LIMIT = 8 * 2**30


def test_memory_is_limited_here_and_in_processes_that_are_started():
    assert 0 < resource.getrlimit(resource.RLIMIT_DATA)[0] <= LIMIT  # -1: no limit
    ask = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0])"
    assert 0 < int(subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True).stdout) <= LIMIT


def test_ctrl_c_works_where_it_was_ignored(pytestconfig):
    """As under `nohup make test &`, and in many runners of CI: the tests of Ctrl-C pass there, too."""
    tests = ["tests/test_play.py::test_ctrl_c_in_the_last_round_is_not_lost"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a process that is started inherits it
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=pytestconfig.rootpath)
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == 0, done.stdout
