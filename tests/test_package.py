"""The package itself: light to import, every name documented, requirements with versions."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import thalweg

PACKAGE = Path(thalweg.__file__).parent


def test_import_is_light():
    code = (
        "import sys, thalweg; heavy = {'matplotlib', 'typer', 'click', 'rich', 'tqdm', 'joblib', 'osqp', 'pandas',"
        " 'pytest', 'scipy', 'numba', 'llvmlite', 'thalweg.regret', 'thalweg.testing', 'thalweg.estimators',"
        " 'thalweg.lab'} & set(sys.modules); sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, f"import thalweg loads {done.stderr}"


def functions():
    """Every function of the package: where it is, and its arguments."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(PACKAGE)}: {node.name}", node.args


def test_no_function_takes_more_than_ten_arguments_by_position():
    """More belong into a NamedTuple, or have names in the call."""
    found = [place for place, args in functions() if len(args.posonlyargs) + len(args.args) > 10]
    assert not found, "\n".join(found)


def test_no_module_is_passed_as_an_argument():
    """Kernels are chosen by the class of a part, not handed around in a module that nothing checks."""
    found = [place for place, args in functions() for a in (*args.args, *args.kwonlyargs) if a.arg == "kernels"]
    found += [
        str(path)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.AnnAssign) and "kernels" in ast.unparse(node.target)
    ]
    assert not found, "\n".join(found)


LONGEST_CHAIN = 15


def imported(path, modules):
    """The package's modules that a module imports when it is loaded; a package counts as its `__init__`."""
    waiting = list(ast.parse(path.read_text()).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ({alias.name for alias in node.names} & set(modules))
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ({name if name in modules else node.module for name in inside} & set(modules))
        elif not isinstance(node, ast.FunctionDef) and "TYPE_CHECKING" not in ast.unparse(getattr(node, "test", node)):
            waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def test_no_chain_of_imports_is_long():
    """To know a module, a reader follows its imports, theirs, and so on."""
    paths = {path.relative_to(PACKAGE.parent).with_suffix(""): path for path in PACKAGE.rglob("*.py")}
    modules = {".".join(part for part in place.parts if part != "__init__"): path for place, path in paths.items()}
    below = {name: set(imported(path, modules)) - {name} for name, path in modules.items()}
    chains = {}

    def chain(name, above=()):
        if name not in chains:
            found = [chain(one, (*above, name)) for one in sorted(below[name]) if one not in above]
            chains[name] = [name, *max(found, key=len, default=[])]
        return chains[name]

    longest = max((chain(name) for name in modules), key=len)
    assert len(longest) <= LONGEST_CHAIN, "\n".join(longest)


def test_every_public_name_exists_and_has_a_docstring():
    for name in thalweg.__all__:
        assert getattr(thalweg, name).__doc__, name


WITHOUT = {
    "sklearn": {"StreamingPCA", "ThalwegForecaster", "TrackingClassifier", "TrackingRegressor"},  # sktime needs it
    "river": {"TrackingForecaster", "TrackingLogistic", "TrackingRegression"},
    "sktime": {"ThalwegForecaster"},
    "pandas": {"ThalwegForecaster"},  # which sktime needs
    "narwhals": None,  # which newer versions of scikit-learn need
    "polars": None,  # which sktime needs where pyarrow is installed
    **{name: set() for name in ("matplotlib", "typer", "tqdm", "jinja2", "numba", "distributed")},
}  # names that a library's absence takes away


@pytest.mark.parametrize("library", WITHOUT)
def test_star_imports_work_where_a_library_is_missing(library):
    code = f"""
import sys
sys.modules[{library!r}] = None  # cannot be imported
from thalweg import *
from thalweg.errors import MissingExtraError
from thalweg.estimators import *
from thalweg.control import *; from thalweg.extend import *; from thalweg.fleet import *; from thalweg.lab import *
from thalweg.pca import *; from thalweg.regret import *; from thalweg.testing import *
import thalweg.estimators
for name in dir(thalweg.estimators):
    try:
        getattr(thalweg.estimators, name)
    except MissingExtraError as error:
        assert name not in globals()
        assert str(error).startswith(f"{{name}} needs ") and "pip install 'thalweg[" in str(error), error
        print(name)
assert Forecaster and Aggregator and ConformalForecaster
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert WITHOUT[library] in (None, set(done.stdout.split()))


def test_every_requirement_says_from_which_version_on():
    """`make oldest` installs exactly those."""
    command = [sys.executable, str(PACKAGE.parents[1] / ".ci" / "oldest.py")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {"numpy", "typer", "joblib", "distributed"} <= {line.partition("==")[0] for line in lines}
    for line in lines:
        assert re.fullmatch(r"[a-z0-9_-]+==[0-9]+(\.[0-9]+)+", line), line


def test_version_is_the_distribution_version():
    from importlib.metadata import version

    assert thalweg.__version__ == version("thalweg")


def test_no_two_classes_have_one_name():
    found = [
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    assert len(found) > 300
    assert not {name for name in found if found.count(name) > 1}


DEEPEST = 4


def test_no_class_has_many_bases_above_it():
    """Class names are unique (see above), so bases are found by their names."""
    bases = {
        node.name: [re.sub(r"\[.*|.*\.", "", ast.unparse(base)) for base in node.bases]
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }

    def depth(name):
        return 1 + max((depth(base) for base in bases[name] if base in bases), default=0)

    assert not {name: depth(name) for name in bases if depth(name) > DEEPEST}
    assert depth("EfficientScream") == DEEPEST


MOST_FUNCTIONS = 10


def test_a_round_by_hand_passes_through_few_functions():
    """Save for the few rounds in which the state grows."""
    learner, gradient, counts = thalweg.Tracker(thalweg.domains.Ball(2)), np.ones(2), []

    def count(frame, event, _):
        counts[-1] += event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE))

    before = sys.getprofile()
    for _ in range(30):
        counts.append(0)
        sys.setprofile(count)
        try:
            _ = learner.decision
            learner.update(gradient)
        finally:
            sys.setprofile(before)
    assert 2 <= np.median(counts) <= MOST_FUNCTIONS, counts
