"""The library of kernels: it has everything, needs no Numba, and is never used for other sources than its own."""

import ast
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import thalweg
from thalweg._build import make
from thalweg._kernels import library

PACKAGE = Path(thalweg.__file__).parent
WITHOUT_NUMBA = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"

pytestmark = pytest.mark.skipif(library.loaded() is None, reason="the package was installed without its library")


def run(code, *arguments, path=None, **environment):
    """A process of its own; returns what it printed."""
    settings = {key: value for key, value in os.environ.items() if key != "NUMBA_DISABLE_JIT"} | environment
    if path is not None:
        settings["PYTHONPATH"] = str(path)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=settings, capture_output=True, text=True)


def saved(code, path, *arguments, **environment):
    """The arrays that a process of its own writes to this path, and what it said."""
    done = run(code, path, *arguments, **environment)
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(path) as found:
        return dict(found), done.stderr


# ------------------------------------------------------------------------------------------------ without the compiler


EVERYTHING = """
import warnings; warnings.simplefilter("ignore")
from thalweg._build.specimens import play_all
play_all()
import numpy as np, thalweg as tw
X = np.random.default_rng(0).standard_normal((40, 3))
y = X[:, 0] + 0.1
for loss in ("squared_error", "quantile", "huber", "absolute_error"):
    tw.estimators.TrackingRegressor(loss=loss).fit(X, y).predict(X)
tw.estimators.TrackingRegressor(constraint=tw.domains.Ball(3)).fit(X, y).predict(X)
tw.estimators.TrackingClassifier().fit(X, y > 0).predict(X)
tw.estimators.TrackingClassifier().fit(X, np.arange(40) % 3).predict(X)
tw.estimators.StreamingPCA(2).fit(X).transform(X)
for model, label in ((tw.estimators.TrackingRegression(), 1.0), (tw.estimators.TrackingLogistic(), True)):
    for x in ({"a": 1.0}, {"a": 2.0, "b": 1.0}):
        model.predict_one(x)
        model.learn_one(x, label)
assert sys.modules["numba"] is None and not any(name.startswith("thalweg._compiler") for name in sys.modules)
"""


CARDS = """
import thalweg as tw
from thalweg.lab.catalog import ALGORITHMS, build
from thalweg.lab.streams import draw
import warnings; warnings.simplefilter("ignore")
stream = draw("ball-piecewise", horizon=40)
for algorithm in ALGORITHMS:
    learner = build(algorithm, stream)
    tw.play(learner, stream.problem, rounds=20)
    learner.step(stream.problem[20])
assert len(ALGORITHMS) > 20
"""


@pytest.mark.parametrize("code", [EVERYTHING, CARDS], ids=["everything", "the catalogue"])
def test_with_numba_out_of_reach_all_play(code):
    done = run(WITHOUT_NUMBA + code)
    assert done.returncode == 0, done.stderr[-3000:]


FIRST_ROUND = """
import sys
sys.path.insert(0, sys.argv[2])
import start, thalweg
start.ROUNDS[sys.argv[1]](thalweg)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"numba", "llvmlite", "scipy"}))
"""
QUICK = [
    "EfficientDynamic", "Tracker", "Forecaster", "Aggregator", "ConformalTracker", "EfficientControl", "EfficientPCA",
]  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
def test_the_first_round_loads_neither_numba_nor_scipy(name):
    done = run(FIRST_ROUND, name, Path(__file__).parents[2] / "benchmarks")
    assert done.stdout == "[]\n", done.stderr[-3000:]


OWN_LOSS = """
import numpy as np
from thalweg._kernels.jit import kernel
@kernel
def twice(x):
    return 2.0 * x
twice(1.0)
"""


def test_a_kernel_of_ones_own_names_the_extra_where_numba_is_missing():
    done = run(WITHOUT_NUMBA + OWN_LOSS)
    assert done.returncode == 1
    assert "MissingExtraError: __main__.twice is a kernel of your own" in done.stderr
    assert "pip install 'thalweg[jit]'" in done.stderr.splitlines()[-1]


# ------------------------------------------------------------------------------------------------------- never stale


LOSS = "import thalweg as tw; print(tw.losses.Squared([1.0], 0.0).value([2.0]))"


@pytest.fixture
def checkout(tmp_path):
    """A copy of the package with its library."""
    shutil.copytree(PACKAGE, tmp_path / "thalweg", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_an_edited_source_is_noticed_compiled_again_and_kept(checkout):
    file = checkout / "thalweg" / "losses" / "squared.py"
    assert run(LOSS, path=checkout).stdout == "2.0\n"
    text = file.read_text()
    assert "0.5 * " in text
    file.write_text(text.replace("0.5 * ", "1.5 * "))
    cache = str(checkout / "cache")
    first, second = (run(LOSS, path=checkout, THALWEG_CACHE_DIR=cache) for _ in range(2))
    assert first.stdout == second.stdout == "6.0\n", first.stderr
    assert first.stderr.count("its source has changed") >= 1
    assert second.stderr == ""  # it is in the cache
    refused = run(WITHOUT_NUMBA + LOSS, path=checkout)
    assert "its source has changed" in refused.stderr
    assert refused.stdout == ""
    file.write_text(text)
    assert run(WITHOUT_NUMBA + LOSS, path=checkout).stdout == "2.0\n"  # the library's own source again


def test_an_installed_package_hashes_nothing(checkout):
    manifest = checkout / "thalweg" / "_library" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"installed": True, "files": []}))
    code = "from thalweg._kernels import library; library.content = None\n" + LOSS
    assert run(WITHOUT_NUMBA + code, path=checkout).stdout == "2.0\n"


