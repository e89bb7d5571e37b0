"""Machine code on disk, kept by content: a kernel is compiled again only if its sources change.

It is used by the build and for kernels with parts of one's own. `THALWEG_CACHE_DIR` names the folder; without it, it is
`thalweg` in the user's cache folder. Where no folder can be written, nothing is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Set
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np

from thalweg._kernels.library import PACKAGE, content

KEPT = 4  # versions of a kernel, for a few branches


class CompiledCode(NamedTuple):
    """Machine code of a kernel."""

    returns: str
    sources: list[tuple[str, str]]  # files and digests of their contents
    code: bytes


def folder() -> Path | None:
    """Return the folder of the machine code; None if there is none."""
    given = os.environ.get("THALWEG_CACHE_DIR")
    if given:
        return Path(given)
    try:
        if sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home
        return None
    return base / "thalweg"


@cache
def _toolchain() -> str:
    """Digest of everything besides a kernel's sources that its machine code depends on."""
    versions = [numba.__version__, llvmlite.__version__, np.__version__, platform.python_version(), platform.machine()]
    versions.append(os.environ.get("NUMBA_BOUNDSCHECK", "0"))
    names = "emit.py", "fetching.py", "lowering.py", "types.py"
    files = [*(PACKAGE / "_compiler" / name for name in names), PACKAGE / "_kernels" / "kinds.py"]
    texts = [file.read_bytes() for file in files]
    return hashlib.blake2b(b"|".join([repr(versions).encode(), *texts]), digest_size=8).hexdigest()


def name_of(file: str) -> str:
    """A source file as the store names it: those of the package without the folder that the package is in."""
    try:
        return str(Path(file).relative_to(PACKAGE.parent))
    except ValueError:
        return file


class CodeStore:
    """Machine code in a folder. Files that cannot be read or written are as if they were not there."""

    def __init__(self, where: Path | None) -> None:
        self._where = None if where is None else where / _toolchain()

    def get(self, name: str, level: str, own: Set[str] = frozenset()) -> CompiledCode | None:
        """Machine code of a kernel that belongs to the sources as they are now, and was made from the files `own`."""
        if self._where is None:
            return None
        for kept in self._index(name, level):
            sources = [(str(file), str(digest)) for file, digest in kept["sources"]]
            if own <= {file for file, _ in sources} and all(content(file) == digest for file, digest in sources):
                with contextlib.suppress(OSError):
                    code = (self._where / kept["file"]).read_bytes()
                    if _digest(code) == kept["digest"]:  # a truncated file would end the process
                        return CompiledCode(kept["returns"], sources, code)
        return None

    def put(self, name: str, level: str, kept: CompiledCode) -> None:
        """Keep machine code."""
        if self._where is None:
            return
        file = f"{name}-{level}-{_digest(repr(kept.sources).encode())}.o"
        row: dict[str, Any] = {
            "returns": kept.returns,
            "sources": kept.sources,
            "file": file,
            "digest": _digest(kept.code),
        }
        rows = [row, *[one for one in self._index(name, level) if one["file"] != file]]
        with contextlib.suppress(OSError):
            self._where.mkdir(parents=True, exist_ok=True)
            _write(self._where / file, kept.code)
            _write(self._where / f"{name}-{level}.json", json.dumps(rows[:KEPT]).encode())
            for old in rows[KEPT:]:
                (self._where / old["file"]).unlink(missing_ok=True)

    def _index(self, name: str, level: str) -> list[dict[str, Any]]:
        assert self._where is not None
        try:
            rows = json.loads((self._where / f"{name}-{level}.json").read_bytes())
            fields = {"returns", "sources", "file", "digest"}
            return [row for row in rows if isinstance(row, dict) and fields <= row.keys()]
        except (OSError, ValueError, TypeError):
            return []


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _write(file: Path, data: bytes) -> None:
    """Write a file at once: other processes see all of it or none."""
    handle, name = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
