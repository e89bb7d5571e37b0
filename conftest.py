"""Shared test settings, of doctests too."""

from benchmarks import kernel_cache

kernel_cache.use("thalweg")  # before anything imports numba

import hypothesis  # noqa: E402
import pytest  # noqa: E402

for profile in ("fast", "slow"):  # see `tests.worlds.examples`
    hypothesis.settings.register_profile(profile, deadline=None, derandomize=True, print_blob=True)


def pytest_configure(config):
    """Draw more examples where slow tests run."""
    hypothesis.settings.load_profile("fast" if config.option.markexpr == "not slow" else "slow")


@pytest.fixture(autouse=True)
def _forget_learners_of_tests():
    """A learner that a test or a doctest gave a card is in the catalog until that test is over."""
    yield
    from thalweg.cards import KINDS

    for name in [name for name, kind in KINDS.items() if not kind.__module__.startswith("thalweg.")]:
        del KINDS[name]
