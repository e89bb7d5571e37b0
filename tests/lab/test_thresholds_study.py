"""The study of thresholds runs at small size and says what the documents say of it."""

import dataclasses
import hashlib
import sys

import numpy as np
import pytest
from thalweg.lab.studies.thresholds import report, runs
from thalweg.lab.studies.thresholds.study import SIZES, STUDY, available, contenders, plan

import thalweg as tw
from tests.lab.reports import check_report
from thalweg.lab.report import part, pick
from thalweg.lab.streams import planted

SMALL = SIZES["small"]
FEW = dataclasses.replace(SMALL, series=("piecewise", "gradual"))


def test_what_the_runs_show(results):
    rows = part(results, "run")

    def losses(series, learner, **wanted):
        found = pick(rows, series=series, learner=learner, **({"group": "others"} | wanted))
        assert len(found) == 2
        return np.array([row["total_loss"] for row in found])

    for series in FEW.series:
        # With the constants of the paper, as printed or re-derived, Algorithm 2 is one scale-free learner.
        alone = losses(series, "one SOGD in Y")
        variant = {"group": "scale", "restart": "center", "feedback": "bound"}
        np.testing.assert_allclose(losses(series, "printed", **variant), alone, rtol=1e-12)
        np.testing.assert_allclose(losses(series, "proof"), alone, rtol=1e-12)
        for label in ("proof", "printed, R = D"):
            assert {row["markers"] for row in pick(rows, series=series, learner=label)} == {1}
        assert (losses(series, "planted") < losses(series, "best fixed")).all()
        for rep in (0, 1):
            sweep = pick(rows, series=series, rep=rep, **variant)
            counts = [row["markers"] for row in sorted(sweep, key=lambda row: row["scale"])]
            assert counts == sorted(counts, reverse=True)
            assert counts[0] > 100
            assert {row["projections"] for row in sweep} == {1.0}


def test_the_report_is_whole(page, results):
    lines, text, _ = check_report(page, STUDY, results, "losses", "after-a-jump")
    rows = part(results, "run")
    assert [float(line["total_loss"]) for line in lines] == [row["total_loss"] for row in rows]
    seed = int.from_bytes(hashlib.sha256(b"piecewise/rep1").digest()[:8], "big")
    assert {int(line["seed"]) for line in lines if (line["series"], line["rep"]) == ("piecewise", "1")} == {seed}
    assert text.count("<table>") == 1 + 4 * len(FEW.series)
    assert "a second expert is born on 0 of 2 series." in text


def test_tables_and_sentences_follow_from_the_numbers(results):
    tables = report.tables(results)
    found = [row["total_loss"] for row in pick(part(results, "run"), series="gradual", learner="OGD")]
    row = next(row for row in tables["gradual, others"].body if row[0] == "OGD")
    assert row[1].startswith(f"{np.mean(found):.4g} ± ")
    assert [row[0] for row in tables["constants"].body] == list(FEW.series)
    assert report.remarks(results)["born"] == 0
    more = {name: dict(row) for name, row in results.items()}
    for row in pick(part(more, "run"), series="gradual", group="scale", scale=1.0):
        row |= {"markers": 2, "total_loss": 1e9}
    said = report.remarks(more)
    assert said["born"] == 1
    assert said["suggested"]["gradual"] < 1e-3 < said["suggested"]["piecewise"]


def test_data_depends_on_the_name_of_the_series_alone():
    seed = int.from_bytes(hashlib.sha256(b"gradual/rep1").digest()[:8], "big")
    by_hand = planted("gradual", tw.problems.paper_ellipsoid(), 2_000, seed, step=6 / 2_000)
    assert np.array_equal(runs.draw("gradual", 1, 2_000).problem.labels, by_hand.problem.labels)
    row = runs.play_one(series="gradual", rep=1, horizon=2_000, **dataclasses.asdict(runs.Contender("SOGD")))
    assert row["total_loss"] == tw.play(tw.SOGD(by_hand.domain), by_hand.problem).total_loss


def test_the_usual_size_is_that_of_the_documents():
    jobs = [job for job in plan(SIZES["usual"]) if job.name.startswith("run/")]
    assert len(SIZES["usual"].series) == 14
    assert len({job.name for job in jobs}) == len(jobs)
    assert {job.arguments["scale"] for job in jobs if job.arguments["group"] == "scale"} == set(SIZES["usual"].scales)
    assert len(runs.draw("piecewise_long", 0, None).problem) == 200_000
    assert len(runs.draw("piecewise", 0, None).changes) == 24


@pytest.mark.parametrize(
    ("series", "package"),
    [("polls", "river"), ("glucose", "bokeh_sampledata"), ("sea", "bokeh_sampledata"), ("water", "river")],
)
def test_real_series(series, package):
    pytest.importorskip(package, reason=f"the series comes with {package}: pip install {package}")
    drawn = runs.draw(series, 0, 2_000)
    problem = drawn.problem
    # The stated constants hold.
    assert np.abs(problem.features).max() <= 1
    assert np.abs(problem.labels).max() <= 1
    assert problem.smoothness <= drawn.smoothness
    for who in contenders(SMALL):
        if who.learner not in ("printed", "scale 1e-06", "best fixed"):
            continue
        row = runs.play_one(series=series, rep=0, horizon=2_000, **dataclasses.asdict(who))
        assert row["rounds"] == len(problem)
        assert row["total_loss"] > 0
        assert not row["curve"]
        assert who.learner != "printed" or row["markers"] == 1
        assert who.learner != "scale 1e-06" or row["markers"] > 1


def test_series_without_data_are_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "river.datasets", None)
    assert set(SIZES["usual"].series) - set(available(SIZES["usual"]).series) == {"polls", "water"}
