"""Where tasks are run: this process, processes of this machine, or the workers of a Dask cluster.

An engine takes tasks and yields each with its outcome, in the order in which they end. Closing it stops the running
tasks and leaves no process behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import json
import logging
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from types import ModuleType
from typing import NamedTuple

from thalweg._core.extras import need
from thalweg._core.interrupts import deferred, handled
from thalweg._core.validate import check_choice, check_count, visible
from thalweg._version import __version__
from thalweg.errors import InputError, MissingExtraError
from thalweg.lab._console import notify
from thalweg.lab._store import LabError, Task, to_json

CONNECT_SECONDS = 5  # how long a scheduler that does not answer may keep the user waiting


class JobOutcome(NamedTuple):
    """The outcome of a task: the JSON of its result, or one line about the error and where it came from."""

    result: str = ""
    error: str = ""
    trace: str = ""
    version: str = __version__


Outcomes = Generator[tuple[Task, JobOutcome], None, None]
Engine = Callable[[list[Task]], Outcomes]


def choose_engine(engine: str, workers: int | None, scheduler: str | None) -> Engine:
    """The engine asked for."""
    check_choice("run_jobs", "engine", engine, ("local", "serial", "dask"))
    if scheduler is not None and engine != "dask":
        raise InputError(f"run_jobs: scheduler goes with engine 'dask'. Got engine {engine!r}.")
    if workers is not None:
        workers = check_count("run_jobs", "workers", workers)
        if scheduler is not None:
            raise InputError("run_jobs: workers of a running scheduler are its own. Leave out one of the two.")
    if engine == "dask":
        return functools.partial(_dask, workers=workers, scheduler=scheduler)
    return _serial if engine == "serial" else functools.partial(_local, workers=workers)


def find_function(function: str) -> Callable[..., object]:
    """Return the function that "module:function" names."""
    module, _, name = function.partition(":")
    try:
        found: object = getattr(importlib.import_module(module), name)
    except MissingExtraError:
        raise
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InputError(
            f"Job: function must be 'module:function' that can be imported. Got {function!r}: {error}."
        ) from None
    if not callable(found):
        raise InputError(f"Job: {function!r} is not a function but of type {type(found).__name__}.")
    return found


def _perform(function: str, arguments: str) -> JobOutcome:
    """Run one task, in any process. Its errors are returned, not raised."""
    try:
        result = find_function(function)(**json.loads(arguments))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return JobOutcome(error=_one_line(error), trace=traceback.format_exc())
    try:
        return JobOutcome(to_json(result))
    except Exception as error:
        return JobOutcome(error=f"its result cannot be kept: {error}")


def _one_line(error: BaseException) -> str:
    text = ""
    with contextlib.suppress(Exception):  # a user's exception may fail again
        text = visible(" ".join(str(error).split()))
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


# -------------------------------------------------------------------------------------------------------- this process


def _serial(tasks: list[Task]) -> Outcomes:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    with handled(interrupt):  # else `thalweg.play` stops early and returns, and the job looks finished
        for task in tasks:
            yield task, _perform(task.function, task.arguments)


def _cpus() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ------------------------------------------------------------------------------------------- processes of this machine


def _local(tasks: list[Task], workers: int | None) -> Outcomes:
    joblib, loky = (need(name, "lab", "Engine 'local'") for name in ("joblib", "joblib.externals.loky"))
    workers = workers or _cpus()
    sent: dict[int, Task] = {}

    def calls() -> Iterator[object]:
        for index, task in enumerate(tasks):
            sent[index] = task
            yield joblib.delayed(_perform_in_child)(os.getpid(), index, task.function, task.arguments)

    count = max(2, min(workers, len(tasks)))  # with one, joblib would stay in this process
    with joblib.parallel_config("loky", n_jobs=count, inner_max_num_threads=1):
        # No batches and nothing sent ahead: a result arrives when its job ends, and every task sent is running.
        parallel = joblib.Parallel(
            return_as="generator_unordered", batch_size=1, pre_dispatch=workers, max_nbytes=None, verbose=0
        )
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", module="joblib")  # workers it replaces, generators closed early
        stack.callback(lambda: loky.get_reusable_executor(reuse=True, kill_workers=True).shutdown(kill_workers=True))
        try:
            with _ctrl_c_held():
                outcomes = stack.enter_context(contextlib.closing(parallel(calls())))
                time.sleep(0.1)  # loky's thread stumbles if stopped before it has begun; workers take longer anyway
            for index, outcome in outcomes:
                yield sent.pop(index), outcome
        except loky.process_executor.BrokenProcessPool as error:
            under_way = ", ".join(task.name for task in list(sent.values()))
            raise LabError(
                f"A worker process died, perhaps for want of memory. Under way: {under_way}. "
                "Run the same command again, with fewer workers."
            ) from error


@contextlib.contextmanager
def _ctrl_c_held() -> Iterator[None]:
    """Start processes that never see Ctrl-C; one that comes meanwhile is raised afterwards."""
    with deferred():
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        resource_tracker.ensure_running()  # it would be started on the way, and unblock the signal
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # children inherit this
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _perform_in_child(parent: int, index: int, function: str, arguments: str) -> tuple[int, JobOutcome]:
    _settle_child(parent)
    return index, _perform(function, arguments)


@functools.cache
def _settle_child(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end when it does, so that no orphan takes time from the next run."""
    if os.getpid() == parent:  # joblib stays in this process where it can start no others
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# ---------------------------------------------------------------------------------------------------------------- Dask


