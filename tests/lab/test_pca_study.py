"""The study of online PCA: its streams, one run, the report."""

import importlib
import math

import numpy as np
import pytest
from thalweg.lab.studies.pca import report as told
from thalweg.lab.studies.pca import runs
from thalweg.lab.studies.pca.study import SIZES, STUDY, available

from tests.lab.reports import check_report
from thalweg.errors import MissingExtraError
from thalweg.lab.report import part
from thalweg.pca import best_subspace

pytest.importorskip("sklearn")

FEW = SIZES["small"]


# ------------------------------------------------------------------------------------------------------------ streams


@pytest.mark.parametrize("name", runs.STREAMS)
def test_streams_are_unit_rows_that_depend_on_the_seed_alone(name):
    source = runs.STREAMS[name]
    rows = source.draw(3, 200)
    assert rows.shape[0] == 200
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(rows, source.draw(3, 200))
    assert np.array_equal(rows, source.draw(4, 200)) == source.real
    assert np.array_equal(source.draw(3, 100), rows[:100])  # a longer stream begins as a shorter one


def test_streams_change_when_they_say():
    """Rounds of one stretch share a subspace, those of two do not."""
    rows = runs.STREAMS["frequent switches"].draw(0, 1000)
    apart = best_subspace(rows[:500], 3).loss + best_subspace(rows[500:], 3).loss
    assert best_subspace(rows, 3).loss > 2 * apart
    rows = runs.STREAMS["fast rotation"].draw(0, 410)
    first, last = (best_subspace(rows[part], 3).components for part in (slice(0, 20), slice(390, 410)))
    assert np.linalg.norm(first @ last.T) < 0.6  # a right angle apart
    rows = runs.STREAMS["still"].draw(0, 1000)
    assert best_subspace(rows, 3).loss < 0.2 * len(rows)


def test_digits_come_ordered():
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    rows = runs.STREAMS["digits"].draw(0, 10_000)
    assert rows.shape == (1797, 64)
    zeros = images[digit == 0]
    np.testing.assert_allclose(rows[: len(zeros)], zeros / np.linalg.norm(zeros, axis=1, keepdims=True))


def test_photographs_are_read_row_by_row():
    from sklearn.datasets import load_sample_images

    rows = runs.STREAMS["photographs"].draw(0, 10_000)
    assert rows.shape == (8480, 64)
    grey = load_sample_images().images[0].astype(float).mean(axis=2)
    patch = grey[8:16, 16:24].ravel()  # second row, third column
    np.testing.assert_allclose(rows[80 + 2], patch / np.linalg.norm(patch))


# ------------------------------------------------------------------------------------------------------------ one run


def play(stream, learner, rounds):
    return runs.play_one(stream=stream, learner=learner, seed=0, horizon=rounds)


def test_a_run_says_what_it_paid():
    run = play("frequent switches", "EfficientPCA", 600)
    assert (run["rounds"], run["dim"], run["rank"]) == (600, 30, 3)
    assert run["eigendecompositions"] == 1.0
    assert 0 < run["leading_loss"] < run["loss"] < 1
    sizes = [len(part) for part in np.array_split(np.arange(600), len(run["curve"]))]
    assert np.average(run["curve"], weights=sizes) == pytest.approx(run["loss"])
    assert sorted(map(int, run["worst_regret"])) == [64, 128, 256]
    again = play("frequent switches", "EfficientPCA", 600)
    assert {k: v for k, v in run.items() if k != "us"} == {k: v for k, v in again.items() if k != "us"}


def test_the_leading_directions_of_adaptive_are_not_counted():
    run = play("still", "AdaptivePCA", 127)
    assert run["eigendecompositions"] * 127 == sum(bin(t).count("1") - 1 for t in range(1, 128))
    assert run["leading_loss"] != run["loss"]


def test_incremental_is_scikit_learns():
    from sklearn.decomposition import IncrementalPCA

    rows = runs.STREAMS["still"].draw(0, 150)
    player, model = runs.Incremental(3), IncrementalPCA(3)
    losses = [player.update(x) for x in rows]
    np.testing.assert_allclose(losses[:50], 1.0)
    model.partial_fit(rows[:50])
    rest = rows[50:100] - model.inverse_transform(model.transform(rows[50:100]))
    np.testing.assert_allclose(losses[50:100], np.sum(rest**2, axis=1), rtol=1e-9)


def test_the_guarantee_is_kept_by_one_and_broken_by_the_other():
    kept, broken = (runs.play_guarantee(learner=name, horizon=2**13) for name in ("EfficientPCA", "DescentPCA"))
    assert kept["broken"] == 0 < broken["broken"]
    assert all(regret <= bound for regret, bound in zip(kept["regret"], kept["bound"], strict=True))
    assert kept["lengths"] == [2**j for j in range(4, 13)]


def test_references_are_in_hindsight():
    reference = runs.play_reference(stream="frequent switches", seed=0, horizon=1000)
    rows = runs.STREAMS["frequent switches"].draw(0, 1000)
    assert reference["fixed"] == pytest.approx(best_subspace(rows, 3).loss / 1000)
    assert reference["pieces"] < reference["fixed"] / 2


# ------------------------------------------------------------------------------------------------------------- report


def test_the_report_is_whole(page, results):
    rows, _, _ = check_report(page, STUDY, results, "losses", "over-time", "guarantee", "time")
    assert len(rows) == len(FEW.streams) * len(runs.LEARNERS)
    assert all(math.isfinite(float(row["loss"])) for row in rows)


def test_tables_hold_what_was_run(results):
    tables = told.tables(results)
    losses = tables["losses"].body
    run = results["run/still/DescentPCA/seed-0"]
    row = next(row for row in losses if row[:2] == ["still", "DescentPCA"])
    assert row[2] == f"{100 * run['loss']:.1f}"
    assert row[3] == f"{100 * run['leading_loss']:.1f}"
    assert [row[0] for row in losses] == sorted((row[0] for row in losses), key=list(runs.STREAMS).index)
    assert sum(row[1].startswith("OjaPCA") for row in losses) == len(FEW.streams)
    assert len(tables["time"].body) == len(FEW.dims)
    said = told.remarks(results)
    assert len(said["against"]) == 6
    assert said["broken"]["EfficientPCA"] == 0


def test_the_best_step_of_oja_is_chosen_in_hindsight(results):
    groups = told.grouped(part(results, "run"))
    for stream in FEW.streams:
        steps = [found[stream][0]["loss"] for name, found in groups.items() if "step" in name]
        assert len(steps) == 4
        assert groups["OjaPCA"][stream][0]["loss"] == min(steps)


def test_without_scikit_learn(monkeypatch):
    def missing(part):
        raise ImportError(part)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"thalweg\[data\]"):
        runs.STREAMS["digits"].draw(0, 10)
    left = available(SIZES["usual"])
    assert not {"digits", "photographs"} & set(left.streams)
    assert not {"IncrementalPCA", "StreamingPCA"} & set(left.learners)
    assert len(left.streams) == 5
