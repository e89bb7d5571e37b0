"""Shared test settings, of doctests too."""

from benchmarks import kernel_cache

kernel_cache.use("thalweg")  # before anything imports numba

import hypothesis  # noqa: E402
import pytest  # noqa: E402

for profile, count in {"fast": 40, "slow": 100}.items():  # see `tests.worlds.examples`
    hypothesis.settings.register_profile(profile, max_examples=count, deadline=None, derandomize=True, print_blob=True)


def pytest_configure(config):
    """Draw more examples where slow tests run."""
    hypothesis.settings.load_profile("fast" if config.option.markexpr == "not slow" else "slow")


# Two workers begin with the first two files: one compiles the rounds of all learners, the other runs what compiles
# little. If both compiled the same at the same time, it would be done twice. Short files come last.
ORDER = (
    "tests/algorithms/test_common.py",
    "tests/regret/test_comparators.py",
    "tests/lab/test_jobs_ended.py",
    "tests/lab/test_jobs.py",
    "tests/domains/",
    "tests/control/",
    "tests/lab/test_control_study.py",
    "tests/pca/",
    "tests/lab/test_pca_study.py",
    "tests/algorithms/test_interval_dynamic.py",
    "tests/regret/test_certificates.py",
    "tests/experts/",
    "tests/algorithms/test_covers.py",
    "tests/machines/",
    "CONTRIBUTING.md",
    "README.md",
    "tests/algorithms/",
    "tests/regret/",
    "tests/test_play.py",
    "tests/test_package.py",
    "tests/lab/",
)


def pytest_collection_modifyitems(items):
    """Put the files in their order; a file's tests stay in theirs."""
    items.sort(key=lambda item: next((k for k, path in enumerate(ORDER) if item.nodeid.startswith(path)), len(ORDER)))


@pytest.fixture(autouse=True)
def _forget_learners_of_tests():
    """A learner that a test or a doctest gave a card is in the catalog until that test is over."""
    yield
    from thalweg.cards import KINDS

    for name in [name for name, kind in KINDS.items() if not kind.__module__.startswith("thalweg.")]:
        del KINDS[name]
