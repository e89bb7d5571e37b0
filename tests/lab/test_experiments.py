"""The experiments run at small size, in this process, and say what the documents say of them."""

import csv
import hashlib
import importlib.util
import json
import pathlib
import sys

import numpy as np
import pytest

from thalweg.errors import MissingExtraError

FOLDER = pathlib.Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="module")
def threshold_study():
    spec = importlib.util.spec_from_file_location("threshold_study", FOLDER / "threshold_study.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["threshold_study"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["threshold_study"]


def test_threshold_study(threshold_study, tmp_path, capsys):
    arguments = ["--small", "--jobs", "1", "--series", "piecewise", "gradual", "--out", str(tmp_path)]
    rows = threshold_study.main(arguments)

    def losses(series, learner, **wanted):
        found = threshold_study.pick(rows, series=series, learner=learner, **({"group": "others"} | wanted))
        assert len(found) == 2
        return np.array([row["total_loss"] for row in found])

    for series in ("piecewise", "gradual"):
        # With the constants of the paper, as printed or re-derived, Algorithm 2 is one scale-free learner.
        alone = losses(series, "one SOGD in Y")
        variant = {"group": "scale", "restart": "center", "feedback": "bound"}
        np.testing.assert_allclose(losses(series, "printed", **variant), alone, rtol=1e-12)
        np.testing.assert_allclose(losses(series, "proof"), alone, rtol=1e-12)
        for label in ("proof", "printed, R = D"):
            assert {row["markers"] for row in threshold_study.pick(rows, series=series, learner=label)} == {1}
        assert (losses(series, "planted") < losses(series, "best fixed")).all()
        for rep in (0, 1):
            sweep = threshold_study.pick(rows, series=series, rep=rep, **variant)
            counts = [row["markers"] for row in sorted(sweep, key=lambda row: row["scale"])]
            assert counts == sorted(counts, reverse=True)
            assert counts[0] > 100
            assert {row["projections"] for row in sweep} == {1.0}

    seed = int.from_bytes(hashlib.sha256(b"piecewise/rep1").digest()[:8], "big")
    about = json.loads((tmp_path / "about.json").read_text())
    assert about["seeds"]["piecewise/rep1"] == seed
    assert about["versions"]["thalweg"]
    with open(tmp_path / "results.csv", newline="") as file:
        assert [float(row["total_loss"]) for row in csv.DictReader(file)] == [row["total_loss"] for row in rows]
    for name in ("losses.png", "after_change.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert "total loss by threshold scale" in capsys.readouterr().out


def test_threshold_study_data_does_not_depend_on_the_contenders(threshold_study):
    chosen = threshold_study.contenders(small=True)
    some = [contender for contender in chosen if contender.name in ("SOGD", "planted")]
    both = [row["total_loss"] for row, _ in threshold_study.run_batch("gradual", 1, some, True)]
    each = [threshold_study.run_batch("gradual", 1, [contender], True)[0][0]["total_loss"] for contender in some]
    assert both == each


@pytest.mark.parametrize(
    ("series", "package"),
    [("polls", "river"), ("glucose", "bokeh_sampledata"), ("sea", "bokeh_sampledata"), ("water", "river")],
)
def test_threshold_study_on_real_series(threshold_study, series, package):
    pytest.importorskip(package, reason=f"the series comes with {package}: pip install {package}")
    drawn = threshold_study.SOURCES[series].draw(series, 0, True)
    problem = drawn.problem
    # The stated constants hold.
    assert np.abs(problem.features).max() <= 1
    assert np.abs(problem.labels).max() <= 1
    assert problem.smoothness <= drawn.smoothness
    chosen = [c for c in threshold_study.contenders(small=True) if c.name in ("printed", "scale 1e-06", "best fixed")]
    for row, curve in threshold_study.run_batch(series, 0, chosen, True):
        assert row["rounds"] == len(problem)
        assert row["total_loss"] > 0
        assert not curve
        assert row["learner"] != "printed" or row["markers"] == 1
        assert row["learner"] != "scale 1e-06" or row["markers"] > 1


def test_threshold_study_names_a_missing_package(threshold_study, monkeypatch):
    monkeypatch.setitem(sys.modules, "river.datasets", None)
    with pytest.raises(MissingExtraError, match="pip install river"):
        threshold_study.main(["--small", "--series", "polls"])
