"""Results on disk, a file each, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import pathlib
import re
import tempfile
import uuid
from collections.abc import Iterator
from typing import NamedTuple

from thalweg._core.archive import replacing
from thalweg._version import __version__
from thalweg.errors import InputError
from thalweg.lab._console import notify
from thalweg.lab.report import Row

DRAFT = re.compile(r"[a-z0-9-]+-[0-9a-f]{12}\.json\.(\d+)-[0-9a-f]{8}\.tmp")  # of `write_file`, for a `file_name`


class LabError(RuntimeError):
    """Runs that cannot be finished. The message is one line and names a remedy."""


class Task(NamedTuple):
    """A job in the form that is compared, sent and stored: its arguments are JSON."""

    name: str
    function: str
    arguments: str


class Store:
    """The folder `runs` inside `folder`. Files that belong to none of the tasks asked for are left alone."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        with _writing(self.runs):
            self.runs.mkdir(parents=True, exist_ok=True)
            for path in self.runs.glob("*.tmp"):
                draft = DRAFT.fullmatch(path.name)
                if draft and not _alive(int(draft[1])):  # of a run that was killed
                    path.unlink(missing_ok=True)
            with tempfile.TemporaryFile(dir=self.runs):
                pass  # a folder that takes no file says so now, not after the first run

    def path(self, name: str) -> pathlib.Path:
        """Where the result of the job of this name is kept."""
        return self.runs / file_name(name)

    def load(self, task: Task) -> Row | None:
        """Return the result of this very task; None if there is none, or a damaged one, which is reported."""
        path = self.path(task.name)
        if path.is_dir():
            raise LabError(f"Cannot write to {path}: it is a folder. Move it away, or choose another folder.")
        try:
            if not path.is_file() and path.exists():
                raise ValueError("it is no regular file")  # reading a pipe would never end
            kept = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(kept, dict) or kept.pop("sha256", None) != _digest(kept):
                raise ValueError("it is not as it was written")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            notify(f"Run {task.name} is computed again: {path} cannot be used ({error}).")
            return None
        arguments = to_json(kept["arguments"])  # compared as text: in Python 1 == 1.0 == True
        same = (kept["name"], kept["function"], arguments, kept["version"]) == (*task, __version__)
        return kept["result"] if same else None

    def save(self, task: Task, result: str) -> Row:
        """Keep a result. Returns it as `load` will."""
        kept: Row = {"name": task.name, "function": task.function, "version": __version__}
        kept |= {"arguments": json.loads(task.arguments), "result": json.loads(result)}
        path = self.path(task.name)
        if path.is_fifo():
            path.unlink()  # it was reported when it was read
        write_file(path, f"{to_json(kept | {'sha256': _digest(kept)})}\n".encode())
        return kept["result"]  # type: ignore[no-any-return]


def _digest(kept: Row) -> str:
    """Return a digest of the kept data: a file with it is as this module wrote it."""
    return hashlib.sha256(to_json(kept).encode()).hexdigest()


def _alive(process: int) -> bool:
    """Whether a process of this number may still be there."""
    if os.name != "posix":
        return True  # elsewhere asking might end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def refuse_to_overwrite(source: str | int, *written: pathlib.Path) -> None:
    """Raise InputError if a file to be written is the one that is read, or is listed twice; 0 is stdin."""
    for k, path in enumerate(written):
        if os.path.exists(source) and path.exists() and os.path.samefile(source, path):
            raise InputError(f"{path} is the input and would be overwritten. Choose another place for the results.")
        if any(os.path.realpath(path) == os.path.realpath(other) for other in written[:k]):
            raise InputError(f"Two results would be written to {path}. Choose another place for one of them.")


def write_file(path: pathlib.Path, content: bytes) -> pathlib.Path:
    """Write a file whole or not at all, with its folder; a `LabError` names the fault and a remedy."""
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _replace(path, content)
        except FileNotFoundError:  # a run on another machine took the draft for a leftover
            _replace(path, content)
    return path


def _replace(path: pathlib.Path, content: bytes) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp")
    with replacing(path, draft) as file:
        file.write(content)


@contextlib.contextmanager
def _writing(path: pathlib.Path) -> Iterator[None]:
    """Turn errors of the file system into a line with a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "Free some space and run the same command again."
        elif error.errno in (errno.EEXIST, errno.ENOTDIR):
            advice = "A file is in the way: choose another folder."
        else:
            advice = "Choose another folder, or make this one writable."
        raise LabError(f"Cannot write to {path}: {error.strerror or error}. {advice}") from error


def file_name(name: str) -> str:
    """A readable name that every file system takes, with a hash that tells names apart that then look the same.

    Examples
    --------
    >>> file_name("dynamic/Sword/seed-3")
    'dynamic-sword-seed-3-8fec4386446a.json'
    """
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower())[:80].strip("-") or "run"
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:12]}.json"


def to_json(value: object) -> str:
    """A dict as JSON with sorted keys.

    Raises ValueError with one line that names the key, where JSON has no word for a value.
    """
    if not isinstance(value, dict):
        raise ValueError(f"expected a dict, got {type(value).__name__}.")
    _check_json(value, "")
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _check_json(value: object, where: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{where or 'the dict'} has the key {key!r}; keys must be strings.")
            _check_json(item, f"{where}.{key}" if where else key)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check_json(item, f"{where}[{index}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {float(value)}; numbers must be finite.")
    elif value is not None and not isinstance(value, (str, int)):
        raise ValueError(f"{where} is of type {type(value).__name__}; use plain numbers, strings, lists and dicts.")
