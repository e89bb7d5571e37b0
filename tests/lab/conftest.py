"""Reports that several files look at, written once."""

import pytest


@pytest.fixture(scope="session")
def paper(tmp_path_factory):
    """The page of the small experiments of the paper, in its folder."""
    from thalweg.lab import study
    from thalweg.lab.studies.paper.study import STUDY

    folder = tmp_path_factory.mktemp("paper")
    return study.run(STUDY, folder, "small", engine="serial", progress=False, command="thalweg reproduce --small")
