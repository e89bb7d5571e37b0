"""The package's own machine code: one shared library per level of processors, and a manifest of its kernels.

`python -m thalweg._build` makes both, as part of installing the package. In an installed package the library is used as
it is. In a checkout, where sources change, a kernel is only taken from it if every source file that the kernel was
compiled from has the same content; otherwise it is compiled again.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from thalweg.errors import MissingExtraError

if TYPE_CHECKING:
    from thalweg._kernels.jit import AnyKernel, Entry

PACKAGE = Path(__file__).parents[1]
FOLDER = PACKAGE / "_library"  # of the libraries and the manifest
NAME = "kernels-{}.so"  # by level
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")  # kernels must check bounds: the library's do not


class Loaded(NamedTuple):
    """The manifest and the library of this process."""

    manifest: dict[str, Any]
    code: ctypes.CDLL
    level: str


@cache
def loaded() -> Loaded | None:
    """The library for this processor; None where the package was installed without one."""
    try:
        manifest = json.loads((FOLDER / "manifest.json").read_text())
        codes = {level: FOLDER / NAME.format(level) for level in manifest["levels"]}
        plain = ctypes.CDLL(str(codes[manifest["levels"][-1]]))
        best = manifest["levels"][0 if plain.thalweg_level() else -1]
        return Loaded(manifest, plain if best == manifest["levels"][-1] else ctypes.CDLL(str(codes[best])), best)
    except (OSError, ValueError, LookupError, AttributeError):
        return None


def level() -> str | None:
    """The level of processors that the library in use was made for."""
    found = loaded()
    return None if found is None else found.level


def digest(name: str, kinds: tuple[str, ...]) -> str:
    """A short name for a kernel with arguments of these kinds."""
    return hashlib.blake2b(f"{name}({','.join(kinds)})".encode(), digest_size=12).hexdigest()


@cache
def content(file: str) -> str | None:
    """Digest of a source file: relative to the folder that the package is in, or anywhere. None if it is not there."""
    try:
        return hashlib.blake2b((PACKAGE.parent / file).read_bytes(), digest_size=12).hexdigest()
    except OSError:
        return None


def find(kernel: AnyKernel, kinds: tuple[str, ...]) -> Entry | None:
    """Machine code from the library; None if it has none for these arguments, or the sources have changed."""
    from thalweg._kernels.jit import Entry

    library = loaded()
    if library is None or CHECKED or not kernel.__module__.startswith("thalweg."):
        return None
    manifest = library.manifest
    name = digest(kernel.qualified_name, kinds)
    known = manifest["kernels"].get(name)
    if known is None:
        return None
    returns, sources = known
    if not manifest["installed"]:
        files = manifest["files"]
        if any(content(files[i][0]) != files[i][1] for i in sources):
            return None
    address = ctypes.cast(library.code[f"k{name}"], ctypes.c_void_p).value or 0
    direct = ctypes.cast(library.code[f"d{name}"], ctypes.c_void_p).value or 0
    return Entry(kernel.qualified_name, kinds, returns, address, direct, library.code)


def compiled(kernel: AnyKernel, kinds: tuple[str, ...]) -> Entry:
    """Machine code that is compiled now, or was before and is in the cache."""
    try:
        compiler = importlib.import_module("thalweg._compiler")  # by name: it builds on this package
    except ImportError as error:
        raise MissingExtraError(f"{why(kernel, kinds)} Install numba with: pip install 'thalweg[jit]'") from error
    entry: Entry = compiler.compile_now(kernel, kinds)
    return entry


def why(kernel: AnyKernel, kinds: tuple[str, ...]) -> str:
    """Why a kernel must be compiled."""
    name = kernel.qualified_name.replace(":", ".")
    own = sorted({text for text in re.findall(r"([\w.]+):", ",".join(kinds)) if not text.startswith("thalweg.")})
    if not kernel.__module__.startswith("thalweg."):
        return f"{name} is a kernel of your own, and must be compiled."
    if own:
        return f"{name} must be compiled for parts of your own ({', '.join(own)})."
    library = loaded()
    if library is None:
        return (
            f"{name} must be compiled: this installation of thalweg has no library of kernels that works here. "
            "Was it installed without a C compiler?"
        )
    if digest(kernel.qualified_name, kinds) in library.manifest["kernels"]:
        return f"{name} must be compiled again: its source has changed since the library of kernels was made."
    return f"{name} must be compiled: the library of kernels does not have it for these arguments."
