"""Independent runs, saved to disk as they finish.

A `Job` names a function and its arguments. `run_jobs` runs many of them, in processes of this machine or on a Dask
cluster, and saves each result to a file as soon as it is available. Repeating the call reuses the saved results and
runs only the missing jobs, so a run that was killed loses only the jobs in progress.

Only the calling process writes, one small file at a time: a temporary file, then `os.replace`. Workers need not
share a disk with it, and a file under its final name is always complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypedDict

from thalweg._core.extras import need
from thalweg._core.interrupts import deferred
from thalweg.errors import InputError
from thalweg.lab._console import notify
from thalweg.lab._engines import JobOutcome, choose_engine, find_function
from thalweg.lab._store import LabError, Store, Task, to_json
from thalweg.lab.report import Row


class RunOptions(TypedDict, total=False):
    """Options of `run_jobs`."""

    engine: str
    workers: int | None
    scheduler: str | None
    progress: bool


@dataclass(frozen=True)
class Job:
    """One run: a function and its arguments.

    Attributes
    ----------
    name : str
        Unique among the jobs of a call, and readable: "dynamic/Sword/fast/seed-3".
    function : str
        "module:function", imported by the worker. It takes the arguments by keyword and returns a dict that JSON can
        hold: string keys, finite numbers, lists for arrays.
    arguments : dict
        Values that JSON can hold. The function gets them after a round trip through JSON: a tuple arrives as a list.
    """

    name: str
    function: str
    arguments: Row = field(default_factory=dict)


def job(name: str, function: Callable[..., Row], **arguments: object) -> Job:
    """Return a job with this name that calls a module-level function."""
    return Job(name, f"{function.__module__}:{function.__name__}", arguments)


def seed_of(name: str, bits: int = 63) -> int:
    """Return a seed of at most 64 bits that depends on the name alone, so adding a run changes no other seed.

    Examples
    --------
    >>> seed_of("dynamic/seed-0")
    7569286040614064780
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> (64 - bits)


def run_jobs(
    jobs: Iterable[Job],
    folder: str | os.PathLike[str],
    *,
    engine: str = "local",
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool = True,
) -> dict[str, Row]:
    """Run the jobs without a result in `folder`, and return all results by name, in the order given.

    Parameters
    ----------
    jobs : iterable of Job
        Their names must differ.
    folder : path
        Results are saved in folder/runs, one JSON file each. A result is reused if its name, function, arguments and
        version of Thalweg agree. A corrupted one is reported on stderr and its job run again; those of other jobs are
        left alone. If the code changes without a new version, delete the folder.
    engine : "local", "serial" or "dask"
        Processes on this machine, this process, or Dask workers.
    workers : int, optional
        Number of processes, by default one for each CPU available to this process. Each uses one thread.
    scheduler : str, optional
        Address of a running Dask scheduler, such as "tcp://10.0.0.5:8786". Its workers need the same Thalweg; start
        them with `--nthreads 1` if timings matter. By default, "dask" starts a local cluster and stops it at the end.
    progress : bool
        Whether to show a bar on stderr, or a line for every tenth of the jobs if stderr is not a terminal.

    Raises
    ------
    LabError
        If a job failed (the others are run and saved), a result is not valid JSON, the folder cannot be written, the
        disk is full, a worker process died, or the scheduler cannot be reached.
    InputError
        If two jobs have the same name, or arguments are invalid.

    Notes
    -----
    Ctrl-C stops the workers, reports the number of saved runs, and raises KeyboardInterrupt. Workers of an external
    scheduler finish their current run.
    """
    tasks = _to_tasks(jobs)
    perform = choose_engine(engine, workers, scheduler)
    store = Store(pathlib.Path(folder))
    results = {task.name: kept for task in tasks if (kept := store.load(task)) is not None}
    failures: dict[str, JobOutcome] = {}
    missing = [task for task in tasks if task.name not in results]
    if not missing:
        return results

    def so_far() -> str:
        return f"{len(results)} of {len(tasks)} runs are finished and kept in {store.folder}"

    try:
        with _progress(len(tasks), len(results), progress) as show, contextlib.closing(perform(missing)) as outcomes:
            for task, outcome in outcomes:
                if outcome.error:
                    failures[task.name] = outcome
                else:
                    with deferred():  # every saved result is counted
                        results[task.name] = store.save(task, outcome.result)
                show(f"{task.name} failed" if outcome.error else task.name)
    except KeyboardInterrupt:
        notify(f"{so_far()}; run the same command again to go on.")
        raise
    except LabError as error:
        raise LabError(f"{error} {so_far()}.") from error.__cause__
    if failures:
        name, outcome = next((task.name, failures[task.name]) for task in tasks if task.name in failures)
        others = f" So did {len(failures) - 1} more." if len(failures) > 1 else ""
        failure = LabError(f"Run {name} failed: {outcome.error.rstrip('.')}.{others} {so_far()}.")
        if outcome.trace:
            failure.add_note(outcome.trace)
        raise failure
    return {task.name: results[task.name] for task in tasks}


def _to_tasks(jobs: Iterable[Job]) -> list[Task]:
    """Return the jobs as tasks; all of them are validated before any is run."""
    tasks: dict[str, Task] = {}
    for job in jobs:
        if not isinstance(job, Job):
            raise InputError(f"run_jobs needs Job objects. Got {job!r}.")
        if not (isinstance(job.name, str) and job.name.strip() and job.name.isprintable()):
            raise InputError(f"Job: name must be readable text on one line. Got {job.name!r}.")
        if job.name in tasks:
            raise InputError(f"run_jobs: two jobs are called {job.name!r}. Give each a name of its own.")
        if not isinstance(job.function, str):
            raise InputError(f"Job {job.name!r}: function must be text, 'module:function'. Got {job.function!r}.")
        try:
            tasks[job.name] = Task(job.name, job.function, to_json(job.arguments))
        except ValueError as error:
            raise InputError(f"Job {job.name!r}: arguments: {error}") from None
    for function in {task.function for task in tasks.values()}:
        find_function(function)
    return list(tasks.values())


@contextlib.contextmanager
def _progress(total: int, done: int, wanted: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with the name of each finished job."""
    if not wanted or sys.stderr is None:
        yield lambda name: None
    elif sys.stderr.isatty():
        with need("tqdm", "lab", "Progress").tqdm(total=total, initial=done, unit="run", dynamic_ncols=True) as bar:
            ended = threading.Event()

            def tick() -> None:  # keeps the clock moving during a long run
                while not ended.wait(1):
                    bar.refresh()

            def show(name: str) -> None:
                bar.set_postfix_str(name, refresh=False)
                bar.update()

            clock = threading.Thread(target=tick, daemon=True)
            clock.start()
            try:
                yield show
            finally:
                ended.set()
                clock.join()
    else:

        def count(name: str) -> None:
            nonlocal done
            done += 1
            if done * 10 // total > (done - 1) * 10 // total:
                notify(f"{done} of {total} runs, latest: {name}")

        yield count