def _dask(tasks: list[Task], workers: int | None, scheduler: str | None) -> Outcomes:
    """A worker that dies has its tasks done again by another; its finished results too, if they had not arrived."""
    distributed = need("distributed", "dask", "Engine 'dask'")

    def perform(function: str, arguments: str) -> tuple[str, ...]:
        # As a local function it travels whole: the scheduler needs no Thalweg, a worker without it says so and lives.
        from thalweg.lab import _engines

        return tuple(_engines._perform(function, arguments))

    with contextlib.ExitStack() as stack:
        stack.enter_context(distributed.utils.silence_logging_cmgr(logging.CRITICAL))  # serious errors are raised
        cluster: object = scheduler
        if scheduler is None:
            with _ctrl_c_held():
                cluster = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=min(workers or _cpus(), len(tasks)),
                        threads_per_worker=1,
                        env={"NUMBA_NUM_THREADS": "1"},  # Dask does the same for BLAS
                        dashboard_address=":0",  # any free port: two runs at a time do not fight over one
                        silence_logs=logging.CRITICAL,
                    )
                )
        else:
            _check_scheduler(distributed, scheduler)
        client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        if not client.nthreads():
            notify(f"The scheduler at {scheduler} has no workers yet; waiting for some.")
        futures = {client.submit(perform, task.function, task.arguments, pure=False, retries=3): task for task in tasks}
        ended = distributed.as_completed(list(futures), loop=client.loop, with_results=True, raise_errors=False)
        for future, answer in ended:
            task = futures.pop(future)
            if future.status == "cancelled":
                raise LabError(f"Lost the Dask scheduler at {scheduler}. Start it and run the same command again.")
            failed = future.status == "error"  # no Thalweg on the worker, or too many workers died over this task
            outcome = JobOutcome(error=_one_line(answer[1])) if failed else JobOutcome(*answer)
            if outcome.version != __version__:
                versions = f"{outcome.version}, this process {__version__}"
                raise LabError(f"A Dask worker has Thalweg {versions}. Install the same everywhere.")
            yield task, outcome


def _check_scheduler(distributed: ModuleType, address: str) -> None:
    """Ask before a client is made: one that cannot connect does not go away quietly."""

    async def kind() -> str:
        security = distributed.Security().get_connection_args("client")
        async with distributed.rpc(address, timeout=CONNECT_SECONDS, connection_args=security) as server:
            return str((await asyncio.wait_for(server.identity(), CONNECT_SECONDS + 1))["type"])

    try:
        with ThreadPoolExecutor(1) as thread:  # there may be an event loop in this one
            found = thread.submit(lambda: asyncio.run(kind())).result()
    except Exception as error:
        raise LabError(
            f"Cannot reach a Dask scheduler at {address!r} ({_one_line(error)}). "
            "Start one with `dask scheduler`, and its workers with `dask worker ADDRESS --nthreads 1`."
        ) from error
    if found != "Scheduler":
        raise LabError(f"At {address!r} is no Dask scheduler but a {found}. Give the scheduler's address.")
