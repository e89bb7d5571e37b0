"""Where Numba keeps what it compiled. Import nothing that imports numba before `use`."""

import hashlib
import os
import pathlib
import tempfile

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "src" / "thalweg"


def sources(package: pathlib.Path = PACKAGE) -> list[pathlib.Path]:
    """Every file with compiled code: all of `_kernels`, and all that import its `jit`."""
    return [
        path
        for path in sorted(package.rglob("*.py"))
        if path.parent == package / "_kernels" or b"_kernels.jit import" in path.read_bytes()
    ]


def use(prefix: str) -> None:
    """Name Numba's cache folder after the content of all kernels and the flags that change the machine code.

    Numba does not notice an edited helper in another file. A NUMBA_CACHE_DIR that is set stays.
    """
    content = b"".join(path.read_bytes() for path in sources()) + os.environ.get("NUMBA_BOUNDSCHECK", "").encode()
    tag = hashlib.sha256(content).hexdigest()[:12]
    folder = os.path.join(tempfile.gettempdir(), f"{prefix}-{os.getuid()}-{tag}")
    os.environ.setdefault("NUMBA_CACHE_DIR", folder)