def test_a_damaged_library_is_none(checkout):
    folder = checkout / "thalweg" / "_library"
    for name in ("manifest.json", *(library.NAME.format(level) for level in library.loaded().manifest["levels"])):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(b"")
        done = run(WITHOUT_NUMBA + LOSS, path=checkout)
        assert "has no library of kernels" in done.stderr, name
        (folder / name).write_bytes(data)


def test_constants_from_other_files_are_sources_too():
    """A kernel has the constants of `clock` in it, a file without a function."""
    manifest = library.loaded().manifest
    files = [name for name, _ in manifest["files"]]
    clock = files.index("thalweg/_kernels/clock.py")
    assert sum(clock in sources for _, sources in manifest["kernels"].values()) > 100


def test_a_build_of_the_same_sources_does_nothing():
    reported = []
    make.build(library.FOLDER, installed=False, report=reported.append)
    assert reported == []


# ----------------------------------------------------------------------------------------------- what is in the library


def test_only_the_c_library_and_libm_are_undefined():
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    allowed = {"exp", "log", "pow", "expm1", "log1p", "log2", "tanh", "sqrt", "floor", "ceil", "memset", "memcpy"}
    allowed |= {"memmove", "fmod", "hypot", "exp2", "ldexp", "sin", "cos", "atan2", "round", "rint", "trunc", "fma"}
    for level in library.loaded().manifest["levels"]:
        file = library.FOLDER / library.NAME.format(level)
        out = subprocess.run([nm, "-D", "--undefined-only", file], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1].partition("@")[0] for line in out.splitlines()}
        assert not [name for name in names if name.startswith(("NRT_", "numba_", "Py"))]
        assert {name for name in names if not name.startswith("_")} <= allowed


LEVELS = """
import ctypes, sys
import numpy as np
from thalweg._kernels import library
if sys.argv[2] != "best":
    found = library.loaded()
    plain = found._replace(code=ctypes.CDLL(str(library.FOLDER / library.NAME.format(sys.argv[2]))), level=sys.argv[2])
    library.loaded = lambda: plain
from tests.machines.cases import METHODS, played
np.savez(sys.argv[1], **{name.replace("/", " "): played(make) for name, make in METHODS.items()})
"""


def test_all_levels_of_processors_agree(tmp_path):
    levels = "best", library.loaded().manifest["levels"][-1]
    best, plain = (saved(LEVELS, tmp_path / f"{level}.npz", level)[0] for level in levels)
    assert best.keys() == plain.keys()
    for name, decisions in best.items():
        np.testing.assert_allclose(decisions, plain[name], rtol=0, atol=1e-12, err_msg=name)


COMPILED = """
import sys
import numpy as np
from thalweg._kernels import library
library.find = lambda kernel, kinds: None  # as if there were none
import thalweg as tw
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
problem = tw.problems.LinearRegression(X, X[:, 0])
found = {}
box = tw.domains.Box(-1.0, 1.0, shape=3)
for learner in (tw.EfficientDynamic(box, 60, 30.0), tw.Tracker(box)):
    found[type(learner).__name__] = tw.play(learner, problem, decisions=True).decisions
found["Forecaster"] = tw.estimators.Forecaster(lags=2, season=4, horizon=3).run(X[:, 0]).mean
np.savez(sys.argv[1], **found)
"""


def test_the_library_and_the_compiler_play_the_same_bits(tmp_path):
    """The same pipeline makes both."""
    by_library, said = saved(COMPILED.replace("library.find = ", "unused = "), tmp_path / "a.npz")
    assert said == ""
    by_compiler, said = saved(COMPILED, tmp_path / "b.npz", THALWEG_CACHE_DIR=str(tmp_path / "cache"))
    assert "must be compiled" in said
    assert by_library.keys() == by_compiler.keys()
    for name, found in by_library.items():
        np.testing.assert_array_equal(found, by_compiler[name], err_msg=name)


# ----------------------------------------------------------------------------------------------------------- the store


