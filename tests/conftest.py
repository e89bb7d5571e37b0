"""Shared test settings."""

import hashlib
import os
import pathlib
import tempfile

# Numba does not notice an edited helper in another file. So the cache folder is named after the content of all kernels
# and the flags that change the machine code. This runs before anything imports numba.
_source = pathlib.Path(__file__).parents[1] / "src" / "thalweg"
_kernels = sorted(path for folder in ("_kernels", "losses") for path in (_source / folder).glob("*.py"))
_flags = os.environ.get("NUMBA_BOUNDSCHECK", "")
_tag = hashlib.sha256(b"".join(p.read_bytes() for p in _kernels) + _flags.encode()).hexdigest()[:12]
os.environ.setdefault("NUMBA_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"thalweg-{os.getuid()}-{_tag}"))

import hypothesis  # noqa: E402

hypothesis.settings.register_profile("thalweg", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("thalweg")
