"""Examples in the documentation run, and print what they say."""

import doctest
import pathlib

import pytest

from thalweg.lab.streams import installed

DOCS = pathlib.Path(__file__).parents[1] / "docs"
RUNNABLE = [path.name for path in sorted(DOCS.glob("*.md")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", RUNNABLE)
def test_examples(name):
    if set(installed(("water", "sea"))) != {"water", "sea"}:
        pytest.skip("the examples play real data: pip install 'thalweg[data]'")
    found = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0


def test_choosing_is_measured():
    assert "how-to-choose.md" in RUNNABLE
