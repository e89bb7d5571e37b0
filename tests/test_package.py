"""The package itself: light to import, kernels cached and strict, second process without compiling."""

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest
from numba.core.caching import NullCache
from numba.core.registry import CPUDispatcher

import thalweg
from thalweg import _kernels, losses
from thalweg._kernels.jit import SAFE_FLAGS


def test_import_is_light():
    code = (
        "import sys, thalweg, thalweg.testing; heavy = {'matplotlib', 'typer', 'click', 'rich', 'tqdm', 'joblib',"
        " 'osqp', 'pandas', 'pytest', 'scipy.optimize'} & set(sys.modules); sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"import thalweg loads {done.stderr}"


def kernels():
    found = {}
    for info in pkgutil.iter_modules([*_kernels.__path__, *losses.__path__]):
        package = "_kernels" if info.module_finder.path in _kernels.__path__ else "losses"
        module = importlib.import_module(f"thalweg.{package}.{info.name}")
        for name, thing in vars(module).items():
            if isinstance(thing, CPUDispatcher) and thing.py_func.__module__ == module.__name__:
                found[f"{info.name}.{name}"] = thing
    return found


def test_there_are_kernels():
    assert {"projections.project", "ensemble.play_shared", "reduction.surrogate_gradient", "huber.value"} <= set(
        kernels()
    )


@pytest.mark.parametrize("name", kernels())
def test_every_kernel_is_cached_and_keeps_nan(name):
    kernel = kernels()[name]
    assert not isinstance(kernel._cache, NullCache)
    assert set(kernel.targetoptions["fastmath"]) == SAFE_FLAGS
    assert not {"nnan", "ninf"} & set(kernel.targetoptions["fastmath"])
    assert not kernel.targetoptions.get("parallel")


RUN = """
import numpy as np, thalweg as tw
from thalweg._kernels import ensemble, projections, vectors
X = tw.domains.Ellipsoid([1.0, 2.0], bound=1.0)
learner = tw.EfficientDynamic(X, 10, 5.0, 1.0)
learner.step(tw.losses.Squared([1.0, 0.0], 1.0))
tw.play(learner, tw.problems.LinearRegression(np.ones((3, 2)), np.ones(3)))
for kernel in (ensemble.play_round, ensemble.play_shared, vectors.square_norm, projections.project):
    print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert first[1::2] == ["1"] * 4, first
    assert second == ["1", "0"] * 4, second


def test_every_public_name_exists_and_has_a_docstring():
    for name in thalweg.__all__:
        assert getattr(thalweg, name).__doc__, name


def test_version_is_the_distribution_version():
    from importlib.metadata import version

    assert thalweg.__version__ == version("thalweg")
