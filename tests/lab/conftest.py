"""Reports that several files look at, written once."""

import dataclasses
import json
import sys

import pytest


@pytest.fixture(scope="session")
def paper(tmp_path_factory):
    """The page of the small experiments of the paper, in its folder."""
    _need_pictures()
    from thalweg.lab import study
    from thalweg.lab.studies.paper.study import STUDY

    folder = tmp_path_factory.mktemp("paper")
    return study.run(STUDY, folder, "small", engine="serial", progress=False, command="thalweg reproduce --small")


@pytest.fixture(scope="module")
def page(request, tmp_path_factory):
    """The page of a study, in its folder: of that whose size `FEW` a module of tests has."""
    _need_pictures()
    from thalweg.lab import study

    few = dataclasses.replace(_study(request).STUDY, sizes={"small": request.module.FEW}, available=lambda size: size)
    return study.run(few, tmp_path_factory.mktemp("study"), "small", engine="serial", progress=False)


@pytest.fixture(scope="module")
def results(request, page):
    """The results of that study by the names of its runs."""
    kept = [json.loads(path.read_text()) for path in (page.parent / "runs").iterdir()]
    found = {one["name"]: one["result"] for one in kept}
    return {job.name: found[job.name] for job in _study(request).plan(request.module.FEW)}


def _need_pictures():
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")


def _study(request):
    return sys.modules[type(request.module.FEW).__module__]
