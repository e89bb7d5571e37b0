"""The comparison of two versions: it is of the versions that it says."""

import importlib.util
import pathlib

import pytest

import thalweg

FILE = pathlib.Path(__file__).parents[1] / "benchmarks" / "versus.py"


@pytest.fixture
def versus():
    made = importlib.util.spec_from_file_location("versus", FILE)
    found = importlib.util.module_from_spec(made)
    made.loader.exec_module(found)
    return found


def test_a_process_that_imports_the_version_it_was_asked_for(versus, tmp_path):
    source = pathlib.Path(thalweg.__file__).resolve().parents[1]
    assert versus.ask(source, str(tmp_path), "--work") == {}


def test_a_process_that_imports_another_version_ends_the_comparison(versus, tmp_path):
    source = pathlib.Path(thalweg.__file__).resolve().parents[1]
    other = tmp_path / "src"
    other.mkdir()
    (other / "sitecustomize.py").write_text(f"import sys\nsys.path.insert(0, {str(source)!r})\n")
    with pytest.raises(SystemExit, match=f"from {other} has imported that of {source}"):
        versus.ask(other, str(tmp_path), "--work")


def test_a_folder_without_the_package_is_no_version(versus, tmp_path):
    with pytest.raises(versus.argparse.ArgumentTypeError, match="holds no package thalweg"):
        versus.folder_of(str(tmp_path))
