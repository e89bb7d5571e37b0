"""The files of learners as archives: an uncompressed zip of .npy arrays and of one text.

Sizes are compared with those of the file before anything is allocated; checksums are those of the zip. Every problem
found is a `StateError`.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import pathlib
import stat
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from typing import BinaryIO, TypeVar

import numpy as np
from numpy.lib import format as npy

from thalweg._core.types import AnyArray
from thalweg._core.validate import visible, wrong
from thalweg._version import __version__
from thalweg.errors import InputError, MissingExtraError, StateError

T = TypeVar("T")
SCHEMA = 4  # version of the layout of files and states
TEXT = "thalweg.json"
ARRAY_KINDS = {"f": 8, "i": 8, "u": 8, "b": 1}  # arrays that are read, and the most bytes of a number
LONGEST_TEXT = 2**26  # bytes of the text


def read_path(owner: str, path: object) -> str | os.PathLike[str]:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in os.fspath(path):
        raise wrong(owner, "path", "the path of a file", path)
    return path


def write_archive(path: str | os.PathLike[str], text: str, arrays: Mapping[str, AnyArray]) -> None:
    """Write a file whole or not at all."""
    target = pathlib.Path(os.path.realpath(path))
    draft = target.with_name(f".thalweg-{uuid.uuid4().hex}.tmp")
    with replacing(target, draft) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in [(TEXT, text.encode()), *((f"{k}.npy", _to_npy(v)) for k, v in arrays.items())]:
            archive.writestr(zipfile.ZipInfo(name), content)  # of 1980: the same learner makes the same file


@contextlib.contextmanager
def replacing(path: pathlib.Path, draft: pathlib.Path) -> Iterator[BinaryIO]:
    """Open a draft that replaces `path` once it is on disk; on an error it is deleted.

    Only a regular file is replaced, and its permissions are kept.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(f"{os.fspath(path)!r} is no regular file and is not replaced. Give the path of a file.")
    try:
        with open(draft, "xb") as file:
            if mode is not None:
                os.chmod(draft, stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        if os.name == "posix":  # the new name is on the disk, too
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _to_npy(array: AnyArray) -> bytes:
    file = io.BytesIO()
    npy.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def plain_text(text: str, most: int = 200) -> str:
    """Return text of a file that is safe to print: control characters are escaped, long text is cut."""
    cut = text if len(text) <= most else f"{text[:most]}..."
    return visible(cut)


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open a file; turn every error into a StateError."""
    if not stat.S_ISREG(os.stat(read_path("load", path)).st_mode):
        raise StateError(f"{os.fspath(path)!r} is no file that can be loaded.")
    with open(path, "rb") as file:
        try:
            yield Archive(file)
        except (InputError, MissingExtraError, Warning):
            raise
        except StateError as error:
            if str(error).isprintable():
                raise
            raise StateError(plain_text(str(error), 2000)) from error
        except Exception as error:
            message = plain_text(f"{type(error).__name__}: {error}", 2000)
            raise StateError(f"{os.fspath(path)!r} cannot be loaded: {message}") from error


class Archive:
    """The text and the arrays of a file, checked as far as possible without knowing their meaning."""

    def __init__(self, file: BinaryIO) -> None:
        size = os.fstat(file.fileno()).st_size
        self._zip = zipfile.ZipFile(file)
        members = self._zip.infolist()
        self._members = {member.filename: member for member in members}
        if len(self._members) < len(members):
            raise StateError("The file has two members of one name.")
        if any(m.compress_type != zipfile.ZIP_STORED or m.file_size != m.compress_size for m in members):
            raise StateError("The file is compressed, which those of thalweg never are.")
        if sum(member.file_size for member in members) > size:
            raise StateError("The file says that it holds more than it has bytes.")
        if TEXT not in self._members:
            raise StateError(f"The file was not made by thalweg: it has no {TEXT}.")
        if self._members[TEXT].file_size > LONGEST_TEXT:
            raise StateError(f"The {TEXT} of the file is longer than {LONGEST_TEXT} bytes.")
        text = self._zip.read(TEXT).decode()
        about = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
        self.about: dict[str, object] = is_(dict, about)
        self.version, self.schema = is_(str, about.get("thalweg")), is_(int, about.get("schema"))
        if self.schema > SCHEMA:
            raise StateError(
                f"The file has schema {self.schema}, of thalweg {self.version[:40]!r}. This is thalweg {__version__}, "
                f"which reads up to schema {SCHEMA}. Upgrade thalweg."
            )
        self.arrays = {name.removesuffix(".npy"): self._array(name) for name in self._members if name != TEXT}

    def _array(self, name: str) -> AnyArray:
        """A member; `read` compares its checksum."""
        file = io.BytesIO(self._zip.read(name))
        header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
        shape, fortran, dtype = header(file)
        content = memoryview(file.getbuffer())[file.tell() :]
        if dtype.hasobject or dtype.itemsize > ARRAY_KINDS.get(dtype.kind, 0):
            raise StateError(f"The array {name!r} has a type that is never saved: {str(dtype)[:40]!r}.")
        if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(content):
            raise StateError(f"The array {name!r} has not as many bytes as its shape says.")
        array = np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
        return array.astype(dtype.newbyteorder("="))


def is_(kind: type[T], value: object) -> T:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise StateError(f"The {TEXT} of the file is damaged: expected {kind.__name__}, got {type(value).__name__}.")
    return value


def _refuse(word: str) -> None:
    raise StateError(f"The {TEXT} of the file is damaged: it has {word[:20]!r}.")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise StateError(f"The {TEXT} of the file is damaged: a name occurs twice.")
    return dict(pairs)
