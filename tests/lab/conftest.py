"""Reports that several files look at, written once."""

import pytest


@pytest.fixture(scope="session")
def paper(tmp_path_factory):
    """The page of the small experiments of the paper, in its folder."""
    from thalweg.lab.reproduce import reproduce

    folder = tmp_path_factory.mktemp("paper")
    return reproduce(folder, small=True, engine="serial", progress=False, command="thalweg reproduce --small")
