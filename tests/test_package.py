"""The package itself: light to import, kernels cached and strict, second process without compiling."""

import ast
import errno
import functools
import importlib
import os
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import typeof
from numba.core.caching import IndexDataCacheFile, NullCache
from numba.core.registry import CPUDispatcher

import thalweg
from benchmarks import kernel_cache
from thalweg._kernels import jit
from thalweg._kernels.handle import bind
from thalweg._kernels.jit import SAFE_FLAGS, _foreign
from thalweg.metas.hedge import HedgeState


def test_import_is_light():
    code = (
        "import sys, thalweg, thalweg.testing; heavy = {'matplotlib', 'typer', 'click', 'rich', 'tqdm', 'joblib',"
        " 'osqp', 'pandas', 'pytest', 'scipy.optimize'} & set(sys.modules); sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"import thalweg loads {done.stderr}"


@functools.cache
def kernels():
    found = {}
    for path in kernel_cache.sources():
        place = ".".join(path.relative_to(kernel_cache.PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        module = importlib.import_module(f"thalweg.{place}")
        for name, thing in vars(module).items():
            if isinstance(thing, CPUDispatcher) and thing.py_func.__module__ == module.__name__:
                found[f"{place}.{name}"] = thing
    return found


def test_there_are_kernels():
    assert {"_kernels.projections.onto_ball", "_machines.loop.play", "losses.huber.value"} <= set(kernels())


def test_the_cache_is_named_after_kernels_wherever_they_are(tmp_path):
    for name, text in {
        "_kernels/a.py": "",
        "part/b.py": "from thalweg._kernels.jit import inner",
        "part/c.py": "from thalweg._kernels.a import f",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert kernel_cache.sources(tmp_path) == [tmp_path / "_kernels/a.py", tmp_path / "part/b.py"]


@pytest.mark.parametrize("name", kernels())
def test_every_kernel_is_cached_and_keeps_nan(name):
    kernel = kernels()[name]
    assert not isinstance(kernel._cache, NullCache)
    assert set(kernel.targetoptions["fastmath"]) == SAFE_FLAGS
    assert not {"nnan", "ninf"} & set(kernel.targetoptions["fastmath"])
    assert not kernel.targetoptions.get("parallel")


PROJECT = """
import thalweg as tw
X = tw.domains.Ellipsoid([1.0, 2.0], bound=1.0)
X.project([3.0, 4.0])
kernels = [X.onto.kernel]
"""
PLAY = """
import numpy as np
from thalweg._machines import loop
learner = tw.EfficientDynamic(X, 10, 5.0, 1.0)
learner.step(tw.losses.Squared([1.0, 0.0], 1.0))
tw.play(learner, tw.problems.LinearRegression(np.ones((3, 2)), np.ones(3)))
kernels += [loop.update, loop.play]
"""
TELL = """
for kernel in kernels:
    print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


@pytest.mark.parametrize(("code", "count"), [(PROJECT, 1), pytest.param(PROJECT + PLAY, 3, marks=pytest.mark.slow)])
def test_a_second_process_compiles_nothing(tmp_path, code, count):
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code + TELL]
    first, second = (
        subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)
    )
    assert first[1::2] == ["1"] * count, first
    assert second == ["1", "0"] * count, second


class Mine(NamedTuple):
    """A part that the package does not have."""

    points: np.ndarray


def test_parts_of_a_users_own_are_known_as_such():
    ours = HedgeState(np.zeros((1, 1)), np.zeros(1))
    for tree, foreign in ((ours, False), (Mine(np.zeros(1)), True), ((1.0, (ours, Mine(np.zeros(1)))), True)):
        assert _foreign(typeof(tree)) == foreign
        assert _foreign(typeof(bind(tree))) == foreign


OWN_EXPERT = """
import sys; sys.path.insert(0, sys.argv[1])
import thalweg as tw, part
part.Copy.domain = X = tw.domains.Ball(2)
learner = tw.Alone(part.Copy(X, 0.5))
learner.update([1.0, 0.0])
print(learner.decision)
"""
PART = """
import thalweg as tw
from typing import NamedTuple
from thalweg._kernels import parts
from thalweg._kernels.jit import _chosen, implement
from thalweg.experts import descent
class State(NamedTuple):
    points: object
    sums: object
    ages: object
    moved: object
for function in (parts.start, parts.move, parts.settle, parts.place, parts.spots, parts.leaves):
    implement(function, State)(_chosen[function][descent.DescentState])
class Copy(tw.experts.Descent):
    @classmethod
    def assemble(cls, experts):
        state, settings = super().assemble(experts)
        return State(*state), settings
"""
OTHER = """
import thalweg as tw
learner = tw.Alone(tw.experts.Descent(tw.domains.Ball(2), 0.5))
learner.update([1.0, 0.0])
print(learner.decision)
"""


@pytest.mark.slow
def test_an_expert_of_a_users_module_does_not_spoil_the_cache_of_others(tmp_path):
    """Numba's index names all classes: a process without that module could not read it."""
    (tmp_path / "part.py").write_text(PART)
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for code in (OWN_EXPERT, OTHER):
        command = [sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.stdout == "[-0.5  0. ]\n", done.stderr


def functions():
    """Every function of the package: where it is, and its arguments."""
    for path in sorted(kernel_cache.PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(kernel_cache.PACKAGE)}: {node.name}", node.args


def test_no_function_takes_more_than_ten_arguments_by_position():
    """More belong into a NamedTuple, or have names in the call."""
    found = [place for place, args in functions() if len(args.posonlyargs) + len(args.args) > 10]
    assert not found, "\n".join(found)


def test_no_module_is_passed_as_an_argument():
    """Kernels are chosen by the class of a part, not handed around in a module that nothing checks."""
    found = [place for place, args in functions() for a in (*args.args, *args.kwonlyargs) if a.arg == "kernels"]
    found += [
        str(path)
        for path in kernel_cache.PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.AnnAssign) and "kernels" in ast.unparse(node.target)
    ]
    assert not found, "\n".join(found)


def test_every_public_name_exists_and_has_a_docstring():
    for name in thalweg.__all__:
        assert getattr(thalweg, name).__doc__, name


def test_every_requirement_says_from_which_version_on():
    """`make oldest` installs exactly those."""
    command = [sys.executable, str(kernel_cache.PACKAGE.parents[1] / ".ci" / "oldest.py")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"numpy", "typer", "joblib", "distributed"} <= {line.partition("==")[0] for line in lines}
    for line in lines:
        assert re.fullmatch(r"[a-z0-9_-]+==[0-9]+(\.[0-9]+)+", line), line


def test_version_is_the_distribution_version():
    from importlib.metadata import version

    assert thalweg.__version__ == version("thalweg")


# -------------------------------------------------------------------------------------------- where Numba cannot cache


WITHOUT_CACHE = """
import thalweg as tw
print(tw.domains.Box(-1.0, [1.0, 2.0]).project([3.0, 4.0]))
"""


def test_without_a_writable_cache_kernels_are_compiled_and_that_is_said_once(tmp_path):
    """As in a container: a package that cannot be written, an arbitrary user, no home."""
    shutil.copytree(kernel_cache.PACKAGE, tmp_path / "lib" / "thalweg", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "home").touch()  # files where folders should be stop root, too
    for folder in {path.parent for path in (tmp_path / "lib").rglob("*.py")}:
        (folder / "__pycache__").touch()
    env = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    env |= {"HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path / "lib")}
    command = [sys.executable, "-c", WITHOUT_CACHE]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "[1. 2.]\n", done.stderr
    assert done.stderr.count("Warning") == done.stderr.count("NUMBA_CACHE_DIR") == 1, done.stderr


def twice(x):
    return x + x


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """`twice` as a new process compiles or loads it, and how often its cache was of use."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    def start():
        monkeypatch.setattr(jit, "_hinted", [])
        kernel = jit.kernel(twice)
        assert kernel(2.0) == 4.0
        assert kernel(2) == 4
        return sum(kernel.stats.cache_hits.values())

    return start


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def empty(path):
    path.write_bytes(b"")


def block(path):
    path.unlink()
    path.mkdir()  # no file can take its place


@pytest.mark.parametrize("which", ["*.nbi", "*.1.nbc"])
@pytest.mark.parametrize("damage", [cut, empty, block])
def test_a_damaged_cache_is_said_once_and_mended(compiled, tmp_path, damage, which):
    assert (compiled(), compiled()) == (0, 2)
    (path,) = tmp_path.rglob(which)
    damage(path)
    with pytest.warns(UserWarning, match=r"cannot be used.*NUMBA_CACHE_DIR") as told:
        assert compiled() < 2
    assert len(told) == 1
    if damage is not block:
        assert compiled() == 2


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS])
def test_a_full_or_closed_cache_stops_nothing(compiled, monkeypatch, error):
    def refuse(self, name, data):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(IndexDataCacheFile, "_save_data", refuse)
    with pytest.warns(UserWarning, match=f"{os.strerror(error)}.*NUMBA_CACHE_DIR") as told:
        assert compiled() == 0
    assert len(told) == 1


def test_a_cache_that_is_no_folder_any_more_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_hinted", [])
    kernel = jit.kernel(twice)
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").touch()
    with pytest.warns(UserWarning, match=r"cannot be used.*NUMBA_CACHE_DIR") as told:
        assert (kernel(2.0), kernel(2)) == (4.0, 4)
    assert len(told) == 1