TWICE = """
import sys; sys.path.insert(0, sys.argv[1])
import mine
print(mine.twice(2.0))
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from thalweg._kernels.jit import kernel\n@kernel\ndef twice(x):\n    return x + x\n"
    )
    return tmp_path


def test_a_kernel_of_a_file_is_compiled_once_and_said(mine):
    cache = mine / "cache"
    first, second = (run(TWICE, mine, THALWEG_CACHE_DIR=str(cache)) for _ in range(2))
    assert first.stdout == second.stdout == "4.0\n"
    assert first.stderr.startswith("thalweg: mine.twice is a kernel of your own")
    assert first.stderr.count("\n") == 1
    assert second.stderr == ""
    (mine / "mine.py").write_text((mine / "mine.py").read_text().replace("x + x", "x + x + x"))
    assert run(TWICE, mine, THALWEG_CACHE_DIR=str(cache)).stdout == "6.0\n"


OTHERS = """
import sys; sys.path.insert(0, sys.argv[1])
import mine, other
from thalweg._kernels.handle import bind
from thalweg.extend import kernel, parts
@kernel
def two(handle):
    return mine.value(parts(handle))
print(mine.twice(2.0), two(bind(other.Part(1.0))))
"""
OTHER = "from typing import NamedTuple\nclass Part(NamedTuple):\n    x: float\n"
VALUE = """
from other import Part
from thalweg._kernels.jit import generic, implement, kernel
@generic
def value(p: object) -> float: ...
@implement(value, Part)
def _value(p):
    return FACTOR * p.x
@kernel
def twice(x):
    return FACTOR * x
"""


def test_files_with_the_same_names_do_not_share_machine_code(tmp_path):
    """A copied folder with other kernels, and with other implementations for a part of the same name."""
    for factor in ("2.0", "3.0"):
        folder = tmp_path / factor
        folder.mkdir()
        (folder / "other.py").write_text(OTHER)
        (folder / "mine.py").write_text(VALUE.replace("FACTOR", factor))
        done = run(OTHERS, folder, THALWEG_CACHE_DIR=str(tmp_path / "cache"))
        assert done.stdout == f"{2 * float(factor)} {factor}\n", done.stderr[-2000:]


@pytest.mark.parametrize("which", ["*.json", "*.o"])
@pytest.mark.parametrize("how", ["cut", "empty", "folder", "nonsense"])
def test_a_damaged_cache_stops_nothing(mine, which, how):
    cache = mine / "cache"
    run(TWICE, mine, THALWEG_CACHE_DIR=str(cache))
    for file in cache.rglob(which):
        data = file.read_bytes()
        file.unlink()
        if how == "folder":
            file.mkdir()
        else:
            file.write_bytes({"cut": data[:-20], "empty": b"", "nonsense": b'[{"returns": 3}]' * 9}[how])
    done = run(TWICE, mine, THALWEG_CACHE_DIR=str(cache))
    assert done.stdout == "4.0\n", done.stderr


def test_without_a_folder_for_a_cache_kernels_are_compiled(mine):
    (mine / "file").touch()
    done = run(TWICE, mine, THALWEG_CACHE_DIR=str(mine / "file" / "cache"))
    assert done.stdout == "4.0\n", done.stderr


# ------------------------------------------------------------------------------------------------------ Numba's inside


INTERNALS = {
    "llvmlite", "llvmlite.binding", "llvmlite.ir",
    "numba", "numba._dynfunc", "numba.njit", "numba.types",
    "numba.core.cgutils", "numba.core.codegen.JITCodeLibrary", "numba.core.compiler.Compiler",
    "numba.core.compiler.DefaultPassBuilder", "numba.core.compiler._LowerResult",
    "numba.core.compiler_machinery.register_pass", "numba.core.errors.NumbaError",
    "numba.core.funcdesc", "numba.core.imputils.lower_getattr_generic",
    "numba.core.lowering.Lower", "numba.core.registry.cpu_target", "numba.core.typed_passes.BaseNativeLowering",
    "numba.core.typed_passes.NativeLowering", "numba.core.typing.templates.AttributeTemplate",
    "numba.core.typing.templates.infer_getattr", "numba.core.typing.templates.infer_global",
    "numba.core.typing.templates.make_intrinsic_template", "numba.extending.models", "numba.extending.overload",
    "numba.extending.register_model", "numba.np.arrayobj.populate_array", "numba.np.numpy_support.from_dtype",
    "llvmlite.binding.newpassmanagers.create_pass_builder",
    "llvmlite.binding.newpassmanagers.create_pipeline_tuning_options",
}  # fmt: skip


def imported(path):
    """Names that a file has from Numba or llvmlite."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(("numba", "llvmlite")))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("numba", "llvmlite")):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_numba_is_used_in_one_folder_and_these_are_its_parts():
    found = set()
    for path in PACKAGE.rglob("*.py"):
        names = set(imported(path))
        assert not names or path.parent.name == "_compiler", f"{path} imports {names}"
        found |= names
    assert found <= INTERNALS, found - INTERNALS
    unused = {name for name in INTERNALS - found if name not in ("llvmlite", "numba")}
    assert not unused, unused


def test_levels_are_those_of_this_machine():
    assert library.level() in library.loaded().manifest["levels"]
    plain = ctypes.CDLL(str(library.FOLDER / library.NAME.format(library.loaded().manifest["levels"][-1])))
    assert plain.thalweg_level() in (0, 1)
