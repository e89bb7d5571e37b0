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
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from thalweg._build.catalogue import Wanted, command, environment, recorded
from thalweg._kernels import library

__all__ = ["build", "compiler", "work"]

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
    from thalweg._compiler.store import folder as cache

    cc = compiler()
    if cc is None:
        raise RuntimeError("No C compiler was found (cc, gcc or clang): the library cannot be linked.")
    began, stamp = time.perf_counter(), _stamp()
    if _is_current(folder, installed, stamp):
        return
    with tempfile.TemporaryDirectory() as scratch:
        store = CodeStore(cache() or Path(scratch))
        wanted, best = recorded(), levels()
        named = {library.digest(*one): one for one in wanted}
        missing = [one for name, one in named.items() if any(store.get(name, level) is None for level in best)]
        if missing:
            report(f"compiling {len(missing)} of {len(wanted)} kernels")
            _compile(missing, jobs or os.cpu_count() or 1, Path(scratch), report)
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


def _compile(missing: list[Wanted], jobs: int, scratch: Path, report: Callable[[str], None]) -> None:
    """Let workers compile, each a process of its own. Kernels of one tree go to one worker: they share functions."""
    groups: dict[str, list[Wanted]] = {}
    for one in missing:
        groups.setdefault(max(one.kinds, key=len, default="") or one.qualified_name, []).append(one)
    queue: SimpleQueue[list[Wanted]] = SimpleQueue()
    for key in sorted(groups, key=lambda key: len(key) * len(groups[key]), reverse=True):
        queue.put(groups[key])
    done: list[str] = []
    with ThreadPoolExecutor(jobs) as pool:
        for finished in [pool.submit(_feed, queue, len(missing), done, scratch, report) for _ in range(jobs)]:
            finished.result()
    failed = [answer for answer in done if answer.strip()]
    if failed:
        raise RuntimeError("Kernels could not be compiled:\n" + "".join(failed))


def _feed(
    queue: SimpleQueue[list[Wanted]], count: int, done: list[str], scratch: Path, report: Callable[[str], None]
) -> None:
    """Give one worker group after group."""
    from thalweg._compiler.store import folder as cache

    settings = environment(plain=False) | {"THALWEG_CACHE_DIR": str(cache() or scratch)}
    call = command("--work")
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        while True:
            try:
                group = queue.get_nowait()
            except Empty:
                break
            worker.stdin.write(json.dumps(group) + "\n")
            worker.stdin.flush()
            for _ in group:
                answer = worker.stdout.readline()
                if not answer:
                    raise RuntimeError("A worker of the build ended before it was done.")
                done.append(answer)
                if len(done) % 25 == 0 or len(done) == count:
                    report(f"{len(done)} of {count} kernels compiled")
        worker.stdin.close()


def work(lines: Iterable[str], answer: Callable[[str], None]) -> None:
    """Run a worker: compile the groups that come as lines of JSON, and report each finished kernel."""
    from thalweg._compiler.emit import levels
    from thalweg._compiler.process import compile_all
    from thalweg._compiler.store import CodeStore, folder

    store, best = CodeStore(folder()), levels()
    gc.set_threshold(50_000, 20, 1000)  # Numba makes many objects that live as long as the process
    for line in lines:
        gc.freeze()
        for qualified_name, kinds in json.loads(line):
            try:
                compile_all(_kernel(qualified_name), tuple(kinds), best, store)
                answer("")
            except Exception as error:  # of a kernel that cannot be compiled; the others are, all the same
                answer(f"{qualified_name}({', '.join(kinds)}): {error}".replace("\n", " ")[:2000])


def _kernel(qualified_name: str) -> Any:
    module, _, name = qualified_name.partition(":")
    return attrgetter(name)(importlib.import_module(module))
