"""Shared test settings."""

from benchmarks import kernel_cache

kernel_cache.use("thalweg")  # before anything imports numba

import hypothesis  # noqa: E402

hypothesis.settings.register_profile("thalweg", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("thalweg")
