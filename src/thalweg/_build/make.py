"""Compile the kernels of the catalogue, several at a time, and link one shared library per level of processors."""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import as_completed
from operator import attrgetter
from pathlib import Path

from thalweg._build.catalogue import Wanted, processes, record
from thalweg._kernels import library

# Whether a processor is of the level x86-64-v3; the plain library is asked before the other is loaded.
LEVEL = """
int thalweg_level(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")
        && __builtin_cpu_supports("bmi");
#else
    return 0;
#endif
}
"""


def compiler() -> str | None:
    """The C compiler that links: $CC, or cc, gcc or clang on the path."""
    return next(
        (found for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name and (found := shutil.which(name))), None
    )


def build(folder: Path, *, installed: bool, jobs: int | None = None, report: Callable[[str], None] = print) -> None:
    """Make the library and its manifest in `folder`. Compile only kernels that are out of date."""
    from thalweg._compiler.emit import levels
    from thalweg._compiler.store import CodeStore
    from thalweg._compiler.store import folder as cache_folder

    cc = compiler()
    if cc is None:
        raise RuntimeError("No C compiler was found (cc, gcc or clang): the library cannot be linked.")
    began, stamp = time.perf_counter(), _stamp()
    if _is_current(folder, installed, stamp):
        return
    with tempfile.TemporaryDirectory() as scratch:
        cache, best = cache_folder() or Path(scratch), levels()
        store = CodeStore(cache)
        with processes(1, plain=True) as pool:
            wanted = pool.submit(record).result()
        named = {library.digest(*one): one for one in wanted}
        missing = [one for name, one in named.items() if any(store.get(name, level) is None for level in best)]
        if missing:
            report(f"compiling {len(missing)} of {len(wanted)} kernels")
            _compile(missing, jobs or os.cpu_count() or 1, cache, report)
        files: dict[tuple[str, str], int] = {}
        entries: dict[str, object] = {}
        objects: dict[str, list[Path]] = {level: [] for level in best}
        for level in best:
            for name, one in named.items():
                kept = store.get(name, level)
                if kept is None:
                    raise RuntimeError(f"{one.qualified_name} was not compiled.")
                file = Path(scratch) / f"{name}-{level}.o"
                file.write_bytes(kept.code)
                objects[level].append(file)
                entries[name] = kept.returns, [files.setdefault(source, len(files)) for source in kept.sources]
        folder.mkdir(parents=True, exist_ok=True)
        for level in best:
            _link(cc, objects[level], folder / library.NAME.format(level), Path(scratch))
        manifest = {
            "stamp": stamp,
            "levels": best,
            "installed": installed,
            "files": [] if installed else list(files),
            "kernels": entries,
        }
        (folder / "manifest.json").write_text(json.dumps(manifest))
    report(f"library of {len(wanted)} kernels made in {time.perf_counter() - began:.0f} s")


def _stamp() -> str:
    """Digest of all sources of the package."""
    sources = sorted(library.PACKAGE.rglob("*.py"))
    return hashlib.blake2b(b"|".join(file.read_bytes() for file in sources), digest_size=12).hexdigest()


def _is_current(folder: Path, installed: bool, stamp: str) -> bool:
    """Whether the folder has the library of these very sources."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        whole = all((folder / library.NAME.format(level)).exists() for level in manifest["levels"])
        return bool(whole and manifest["stamp"] == stamp and manifest["installed"] == installed)
    except (OSError, ValueError, LookupError):
        return False


def _link(cc: str, objects: list[Path], library_file: Path, scratch: Path) -> None:
    """Link objects; nothing but the C library and libm may be left undefined."""
    source, names = scratch / "level.c", scratch / "objects.txt"
    source.write_text(LEVEL)
    names.write_text("\n".join(map(str, objects)))
    strict = [] if sys.platform == "darwin" else ["-Wl,-z,defs", "-Wl,--gc-sections", "-s"]
    made = library_file.with_suffix(".new")
    call = [cc, "-shared", "-fPIC", "-O2", "-o", str(made), str(source), f"@{names}", "-lm", *strict]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"The library could not be linked:\n{done.stderr[-2000:]}")
    os.replace(made, library_file)  # processes that have the old one keep it


# ---------------------------------------------------------------------------------------------------------- workers


def _compile(missing: list[Wanted], jobs: int, cache: Path, report: Callable[[str], None]) -> None:
    """Compile in processes of their own. Kernels of one tree go to one process: they share functions."""
    groups: dict[str, list[Wanted]] = {}
    for one in missing:
        groups.setdefault(max(one.kinds, key=len, default="") or one.qualified_name, []).append(one)
    largest_first = sorted(groups, key=lambda key: len(key) * len(groups[key]), reverse=True)
    done, failed = 0, []
    with processes(min(jobs, len(groups)), plain=False) as pool:
        tasks = {pool.submit(_compile_group, groups[key], cache): len(groups[key]) for key in largest_first}
        for task in as_completed(tasks):
            failed += task.result()
            before, done = done, done + tasks[task]
            if done // 25 > before // 25 or done == len(missing):
                report(f"{done} of {len(missing)} kernels compiled")
    if failed:
        raise RuntimeError("Kernels could not be compiled:\n" + "\n".join(failed))


def _compile_group(group: list[Wanted], cache: Path) -> list[str]:
    """Compile some kernels, and keep their machine code. Returns a line for each that cannot be compiled."""
    from thalweg._compiler.emit import levels
    from thalweg._compiler.process import compile_all
    from thalweg._compiler.store import CodeStore

    gc.freeze()
    failed = []
    for qualified_name, kinds in group:
        module, _, name = qualified_name.partition(":")
        try:
            compile_all(attrgetter(name)(importlib.import_module(module)), kinds, levels(), CodeStore(cache))
        except Exception as error:  # the others are compiled, all the same
            failed.append(f"{qualified_name}({', '.join(kinds)}): {error}".replace("\n", " ")[:2000])
    return failed
