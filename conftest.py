"""Shared test settings, of doctests too."""

import resource
import signal

import hypothesis
import pytest

from thalweg._kernels import library

GIGABYTE = 2**30

for profile, count in {"fast": 40, "slow": 100}.items():  # see `tests.worlds.examples`
    hypothesis.settings.register_profile(profile, max_examples=count, deadline=None, derandomize=True, print_blob=True)


def pytest_configure(config):
    """Limit the memory, so that a leak is a red test and not a dead machine; draw more examples for slow tests.

    Ctrl-C does what it always does, also where the tests run in the background: `nohup make test &` ignores it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_DATA, (8 * GIGABYTE, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    hypothesis.settings.load_profile("fast" if config.option.markexpr == "not slow" else "slow")


# Long files first, so that no worker is left alone with one at the end.
ORDER = (
    "tests/regret/test_comparators.py",
    "tests/algorithms/test_common.py",
    "tests/lab/test_jobs_ended.py",
    "tests/lab/test_jobs.py",
    "tests/kernels/",
    "tests/domains/",
    "tests/control/",
    "tests/pca/",
    "tests/estimators/",
    "tests/algorithms/",
    "tests/machines/",
    "CONTRIBUTING.md",
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


@pytest.fixture(autouse=True)
def _the_library_has_all_kernels_of_the_package(request, monkeypatch):
    """A kernel of the package that must be compiled for parts of the package is missing from the specimens."""
    compiled = library.compiled
    if request.node.get_closest_marker("compiles"):
        return

    def guarded(kernel, kinds):
        reason = library.why(kernel, kinds)
        if library.loaded() is not None and not kernel.allocates and "your own" not in reason and not library.CHECKED:
            pytest.fail(f"{reason} Is there a specimen for it (thalweg._build.specimens)? Try `make kernels`. {kinds}")
        return compiled(kernel, kinds)

    monkeypatch.setattr(library, "compiled", guarded)
